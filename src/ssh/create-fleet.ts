/**
 * The fleet: holds one member a host, feeds its session's transitions, and does what the new state asks for (connect,
 * wait, open a shell). Typed bytes fan out here. It must not know what a wire is made of, nor draw anything.
 */
import type { Clock } from '../base/clock.ts'
import { Emitter } from '../base/emitter.ts'
import { MusterError, messageOf } from '../base/errors.ts'
import { printable } from '../base/printable.ts'
import type { Endpoint, TransportName } from '../inventory/host.ts'
import { ConnectGate, type Lease } from './connect-gate.ts'
import type { CredentialAsker } from './credentials.ts'
import type { Fleet, FleetEvent, WriteReport } from './fleet.ts'
import type { HostKeyVerifier } from './host-keys.ts'
import { HostShell, type ShellEnvironment } from './host-shell.ts'
import { lendWhileAsking } from './lend-while-asking.ts'
import type { SessionState } from './session-state.ts'
import { isAttempting, type SessionEvent, transition } from './session-transition.ts'
import { ConnectError, type ConnectFailure, type Connection, type Transport } from './transport.ts'

export type FleetOptions = {
  readonly transports: Readonly<Partial<Record<TransportName, Transport>>>
  readonly hostKeys: HostKeyVerifier
  readonly credentials: CredentialAsker
  readonly clock: Clock
  /** In [0, 1), for the jitter. */
  readonly random: () => number
  /** Connections that are set up at once; hosts that wait for a person do not count. */
  readonly fanOut?: number
  /** What shells are opened with; undefined: the fleet opens none (commands only). */
  readonly shell?: ShellEnvironment
  /** Whether hosts that are lost or cannot be reached are tried again by themselves, for ever (default), or not at all. */
  readonly retries?: boolean
}

const DEFAULT_SIZE = { columns: 80, rows: 24 }
/** Sizes of one drag of a window's corner become one message. */
const RESIZE_AFTER_MS = 25

type Member = {
  readonly endpoint: Endpoint
  readonly shell: HostShell
  state: SessionState
  connection: Connection | undefined
  attempt: { readonly abort: AbortController; readonly lease: Lease } | undefined
  timer: Disposable | undefined
  wasReady: boolean
  /** A shell that the user left with `exit` does not come back by itself. */
  wantsShell: boolean
}

