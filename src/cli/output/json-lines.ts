/** What `--json` prints: one object a line. A terminal may be at the other end of stdout, so no text of a host acts on it. */
import { printable, printableLines } from '../../base/printable.ts'
import type { CliContext } from '../command-line/verb.ts'

export function jsonLine(event: object): string {
  return `${JSON.stringify(event, safe)}\n`
}

/** With the `time` of now. */
export function writeEvent(
  event: object,
  { stdout, now }: Pick<CliContext, 'now'> & { stdout: { write(text: string): unknown } },
): void {
  stdout.write(jsonLine({ ...event, time: new Date(now()).toISOString() }))
}

/** Line breaks and tabs stay: JSON escapes them. */
function safe(_: string, value: unknown): unknown {
  if (typeof value === 'string') return printableLines(value)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [printable(name), each]))
}
