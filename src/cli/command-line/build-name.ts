/** Which code this is: a process that has run since before an update has another one than the files have now. */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../../base/package-root.ts'

/** Equal for the same files at the same place, with the same version. */
export function buildName(): string {
  const root = packageRoot()
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const code = join(root, import.meta.filename.endsWith('.ts') ? 'src/cli/run/run.ts' : 'dist/run-here.js')
  const { mtimeMs, size } = statSync(code)
  return [code, version, mtimeMs, size].join(' ')
}
