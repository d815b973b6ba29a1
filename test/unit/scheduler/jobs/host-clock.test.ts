import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HostClock } from '../../../../src/scheduler/jobs/host-line.ts'

describe('the clock of a host', () => {
  it('is as exact as the fastest round, also after a clock was set or the host rebooted', () => {
    const round = fc.record({
      restMs: fc.integer({ min: 1, max: 100_000 }),
      wayMs: fc.integer({ min: 0, max: 20_000 }),
      backMs: fc.integer({ min: 0, max: 20_000 }),
      /** How far this machine's clock is set before it. */
      setMs: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: -1e9, max: 1e9 })),
      isReboot: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(round, { minLength: 1, maxLength: 30 }), (rounds) => {
        const clock = new HostClock()
        let [nowMs, startMs] = [1_000_000_000_000, 900_000_000_000]
        for (const { restMs, wayMs, backMs, setMs, isReboot } of rounds) {
          nowMs += restMs + setMs
          startMs += setMs
          if (isReboot) startMs = nowMs - 1
          const sentMs = nowMs
          const toldMs = sentMs + wayMs
          nowMs = toldMs + backMs
          clock.note((toldMs - startMs) / 1000, sentMs, nowMs)
          const errorMs = (clock.toMs((toldMs - startMs) / 1000) ?? Number.NaN) - toldMs
          expect(errorMs).toBeLessThanOrEqual(backMs + 1)
          expect(errorMs).toBeGreaterThanOrEqual(-wayMs - 21)
        }
      }),
    )
  })

  it('says by how much it may be wrong, which shrinks from round to round', () => {
    const clock = new HostClock()
    expect(clock.errorMs).toBeUndefined()
    // Up since 1,000,000; the answer took 40 ms, of which 30 were on the way there.
    clock.note(10.03, 1_010_000, 1_010_040)
    expect([clock.toMs(10.03), clock.errorMs]).toEqual([1_010_040, 60])
    clock.note(20.002, 1_020_000, 1_020_004)
    expect([clock.toMs(10.03), clock.errorMs]).toEqual([1_010_032, 24])
    // The host rebooted.
    clock.note(1, 1_030_000, 1_030_100)
    expect(clock.errorMs).toBe(120)
  })

  it('knows nothing before the first round or from a malformed time', () => {
    const clock = new HostClock()
    expect(clock.toMs(5)).toBeUndefined()
    clock.note(Number.NaN, 0, 0)
    expect(clock.toMs(5)).toBeUndefined()
    clock.note(10, 20_000, 20_000)
    expect([clock.toMs(5), clock.toMs(Number.NaN)]).toEqual([15_000, undefined])
  })
})
