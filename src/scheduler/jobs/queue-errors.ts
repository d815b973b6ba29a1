/** What is said when the queue's file cannot be used. */
import { MusterError, messageOf } from '../../base/errors.ts'

/** Primary result codes (sqlite.org/rescode.html), and what mends them. */
const HINTS: Readonly<Record<number, string>> = {
  5: 'Another program holds the file: try again.',
  8: 'Its file system is mounted read-only, or the file belongs to another user.',
  10: 'Its disk cannot be read or written: look at the log of the kernel.',
  13: 'Its disk is full: nothing of this call was written. Make room and try again.',
  14: 'Its directory cannot be used: look at its owner and mode.',
}
const DAMAGED_HINT = 'Move the file away to begin with an empty queue; what runs on hosts goes on.'

export function isSqlite(error: unknown): error is Error & { readonly errcode: number } {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number'
}

/** What became of a call, with what mends it; `what`: the file, for people. */
export function unusable(error: unknown, what: string): MusterError {
  if (error instanceof MusterError) return error
  const hint = isSqlite(error) ? HINTS[error.errcode & 0xff] : undefined
  return new MusterError('configuration', `${what} cannot be used: ${messageOf(error)}`, {
    hint: hint ?? DAMAGED_HINT,
    cause: error,
  })
}
