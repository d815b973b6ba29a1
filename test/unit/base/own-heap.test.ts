import { expect, it } from 'vitest'
import { collectGarbage, oldBytes } from '../../../src/base/own-heap.ts'

const MB = 2 ** 20

it('counts objects that live on, not young ones', () => {
  collectGarbage()
  const before = oldBytes()
  for (let count = 0; count < 500_000; count++) [count, count + 1, count + 2].reverse()
  expect(oldBytes() - before).toBeLessThan(2 * MB)
  const kept = Array.from({ length: 500_000 }, (_, index) => ({ index }))
  collectGarbage()
  expect(oldBytes() - before).toBeGreaterThan(4 * MB)
  expect(kept).toHaveLength(500_000)
})
