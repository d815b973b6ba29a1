/** The transport `local`: this machine without SSH. A login shell in a pseudo-terminal, commands in process groups of their own. */

import { accessSync, constants, statSync } from 'node:fs'
import { type Clock, systemClock } from '../../base/clock.ts'
import { connectTcp, connectUnixSocket } from '../../base/connect-stream.ts'
import { defined } from '../../base/defined.ts'
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { PtySpawner } from '../../base/pty.ts'
import { homeDirectory } from '../../base/user-directories.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { ConnectError, type Connection, type RemoteProcess, type Shell, type Transport } from '../transport.ts'
import { openPtyShell, spawnProcess } from './spawn-process.ts'

export type LocalTransportOptions = {
  readonly spawnPty: PtySpawner
  readonly clock?: Clock
  /** May change: later shells and commands get the new values. */
  readonly environment?: Readonly<Record<string, string | undefined>>
  readonly homeDirectory?: string
}

/** Variables that describe the terminal or the npm script around this program, not the user's own environment. */
const NOT_INHERITED = /^(npm_.*|INIT_CWD|COLUMNS|LINES|TERM|TERM_PROGRAM|TERM_PROGRAM_VERSION)$/

export function createLocalTransport(options: LocalTransportOptions): Transport {
  const { spawnPty, clock = systemClock } = options
  const home = options.homeDirectory ?? homeDirectory(process.env)
  const environmentNow = () => inheritedEnvironment(options.environment ?? process.env, home)
  const directory = homeOrRoot(home)
  return {
    async connect(endpoint, { signal }) {
      if (signal.aborted) throw new ConnectError({ kind: 'declined', phase: 'name', reason: 'cancelled' })
      return connection(endpoint)
    },
  }

  function connection(endpoint: Endpoint): Connection {
    const open = new Set<Shell | RemoteProcess>()
    const own = <T extends Shell | RemoteProcess>(opened: T): T => {
      open.add(opened)
      return opened
    }
    return {
      async openShell({ size, term, environment: extra }, handlers) {
        const environment = environmentNow()
        const [file, args] = shellCommand(endpoint, environment)
        try {
          const shell: Shell = openPtyShell(
            spawnPty,
            {
              file,
              args,
              ...size,
              term,
              environment: { ...environment, ...extra, TERM: term },
              directory,
            },
            handlers,
            (end) => {
              open.delete(shell)
              handlers.onEnd(end)
            },
          )
          return own(shell)
        } catch (error) {
          throw new ConnectError(
            { kind: 'configuration', phase: 'shell', reason: printable(`${file}: ${messageOf(error)}`) },
            error,
          )
        }
      },
      async exec(command, handlers) {
        const remote: RemoteProcess = await spawnProcess(
          { file: '/bin/sh', args: ['-c', command], environment: environmentNow(), directory, clock },
          {
            ...handlers,
            onEnd: (end) => {
              open.delete(remote)
              handlers.onEnd(end)
            },
          },
        )
        return own(remote)
      },
      connectSocket: (path) => connectUnixSocket(path),
      connectTcp: (address, port) => connectTcp({ host: address, port }),
      async listenTcp() {
        const reason = 'it is this machine: it has no ports to forward back'
        throw new ConnectError({ kind: 'configuration', phase: 'shell', reason })
      },
      close() {
        for (const each of open) each.close()
        open.clear()
      },
    }
  }
}

/** Where the home directory cannot be entered commands begin in the root directory, as after a login over SSH. */
function homeOrRoot(home: string): string {
  try {
    accessSync(home, constants.X_OK)
    return statSync(home).isDirectory() ? home : '/'
  } catch {
    return '/'
  }
}

/** hosts.yaml's `shell` is a command line, as it is on a remote host; else the login shell. */
function shellCommand(
  { shell }: Endpoint,
  environment: Readonly<Record<string, string>>,
): readonly [string, readonly string[]] {
  if (shell !== undefined) return ['/bin/sh', ['-c', shell]]
  return [environment.SHELL ?? '/bin/sh', ['-l']]
}

/** With a HOME, as sshd sets it: without one, `$HOME/.local` is at the root. */
function inheritedEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  home: string,
): Record<string, string> {
  const all = defined(environment) as Record<string, string>
  const inherited = Object.fromEntries(Object.entries(all).filter(([name]) => !NOT_INHERITED.test(name)))
  return { ...inherited, HOME: inherited.HOME || home }
}
