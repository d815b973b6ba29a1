import { describe, expect, it } from 'vitest'
import { hasPassed, remainingMs } from '../../../src/base/clock.ts'

describe('a pause', () => {
  it.each([
    ['has just begun', 1000, false, 100],
    ['is half over', 1050, false, 50],
    ['is over', 1100, true, 0],
    ['is over where the clock was set back', -3_600_000, true, 0],
  ])('%s', (_, nowMs, isOver, leftMs) => {
    expect(hasPassed(1000, 100, nowMs)).toBe(isOver)
    expect(remainingMs(1000, 100, nowMs)).toBe(leftMs)
  })

  it('from the beginning of time is over', () => {
    expect(remainingMs(Number.NEGATIVE_INFINITY, 100, 0)).toBe(0)
  })
})