export function createFleet(options: FleetOptions): Fleet {
  const { clock, random } = options
  const retries = options.retries ?? true
  const gate = new ConnectGate(options.fanOut ?? 64)
  const emitter = new Emitter<FleetEvent>()
  const members = new Map<string, Member>()
  const unsized = new Set<HostShell>()
  let hosts: readonly string[] = []
  let resizeTimer: Disposable | undefined
  let isDisposed = false

  const emit = (event: FleetEvent) => {
    if (!isDisposed) emitter.emit(event)
  }

  const dispatch = (member: Member, event: SessionEvent): void => {
    const state = transition(member.state, event)
    if (state === member.state) return
    member.state = state
    emit({ type: 'session', host: member.endpoint.host, state })
  }

  const start = (member: Member, event: SessionEvent & { type: 'connect' | 'due' }): void => {
    stopTimer(member)
    dispatch(member, event)
    if (!isAttempting(member.state)) return
    const lease = gate.enter(() => queueMicrotask(() => void run(member, attempt)))
    const attempt = { abort: new AbortController(), lease }
    member.attempt = attempt
  }

  const run = async (member: Member, attempt: NonNullable<Member['attempt']>): Promise<void> => {
    const isCurrent = () => member.attempt === attempt
    if (!isCurrent()) return
    const { endpoint } = member
    const { signal } = attempt.abort
    let connection: Connection | undefined
    let lostEarly: string | undefined
    try {
      const transport = options.transports[endpoint.transport]
      if (transport === undefined) throw new ConnectError(noTransport(endpoint))
      connection = await transport.connect(endpoint, {
        signal,
        ...lendWhileAsking(options, attempt.lease, clock),
        onPhase: (phase) => {
          if (isCurrent()) dispatch(member, { type: 'phase', phase, nowMs: clock.now() })
        },
        onLost: (reason) => {
          if (connection === undefined) lostEarly = reason
          else if (member.connection === connection) lose(member, reason)
        },
      })
    } catch (error) {
      attempt.lease.release()
      if (isCurrent()) failAttempt(member, failureOf(error, member.state))
      return
    }
    attempt.lease.release()
    if (!isCurrent()) return connection.close()
    member.attempt = undefined
    member.connection = connection
    member.wasReady = true
    dispatch(member, { type: 'connected', nowMs: clock.now() })
    if (lostEarly !== undefined) lose(member, lostEarly)
    else openShell(member)
  }

  const failAttempt = (member: Member, failure: ConnectFailure): void => {
    member.attempt = undefined
    const nowMs = clock.now()
    dispatch(member, { type: 'connect-failed', failure, nowMs, ...(retries ? { random: random() } : {}) })
    startTimer(member)
  }

  const lose = (member: Member, reason: string): void => {
    member.connection = undefined
    member.shell.end({ kind: 'lost', reason })
    const nowMs = clock.now()
    dispatch(member, { type: 'lost', reason, nowMs })
    if (!retries || member.state.kind !== 'lost') return
    dispatch(member, { type: 'retry', nowMs, random: random() })
    startTimer(member)
  }

  const startTimer = (member: Member): void => {
    if (member.state.kind !== 'waiting') return
    const delayMs = Math.max(0, member.state.retryAtMs - clock.now())
    member.timer = clock.after(delayMs, () => start(member, { type: 'due', nowMs: clock.now() }))
  }

  const stopTimer = (member: Member): void => {
    member.timer?.[Symbol.dispose]()
    member.timer = undefined
  }

  const openShell = (member: Member): void => {
    const { connection, endpoint, shell } = member
    if (connection === undefined || options.shell === undefined || shell.isLive || !member.wantsShell) return
    const environment = { ...endpoint.environment, ...options.shell.environment }
    void shell.open(connection, { ...options.shell, environment })
  }

  const connectOne = (member: Member): void => {
    member.wantsShell = true
    start(member, { type: 'connect', nowMs: clock.now() })
  }

  const closeOne = (member: Member): void => {
    stopTimer(member)
    const { attempt, connection } = member
    member.attempt = undefined
    member.connection = undefined
    attempt?.abort.abort()
    attempt?.lease.release()
    member.shell.close()
    connection?.close()
    dispatch(member, { type: 'close' })
  }

  const each = (names: readonly string[], act: (member: Member) => void): void => {
    for (const name of names) {
      const member = members.get(name)
      if (member !== undefined && !isDisposed) act(member)
    }
  }

  const needsConnect = (member: Member) => !isAttempting(member.state) && member.state.kind !== 'ready'

  return {
    get hosts() {
      return hosts
    },
    endpoint: (host) => members.get(host)?.endpoint,
    session: (host) => members.get(host)?.state ?? { kind: 'closed' },
    shell: (host) => members.get(host)?.shell.state ?? { kind: 'none' },
    connection: (host) => members.get(host)?.connection,
    on: (listener) => emitter.on(listener),

    add(endpoint) {
      const { host } = endpoint
      if (members.has(host)) {
        throw new MusterError('configuration', `The fleet has a host named ${printable(host)} already.`, {
          hint: 'Give the new host another name.',
        })
      }
      const shell = new HostShell(host, DEFAULT_SIZE, (event) => {
        if (event.type === 'shell' && event.state.kind === 'ended' && event.state.end.kind === 'exit') {
          member.wantsShell = false
        }
        emit(event)
      })
      const member: Member = {
        endpoint,
        shell,
        state: { kind: 'idle' },
        connection: undefined,
        attempt: undefined,
        timer: undefined,
        wasReady: false,
        wantsShell: true,
      }
      members.set(host, member)
      hosts = [...members.keys()]
      emit({ type: 'added', host })
    },

    remove(host) {
      const member = members.get(host)
      if (member === undefined) return
      closeOne(member)
      unsized.delete(member.shell)
      members.delete(host)
      hosts = [...members.keys()]
      emit({ type: 'removed', host })
    },

    connect: (names) =>
      each(names, (member) => {
        if (needsConnect(member)) connectOne(member)
      }),

    reconnect: (names) =>
      each(names, (member) => {
        if (needsConnect(member)) return connectOne(member)
        member.wantsShell = true
        openShell(member)
      }),

    close: (names) => each(names, closeOne),

    write(names, bytes): WriteReport {
      const sent: string[] = []
      const skipped: { host: string; reason: string }[] = []
      const discarded: { host: string; bytes: number }[] = []
      for (const host of names) {
        const member = members.get(host)
        const reason = member === undefined ? 'unknown host' : writeOne(member, bytes)
        if (reason !== undefined) {
          skipped.push({ host, reason })
          continue
        }
        sent.push(host)
        const discardedBytes = member?.shell.discardedBytes ?? 0
        if (discardedBytes > 0) discarded.push({ host, bytes: discardedBytes })
      }
      return discarded.length === 0 ? { sent, skipped } : { sent, skipped, discarded }
    },

    resize(host, size) {
      const shell = members.get(host)?.shell
      if (shell === undefined || !shell.resize(size)) return
      unsized.add(shell)
      resizeTimer ??= clock.after(RESIZE_AFTER_MS, () => {
        resizeTimer = undefined
        for (const each of unsized) each.applySize()
        unsized.clear()
      })
    },

    pause: (host) => members.get(host)?.shell.pause(),
    resume: (host) => members.get(host)?.shell.resume(),

    [Symbol.dispose]() {
      if (isDisposed) return
      isDisposed = true
      resizeTimer?.[Symbol.dispose]()
      for (const member of members.values()) closeOne(member)
      members.clear()
    },
  }
}

function writeOne(member: Member, bytes: Uint8Array): string | undefined {
  if (member.state.kind !== 'ready') return notReadyReason(member)
  if (member.shell.state.kind === 'none') return 'no shell'
  try {
    return member.shell.write(bytes)
  } catch (error) {
    return printable(messageOf(error))
  }
}

function notReadyReason({ state, wasReady }: Member): string {
  switch (state.kind) {
    case 'idle':
      return 'not connected'
    case 'connecting':
    case 'verifying':
    case 'authenticating':
      return wasReady ? 'reconnecting' : 'connecting'
    case 'waiting':
      return wasReady ? 'reconnecting' : 'unreachable'
    case 'lost':
      return 'connection lost'
    case 'failed':
      return state.failure.kind === 'unreachable' ? 'unreachable' : 'login failed'
    case 'closed':
      return 'closed'
    case 'ready':
      return 'shell ended'
  }
}

function failureOf(error: unknown, state: SessionState): ConnectFailure {
  if (error instanceof ConnectError) return error.failure
  return {
    kind: 'configuration',
    phase: state.kind === 'connecting' ? state.phase : state.kind === 'verifying' ? 'host-key' : 'authentication',
    reason: printable(messageOf(error)),
  }
}

function noTransport(endpoint: Endpoint): ConnectFailure {
  return {
    kind: 'configuration',
    phase: 'name',
    reason: `The transport ${endpoint.transport} is not available here.`,
    hint: 'Choose another transport for this host.',
  }
}
