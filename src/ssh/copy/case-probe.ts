/** Whether a directory of this machine treats names that differ only in case as the same. */
import { randomBytes } from 'node:crypto'
import { lstat, mkdir, rmdir } from 'node:fs/promises'
import { type BytePath, bytesOf, joinPath, parentOf } from './byte-path.ts'

const NAME = '.muster-case-'

/** Of a directory, or of the nearest one above it that exists: those made below it are the same in this. */
export async function ignoresCase(path: BytePath): Promise<boolean> {
  let directory = path
  while (!(await isThere(directory)) && parentOf(directory) !== directory) directory = parentOf(directory)
  let probe: BytePath
  try {
    // A directory, because mkdir follows no link.
    probe = joinPath(directory, `${NAME}${randomBytes(6).toString('hex')}`)
    await mkdir(bytesOf(probe))
  } catch {
    // Nothing can be written there at all: what is tried later fails with its own reason.
    return false
  }
  try {
    const random = probe.slice(-12)
    return await isThere(joinPath(directory, `${NAME.toUpperCase()}${random}`))
  } finally {
    await rmdir(bytesOf(probe))
  }
}

function isThere(path: BytePath): Promise<boolean> {
  return lstat(bytesOf(path)).then(
    () => true,
    () => false,
  )
}
