/** What is said when the queue's file cannot be used. */
import { MusterError, messageOf } from '../../base/errors.ts'
import { fileReason } from '../../base/file-reason.ts'

const FULL = 13
/** Where a further file was to be made beside it. */
const NO_ROOM_BESIDE = 4874

/** Primary result codes (sqlite.org/rescode.html), and what mends them. */
const HINTS: Readonly<Record<number, string>> = {
  5: 'Another program holds the file: try again.',
  8: 'Its file system is mounted read-only, or the file belongs to another user.',
  10: 'Its disk cannot be read or written: look at the log of the kernel.',
  [FULL]: 'Its disk is full: nothing of this call was written. Make room and try again.',
  14: 'Its directory cannot be used: look at its owner and mode, or set XDG_STATE_HOME to another place.',
}
const DIRECTORY_HINT =
  'Look at the owner and mode of its directory, and how it is mounted, or set XDG_STATE_HOME to another place.'
const DAMAGED_HINT =
  'Move it away, with -wal and -shm beside it, to begin with an empty queue; what runs on hosts goes on. `sqlite3 FILE .recover` may read what is left.'

export function isSqlite(error: unknown): error is Error & { readonly errcode: number } {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number'
}

/** What became of a call, with what mends it; `what`: the file, for people. */
export function unusable(error: unknown, what: string): MusterError {
  if (error instanceof MusterError) return error
  return new MusterError('configuration', `${what} cannot be used: ${reasonOf(error)}`, {
    hint: hintOf(error),
    cause: error,
  })
}

const isOfSystem = (error: unknown): boolean => error instanceof Error && 'syscall' in error

function reasonOf(error: unknown): string {
  return isOfSystem(error) ? fileReason(error) : messageOf(error)
}

function hintOf(error: unknown): string {
  if (isSqlite(error)) return HINTS[isWithoutRoom(error) ? FULL : error.errcode & 0xff] ?? DAMAGED_HINT
  return isOfSystem(error) ? DIRECTORY_HINT : DAMAGED_HINT
}

/** The call came to nothing because the disk of the queue is full: later it may do. */
export function isQueueFull(error: unknown): boolean {
  return error instanceof MusterError && isSqlite(error.cause) && isWithoutRoom(error.cause)
}

function isWithoutRoom({ errcode }: { readonly errcode: number }): boolean {
  return (errcode & 0xff) === FULL || errcode === NO_ROOM_BESIDE
}
