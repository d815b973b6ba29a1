/** What is said when the queue's file cannot be used. */
import { MusterError, messageOf } from '../../base/errors.ts'
import { fileReason } from '../../base/file-reason.ts'

const FULL = 13
/** Where a further file was to be made beside it. */
const NO_ROOM_BESIDE = 4874

const BUSY_HINT = 'Another program holds the file: try again.'
const DAMAGED_HINT =
  'Move it away, with -wal and -shm beside it, to begin with an empty queue; what runs on hosts goes on. `sqlite3 FILE .recover` may read what is left.'

/** Primary result codes (sqlite.org/rescode.html), and what mends them. */
const HINTS: Readonly<Record<number, string>> = {
  5: BUSY_HINT,
  6: BUSY_HINT,
  7: 'This machine has too little free memory: make room and try again.',
  8: 'Its file system is mounted read-only, or the file belongs to another user.',
  10: 'Its disk cannot be read or written: look at the log of the kernel.',
  11: DAMAGED_HINT,
  [FULL]: 'Its disk is full: nothing of this call was written. Make room and try again.',
  14: 'Its directory cannot be used: look at its owner and mode, or set XDG_STATE_HOME to another place.',
  15: BUSY_HINT,
  26: DAMAGED_HINT,
}
const DIRECTORY_HINT =
  'Look at the owner and mode of its directory, and how it is mounted, or set XDG_STATE_HOME to another place.'
const BUG_HINT =
  'The file is not damaged: leave it where it is. Nothing of this call was stored. Please report this as a bug of Muster.'

export function isSqlite(error: unknown): error is Error & { readonly errcode: number } {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number'
}

/** What became of a call, with what mends it; `what`: the file, for people. */
export function unusable(error: unknown, what: string): MusterError {
  if (error instanceof MusterError) return error
  const hint = hintOf(error)
  // What the file itself is not to blame for: a constraint, a wrong statement, a value that cannot be stored.
  if (hint === undefined)
    return new MusterError('internal', `${what} refused a call: ${messageOf(error)}`, { hint: BUG_HINT, cause: error })
  return new MusterError('configuration', `${what} cannot be used: ${reasonOf(error)}`, { hint, cause: error })
}

/** What is read from the file is not what was written there. */
export function damaged(what: string, cause?: unknown): MusterError {
  const reason = cause === undefined ? 'it is damaged' : `it is damaged: ${messageOf(cause)}`
  return new MusterError('configuration', `${what} cannot be used: ${reason}`, { hint: DAMAGED_HINT, cause })
}

const isOfSystem = (error: unknown): boolean => error instanceof Error && 'syscall' in error

function reasonOf(error: unknown): string {
  return isOfSystem(error) ? fileReason(error) : messageOf(error)
}

function hintOf(error: unknown): string | undefined {
  if (isSqlite(error)) return HINTS[isWithoutRoom(error) ? FULL : error.errcode & 0xff]
  return isOfSystem(error) ? DIRECTORY_HINT : undefined
}

/** The call came to nothing because the disk of the queue is full: later it may do. */
export function isQueueFull(error: unknown): boolean {
  return error instanceof MusterError && isSqlite(error.cause) && isWithoutRoom(error.cause)
}

function isWithoutRoom({ errcode }: { readonly errcode: number }): boolean {
  return (errcode & 0xff) === FULL || errcode === NO_ROOM_BESIDE
}
