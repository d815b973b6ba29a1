/** The program as users get it: compiled into a directory of the benchmark's own. */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const REPOSITORY = fileURLToPath(new URL('../../..', import.meta.url))

/** Compiles the sources under `root` (this checkout, or another one to compare with) and gives the directory that holds `dist/`. */
export function buildProduct(directory: string, root: string): string {
  const build = join(directory, 'build')
  mkdirSync(build)
  const tsc = join(REPOSITORY, 'node_modules', '.bin', 'tsc')
  const { stdout } = spawnSync(tsc, ['-p', join(root, 'tsconfig.build.json'), '--outDir', join(build, 'dist')], {
    encoding: 'utf8',
  })
  if (!existsSync(join(build, 'dist', 'main.js'))) throw new Error(`the program cannot be compiled:\n${stdout}`)
  symlinkSync(join(REPOSITORY, 'node_modules'), join(build, 'node_modules'))
  cpSync(join(root, 'package.json'), join(build, 'package.json'))
  return build
}
