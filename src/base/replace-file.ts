/** A file of the user's own that is replaced as a whole: readers see the old or the new content, and nothing else is left. */
import { randomBytes } from 'node:crypto'
import { renameSync, rmSync, writeFileSync } from 'node:fs'

/** Mode 0600. @throws what node:fs throws; the old file is then unchanged */
export function replaceFile(path: string, content: string): void {
  // The keeper may do the work of several programs at a time.
  const draft = `${path}.${process.pid}-${randomBytes(4).toString('hex')}`
  try {
    writeFileSync(draft, content, { mode: 0o600, flag: 'wx' })
    renameSync(draft, path)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
}
