/** Replaces files as a whole: writes a temporary file beside them, then renames it. */
import { randomBytes } from 'node:crypto'
import { link, open, realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { MusterError, messageOf } from '../base/errors.ts'
import { printable } from '../base/printable.ts'

async function orUndefined<T>(promise: Promise<T>): Promise<T | undefined> {
  try {
    return await promise
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/**
 * Writes a file so that readers see the old or the new text, never a part. A link is followed, the mode is kept.
 * Resolves to false, with nothing written, when the file exists and may not be overwritten.
 * @throws MusterError `configuration`
 */
export async function writeFileAtomically(
  path: string,
  text: string,
  options: { readonly isOverwriting: boolean },
): Promise<boolean> {
  let temporary: string | undefined
  try {
    const target = (await orUndefined(realpath(path))) ?? path
    const existing = await orUndefined(stat(target))
    if (existing && !options.isOverwriting) return false
    temporary = `${target}.${randomBytes(6).toString('hex')}.tmp`
    const file = await open(temporary, 'wx', existing === undefined ? 0o644 : existing.mode & 0o7777)
    try {
      // The process's umask does not apply to a mode that existed before.
      if (existing) await file.chmod(existing.mode & 0o7777)
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    if (options.isOverwriting) await rename(temporary, target)
    else {
      // Unlike rename, link fails if the file exists by now.
      await link(temporary, target)
      await rm(temporary)
    }
    return true
  } catch (error) {
    if (temporary !== undefined) await rm(temporary, { force: true })
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw new MusterError('configuration', `${printable(path)} cannot be written: ${printable(messageOf(error))}`, {
      cause: error,
      hint: `Check that ${printable(dirname(path))} exists and may be written.`,
    })
  }
}
