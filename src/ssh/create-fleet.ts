/** The fleet: feeds each session's transitions, does what the new state asks for, and fans typed bytes out. */
import { untilAborted } from '../base/abort.ts'
import type { Clock } from '../base/clock.ts'
import { getOrMake } from '../base/collections.ts'
import { Emitter } from '../base/emitter.ts'
import { MusterError, messageOf } from '../base/errors.ts'
import { printable } from '../base/printable.ts'
import type { Endpoint } from '../inventory/host.ts'
import { ConnectGate, type Lease, lendWhileAsking } from './connect-gate.ts'
import { type FleetEvent, HostShell, type ShellEnvironment, type ShellState, type WriteReport } from './host-shell.ts'
import { isAttempting, type SessionEvent, type SessionState, transition } from './session-transition.ts'
import {
  type Askers,
  type Channel,
  type ChannelEnd,
  ConnectError,
  type ConnectFailure,
  type Connection,
  type ConnectPhase,
  connectTo,
  type ExecHandlers,
  type FailureKind,
  failureOf,
  type ShellSize,
  type Transport,
  type Transports,
} from './transport.ts'

export type FleetOptions = Askers & {
  readonly transports: Transports
  readonly clock: Clock
  /** In [0, 1), for the jitter. */
  readonly random: () => number
  /** Connections that are set up at once; hosts that wait for a person do not count. */
  readonly fanOut?: number
  /** What shells are opened with; undefined: the fleet opens none (commands only). */
  readonly shell?: ShellEnvironment
  /** Whether hosts that are lost or unreachable are retried for ever (default), or not at all. */
  readonly retries?: boolean
}

const DEFAULT_SIZE = { columns: 80, rows: 24 }
/** The sizes of one drag of a window's corner become one message. */
const RESIZE_AFTER_MS = 25

type Member = {
  readonly endpoint: Endpoint
  readonly shell: HostShell
  state: SessionState
  banner: string
  connection?: Connection | undefined
  attempt?: { readonly abort: AbortController; readonly lease: Lease } | undefined
  timer?: Disposable | undefined
  wasReady: boolean
  /** A shell that the user left with `exit` does not come back by itself. */
  wantsShell: boolean
}

export type { FleetEvent, ShellState, WriteReport } from './host-shell.ts'
export type Fleet = Pick<SessionFleet, keyof SessionFleet>

export const createFleet = (options: FleetOptions): Fleet => new SessionFleet(options)

/** The connections to all hosts, with one shell on each. A slow or dead host never holds back another. */
class SessionFleet implements Disposable {
  readonly #options: FleetOptions
  readonly #clock: Clock
  readonly #retries: boolean
  readonly #gate: ConnectGate
  readonly #emitter = new Emitter<FleetEvent>()
  readonly #members = new Map<string, Member>()
  readonly #unsized = new Set<HostShell>()
  /** Undefined: hosts came or went since it was asked for. */
  #hosts: readonly string[] | undefined
  #resizeTimer: Disposable | undefined
  #isDisposed = false

  constructor(options: FleetOptions) {
    this.#options = options
    this.#clock = options.clock
    this.#retries = options.retries ?? true
    this.#gate = new ConnectGate(options.fanOut ?? 64)
  }

  get hosts(): readonly string[] {
    this.#hosts ??= [...this.#members.keys()]
    return this.#hosts
  }

  endpoint(host: string): Endpoint | undefined {
    return this.#members.get(host)?.endpoint
  }

  session(host: string): SessionState {
    return this.#members.get(host)?.state ?? { kind: 'closed' }
  }

  shell(host: string): ShellState {
    return this.#members.get(host)?.shell.state ?? { kind: 'none' }
  }

  connection(host: string): Connection | undefined {
    return this.#members.get(host)?.connection
  }

  on(listener: (event: FleetEvent) => void): Disposable {
    return this.#emitter.on(listener)
  }

  /** In state idle; an error if the name is taken. */
  add(endpoint: Endpoint): void {
    const { host } = endpoint
    if (this.#members.has(host)) {
      throw new MusterError('configuration', `The fleet has a host named ${printable(host)} already.`, {
        hint: 'Give the new host another name.',
      })
    }
    const shell = new HostShell(host, DEFAULT_SIZE, (event) => {
      if (event.type === 'shell' && event.state.kind === 'ended' && event.state.end.kind === 'exit')
        member.wantsShell = false
      this.#emit(event)
    })
    const member: Member = { endpoint, shell, state: { kind: 'idle' }, banner: '', wasReady: false, wantsShell: true }
    this.#members.set(host, member)
    this.#hosts = undefined
    this.#emit({ type: 'added', host })
  }

