/** Logs in to each host once, side by side, and hangs up: how long each phase took, or in which phase and why it failed. */
import type { Clock } from '../base/clock.ts'
import type { Endpoint } from '../inventory/host.ts'
import { ConnectGate, inTurn } from './connect-gate.ts'
import {
  type Askers,
  ConnectError,
  type ConnectFailure,
  type Connection,
  type ConnectPhase,
  connectTo,
  failureOf,
  type Transports,
} from './transport.ts'

export type LoginCheck = {
  readonly host: string
  /** In the order in which they began; times a person took to answer are in them. */
  readonly phases: readonly { readonly phase: ConnectPhase; readonly durationMs: number }[]
  readonly durationMs: number
  /** `refused`: the host answered, but not with a login. */
  readonly outcome: 'ok' | 'unreachable' | 'refused'
  readonly failure: ConnectFailure | undefined
}

export type CheckOptions = Askers & {
  readonly transports: Transports
  readonly clock: Clock
  readonly fanOut?: number
  readonly signal?: AbortSignal
  /** Uses a connection before it is closed; the host's result, without this time, comes when it is done. */
  onConnected?(endpoint: Endpoint, connection: Connection): Promise<void>
}

/** Each result as soon as it is there. Never throws: what goes wrong with a host is its result. */
export async function* checkHosts(endpoints: readonly Endpoint[], options: CheckOptions): AsyncGenerator<LoginCheck> {
  const gate = new ConnectGate(options.fanOut ?? 64)
  const signal = options.signal ?? new AbortController().signal
  const done: LoginCheck[] = []
  let more = Promise.withResolvers<void>()
  for (const endpoint of endpoints) {
    const check = (askers: Askers) => checkHost(endpoint, { ...options, ...askers, signal })
    inTurn(gate, options, options.clock, check).then((result) => {
      done.push(result)
      more.resolve()
    }, more.reject)
  }
  for (let left = endpoints.length; left > 0; ) {
    await more.promise
    more = Promise.withResolvers<void>()
    const results = done.splice(0)
    left -= results.length
    yield* results
  }
}

async function checkHost(endpoint: Endpoint, options: CheckOptions & { signal: AbortSignal }): Promise<LoginCheck> {
  const { clock, signal } = options
  const { host } = endpoint
  const startedAtMs = clock.now()
  const durations = new Map<ConnectPhase, number>()
  let phase: ConnectPhase = endpoint.transport === 'local' ? 'shell' : 'name'
  let phaseAtMs = startedAtMs
  const enter = (next: ConnectPhase) => {
    const nowMs = clock.now()
    durations.set(phase, (durations.get(phase) ?? 0) + nowMs - phaseAtMs)
    phase = next
    phaseAtMs = nowMs
  }
  const result = (failure: ConnectFailure | undefined): LoginCheck => {
    enter(phase)
    return {
      host,
      phases: Array.from(durations, ([each, durationMs]) => ({ phase: each, durationMs })),
      durationMs: clock.now() - startedAtMs,
      outcome: failure === undefined ? 'ok' : failure.kind === 'unreachable' ? 'unreachable' : 'refused',
      failure,
    }
  }
  try {
    signal.throwIfAborted()
    const connection = await connectTo(endpoint, options, signal, { onPhase: enter })
    const check = result(undefined)
    try {
      await options.onConnected?.(endpoint, connection)
    } finally {
      connection.close()
    }
    return check
  } catch (error) {
    const isCancelled = signal.aborted && !(error instanceof ConnectError)
    return result(
      isCancelled ? { kind: 'declined', phase, reason: 'cancelled' } : failureOf(error, 'configuration', phase),
    )
  }
}
