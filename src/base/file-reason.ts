/** Why a file of this machine could not be used, in words; of what is rare, what the system says. */
import { messageOf } from './errors.ts'
import { printable } from './printable.ts'

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'permission denied',
  EISDIR: 'it is a directory',
  ENOTDIR: 'part of its path is not a directory',
  EEXIST: 'something with that name already exists',
  EROFS: 'the file system is read-only',
  ENOSPC: 'no space left on the device',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'it is not UTF-8 text',
}

export function fileReason(error: unknown): string {
  return REASONS[(error as NodeJS.ErrnoException).code ?? ''] ?? printable(messageOf(error))
}

/** Of what would be kept in the user's state directory, in a line. */
export function notKept(path: string, error: unknown): string {
  return `${printable(path)}: ${fileReason(error)} (set XDG_STATE_HOME to use another directory)`
}
