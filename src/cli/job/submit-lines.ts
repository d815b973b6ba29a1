/** `muster job submit --from FILE`: a job a line. What has arrived together is put on disk together, and then its numbers are printed. */
import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'
import { MusterError } from '../../base/errors.ts'
import { fileReason } from '../../base/file-reason.ts'
import { printable } from '../../base/printable.ts'
import type { CliContext } from '../command-line/context.ts'

/** Of what has no line's end yet. */
const MOST_LINE_BYTES = 1024 * 1024

/**
 * Lines of a file, `-`: of stdin, as they come; empty ones are passed over.
 * @throws MusterError 'usage' when it cannot be read.
 */
export async function* linesOf(file: string, context: CliContext): AsyncGenerator<readonly string[]> {
  const stream = file === '-' ? context.stdin : createReadStream(resolve(context.workingDirectory, file))
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for await (const piece of stream) {
      const parts = (rest + decoder.decode(piece as Uint8Array, { stream: true })).split('\n')
      rest = parts.pop() ?? ''
      if (rest.length > MOST_LINE_BYTES) throw new MusterError('usage', 'a line is too long')
      const lines = parts.filter((line) => line.trim() !== '')
      if (lines.length > 0) yield lines
    }
  } catch (error) {
    if (error instanceof MusterError) throw error
    throw new MusterError('usage', `${printable(file)} cannot be read: ${fileReason(error)}`)
  }
  if (rest.trim() !== '') yield [rest]
}
