/** Starts a console's process. The first thing that `muster` does, so it loads little. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { readlinkSync, statSync } from 'node:fs'
import { ownCommand } from '../command-line/own-command.ts'
import { CONSOLE_PROCESS, fileIdentity, identityOf } from './messages.ts'

/** `ended` says how the process ended, once it has. */
export type StartedConsole = { readonly child: ChildProcess; readonly ended: Promise<string> }

type Surroundings = {
  readonly stdin: unknown
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly workingDirectory: string
}

/** Starts it on the terminal of this process. */
export function spawnConsole(
  args: readonly string[],
  { stdin, environment, workingDirectory }: Surroundings,
): StartedConsole {
  waitForForeground(stdin)
  const [program = '', ...words] = ownCommand()
  const child = spawn(program, [...words, CONSOLE_PROCESS, terminalPath() ?? '', ...args], {
    cwd: workingDirectory,
    env: environment,
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 0, 1, 'pipe'],
  })
  const ended = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : `killed by ${signal}`))
    child.once('error', (error) => resolve(error.message))
  })
  return { child, ended }
}

/** The system stops a background program that changes the terminal until it is in the foreground. */
export function waitForForeground(stdin: unknown): void {
  const terminal = stdin as { setRawMode?(isRaw: boolean): unknown }
  terminal.setRawMode?.(true)
  terminal.setRawMode?.(false)
}

/** The path of the terminal that is stdin; undefined: it has none here, as in some containers. */
export function terminalPath(): string | undefined {
  // Starting `tty` takes longer.
  const shown = shownPath()
  if (shown !== undefined) return shown
  const { stdout, status } = spawnSync('tty', { stdio: [0, 'pipe', 'ignore'], encoding: 'utf8' })
  const path = stdout?.trim() ?? ''
  return status === 0 && path.startsWith('/') ? path : undefined
}

/** On Linux; undefined if the path is another terminal in this mount namespace. */
function shownPath(): string | undefined {
  try {
    const path = readlinkSync('/proc/self/fd/0')
    return fileIdentity(statSync(path)) === identityOf(0) ? path : undefined
  } catch {
    return undefined
  }
}
