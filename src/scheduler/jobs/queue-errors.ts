/** Errors for when the queue's file cannot be used. */
import { fileReason, MusterError, messageOf } from '../../base/errors.ts'

const FULL = 13
/** SQLITE_IOERR_SHMSIZE: the file beside it cannot grow. */
const NO_ROOM_BESIDE = 4874

const BUSY_HINT = 'Another program has locked the file. Try again.'
const DAMAGED_HINT =
  'Move it and its -wal and -shm files away to start with an empty queue; running jobs continue. `sqlite3 FILE .recover` may recover data.'

/** Primary result codes (sqlite.org/rescode.html), with what to do. */
const HINTS: Readonly<Record<number, string>> = {
  5: BUSY_HINT,
  6: BUSY_HINT,
  7: 'This machine is short of memory. Free some and try again.',
  8: 'Its file system is mounted read-only, or another user owns the file.',
  10: 'Its disk fails to read or write. Check the kernel log.',
  11: DAMAGED_HINT,
  [FULL]: 'Its disk is full, and nothing was stored. Make room and try again.',
  14: 'Check the owner and mode of its directory, or set XDG_STATE_HOME to another directory.',
  15: BUSY_HINT,
  26: DAMAGED_HINT,
}
const DIRECTORY_HINT = 'Check the owner, mode and mount of its directory, or set XDG_STATE_HOME to another directory.'
const BUG_HINT =
  'The file is not damaged; leave it where it is. Nothing was stored. Please report this as a bug in Muster.'

export function isSqlite(error: unknown): error is Error & { readonly errcode: number } {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number'
}

/** `what`: the file, for people. */
export function unusable(error: unknown, what: string): MusterError {
  if (error instanceof MusterError) return error
  const hint = hintOf(error)
  // The file is not to blame: a constraint, a wrong statement, a value that cannot be stored.
  if (hint === undefined)
    return new MusterError('internal', `${what} refused a call: ${messageOf(error)}`, { hint: BUG_HINT, cause: error })
  return new MusterError('configuration', `${what} cannot be used: ${reasonOf(error)}`, { hint, cause: error })
}

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

/** The disk of the queue is full: the call may succeed later. */
export function isQueueFull(error: unknown): boolean {
  return error instanceof MusterError && isSqlite(error.cause) && isWithoutRoom(error.cause)
}

function isWithoutRoom({ errcode }: { readonly errcode: number }): boolean {
  return (errcode & 0xff) === FULL || errcode === NO_ROOM_BESIDE
}
