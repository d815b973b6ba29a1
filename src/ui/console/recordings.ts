/** Where recordings go: one folder for each time that recording was switched on, one file a host. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { MusterError } from '../../base/errors.ts'
import { notKept } from '../../base/file-reason.ts'
import { makeOwnDirectories } from '../../base/foreign-place.ts'
import { stateDirectory } from '../../base/user-directories.ts'

/**
 * Makes `recordings/2026-11-21T10-15-30`, or `…-30-2` if there is that one (only the user may look into it); its path.
 * @throws MusterError
 */
export function createRecordingDirectory(
  environment: Readonly<Record<string, string | undefined>>,
  nowMs: number,
): string {
  const stamp = new Date(nowMs).toISOString().slice(0, 19).replaceAll(':', '-')
  const all = join(stateDirectory(environment), 'recordings')
  try {
    makeOwnDirectories(all)
    return makeFirst(all, stamp)
  } catch (error) {
    if (error instanceof MusterError) throw error
    throw new MusterError('configuration', notKept(all, error), { cause: error })
  }
}

function makeFirst(all: string, stamp: string): string {
  for (let count = 1; ; count += 1) {
    const directory = join(all, count === 1 ? stamp : `${stamp}-${count}`)
    try {
      mkdirSync(directory, 0o700)
      return directory
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}