  remove(host: string): void {
    const member = this.#members.get(host)
    if (member === undefined) return
    this.#close(member)
    this.#unsized.delete(member.shell)
    this.#members.delete(host)
    this.#hosts = undefined
    this.#emit({ type: 'removed', host })
  }

  /** Connects hosts that are idle, closed, failed, lost or waiting, at once. A shell is opened when the session is ready. */
  connect(hosts: readonly string[]): void {
    for (const member of this.#named(hosts)) if (needsConnect(member)) this.#connect(member)
  }

  /** Like `connect`; a ready host whose shell ended gets a new shell; a live one is left alone. */
  reconnect(hosts: readonly string[]): void {
    for (const member of this.#named(hosts)) {
      if (needsConnect(member)) this.#connect(member)
      else {
        member.wantsShell = true
        this.#openShell(member)
      }
    }
  }

  /** Hangs up and stays closed until `connect`. */
  close(hosts: readonly string[]): void {
    for (const member of this.#named(hosts)) this.#close(member)
  }

  /** Typed bytes, in order, side by side. Never throws, never waits. The buffer must not be changed afterwards. */
  write(hosts: readonly string[], bytes: Uint8Array): WriteReport {
    const sent: string[] = []
    const skipped: { host: string; reason: string }[] = []
    const discarded: { host: string; bytes: number }[] = []
    for (const host of hosts) {
      const member = this.#members.get(host)
      const reason = member === undefined ? WAITING : writeTo(member, bytes)
      if (reason !== undefined) {
        skipped.push({ host, reason })
        continue
      }
      sent.push(host)
      const discardedBytes = member?.shell.discardedBytes ?? 0
      if (discardedBytes > 0) discarded.push({ host, bytes: discardedBytes })
    }
    return discarded.length === 0 ? { sent, skipped } : { sent, skipped, discarded }
  }

  resize(host: string, size: ShellSize): void {
    const shell = this.#members.get(host)?.shell
    if (shell === undefined || !shell.resize(size)) return
    this.#unsized.add(shell)
    this.#resizeTimer ??= this.#clock.after(RESIZE_AFTER_MS, () => {
      this.#resizeTimer = undefined
      for (const each of this.#unsized) each.applySize()
      this.#unsized.clear()
    })
  }

  pause(host: string): void {
    this.#members.get(host)?.shell.pause()
  }

  resume(host: string): void {
    this.#members.get(host)?.shell.resume()
  }

  [Symbol.dispose](): void {
    if (this.#isDisposed) return
    this.#isDisposed = true
    this.#resizeTimer?.[Symbol.dispose]()
    for (const member of this.#members.values()) this.#close(member)
    this.#members.clear()
  }

  #named(hosts: readonly string[]): Member[] {
    if (this.#isDisposed) return []
    return hosts.flatMap((host) => this.#members.get(host) ?? [])
  }

  #emit(event: FleetEvent): void {
    if (!this.#isDisposed) this.#emitter.emit(event)
  }

  #dispatch(member: Member, event: SessionEvent): void {
    const state = transition(member.state, event)
    if (state === member.state) return
    member.state = state
    this.#emit({ type: 'session', host: member.endpoint.host, state })
  }

  #connect(member: Member): void {
    member.wantsShell = true
    this.#start(member, 'connect')
  }

  #start(member: Member, type: 'connect' | 'due'): void {
    member.timer?.[Symbol.dispose]()
    this.#dispatch(member, { type, nowMs: this.#clock.now() })
    if (!isAttempting(member.state)) return
    const lease = this.#gate.enter(() => queueMicrotask(() => void this.#run(member, attempt)))
    const attempt = { abort: new AbortController(), lease }
    member.attempt = attempt
  }

  async #run(member: Member, attempt: NonNullable<Member['attempt']>): Promise<void> {
    const isCurrent = () => member.attempt === attempt
    if (!isCurrent()) return
    const { endpoint } = member
    let connection: Connection | undefined
    let lostEarly: string | undefined
    let banner = ''
    try {
      const askers = lendWhileAsking(this.#options, attempt.lease, this.#clock)
      connection = await connectTo(endpoint, { ...this.#options, ...askers }, attempt.abort.signal, {
        onPhase: (phase) => {
          if (isCurrent()) this.#dispatch(member, { type: 'phase', phase, nowMs: this.#clock.now() })
        },
        onWords: (text) => {
          if (isCurrent()) this.#dispatch(member, { type: 'server-says', text })
        },
        onBanner: (text) => {
          banner = text
        },
        onLost: (reason) => {
          if (connection === undefined) lostEarly = reason
          else if (member.connection === connection) this.#lose(member, reason)
        },
      })
    } catch (error) {
      attempt.lease.release()
      this.#noteBanner(member, attempt, banner)
      if (isCurrent()) this.#failAttempt(member, failureOf(error, 'configuration', phaseOf(member.state)))
      return
    }
    attempt.lease.release()
    if (!isCurrent()) return connection.close()
    this.#noteBanner(member, attempt, banner)
    member.attempt = undefined
    member.connection = connection
    member.wasReady = true
    this.#dispatch(member, { type: 'connected', nowMs: this.#clock.now() })
    if (lostEarly === undefined) this.#openShell(member)
    else this.#lose(member, lostEarly)
  }

  #noteBanner(member: Member, attempt: Member['attempt'], text: string): void {
    if (member.attempt !== attempt || text === member.banner) return
    member.banner = text
    this.#emit({ type: 'banner', host: member.endpoint.host, text })
  }

