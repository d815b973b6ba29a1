import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'

const ROOT = packageRoot()
const SOURCE = join(ROOT, 'src/terminal/graphemes.ts')
let directory: string
let bundled: string

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'muster-graphemes-'))
  bundled = join(directory, 'graphemes.mjs')
  await build({ entryPoints: [SOURCE], outfile: bundled, bundle: true, format: 'esm', platform: 'node' })
})
afterAll(() => rmSync(directory, { recursive: true }))

it.each([
  'of the sources',
  'as it is bundled',
])('reads the width tables whole, also after a small allocation, %s', (which) => {
  const program = `
    const { poolSize: pool, from } = Buffer;
    Buffer.from = (...given) => {
      if (given[1] === 'base64') while (Buffer.allocUnsafe(16).fill(0).byteOffset !== 0);
      return from.apply(Buffer, given);
    };
    const { installGraphemes } = await import(${JSON.stringify(which === 'of the sources' ? SOURCE : bundled)});
    const unicode = { register(tables) { this.tables = tables } };
    installGraphemes({ unicode });
    console.log(Buffer.poolSize === pool, unicode.tables.wcwidth(0x4e2d), unicode.tables.wcwidth(0x301));`
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '--eval', program],
    { encoding: 'utf8', cwd: ROOT },
  )
  expect([stdout, stderr]).toEqual(['true 2 0\n', ''])
})
