/** Stdin that a signal ends: otherwise Ctrl-C does nothing until the next line, and takes that from the user's shell. */
import { addAbortSignal, type Readable } from 'node:stream'
import type { CliContext } from './verb.ts'

export const stdinOf = ({ stdin, signal }: Pick<CliContext, 'stdin' | 'signal'>): Readable =>
  addAbortSignal(signal, stdin)
