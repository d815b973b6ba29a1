/** What the user reads when something went wrong. */
import { MusterError, messageOf, shortageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'

const PLACE = /^(?!--)[^\n]+:\d+:\d+: /

/** Lines for stderr, with the hint; a bug of Muster with its stack. */
export function describeError(error: unknown): string {
  // Problems of a file begin with file, line and column, so that an editor finds them.
  const prefix = error instanceof MusterError && PLACE.test(error.message) ? '' : 'muster: '
  if (error instanceof MusterError)
    return `${prefix}${error.message}${error.hint === undefined ? '' : `\n${error.hint}`}\n`
  const shortage = shortageOf(error)
  if (shortage !== undefined) return `muster: ${shortage}\n`
  const text = error instanceof Error ? `a defect of muster itself: ${error.stack ?? error.message}` : messageOf(error)
  // A stack may quote what a host said.
  return `muster: ${text.split('\n').map(printable).join('\n')}\n`
}
