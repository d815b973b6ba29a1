/** The wires that the verbs use, put together from the rooms: transports, host keys, credentials, and a fleet over them. */

import { spawn } from 'node:child_process'
import { systemClock } from '../../base/clock.ts'
import { packageRoot } from '../../base/package-root.ts'
import type { TransportName } from '../../inventory/host.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { createFleet, type Fleet } from '../../ssh/create-fleet.ts'
import { createCredentialBroker } from '../../ssh/credential-broker.ts'
import { createHostKeyVerifier } from '../../ssh/known-hosts/verifier.ts'
import { createLocalTransport } from '../../ssh/local/local-transport.ts'
import { createOpensshTransport } from '../../ssh/openssh/openssh-transport.ts'
import { keeperDirectory } from '../../ssh/persist/keeper-directory.ts'
import { createPersistTransport } from '../../ssh/persist/persist-transport.ts'
import type { CredentialAsker, CredentialDialog, HostKeyReviewer, HostKeyVerifier } from '../../ssh/questions.ts'
import { createSsh2Transport } from '../../ssh/ssh2/transport.ts'
import type { Transport } from '../../ssh/transport.ts'
import { spawnLocalPty } from '../../terminal/local-pty.ts'
import type { CliContext } from '../command-line/context.ts'
import { ownCommand } from '../command-line/own-command.ts'
import { TtyDialog } from './tty-dialog.ts'

/** TERM of the shells. */
export const SHELL_TERM = 'xterm-256color'

/** Disposing ends helper processes and forgets answers; connections are closed by the code that opened them. */
export type Wires = Disposable & {
  readonly transports: Readonly<Record<TransportName, Transport>>
  readonly hostKeys: HostKeyVerifier
  readonly credentials: CredentialAsker
}

export type WiresOptions = {
  readonly dialog: CredentialDialog
  /** Undefined: new host keys are refused. */
  readonly reviewer?: HostKeyReviewer
  readonly environment: Readonly<Record<string, string | undefined>>
  /** As `--persist`; undefined: as hosts.yaml says. */
  readonly persist?: number | undefined
  onWarning(message: string): void
}

export function createWires({ dialog, reviewer, environment, persist, onWarning }: WiresOptions): Wires {
  const openssh = createOpensshTransport({ spawnPty: spawnLocalPty, environment, ...(reviewer ? { reviewer } : {}) })
  const credentials = createCredentialBroker({ dialog, formatHosts: foldHostSet })
  const kept = createKeptTransport({ direct: createSsh2Transport(), persist, environment, onWarning })
  return {
    transports: {
      ssh2: kept,
      openssh,
      local: createLocalTransport({ spawnPty: spawnLocalPty, environment }),
    },
    hostKeys: createHostKeyVerifier({ ...(reviewer ? { reviewer } : {}), onWarning }),
    credentials,
    [Symbol.dispose]() {
      credentials[Symbol.dispose]()
      openssh[Symbol.dispose]()
      kept[Symbol.dispose]()
    },
  }
}

/** For verbs without a console: questions go to the terminal, warnings to stderr. */
export function createVerbWires(
  { environment, stderr }: CliContext,
  persist: number | undefined,
  dialog: CredentialDialog & HostKeyReviewer = new TtyDialog(),
): Wires {
  const onWarning = (message: string) => stderr.write(`muster: ${message}\n`)
  return createWires({ dialog, reviewer: dialog, environment, persist, onWarning })
}

export function createShellFleet(wires: Wires, fanOut: number): Fleet {
  return createFleet({ ...wires, clock: systemClock, random: Math.random, fanOut, shell: { term: SHELL_TERM } })
}

export type KeptOptions = {
  /** Makes connections that are not kept, and where no keeper can be had. */
  readonly direct: Transport
  /** Seconds after the last use; undefined: what hosts.yaml says of each host. */
  readonly persist?: number | undefined
  readonly environment: Readonly<Record<string, string | undefined>>
  onWarning(message: string): void
}

export function createKeptTransport({ direct, persist, environment, onWarning }: KeptOptions): Transport & Disposable {
  return createPersistTransport({
    directory: keeperDirectory(environment),
    ...(persist === undefined ? {} : { persistMs: persist * 1000 }),
    direct,
    startKeeper: (directory) => startKeeper(directory, environment),
    onWarning,
  })
}

/** In its own session and without a terminal, so that nothing that happens to this process reaches it. */
function startKeeper(directory: string, environment: KeptOptions['environment']): void {
  const [program = '', ...words] = ownCommand()
  const child = spawn(program, [...words, 'keep-connections', directory], {
    cwd: packageRoot(),
    env: environment,
    detached: true,
    stdio: 'ignore',
  })
  // If it did not start, it does not answer.
  child.on('error', () => {})
  child.unref()
}
