/** What operations need of hosts, over SSH: scripts on one shared login a host, ended with everything that they started. */

import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { onAbort } from '../../base/abort.ts'
import { systemClock } from '../../base/clock.ts'
import { defined } from '../../base/defined.ts'
import { MusterError, messageOf } from '../../base/errors.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import { printable } from '../../base/printable.ts'
import type { Secret } from '../../base/secret.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { localEndpoint } from '../../inventory/resolve-endpoints.ts'
import {
  type DeliverOptions,
  type FileDelivery,
  MOST_STDERR_BYTES,
  MOST_STDOUT_BYTES,
  type OpsHosts,
  type ScriptOptions,
  type ScriptResult,
  THIS_MACHINE,
} from '../../ops/kernel/host-port.ts'
import { outcomeOf } from '../../ops/run/outcome.ts'
import { createFleetTransport, type Fleet } from '../../ssh/create-fleet.ts'
import { createHostExec, type ExecEnd, fileOf, type HostExecutor } from '../../ssh/exec/host-exec.ts'
import { ScriptShell, type ScriptShellHandlers } from '../../ssh/exec/script-shell.ts'
import type { CredentialDialog, HostKeyReviewer } from '../../ssh/questions.ts'
import { shareConnections } from '../../ssh/share-connections.ts'
import { connectTo, type Transport } from '../../ssh/transport.ts'
import type { CliContext, GlobalOptions } from '../command-line/verb.ts'
import type { CarrierWires, FileCarrier } from './carry-files.ts'
import { createVerbWires, fanOutFor, requireRoomFor } from './transports.ts'
import { askSudoOnce, TtyDialog } from './tty-dialog.ts'

export type OpsHostsOptions = CarrierWires & {
  /** Ends everything, logins too. */
  readonly signal: AbortSignal
  sudoPassword?(): Promise<Secret | undefined>
}

/** A host that prints more than this where nothing reads along is cut off. */
const FLOOD_BYTES = 64 * 1024 * 1024
/** Hosts that files are brought to at once, over the connections of a console. */
const FILES_AT_ONCE = 64
const ID_TIMEOUT_MS = 10_000
/** The script is not in a command line while it runs, so that a search of command lines does not find it. */
const COMMAND = 'eval "unset MUSTER_SCRIPT; $MUSTER_SCRIPT"'

export function createOpsHosts(endpoints: readonly Endpoint[], options: OpsHostsOptions): SshOpsHosts {
  const byName = new Map(endpoints.map((endpoint) => [endpoint.host, endpoint]))
  const shared = shareConnections(options.transports, { ...options, clock: systemClock })
  const endpointOf = (host: string): Endpoint => {
    const endpoint = byName.get(host)
    if (endpoint === undefined) throw new MusterError('internal', `there is no host ${host}`)
    return endpoint
  }
  return new SshOpsHosts(endpointOf, { ...options, transports: shared.transports }, shared)
}

/**
 * Over the connections that a console has: it opens none, and a host that has none now is not reached. What areas do on this machine
 * itself needs none.
 */
export function createFleetOpsHosts(
  fleet: Pick<Fleet, 'endpoint' | 'connection' | 'session' | 'on'>,
  options: Omit<OpsHostsOptions, 'fanOut' | 'signal'>,
): OpsHosts {
  const transport = createFleetTransport(fleet)
  const here = localEndpoint(THIS_MACHINE)
  const endpointOf = (host: string) => fleet.endpoint(host) ?? (host === THIS_MACHINE ? here : undefined)
  const local: Transport = {
    connect: (endpoint, context) =>
      ((endpoint === here ? options.transports.local : undefined) ?? transport).connect(endpoint, context),
  }
  const transports = { ssh2: transport, openssh: transport, local }
  return new SshOpsHosts(endpointOf, { ...options, transports, fanOut: FILES_AT_ONCE })
}

const FLOODED = {
  kind: 'refused',
  reason: `it printed more than ${formatBytes(FLOOD_BYTES)} instead of a short answer, and was cut off`,
} as const

const notReached = (reason: string): ScriptResult => ({
  outcome: { kind: 'unreachable', reason },
  stdout: new Uint8Array(),
  stderr: new Uint8Array(),
  durationMs: 0,
})

const NOT_HERE = notReached('it is not open in the console')

