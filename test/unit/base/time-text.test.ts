import { expect, it } from 'vitest'
import {
  ageText,
  daySecondText,
  fileTimeText,
  formatDuration,
  timeText,
  untilText,
  whenText,
} from '../../../src/base/time-text.ts'

const at = (...parts: [number, number, number, number, number, number?]) => new Date(...parts).getTime()
const NOW = at(2026, 10, 23, 13, 51)

it('shows only the time for today, and the date for any other day', () => {
  expect(timeText(at(2026, 10, 23, 9, 5), NOW)).toBe('09:05')
  expect(timeText(at(2026, 10, 22, 23, 59), NOW)).toBe('2026-11-22 23:59')
  expect(daySecondText(at(2026, 10, 23, 9, 5, 7), NOW)).toBe('09:05:07')
  expect(daySecondText(at(2026, 10, 22, 23, 59, 8), NOW)).toBe('2026-11-22 23:59:08')
})

it('names files so that they sort by time wherever they are made', () => {
  expect(fileTimeText(Date.UTC(2026, 10, 22, 23, 5, 7))).toBe('2026-11-22T23-05-07')
})

it('shows an end without its day until the next morning', () => {
  expect(untilText(at(2026, 10, 24, 1, 33), NOW)).toBe('01:33')
  expect(untilText(at(2026, 10, 25, 1, 33), NOW)).toBe('2026-11-25 01:33')
})

it('counts down within the hour, and shows the time of what comes later', () => {
  const words = (ms: number) => whenText(NOW + ms, NOW)
  expect([-5, 0, 400, 40_000, 4 * 60_000].map(words)).toEqual(['now', 'now', 'in 1 s', 'in 40 s', 'in 4 min'])
  expect(words(2 * 3_600_000)).toBe('at 15:51')
  expect(words(24 * 3_600_000)).toBe('on 2026-11-24 at 13:51')
})

it('keeps ages and durations short', () => {
  expect([-1, 12_999, 190_000, 7_300_000, 300_000_000].map(ageText)).toEqual(['0 s', '12 s', '3 min', '2 h', '3 days'])
  expect([12, 3400, 7_500_000].map(formatDuration)).toEqual(['12 ms', '3.4 s', '2 h 5 min'])
})
