import { expect, it } from 'vitest'
import { collectWhenIdle, type Heap } from '../../../src/base/idle-memory.ts'
import { ManualClock } from '../ssh/manual-clock.ts'

const MB = 2 ** 20
const LOOK_MS = 5_000
/** The longest time between two looks, and the one that makes sure that the program idles. */
const SOON_MS = 80_000 + LOOK_MS

function plantHeap() {
  const clock = new ManualClock()
  const heap = { spentMs: 0, bytes: 60 * MB, collections: 0, looks: 0 }
  const port: Heap = {
    cpuMs: () => heap.spentMs,
    oldBytes() {
      heap.looks++
      return heap.bytes
    },
    collect() {
      heap.collections++
      heap.bytes = 40 * MB
      heap.spentMs += 80
    },
  }
  return { clock, heap, watching: collectWhenIdle(port, clock) }
}

it('collects once while the program idles, and again only after the heap has grown', () => {
  const { clock, heap, watching } = plantHeap()
  clock.advance(LOOK_MS)
  expect(heap.collections).toBe(1)
  heap.bytes += 3 * MB
  clock.advance(10 * SOON_MS)
  expect(heap.collections).toBe(1)
  heap.bytes += MB
  clock.advance(SOON_MS)
  expect(heap.collections).toBe(2)
  watching[Symbol.dispose]()
  expect(clock.timerCount).toBe(0)
})

it('checks less and less often while the heap does not grow', () => {
  const { clock, heap, watching } = plantHeap()
  clock.advance(3_600_000)
  expect(heap.collections).toBe(1)
  expect(heap.looks).toBeLessThan(60)
  watching[Symbol.dispose]()
})

it('does not collect while the program is busy', () => {
  const { clock, heap, watching } = plantHeap()
  for (let look = 0; look < 20; look++) {
    heap.spentMs += 100
    clock.advance(LOOK_MS)
  }
  expect(heap.collections).toBe(0)
  clock.advance(LOOK_MS)
  expect(heap.collections).toBe(1)
  watching[Symbol.dispose]()
})

it('does not collect when the program has just become busy after a long time', () => {
  const { clock, heap, watching } = plantHeap()
  clock.advance(3_600_000)
  heap.bytes += 10 * MB
  // Little for the time since the last look.
  heap.spentMs += 40
  const { looks } = heap
  while (heap.looks === looks) clock.advance(1_000)
  expect(heap.collections).toBe(1)
  heap.spentMs += 40
  clock.advance(LOOK_MS)
  expect(heap.collections).toBe(1)
  clock.advance(LOOK_MS)
  expect(heap.collections).toBe(2)
  watching[Symbol.dispose]()
})