/** The same hosts, without those that must not be reached; `reasonAgainst`: why not. */
export function withoutSome(hosts: OpsHosts, reasonAgainst: (host: string) => string | undefined): OpsHosts {
  const refused = (host: string): ScriptResult | undefined => {
    const reason = reasonAgainst(host)
    return reason === undefined ? undefined : notReached(reason)
  }
  return {
    ...defined({ connectSocket: hosts.connectSocket?.bind(hosts) }),
    exec: async (host, ...rest) => refused(host) ?? (await hosts.exec(host, ...rest)),
    ...(hosts.deliver && {
      deliver: async (host, ...rest) => refused(host) ?? (await hosts.deliver?.(host, ...rest)) ?? NOT_HERE,
    }),
  }
}

class SshOpsHosts implements Required<OpsHosts>, Disposable {
  /** Undefined for a host that is not reached. */
  readonly #endpoint: (host: string) => Endpoint | undefined
  readonly #wires: Omit<OpsHostsOptions, 'signal'> & { readonly token: string }
  readonly #exec: HostExecutor
  readonly #connections: Disposable | undefined
  /** What hangs up, for everything that runs. */
  readonly #running = new Set<() => void>()
  #carrier: Promise<FileCarrier> | undefined
  /** Whether the login is root, asked once a host. */
  readonly #roots = new Map<string, Promise<boolean>>()

  /** `connections` close with it. */
  constructor(
    endpoint: (host: string) => Endpoint | undefined,
    wires: Omit<OpsHostsOptions, 'signal'>,
    connections?: Disposable,
  ) {
    this.#endpoint = endpoint
    this.#wires = { ...wires, token: randomBytes(8).toString('hex') }
    this.#exec = createHostExec({ ...this.#wires, clock: systemClock })
    this.#connections = connections
  }

