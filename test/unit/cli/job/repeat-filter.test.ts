import { expect, test } from 'vitest'
import { RepeatFilter } from '../../../../src/cli/job/work.ts'

test('reports a full disk once, and again only after there was space for a while', () => {
  const filter = new RepeatFilter(10_000)
  expect(filter.isNews(0, 1_000)).toBe(true)
  expect(filter.isNews(3_000, 3_000)).toBe(false)
  expect(filter.isNews(5_000, 14_000)).toBe(false)
  expect(filter.isNews(16_000, 26_000)).toBe(true)
  expect(filter.isNews(28_000, 28_100)).toBe(false)
})
