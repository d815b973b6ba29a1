/** The root class of errors that cross layers. What merely happens to a host (a refusal, an exit code) is a value, not an error. */
import { raiseFilesCommand } from './open-files.ts'
import { printable } from './printable.ts'

export type ErrorCode =
  | 'usage' // the command line is wrong: exit code 2
  | 'configuration' // hosts.yaml, preferences or a key file is wrong: exit code 3
  | 'unreachable' // a host did not answer: exit code 4
  | 'refused' // a host answered and refused (key, password, host key): exit code 4
  | 'interrupted' // the user stopped it: exit code 130
  | 'internal' // a defect of ours

export class MusterError extends Error {
  override readonly name = 'MusterError'
  readonly code: ErrorCode
  /** What to do next, as one sentence. */
  readonly hint: string | undefined

  constructor(code: ErrorCode, message: string, options: { hint?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.hint = options.hint
  }
}

/** With what to do next. */
export function sentenceOf(error: unknown): string {
  return error instanceof MusterError ? withHint(error.message, error.hint) : messageOf(error)
}

/** A reason, which may end without a full stop, and the sentence after it. */
export function withHint(reason: string, hint: string | undefined): string {
  return hint ? `${reason}${/[.!?:…]$/.test(reason) ? '' : '.'} ${hint}` : reason
}

/** The message of anything thrown, for a line on a screen. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** For an error that comes from this machine or its limits and is no defect of Muster: one line that says so. */
export function shortageOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOMEM' || (error instanceof RangeError && error.message === 'Array buffer allocation failed'))
    return 'out of memory: the system refused this process more. End other programs, or raise its limit: ulimit -v'
  if (code === 'EMFILE') return `too many open files. Raise the limit: ${raiseFilesCommand(4096)}`
  if (code === 'ENFILE')
    return 'too many open files on this machine. End programs that hold files, or raise fs.file-max'
  return undefined
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'permission denied',
  EISDIR: 'it is a directory',
  ENOTDIR: 'part of its path is not a directory',
  EEXIST: 'something with that name already exists',
  EROFS: 'the file system is read-only',
  ENOSPC: 'no space left on the device',
  EDQUOT: 'the disk quota is used up',
  ELOOP: 'a symbolic link on its path is not followed',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'it is not UTF-8 text',
}

export function fileReason(error: unknown): string {
  return REASONS[(error as NodeJS.ErrnoException).code ?? ''] ?? printable(messageOf(error))
}

/** For an error of writing to the user's state directory: one line. */
export function notKept(path: string, error: unknown): string {
  return `${printable(path)}: ${fileReason(error)} (set XDG_STATE_HOME to use another directory)`
}
