import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  isAttempting,
  type SessionEvent,
  type SessionState,
  STABLE_AFTER_MS,
  transition,
} from '../../../src/ssh/session-transition.ts'
import type { ConnectFailure, ConnectPhase, FailureKind } from '../../../src/ssh/transport.ts'

const PHASES: ConnectPhase[] = ['name', 'tcp', 'proxy', 'banner', 'host-key', 'authentication', 'shell']
const KINDS: FailureKind[] = ['unreachable', 'host-key', 'authentication', 'configuration', 'declined']

const failure = (kind: FailureKind): ConnectFailure => ({ kind, phase: 'tcp', reason: `no: ${kind}` })
const through = (...events: SessionEvent[]) => events.reduce<SessionState>(transition, { kind: 'idle' })
const connect: SessionEvent = { type: 'connect', nowMs: 0 }
const unreachable: SessionEvent = { type: 'connect-failed', failure: failure('unreachable'), nowMs: 10, random: 0.5 }

const event: fc.Arbitrary<SessionEvent> = fc.nat({ max: 100_000 }).chain((nowMs) =>
  fc.oneof(
    fc.constant<SessionEvent>({ type: 'connect', nowMs }),
    fc.constantFrom(...PHASES).map((phase): SessionEvent => ({ type: 'phase', phase, nowMs })),
    fc.constant<SessionEvent>({ type: 'connected', nowMs }),
    fc.tuple(fc.constantFrom(...KINDS), fc.boolean()).map(
      ([kind, retries]): SessionEvent => ({
        type: 'connect-failed',
        failure: failure(kind),
        nowMs,
        ...(retries ? { random: 0.3 } : {}),
      }),
    ),
    fc.constant<SessionEvent>({ type: 'lost', reason: 'gone', nowMs }),
    fc.constant<SessionEvent>({ type: 'retry', nowMs, random: 0.7 }),
    fc.constant<SessionEvent>({ type: 'due', nowMs }),
    fc.constant<SessionEvent>({ type: 'server-says', text: 'wait' }),
    fc.constant<SessionEvent>({ type: 'close' }),
  ),
)

describe('the transition of a session', () => {
  it('goes from idle to ready through the phases of a connect', () => {
    const kinds: string[] = []
    let state: SessionState = { kind: 'idle' }
    for (const next of [connect, ...PHASES.map((phase): SessionEvent => ({ type: 'phase', phase, nowMs: 1 }))]) {
      state = transition(state, next)
      if (kinds.at(-1) !== state.kind) kinds.push(state.kind)
    }
    kinds.push(transition(state, { type: 'connected', nowMs: 5 }).kind)
    expect(kinds).toEqual(['connecting', 'verifying', 'authenticating', 'ready'])
  })

  it('waits and retries when a host cannot be reached', () => {
    const waiting = through(connect, unreachable)
    expect(waiting).toEqual({ kind: 'waiting', attempt: 2, retryAtMs: 1010, reason: 'no: unreachable' })
    expect(transition(waiting, { type: 'due', nowMs: 1010 })).toMatchObject({ kind: 'connecting', attempt: 2 })
  })

  it('never retries after a refusal, because that may lock an account', () => {
    for (const kind of KINDS.filter((kind) => kind !== 'unreachable')) {
      const refused: SessionEvent = { type: 'connect-failed', failure: failure(kind), nowMs: 1, random: 0.5 }
      expect(through(connect, refused).kind).toBe('failed')
    }
  })

  it('fails at once if retries are off', () => {
    expect(through(connect, { type: 'connect-failed', failure: failure('unreachable'), nowMs: 1 }).kind).toBe('failed')
  })

  it('waits longer for a host that fails again and again, and starts over for one that was stable', () => {
    const readyAt = (nowMs: number): SessionEvent => ({ type: 'connected', nowMs })
    const lostAt = (nowMs: number): SessionEvent => ({ type: 'lost', reason: 'gone', nowMs })
    const retry: SessionEvent = { type: 'retry', nowMs: 0, random: 0.5 }
    const due: SessionEvent = { type: 'due', nowMs: 0 }
    const broken = through(connect, readyAt(0), lostAt(1), retry, due, readyAt(0), lostAt(1), retry)
    expect(broken).toMatchObject({ kind: 'waiting', attempt: 3, retryAtMs: 2000 })
    const proved = through(connect, unreachable, due, readyAt(0), lostAt(STABLE_AFTER_MS), retry)
    expect(proved).toMatchObject({ kind: 'waiting', attempt: 1, retryAtMs: 1000 })
  })

  it('cuts a wait short when the user asks, and counts attempts from one again', () => {
    expect(through(connect, unreachable, connect)).toMatchObject({ kind: 'connecting', attempt: 1 })
  })

  it('returns the same state for an event that means nothing in it', () => {
    const ready = through(connect, { type: 'connected', nowMs: 1 })
    for (const late of [connect, unreachable, { type: 'phase', phase: 'tcp', nowMs: 2 } satisfies SessionEvent]) {
      expect(transition(ready, late)).toBe(ready)
    }
  })

  it('is ready only by way of an attempt, and lost only by way of ready, whatever comes', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        let state: SessionState = { kind: 'idle' }
        for (const each of events) {
          const next = transition(state, each)
          if (next !== state) {
            if (next.kind === 'ready' || next.kind === 'failed') expect(isAttempting(state)).toBe(true)
            if (next.kind === 'lost') expect(state.kind).toBe('ready')
            if (next.kind === 'waiting') expect(isAttempting(state) || state.kind === 'lost').toBe(true)
            if (next.kind === 'closed') expect(each.type).toBe('close')
          }
          state = next
        }
      }),
    )
  })

  it('never reduces the attempts, except when the user asks or the host was stable', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        let state: SessionState = { kind: 'idle' }
        for (const each of events) {
          const next = transition(state, each)
          const isReset =
            each.type === 'connect' ||
            (each.type === 'lost' && state.kind === 'ready' && each.nowMs - state.sinceMs >= STABLE_AFTER_MS)
          if ('attempt' in state && 'attempt' in next && !isReset) {
            expect(next.attempt).toBeGreaterThanOrEqual(state.attempt)
          }
          if ('attempt' in next) expect(next.attempt).toBeGreaterThanOrEqual(1)
          state = next
        }
      }),
    )
  })

  it('can always be closed, and connected again after that', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), (events) => {
        const closed = transition(through(...events), { type: 'close' })
        expect(closed.kind).toBe('closed')
        expect(transition(closed, connect).kind).toBe('connecting')
      }),
    )
  })
})
