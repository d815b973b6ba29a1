/** How much is under way to hosts whose links answer as the test says. */
import { describe, expect, it } from 'vitest'
import { Pace } from '../../../../src/ssh/copy/pace.ts'
import { ManualClock } from '../manual-clock.ts'

const KIB = 1024

/** A link that takes so many bytes a second, behind a way there and back: how much is under way once it has settled. */
function settle(bytesPerSecond: number, wayMs: number): { readonly pace: Pace; readonly longestMs: number } {
  const clock = new ManualClock()
  const pace = new Pace(clock)
  let freeAtMs = clock.now()
  let longestMs = 0
  const underWay: { readonly bytes: number; readonly atMs: number; readonly flight: ReturnType<Pace['send']> }[] = []
  for (let answered = 0; answered < 400; answered += 1) {
    let bytes = underWay.reduce((sum, each) => sum + each.bytes, 0)
    while (bytes === 0 || bytes + pace.segmentBytes <= pace.windowBytes) {
      freeAtMs = Math.max(freeAtMs, clock.now()) + (1000 * pace.segmentBytes) / bytesPerSecond
      bytes += pace.segmentBytes
      underWay.push({ bytes: pace.segmentBytes, atMs: freeAtMs + wayMs, flight: pace.send(bytes) })
    }
    const first = underWay.shift()
    if (first === undefined) throw new Error('nothing is under way')
    clock.advance(Math.max(0, first.atMs - clock.now()))
    longestMs = Math.max(longestMs, clock.now() - first.flight.sentAtMs)
    pace.handleAnswer(first.flight)
  }
  return { pace, longestMs }
}

describe('what is under way to a host', () => {
  it('begins with little', () => {
    const pace = new Pace(new ManualClock())
    expect([pace.segmentBytes, pace.windowBytes]).toEqual([64 * KIB, 128 * KIB])
  })

  it.each([
    ['a very narrow link', 50 * KIB, 20],
    ['a narrow link', 200 * KIB, 20],
    ['a narrow link far away', 200 * KIB, 600],
    ['a usual link', 1000 * KIB, 20],
  ])('is what %s takes within seconds', (_name, bytesPerSecond, wayMs) => {
    const { longestMs } = settle(bytesPerSecond, wayMs)
    expect(longestMs).toBeLessThan(wayMs + Math.max(2000, (1000 * 128 * KIB) / bytesPerSecond + 1))
  })

  it.each([
    ['a wide link', 100_000 * KIB, 1],
    ['a wide link far away', 12_000 * KIB, 300],
  ])('does not hold up %s', (_name, bytesPerSecond, wayMs) => {
    const { pace } = settle(bytesPerSecond, wayMs)
    expect(pace.windowBytes).toBeGreaterThan((bytesPerSecond * wayMs) / 1000)
    expect(pace.segmentBytes).toBe(1024 * KIB)
  })

  it('shrinks where a link becomes narrow', () => {
    const clock = new ManualClock()
    const pace = new Pace(clock)
    const answer = (tookMs: number) => {
      const flight = pace.send(pace.windowBytes)
      clock.advance(tookMs)
      pace.handleAnswer(flight)
    }
    for (let count = 0; count < 7; count += 1) answer(10)
    expect(pace.windowBytes).toBe(5 * 1024 * KIB)
    for (let count = 0; count < 3; count += 1) answer(5000)
    expect(pace.windowBytes).toBe(640 * KIB)
  })

  it('is not changed twice by what was sent at once', () => {
    const clock = new ManualClock()
    const pace = new Pace(clock)
    pace.handleAnswer(pace.send(pace.windowBytes))
    const flights = [pace.send(128 * KIB), pace.send(128 * KIB)]
    for (const flight of flights) pace.handleAnswer(flight)
    expect(pace.windowBytes).toBe(256 * KIB)
  })

  it('does not grow while no more than a little of it is used', () => {
    const pace = new Pace(new ManualClock())
    for (let count = 0; count < 9; count += 1) pace.handleAnswer(pace.send(64 * KIB))
    expect(pace.windowBytes).toBe(128 * KIB)
  })
})
