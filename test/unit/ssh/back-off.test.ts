import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { backOffMs } from '../../../src/ssh/session-transition.ts'

describe('back-off', () => {
  it('starts at one second, doubles, and stays at thirty', () => {
    expect([1, 2, 3, 4, 5, 6, 7].map((failures) => backOffMs(failures, 0.5))).toEqual([
      1000, 2000, 4000, 8000, 16000, 30000, 30000,
    ])
  })

  it('varies by a quarter in both directions', () => {
    expect(backOffMs(1, 0)).toBe(750)
    expect(backOffMs(6, 0)).toBe(22_500)
    expect(backOffMs(6, 0.999999)).toBe(37_500)
  })

  it('stays within its bounds for any number of failures', () => {
    fc.assert(
      fc.property(fc.nat(), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (failures, random) => {
        const delayMs = backOffMs(failures, random)
        expect(delayMs).toBeGreaterThanOrEqual(750)
        expect(delayMs).toBeLessThanOrEqual(37_500)
      }),
    )
  })
})
