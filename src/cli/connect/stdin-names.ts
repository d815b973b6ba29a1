/** The names that `-` in a target stands for: words of stdin. */
import { MusterError } from '../../base/errors.ts'
import type { CliContext } from '../command-line/context.ts'

const MAX_BYTES = 16 * 2 ** 20

/** True when one of the targets has `-` as an operand. */
export function asksForStdin(...targets: readonly (string | undefined)[]): boolean {
  return targets.some((target) => target !== undefined && /(?:^|[\s,!&^(])-(?=$|[\s,!&^)])/.test(target))
}

/**
 * Reads stdin to its end when a target asks for it.
 * @throws MusterError `usage` when stdin is a terminal
 */
export async function readStdinNames(
  stdin: CliContext['stdin'],
  ...targets: readonly (string | undefined)[]
): Promise<readonly string[] | undefined> {
  if (!asksForStdin(...targets)) return undefined
  if (stdin.isTTY) {
    throw new MusterError('usage', '- stands for names on stdin, and stdin is this terminal', {
      hint: 'Pipe the names in, as in: printf "m8\\nm9\\n" | muster hosts -',
    })
  }
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of stdin) {
    const buffer = typeof chunk === 'string' ? Buffer.from(chunk) : (chunk as Buffer)
    bytes += buffer.length
    if (bytes > MAX_BYTES) throw new MusterError('usage', 'stdin has more than 16 MiB of names')
    chunks.push(buffer)
  }
  return Buffer.concat(chunks)
    .toString('utf8')
    .split(/\s+/)
    .filter((word) => word !== '')
}
