/** The program as users get it: bundled into a directory of the benchmark's own. */
import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundle } from '../../../scripts/build.ts'

export const REPOSITORY = fileURLToPath(new URL('../../..', import.meta.url))

/**
 * Bundles the sources under `root` (this checkout, or another one to compare with) and gives the directory that holds
 * `bin/` and `dist/`; `entries` can be imported by themselves.
 */
export async function buildProduct(directory: string, root: string, entries: readonly string[] = []): Promise<string> {
  const build = join(directory, 'build')
  mkdirSync(build)
  await bundle(root, join(build, 'dist'), entries)
  symlinkSync(join(REPOSITORY, 'node_modules'), join(build, 'node_modules'))
  cpSync(join(root, 'package.json'), join(build, 'package.json'))
  cpSync(join(root, 'bin'), join(build, 'bin'), { recursive: true })
  return build
}
