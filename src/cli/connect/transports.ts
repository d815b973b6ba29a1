/** The wires that the verbs use, put together from the rooms: transports, host keys, credentials, and a fleet over them. */

import { spawn } from 'node:child_process'
import { systemClock } from '../../base/clock.ts'
import { counted } from '../../base/counted.ts'
import { MusterError } from '../../base/errors.ts'
import { freeFiles, type OpenFiles, openFiles, raiseFilesCommand } from '../../base/open-files.ts'
import { packageRoot } from '../../base/package-root.ts'
import type { Endpoint, TransportName } from '../../inventory/host.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { createFleet, type Fleet } from '../../ssh/create-fleet.ts'
import { CredentialBroker } from '../../ssh/credential-broker.ts'
import { createHostKeyVerifier } from '../../ssh/known-hosts/verifier.ts'
import { lazyTransport } from '../../ssh/lazy-transport.ts'
import { keeperDirectory } from '../../ssh/persist/keeper-directory.ts'
import { createPersistTransport } from '../../ssh/persist/persist-transport.ts'
import type { CredentialAsker, CredentialDialog, HostKeyReviewer, HostKeyVerifier } from '../../ssh/questions.ts'
import type { Transport } from '../../ssh/transport.ts'
import type { spawnLocalPty } from '../../terminal/local-pty.ts'
import { ownCommand } from '../command-line/own-command.ts'
import type { CliContext, GlobalOptions } from '../command-line/verb.ts'
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
  /** In the keeper: its connections. */
  readonly kept?: Transport & Partial<Disposable>
  onWarning(message: string): void
}

export function createWires({ dialog, reviewer, environment, persist, kept: given, onWarning }: WiresOptions): Wires {
  const openssh = lazyTransport(async () => {
    const { createOpensshTransport } = await import('../../ssh/openssh/openssh-transport.ts')
    return createOpensshTransport({ spawnPty: await loadPtys(), environment, ...(reviewer ? { reviewer } : {}) })
  })
  const credentials = new CredentialBroker({ dialog, formatHosts: foldHostSet })
  const ssh2 = lazyTransport(async () => (await import('../../ssh/ssh2/transport.ts')).createSsh2Transport())
  const kept: Transport & Partial<Disposable> =
    given ?? createKeptTransport({ direct: ssh2, persist, environment, onWarning })
  return {
    transports: {
      ssh2: followAgent(kept, environment),
      openssh: followAgent(openssh, environment),
      local: lazyTransport(async () => {
        const { createLocalTransport } = await import('../../ssh/local/local-transport.ts')
        return createLocalTransport({ spawnPty: await loadPtys(), environment })
      }),
    },
    hostKeys: createHostKeyVerifier({ ...(reviewer ? { reviewer } : {}), onWarning }),
    credentials,
    [Symbol.dispose]() {
      credentials[Symbol.dispose]()
      openssh[Symbol.dispose]()
      kept[Symbol.dispose]?.()
    },
  }
}

const loadPtys = async (): Promise<typeof spawnLocalPty> => (await import('../../terminal/local-pty.ts')).spawnLocalPty

/** After an attach from another login, the agent of that login is used; the agent of the first one may no longer run. */
export function followAgent(transport: Transport, environment: WiresOptions['environment']): Transport {
  const first = environment.SSH_AUTH_SOCK
  const withAgent = (endpoint: Endpoint): Endpoint => {
    const now = environment.SSH_AUTH_SOCK
    if (now === first || now === undefined || first === undefined) return endpoint
    const jump = endpoint.jump.map(withAgent)
    return { ...endpoint, jump, ...(endpoint.agentSocket === first ? { agentSocket: now } : {}) }
  }
  return { connect: (endpoint, context) => transport.connect(withAgent(endpoint), context) }
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

export type KeptOptions = Omit<WiresOptions, 'dialog' | 'reviewer'> & {
  /** Makes connections that are not kept, and where no keeper can be had. */
  readonly direct: Transport
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

const USUAL = 64
/** For Muster itself: code that is loaded later, files to copy, the terminal, the SSH agent. */
const OWN_FILES = 8
/**
 * A host has a socket or the pipes and the terminal of `ssh`, and while a program starts both ends of its pipes are open
 * here: two for each of three streams and two more.
 */
const FILES_A_HOST = 8

/** While its connection stays open: a socket, or else the terminals of `ssh` and of its shell. */
const filesKept = ({ transport }: Pick<Endpoint, 'transport'>): number => (transport === 'ssh2' ? 1 : 3)

const enoughFor = (hosts: number): number => Math.max(1024, 2 * (OWN_FILES + 32 + hosts * FILES_A_HOST))

/**
 * `hosts`: how many there are. Warns on stderr when the result is below --fan-out.
 * @throws MusterError `usage` when not even one host fits
 */
export function fanOutFor(
  hosts: number,
  { fanOut = USUAL }: GlobalOptions,
  { stderr }: Pick<CliContext, 'stderr'>,
  files: OpenFiles | undefined = openFiles(),
): number {
  const wanted = Math.min(fanOut, Math.max(1, hosts))
  const room = Math.floor((freeFiles(files) - OWN_FILES) / FILES_A_HOST)
  if (files === undefined || room >= wanted) return fanOut
  const raise = `Raise the limit: ${raiseFilesCommand(enoughFor(wanted))}`
  if (room < 1)
    throw new MusterError('usage', `this process may open only ${files.limit} files, too few for a single host`, {
      hint: raise,
    })
  stderr.write(
    `muster: this process may open only ${files.limit} files: ${counted(room, 'host')} at once instead of ${wanted}. ${raise}\n`,
  )
  return room
}

/** @throws MusterError `usage` when connections that stay open together, as those of a console, have no room. */
export function requireRoomFor(
  endpoints: readonly Pick<Endpoint, 'transport'>[],
  files: OpenFiles | undefined = openFiles(),
): void {
  const needed = endpoints.reduce((sum, endpoint) => sum + filesKept(endpoint), OWN_FILES)
  if (files === undefined || freeFiles(files) >= needed) return
  const hosts = endpoints.length
  throw new MusterError(
    'usage',
    `this process may open only ${files.limit} files, too few for connections to ${hosts} hosts that stay open`,
    { hint: `Raise the limit: ${raiseFilesCommand(enoughFor(hosts))}` },
  )
}
