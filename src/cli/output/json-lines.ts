/**
 * What `--json` prints: one object a line, each with the version of its schema (`schemas/`). A terminal may be at the other end of
 * stdout, so no text of a host acts on it.
 */
import { printable, printableLines } from '../../base/printable.ts'
import type { CliContext, FieldSelection } from '../command-line/verb.ts'
import { OUTPUT_VERSION } from '../schemas/shape.ts'

/** Empty if the user asked for other lines. */
export function jsonLine(event: object, { selection }: Pick<CliContext, 'selection'>): string {
  const whole = { version: OUTPUT_VERSION, ...event }
  const shown = selection === undefined ? whole : selected(whole, selection)
  return shown === undefined ? '' : `${JSON.stringify(shown, safe)}\n`
}

/** With the `time` of now. */
export function writeEvent(
  event: object,
  { stdout, now, selection }: Pick<CliContext, 'now' | 'selection'> & { stdout: { write(text: string): unknown } },
): void {
  stdout.write(jsonLine({ ...event, time: new Date(now()).toISOString() }, { selection }))
}

/** In the order in which they were given; null where the line has none. */
function selected(event: Readonly<Record<string, unknown>>, { types, fields }: FieldSelection): object | undefined {
  if (!types.has(String(event.type))) return undefined
  return Object.fromEntries(fields.map((name) => [name, event[name] ?? null]))
}

/** Line breaks and tabs stay: JSON escapes them. */
function safe(_: string, value: unknown): unknown {
  if (typeof value === 'string') return printableLines(value)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [printable(name), each]))
}
