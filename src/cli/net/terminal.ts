import type { PaneTerminal } from '../../ui/network/pane-screen.ts'
import { guessTheme } from '../../ui/theme/guess-theme.ts'
import type { CliContext, GlobalOptions } from '../command-line/context.ts'
import { colourDepthOf } from '../run-console.ts'

/** The user's terminal, for a screen of a verb's own. */
export function terminalOf(color: GlobalOptions['color'], context: CliContext): PaneTerminal {
  const { environment, signal } = context
  const colourDepth = colourDepthOf(environment, color)
  return {
    stdin: context.stdin as NodeJS.ReadStream,
    stdout: context.stdout as NodeJS.WriteStream & { readonly fd: number },
    colourDepth,
    themeName: colourDepth === 'none' ? 'none' : guessTheme(environment),
    signal,
  }
}
