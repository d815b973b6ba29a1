/** Throws unless a screen can be drawn on this terminal. */
import { MusterError } from '../../base/errors.ts'
import type { CliContext } from '../command-line/verb.ts'
import { isDumb } from '../output/dumb-terminal.ts'

/** `what` draws; `scripts` use something else. */
export function requireTerminal(
  { stdin, stdout, environment }: CliContext,
  what = 'the console',
  scripts = '`muster run` and `muster hosts --json`',
): void {
  if (!stdin.isTTY || !stdout.isTTY) {
    throw new MusterError('usage', `${what} needs a terminal`, {
      hint: `Start it without a pipe; scripts use ${scripts}.`,
    })
  }
  if (isDumb(environment)) {
    throw new MusterError('usage', `${what} cannot draw on a terminal of type dumb`, {
      hint: 'Set TERM to what your terminal is, for example xterm-256color.',
    })
  }
}
