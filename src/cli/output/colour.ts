/** Whether output has colours: one decision for the console and for every verb. */
import { styleText } from 'node:util'
import { printable } from '../../base/printable.ts'
import type { CliContext, GlobalOptions } from '../command-line/verb.ts'
import { isDumb } from './dumb-terminal.ts'

type Paint = (format: Parameters<typeof styleText>[0], text: string) => string

/**
 * The first that says something decides: `--color` (or MUSTER_COLOR), NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE, and whether it is a terminal that is not dumb.
 * An empty variable says nothing. Sources: no-color.org, force-color.org, bixense.com/clicolors.
 */
export function isColoured(
  color: GlobalOptions['color'],
  environment: CliContext['environment'],
  isTerminal: boolean,
): boolean {
  const { NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE } = environment
  if (color === 'always' || color === 'never') return color === 'always'
  if (NO_COLOR) return false
  if (FORCE_COLOR) return !['0', 'false'].includes(FORCE_COLOR)
  return (CLICOLOR_FORCE && CLICOLOR_FORCE !== '0') || (isTerminal && !isDumb(environment))
}

/** For stdout; undefined: no colours. */
export function painterOf({ color }: GlobalOptions, { stdout, environment }: CliContext): Paint | undefined {
  return isColoured(color, environment, stdout.isTTY === true)
    ? (format, text) => styleText(format, text, { validateStream: false })
    : undefined
}

/** A line for stderr that is Muster's own among output of hosts, which cannot be bold. */
export function ownLine(text: string, { color }: GlobalOptions, { stderr, environment }: CliContext): string {
  const line = `muster: ${printable(text)}`
  const isBold = isColoured(color, environment, stderr.isTTY === true)
  return `${isBold ? styleText('bold', line, { validateStream: false }) : line}\n`
}