  #failAttempt(member: Member, failure: ConnectFailure): void {
    member.attempt = undefined
    const random = this.#retries ? { random: this.#options.random() } : {}
    this.#dispatch(member, { type: 'connect-failed', failure, nowMs: this.#clock.now(), ...random })
    this.#startTimer(member)
  }

  #lose(member: Member, reason: string): void {
    member.connection = undefined
    member.shell.end({ kind: 'lost', reason })
    const nowMs = this.#clock.now()
    this.#dispatch(member, { type: 'lost', reason, nowMs })
    if (!this.#retries || member.state.kind !== 'lost') return
    this.#dispatch(member, { type: 'retry', nowMs, random: this.#options.random() })
    this.#startTimer(member)
  }

  #startTimer(member: Member): void {
    if (member.state.kind !== 'waiting') return
    const delayMs = Math.max(0, member.state.retryAtMs - this.#clock.now())
    member.timer = this.#clock.after(delayMs, () => this.#start(member, 'due'))
  }

  #openShell({ connection, endpoint, shell, wantsShell }: Member): void {
    const options = this.#options.shell
    if (connection === undefined || options === undefined || shell.isLive || !wantsShell) return
    void shell.open(connection, { ...options, environment: { ...endpoint.environment, ...options.environment } })
  }

  #close(member: Member): void {
    const { attempt, connection } = member
    member.timer?.[Symbol.dispose]()
    member.attempt = undefined
    member.connection = undefined
    attempt?.abort.abort()
    attempt?.lease.release()
    member.shell.close()
    connection?.close()
    this.#dispatch(member, { type: 'close' })
  }
}

function needsConnect({ state }: Member): boolean {
  return !isAttempting(state) && state.kind !== 'ready'
}

function writeTo(member: Member, bytes: Uint8Array): string | undefined {
  if (member.state.kind !== 'ready') return notReadyReason(member)
  if (member.shell.state.kind === 'none') return 'no shell'
  try {
    return member.shell.write(bytes)
  } catch (error) {
    return printable(messageOf(error))
  }
}

/** A console shows its hosts before the fleet has them. */
const WAITING = 'waiting to connect'

const FAILED: Readonly<Record<FailureKind, string>> = {
  unreachable: 'unreachable',
  'host-key': 'host key not accepted',
  authentication: 'login failed',
  configuration: 'cannot connect',
  declined: 'login cancelled',
}

function notReadyReason({ state, wasReady }: Member): string {
  if (isAttempting(state)) return wasReady ? 'reconnecting' : 'connecting'
  switch (state.kind) {
    case 'idle':
      return WAITING
    case 'waiting':
      return wasReady ? 'reconnecting' : 'unreachable'
    case 'lost':
      return 'connection lost'
    case 'failed':
      return FAILED[state.failure.kind]
    case 'closed':
      return 'closed'
    case 'ready':
      return 'shell ended'
  }
}

