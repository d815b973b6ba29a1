import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { clockOffset } from '../../../../src/ops/doctor/clock-offset.ts'
import type { Exchange } from '../../../../src/ops/doctor/host-port.ts'

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5)
const nanoseconds = (ms: number): string => `${BigInt(Math.round(ms * 1000)) * 1000n}`
const ready = (kind: string): Exchange => ({ answer: `mark ${kind}`, sentAtMs: NOW, receivedAtMs: NOW })

describe('the offset of a clock', () => {
  test('is never further off than the uncertainty, however long the answers take', () => {
    const trip = fc.record({ outMs: fc.nat(400), backMs: fc.nat(400), pauseMs: fc.nat(1000) })
    const trips = fc.array(trip, { minLength: 1, maxLength: 6 })
    const offsets = fc.integer({ min: -1_000_000, max: 1_000_000 })
    fc.assert(
      fc.property(trips, offsets, (all, offsetMs) => {
        let now = NOW
        const exchanges = all.map(({ outMs, backMs, pauseMs }): Exchange => {
          const sentAtMs = now + pauseMs
          const receivedAtMs = sentAtMs + outMs + backMs
          now = receivedAtMs
          return { answer: nanoseconds(sentAtMs + outMs + offsetMs), sentAtMs, receivedAtMs }
        })
        const clock = clockOffset([ready('now'), ...exchanges])
        expect(Math.abs((clock?.offsetMs ?? Number.NaN) - offsetMs)).toBeLessThanOrEqual(clock?.uncertaintyMs ?? 0)
        expect(clock?.uncertaintyMs).toBeLessThanOrEqual(401)
      }),
    )
  })

  test('comes from the quickest answer', () => {
    const slow = { answer: nanoseconds(NOW + 900), sentAtMs: NOW, receivedAtMs: NOW + 1000 }
    const quick = { answer: nanoseconds(NOW + 2005), sentAtMs: NOW + 2000, receivedAtMs: NOW + 2010 }
    expect(clockOffset([ready('now'), slow, quick])).toEqual({ offsetMs: 0, uncertaintyMs: 6 })
  })

  test('is exact for a host that reads whole seconds, by the moment in which one begins', () => {
    const tick = { answer: nanoseconds(NOW + 7_000), sentAtMs: NOW + 100, receivedAtMs: NOW + 1_010 }
    const echo = { answer: 'echo', sentAtMs: NOW + 1_010, receivedAtMs: NOW + 1_030 }
    const clock = clockOffset([ready('tick'), tick, { ...echo, receivedAtMs: NOW + 1_500 }, echo])
    expect(clock).toEqual({ offsetMs: 6_000, uncertaintyMs: 31 })
  })

  test('is unknown without an answer, or with an answer that is no time', () => {
    expect(clockOffset([])).toBeUndefined()
    expect(clockOffset([ready('now')])).toBeUndefined()
    expect(clockOffset([ready('now'), { answer: '17000N', sentAtMs: 0, receivedAtMs: 1 }])).toBeUndefined()
    expect(clockOffset([ready('tick'), { answer: nanoseconds(NOW), sentAtMs: NOW, receivedAtMs: NOW }])).toBeUndefined()
  })
})
