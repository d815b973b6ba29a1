import { describe, expect, it } from 'vitest'
import { DetachedTime } from '../../../../src/cli/sessions/detached-time.ts'
import { ManualClock } from '../../ssh/manual-clock.ts'

const HOUR_MS = 3_600_000

describe('the time of a detached console', () => {
  const begin = (forMs: number) => {
    const clock = new ManualClock()
    const beganMs = clock.now()
    let setByMs = 0
    let ends = 0
    const passedMs = () => clock.now() - setByMs
    const time = new DetachedTime(forMs, () => (ends += 1), clock, passedMs)
    const set = (byMs: number) => {
      setByMs += byMs
      clock.set(byMs)
    }
    return { clock, beganMs, time, set, ends: () => ends }
  }

  it.each([
    ['back', -24 * HOUR_MS],
    ['forward', 24 * HOUR_MS],
  ])('is the same when the clock is set %s', (_, byMs) => {
    const { clock, time, set, ends } = begin(8 * HOUR_MS)
    clock.advance(HOUR_MS)
    set(byMs)
    expect(time.endsAtMs).toBe(clock.now() + 7 * HOUR_MS)
    clock.advance(7 * HOUR_MS - 1)
    expect(ends()).toBe(0)
    clock.advance(1)
    expect(ends()).toBe(1)
  })

  it('does not end early when a timer fires early', () => {
    const longest = 24 * HOUR_MS
    const clock = new ManualClock()
    let ends = 0
    const short = {
      now: () => clock.now(),
      after: (ms: number, call: () => void) => clock.after(Math.min(ms, longest), call),
    }
    using time = new DetachedTime(
      72 * HOUR_MS,
      () => (ends += 1),
      short,
      () => clock.now(),
    )
    clock.advance(longest)
    expect(ends).toBe(0)
    expect(time.endsAtMs - clock.now()).toBe(48 * HOUR_MS)
    clock.advance(2 * longest)
    expect(ends).toBe(1)
  })

  it('never ends once it is disposed of', () => {
    const { clock, time, ends } = begin(HOUR_MS)
    time[Symbol.dispose]()
    clock.advance(2 * HOUR_MS)
    expect(ends()).toBe(0)
  })
})