function phaseOf(state: SessionState): ConnectPhase {
  return state.kind === 'connecting' ? state.phase : state.kind === 'verifying' ? 'host-key' : 'authentication'
}

/** Lends the connections of a fleet. What runs over one ends as lost when the fleet closes it. */
export function createFleetTransport(fleet: Pick<Fleet, 'connection' | 'session' | 'on'>): Transport {
  const lent = new LentChannels(fleet)
  return {
    async connect({ host }) {
      const connection = fleet.connection(host)
      if (connection === undefined) throw new ConnectError(noConnection(fleet.session(host)))
      return {
        openShell: (options, handlers) => lent.lend(host, handlers, (own) => connection.openShell(options, own)),
        exec: (command, handlers, options) =>
          lent.lend(host, handlers, (own) => connection.exec(command, own, options)),
        connectSocket: (path) => connection.connectSocket(path),
        connectTcp: (address, port) => connection.connectTcp(address, port),
        listenTcp: (address, port, onStream) => connection.listenTcp(address, port, onStream),
        close: () => undefined,
      }
    },
  }
}

/** The same, and tries to connect a host that is not connected, without waiting until its next attempt is due. */
export function createConnectingTransport(fleet: Pick<Fleet, 'connection' | 'session' | 'on' | 'connect'>): Transport {
  const lender = createFleetTransport(fleet)
  return {
    async connect(endpoint, context) {
      const { host } = endpoint
      fleet.connect([host])
      if (isAttempting(fleet.session(host))) {
        const tried = Promise.withResolvers<void>()
        using _session = fleet.on((event) => {
          if (event.type === 'session' && event.host === host && !isAttempting(event.state)) tried.resolve()
        })
        await untilAborted(tried.promise, context.signal)
      }
      return await lender.connect(endpoint, context)
    },
  }
}

/** Ends the channels of those who borrowed a connection when its owner closes it: the connection itself does not tell them. */
class LentChannels {
  readonly #fleet: Pick<Fleet, 'on'>
  /** By host, what ends a channel. */
  readonly #ends = new Map<string, Set<() => void>>()
  /** While anything is lent. */
  #listening: Disposable | undefined

  constructor(fleet: Pick<Fleet, 'on'>) {
    this.#fleet = fleet
  }

  async lend<C extends Channel, H extends Pick<ExecHandlers, 'onEnd'>>(
    host: string,
    handlers: H,
    open: (handlers: H) => Promise<C>,
  ): Promise<C> {
    const onEnd = (end: ChannelEnd): void => {
      if (this.#takeBack(host, endIt)) handlers.onEnd(end)
    }
    const endIt = () => onEnd({ kind: 'lost', reason: 'the connection was closed' })
    getOrMake(this.#ends, host, () => new Set()).add(endIt)
    this.#listening ??= this.#fleet.on((event) => {
      if (event.type !== 'session' || event.state.kind !== 'closed') return
      for (const end of [...(this.#ends.get(event.host) ?? [])]) end()
    })
    try {
      const channel = await open({ ...handlers, onEnd })
      const close = channel.close.bind(channel)
      channel.close = () => {
        this.#takeBack(host, endIt)
        close()
      }
      return channel
    } catch (error) {
      this.#takeBack(host, endIt)
      throw error
    }
  }

  /** False: it has ended. */
  #takeBack(host: string, endIt: () => void): boolean {
    const ends = this.#ends.get(host)
    const isKnown = ends?.delete(endIt) === true
    if (ends?.size === 0) this.#ends.delete(host)
    if (this.#ends.size > 0) return isKnown
    this.#listening?.[Symbol.dispose]()
    this.#listening = undefined
    return isKnown
  }
}

function noConnection(state: SessionState): ConnectFailure {
  if (state.kind === 'failed') return state.failure
  const reason =
    'reason' in state && state.reason !== undefined
      ? `no connection: ${printable(state.reason)}`
      : state.kind === 'closed' || state.kind === 'idle'
        ? 'it is not connected'
        : 'it is still being connected'
  return { kind: 'unreachable', phase: 'shell', reason }
}
