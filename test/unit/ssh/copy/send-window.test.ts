/** How much is in flight to hosts whose links answer as the test says. */
import { describe, expect, it } from 'vitest'
import { SendWindow } from '../../../../src/ssh/copy/send-file.ts'
import { ManualClock } from '../manual-clock.ts'

const KIB = 1024

/** A link with this many bytes a second and this round-trip time: how much is in flight once it has settled. */
function settle(bytesPerSecond: number, wayMs: number): { readonly window: SendWindow; readonly longestMs: number } {
  const clock = new ManualClock()
  const window = new SendWindow(clock)
  let freeAtMs = clock.now()
  let longestMs = 0
  const inFlight: { readonly bytes: number; readonly atMs: number; readonly flight: ReturnType<SendWindow['send']> }[] =
    []
  for (let answered = 0; answered < 400; answered += 1) {
    let bytes = inFlight.reduce((sum, each) => sum + each.bytes, 0)
    while (bytes === 0 || bytes + window.segmentBytes <= window.bytes) {
      freeAtMs = Math.max(freeAtMs, clock.now()) + (1000 * window.segmentBytes) / bytesPerSecond
      bytes += window.segmentBytes
      inFlight.push({ bytes: window.segmentBytes, atMs: freeAtMs + wayMs, flight: window.send(bytes) })
    }
    const first = inFlight.shift()
    if (first === undefined) throw new Error('nothing is in flight')
    clock.advance(Math.max(0, first.atMs - clock.now()))
    longestMs = Math.max(longestMs, clock.now() - first.flight.sentAtMs)
    window.handleAnswer(first.flight)
  }
  return { window, longestMs }
}

describe('what is in flight to a host', () => {
  it('starts small', () => {
    const window = new SendWindow(new ManualClock())
    expect([window.segmentBytes, window.bytes]).toEqual([64 * KIB, 128 * KIB])
  })

  it.each([
    ['a very narrow link', 50 * KIB, 20],
    ['a narrow link', 200 * KIB, 20],
    ['a narrow link far away', 200 * KIB, 600],
    ['a usual link', 1000 * KIB, 20],
  ])('is what %s accepts within seconds', (_name, bytesPerSecond, wayMs) => {
    const { longestMs } = settle(bytesPerSecond, wayMs)
    expect(longestMs).toBeLessThan(wayMs + Math.max(2000, (1000 * 128 * KIB) / bytesPerSecond + 1))
  })

  it.each([
    ['a wide link', 100_000 * KIB, 1],
    ['a wide link far away', 12_000 * KIB, 300],
  ])('does not hold up %s', (_name, bytesPerSecond, wayMs) => {
    const { window } = settle(bytesPerSecond, wayMs)
    expect(window.bytes).toBeGreaterThan((bytesPerSecond * wayMs) / 1000)
    expect(window.segmentBytes).toBe(1024 * KIB)
  })

  it('shrinks when a link becomes slow', () => {
    const clock = new ManualClock()
    const window = new SendWindow(clock)
    const answer = (tookMs: number) => {
      const flight = window.send(window.bytes)
      clock.advance(tookMs)
      window.handleAnswer(flight)
    }
    for (let count = 0; count < 7; count += 1) answer(10)
    expect(window.bytes).toBe(5 * 1024 * KIB)
    for (let count = 0; count < 3; count += 1) answer(5000)
    expect(window.bytes).toBe(640 * KIB)
  })

  it('changes once for segments sent at the same time', () => {
    const clock = new ManualClock()
    const window = new SendWindow(clock)
    window.handleAnswer(window.send(window.bytes))
    const flights = [window.send(128 * KIB), window.send(128 * KIB)]
    for (const flight of flights) window.handleAnswer(flight)
    expect(window.bytes).toBe(256 * KIB)
  })

  it('does not grow while little of it is used', () => {
    const window = new SendWindow(new ManualClock())
    for (let count = 0; count < 9; count += 1) window.handleAnswer(window.send(64 * KIB))
    expect(window.bytes).toBe(128 * KIB)
  })
})
