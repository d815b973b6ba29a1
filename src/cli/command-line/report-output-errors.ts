/** What could not be printed. */
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { type CliContext, EXIT } from './verb.ts'

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
  // A reader that has seen enough, as `head` does, is no error, nor is a terminal that was closed.
  if (trouble === undefined || trouble.code === 'EPIPE' || (trouble.code === 'EIO' && stdout.isTTY === true))
    return code
  stderr.write(`muster: cannot write to stdout: ${printable(messageOf(trouble))}\n`)
  return code === EXIT.ok ? EXIT.failed : code
}