  async exec(host: string, script: string, options: ScriptOptions): Promise<ScriptResult> {
    const endpoint = this.#endpoint(host)
    if (endpoint === undefined) return NOT_HERE
    const isSudo = options.asRoot === true && !(await this.#isRoot(endpoint, options.signal))
    return await this.#run(endpoint, script, options, isSudo)
  }

  /** Does not wait: hosts stop what has lost its connection. */
  [Symbol.dispose](): void {
    for (const hangUp of this.#running) hangUp()
    this.#connections?.[Symbol.dispose]()
  }

  openShell(host: string, handlers: ScriptShellHandlers): ScriptShell {
    const endpoint = this.#endpoint(host)
    if (endpoint === undefined) throw new MusterError('internal', `${host} is not reached`)
    return new ScriptShell(endpoint, { ...this.#wires, clock: systemClock }, handlers)
  }

  async deliver(host: string, delivery: FileDelivery, options: DeliverOptions): Promise<ScriptResult> {
    const to = this.#endpoint(host)
    const from = delivery.from === undefined ? undefined : this.#endpoint(delivery.from)
    if (to === undefined || (delivery.from !== undefined && from === undefined)) return NOT_HERE
    this.#carrier ??= import('./carry-files.ts').then(({ FileCarrier }) => new FileCarrier(this.#wires))
    return await (await this.#carrier).carry(to, { ...delivery, from }, options)
  }

  async connectSocket(host: string, path: string, signal: AbortSignal): Promise<Duplex> {
    const endpoint = this.#endpoint(host)
    if (endpoint === undefined) throw new Error(`${host} is not open in the console`)
    const connection = await connectTo(endpoint, this.#wires, signal)
    try {
      return await connection.connectSocket(path)
    } catch (error) {
      const reason = printable(messageOf(error))
      const isForbidden = /prohibited|forward/i.test(reason)
      const hint = isForbidden ? `. Allow it in its sshd_config: AllowStreamLocalForwarding yes` : ''
      throw new Error(reason + hint, { cause: error })
    }
  }

  #isRoot(endpoint: Endpoint, signal: AbortSignal): Promise<boolean> {
    if (endpoint.user === 'root') return Promise.resolve(true)
    const asked = this.#roots.get(endpoint.host) ?? this.#askForRoot(endpoint, signal)
    this.#roots.set(endpoint.host, asked)
    return asked
  }

  async #askForRoot(endpoint: Endpoint, signal: AbortSignal): Promise<boolean> {
    const { outcome, stdout } = await this.#run(endpoint, 'id -u', { timeoutMs: ID_TIMEOUT_MS, signal }, false)
    if (outcome.kind !== 'exit') this.#roots.delete(endpoint.host)
    return Buffer.from(stdout).toString().trim() === '0'
  }

  #run(endpoint: Endpoint, script: string, options: ScriptOptions, isSudo: boolean): Promise<ScriptResult> {
    const { timeoutMs, signal, stdin, turn, isBrief = false, endsLast = false, onOutput } = options
    const sinceMs = systemClock.now()
    const streams = {
      stdout: new Kept(MOST_STDOUT_BYTES, (text) => onOutput?.('stdout', text)),
      stderr: new Kept(MOST_STDERR_BYTES, (text) => onOutput?.('stderr', text)),
    }
    return new Promise((resolve) => {
      let cause: 'timeout' | 'cancelled' | undefined
      let isFlooded = false
      let timer: Disposable | undefined
      let abort: Disposable | undefined
      const finish = (end: ExecEnd): void => {
        timer?.[Symbol.dispose]()
        abort?.[Symbol.dispose]()
        this.#running.delete(hangUp)
        resolve({
          outcome: isFlooded ? FLOODED : outcomeOf(end, cause),
          stdout: streams.stdout.bytes(),
          stderr: streams.stderr.bytes(),
          durationMs: systemClock.now() - sinceMs,
        })
      }
      const running = this.#exec.start(
        endpoint,
        {
          command: COMMAND,
          isForSh: true,
          environment: { MUSTER_SCRIPT: script },
          isBrief,
          endsLast,
          isHeld: turn !== undefined,
          // It waits for an earlier script of its own host, which must not wait for it.
          isLasting: turn !== undefined || !Number.isFinite(timeoutMs),
          ...defined({ stdin: fileOf(stdin) }),
          ...(isSudo ? { sudoPassword: async () => await this.#wires.sudoPassword?.() } : {}),
        },
        {
          onBegin: () => {
            if (turn === undefined) limit()
            else void turn.then(goOn)
          },
          onStdout: (bytes) => take('stdout', bytes),
          onStderr: (bytes) => take('stderr', bytes),
          onEnd: finish,
        },
      )
      const take = (name: 'stdout' | 'stderr', bytes: Uint8Array) => {
        streams[name].push(bytes)
        if (onOutput !== undefined || isFlooded || streams[name].passedBytes <= FLOOD_BYTES) return
        isFlooded = true
        running.abandon()
        finish({ kind: 'cancelled' })
      }
      const limit = () => {
        if (!Number.isFinite(timeoutMs)) return
        timer = systemClock.after(timeoutMs, () => {
          cause ??= 'timeout'
          running.stop()
        })
      }
      const goOn = () => {
        if (!this.#running.has(hangUp)) return
        running.go()
        limit()
      }
      const cancel = () => {
        cause ??= 'cancelled'
        running.stop()
      }
      const hangUp = () => {
        running.abandon()
        cause ??= 'cancelled'
        finish({ kind: 'cancelled' })
      }
      this.#running.add(hangUp)
      abort = onAbort(signal, cancel)
    })
  }
}

/** Keeps the beginning of a stream, and passes on all of it as text. */
class Kept {
  readonly #limit: number
  readonly #onText: (text: string) => void
  readonly #decoder = new TextDecoder()
  readonly #chunks: Uint8Array[] = []
  #size = 0
  passedBytes = 0

  constructor(limitBytes: number, onText: (text: string) => void) {
    this.#limit = limitBytes
    this.#onText = onText
  }

  push(bytes: Uint8Array): void {
    this.passedBytes += bytes.length
    this.#onText(this.#decoder.decode(bytes, { stream: true }))
    const part = bytes.subarray(0, Math.max(0, this.#limit - this.#size))
    this.#size += part.length
    if (part.length > 0) this.#chunks.push(part)
  }

  bytes(): Uint8Array {
    return Buffer.concat(this.#chunks)
  }
}

export type OpenedHosts = Disposable & { readonly hosts: SshOpsHosts; readonly fanOut: number }

/** `changed`: the hosts on which root may be needed (default: all). Disposing closes the logins. */
export function openOpsHosts(
  endpoints: readonly Endpoint[],
  options: GlobalOptions,
  context: CliContext,
  dialog: CredentialDialog & HostKeyReviewer = new TtyDialog(),
  changed: readonly string[] = endpoints.map(({ host }) => host),
): OpenedHosts {
  const wires = createVerbWires(context, options.persist, dialog)
  requireRoomFor(endpoints)
  const fanOut = fanOutFor(endpoints.length, options, context)
  const hosts = createOpsHosts(endpoints, {
    ...wires,
    fanOut,
    signal: context.signal,
    sudoPassword: askSudoOnce(dialog, changed),
  })
  return {
    hosts,
    fanOut,
    [Symbol.dispose]() {
      hosts[Symbol.dispose]()
      wires[Symbol.dispose]()
    },
  }
}
