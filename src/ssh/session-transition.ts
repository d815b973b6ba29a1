/** The session's transition function, pure and total. An event that means nothing in a state returns the same state object. */
import { defined } from '../base/defined.ts'
import type { ConnectFailure, ConnectPhase } from './transport.ts'

/** Why there is no connection, of an attempt that is not the first one. */
type After = { readonly reason?: string }

export type SessionState =
  | { readonly kind: 'idle' }
  | ({
      readonly kind: 'connecting'
      readonly attempt: number
      readonly phase: ConnectPhase
      readonly sinceMs: number
      /** What a jump host said last during its login; printable. */
      readonly says?: string
    } & After)
  /** The server's key waits for a verdict (maybe the user's). */
  | ({ readonly kind: 'verifying'; readonly attempt: number; readonly sinceMs: number } & After)
  /** `says`: what the server said last; printable. */
  | ({
      readonly kind: 'authenticating'
      readonly attempt: number
      readonly sinceMs: number
      readonly says?: string
    } & After)
  /** `attempt`: the one that succeeded, so that a host that keeps breaking is not tried ever faster. */
  | { readonly kind: 'ready'; readonly attempt: number; readonly sinceMs: number }
  /** `attempt`: the number that the next one will have. */
  | { readonly kind: 'lost'; readonly attempt: number; readonly reason: string; readonly sinceMs: number }
  /** `attempt`: the number of the one that starts at `retryAtMs`. */
  | { readonly kind: 'waiting'; readonly attempt: number; readonly retryAtMs: number; readonly reason: string }
  | { readonly kind: 'failed'; readonly failure: ConnectFailure; readonly sinceMs: number }
  | { readonly kind: 'closed' }

export type SessionEvent =
  /** The host is wanted now: a first connect, a reconnect, or a wait that is cut short. */
  | { readonly type: 'connect'; readonly nowMs: number }
  | { readonly type: 'phase'; readonly phase: ConnectPhase; readonly nowMs: number }
  | { readonly type: 'server-says'; readonly text: string }
  | { readonly type: 'connected'; readonly nowMs: number }
  /** `random` in [0, 1) spreads the retry; undefined: no retry is wanted. */
  | {
      readonly type: 'connect-failed'
      readonly failure: ConnectFailure
      readonly nowMs: number
      readonly random?: number
    }
  | { readonly type: 'lost'; readonly reason: string; readonly nowMs: number }
  /** A lost host is to come back by itself. */
  | { readonly type: 'retry'; readonly nowMs: number; readonly random: number }
  /** The waiting time is over. */
  | { readonly type: 'due'; readonly nowMs: number }
  | { readonly type: 'close' }

/** After this long ready, the next loss starts the back-off from the beginning. */
export const STABLE_AFTER_MS = 30_000

const FIRST_RETRY_MS = 1_000
const LONGEST_RETRY_MS = 30_000
const JITTER = 0.25

export function transition(state: SessionState, event: SessionEvent): SessionState {
  switch (event.type) {
    case 'connect':
      return isUnderWay(state) ? state : connecting(1, event.nowMs)
    case 'phase':
      return isAttempting(state) ? inPhase(state, event.phase, event.nowMs) : state
    case 'server-says':
      if (state.kind !== 'connecting' && state.kind !== 'authenticating') return state
      return state.says === event.text ? state : { ...state, says: event.text }
    case 'connected':
      return isAttempting(state) ? { kind: 'ready', attempt: state.attempt, sinceMs: event.nowMs } : state
    case 'connect-failed':
      return isAttempting(state) ? afterFailure(state.attempt, event) : state
    case 'lost':
      if (state.kind !== 'ready') return state
      return {
        kind: 'lost',
        attempt: event.nowMs - state.sinceMs >= STABLE_AFTER_MS ? 1 : state.attempt + 1,
        reason: event.reason,
        sinceMs: event.nowMs,
      }
    case 'retry':
      if (state.kind !== 'lost') return state
      return {
        kind: 'waiting',
        attempt: state.attempt,
        retryAtMs: event.nowMs + backOffMs(state.attempt - 1, event.random),
        reason: state.reason,
      }
    case 'due':
      return state.kind === 'waiting' ? connecting(state.attempt, event.nowMs, state.reason) : state
    case 'close':
      return state.kind === 'closed' ? state : { kind: 'closed' }
  }
}

type Attempting = Extract<SessionState, { kind: 'connecting' | 'verifying' | 'authenticating' }>

/** An attempt to connect is running. */
export function isAttempting(state: SessionState): state is Attempting {
  return state.kind === 'connecting' || state.kind === 'verifying' || state.kind === 'authenticating'
}

function isUnderWay(state: SessionState): boolean {
  return isAttempting(state) || state.kind === 'ready'
}

function connecting(attempt: number, nowMs: number, reason?: string): SessionState {
  return { kind: 'connecting', attempt, phase: 'name', sinceMs: nowMs, ...defined({ reason }) }
}

function inPhase(state: Attempting, phase: ConnectPhase, nowMs: number): SessionState {
  const { attempt, reason } = state
  const own = { attempt, sinceMs: nowMs, ...defined({ reason }) }
  switch (phase) {
    case 'host-key':
      return state.kind === 'verifying' ? state : { kind: 'verifying', ...own }
    case 'authentication':
    case 'shell':
      return state.kind === 'authenticating' ? state : { kind: 'authenticating', ...own }
    case 'name':
    case 'tcp':
    case 'proxy':
    case 'banner':
      return state.kind === 'connecting' && state.phase === phase ? state : { kind: 'connecting', phase, ...own }
  }
}

/** Only a host that could not be reached is worth another try: a refused password, key or host key stays refused. */
function afterFailure(attempt: number, event: Extract<SessionEvent, { type: 'connect-failed' }>): SessionState {
  const { failure, nowMs, random } = event
  if (failure.kind !== 'unreachable' || random === undefined) return { kind: 'failed', failure, sinceMs: nowMs }
  return {
    kind: 'waiting',
    attempt: attempt + 1,
    retryAtMs: nowMs + backOffMs(attempt, random),
    reason: failure.reason,
  }
}

/** Doubles with each of `failures` in a row (from 1), ±25 % so that hosts spread out. `random` in [0, 1). Whole milliseconds. */
export function backOffMs(failures: number, random: number): number {
  const doublings = Math.min(Math.max(failures, 1) - 1, 30)
  const middle = Math.min(FIRST_RETRY_MS * 2 ** doublings, LONGEST_RETRY_MS)
  return Math.round(middle * (1 - JITTER + 2 * JITTER * random))
}
