/**
 * Gives memory back while a program idles: V8 collects old objects only when more are made, so what its start and its last work
 * have left would stay for hours. A collection stops the program for up to 100 ms; in an idle one, nobody is typing and nothing arrives.
 */
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Clock, systemClock } from './clock.ts'

const LOOK_EVERY_MS = 5_000
/** Of one processor, in that time. */
const IDLE_SHARE = 0.005
/** Since the last collection: less is not worth one. */
const WORTH_BYTES = 4 * 2 ** 20

export type Heap = { cpuMs(): number; sizeBytes(): number; collect(): void }

const OWN: Heap = {
  cpuMs() {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  },
  sizeBytes: () => getHeapStatistics().total_heap_size,
  collect() {
    setFlagsFromString('--expose-gc')
    const collect: unknown = runInNewContext('globalThis.gc')
    if (typeof collect === 'function') collect()
  },
}

/** Until it is disposed of. */
export function collectWhenIdle(heap: Heap = OWN, clock: Clock = systemClock): Disposable {
  let keptBytes = 0
  let spentMs = heap.cpuMs()
  let sinceMs = clock.now()
  let timer: Disposable
  const look = (): void => {
    const isIdle = heap.cpuMs() - spentMs <= (clock.now() - sinceMs) * IDLE_SHARE
    if (isIdle && heap.sizeBytes() - keptBytes >= WORTH_BYTES) {
      heap.collect()
      keptBytes = heap.sizeBytes()
    }
    // Without what the collection took.
    spentMs = heap.cpuMs()
    sinceMs = clock.now()
    timer = clock.after(LOOK_EVERY_MS, look)
  }
  timer = clock.after(LOOK_EVERY_MS, look)
  return { [Symbol.dispose]: () => timer[Symbol.dispose]() }
}
