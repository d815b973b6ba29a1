/** The user's terminal, for the screen of a verb. */
import type { OpsHosts } from '../../ops/kernel/host-port.ts'
import type { PaneTerminal } from '../../ui/network/pane-screen.ts'
import { guessTheme } from '../../ui/theme/theme.ts'
import type { CliContext, GlobalOptions } from '../command-line/verb.ts'
import { colourDepthOf } from '../console/run-console.ts'

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

/** For a command that does nothing. */
const SIGN_IN_MS = 10_000

/** Logs in everywhere before a screen opens, so that questions are asked on the plain terminal. */
export async function signIn(names: readonly string[], hosts: OpsHosts, { signal, stderr }: CliContext): Promise<void> {
  if (names.length > 1) stderr.write(`connecting to ${names.length} hosts\n`)
  await Promise.all(names.map((name) => hosts.exec(name, ':', { timeoutMs: SIGN_IN_MS, signal })))
}
