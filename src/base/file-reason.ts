/** Why a file of this machine could not be used, in words; of what is rare, what the system says. */
import { messageOf } from './errors.ts'
import { printable } from './printable.ts'

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'permission denied',
  EISDIR: 'it is a directory',
  ENOTDIR: 'something in its path is no directory',
  EEXIST: 'something else is there',
  EROFS: 'the file system is read-only',
  ENOSPC: 'no space left on the device',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'it is not text in UTF-8',
}

export function fileReason(error: unknown): string {
  return REASONS[(error as NodeJS.ErrnoException).code ?? ''] ?? printable(messageOf(error))
}

/** Of what would be kept in the user's state directory, in a line. */
export function notKept(path: string, error: unknown): string {
  return `${printable(path)}: ${fileReason(error)} (XDG_STATE_HOME may name another place)`
}
