/** Throws unless a screen can be drawn on this terminal. */
import { MusterError } from '../../base/errors.ts'
import type { CliContext } from '../command-line/verb.ts'
import { isDumb } from '../output/dumb-terminal.ts'

export function requireTerminal({ stdin, stdout, environment }: CliContext): void {
  if (!stdin.isTTY || !stdout.isTTY) {
    throw new MusterError('usage', 'the console needs a terminal', {
      hint: 'Start it without a pipe; scripts use `muster run` and `muster hosts --json`.',
    })
  }
  if (isDumb(environment)) {
    throw new MusterError('usage', 'the console cannot draw on a terminal of type dumb', {
      hint: 'Set TERM to what your terminal is, for example xterm-256color.',
    })
  }
}
