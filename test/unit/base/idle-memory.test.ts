import { expect, it } from 'vitest'
import { collectWhenIdle, type Heap } from '../../../src/base/idle-memory.ts'
import { ManualClock } from '../ssh/manual-clock.ts'

const MB = 2 ** 20
const LOOK_MS = 5_000

function plantHeap() {
  const clock = new ManualClock()
  const heap = { spentMs: 0, bytes: 60 * MB, collections: 0 }
  const port: Heap = {
    cpuMs: () => heap.spentMs,
    oldBytes: () => heap.bytes,
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
  clock.advance(10 * LOOK_MS)
  expect(heap.collections).toBe(1)
  heap.bytes += MB
  clock.advance(LOOK_MS)
  expect(heap.collections).toBe(2)
  watching[Symbol.dispose]()
  expect(clock.timerCount).toBe(0)
})

it('does not collect while the program is busy', () => {
  const { clock, heap, watching } = plantHeap()
  for (let round = 0; round < 20; round++) {
    heap.spentMs += 100
    clock.advance(LOOK_MS)
  }
  expect(heap.collections).toBe(0)
  clock.advance(LOOK_MS)
  expect(heap.collections).toBe(1)
  watching[Symbol.dispose]()
})
