/** What could not be printed. */
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { type CliContext, EXIT } from './verb.ts'

/** A reader that has seen enough, as `head` does, is no error, nor is a terminal that was closed. */
const isUnread = ({ code }: NodeJS.ErrnoException, { isTTY }: { readonly isTTY?: boolean }): boolean =>
  code === 'EPIPE' || (code === 'EIO' && isTTY === true)

/** For a verb that only prints what goes on, until it ends: without a reader there is nothing left to do, as for `tail -f`. */
export class ReaderGone implements Disposable {
  readonly #gone = new AbortController()
  readonly #streams: readonly CliContext['stderr'][]

  constructor({ stdout, stderr }: Pick<CliContext, 'stdout' | 'stderr'>) {
    // What it prints on stderr may be all that there is to read, as with `2>&1 | grep`.
    this.#streams = [stdout, stderr]
    for (const stream of this.#streams) stream.on('error', this.#check)
  }

  get signal(): AbortSignal {
    return this.#gone.signal
  }

  [Symbol.dispose](): void {
    for (const stream of this.#streams) stream.off('error', this.#check)
  }

  readonly #check = (error: NodeJS.ErrnoException): void => {
    if (this.#streams.some((stream) => isUnread(error, stream))) this.#gone.abort()
  }
}

/** Says on stderr that stdout could not be written, which is not a success. */
export async function reportOutputErrors(
  { stdout, stderr }: Pick<CliContext, 'stdout' | 'stderr'>,
  run: () => Promise<number>,
): Promise<number> {
  let trouble: NodeJS.ErrnoException | undefined
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    trouble ??= error
  })
  stderr.on('error', () => {})
  const code = await run()
  // Streams report errors of what was just written a moment later.
  await new Promise(setImmediate)
  if (trouble === undefined || isUnread(trouble, stdout)) return code
  stderr.write(`muster: cannot write to stdout: ${printable(messageOf(trouble))}\n`)
  return code === EXIT.ok ? EXIT.failed : code
}
