/** Where recordings go: one folder for each time that recording was switched on, one file a host. */
import { join } from 'node:path'
import { makeDirectories } from '../../base/make-directories.ts'
import { stateDirectory } from '../../base/user-directories.ts'

/** Makes `recordings/2026-11-21T10-15-30` (only the user may look into it) and gives its path. */
export function createRecordingDirectory(
  environment: Readonly<Record<string, string | undefined>>,
  nowMs: number,
): string {
  const stamp = new Date(nowMs).toISOString().slice(0, 19).replaceAll(':', '-')
  const directory = join(stateDirectory(environment), 'recordings', stamp)
  makeDirectories(directory, 0o700)
  return directory
}
