/**
 * Gives memory back while the program idles: V8 collects old objects only when new ones are made, so the garbage of the start and
 * of the last work would stay for hours. A collection stops the program for up to 100 ms, which matters little while it idles.
 */
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Clock, systemClock } from './clock.ts'

const CHECK_EVERY_MS = 5_000
/** At most this share of one processor counts as idle. */
const IDLE_SHARE = 0.005
/** Less growth than this is not worth a collection. */
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

/** Collects garbage while the program idles, until it is disposed of. */
export function collectWhenIdle(heap: Heap = OWN, clock: Clock = systemClock): Disposable {
  let keptBytes = 0
  let spentMs = heap.cpuMs()
  let sinceMs = clock.now()
  let timer: Disposable
  const check = (): void => {
    const isIdle = heap.cpuMs() - spentMs <= (clock.now() - sinceMs) * IDLE_SHARE
    if (isIdle && heap.sizeBytes() - keptBytes >= WORTH_BYTES) {
      heap.collect()
      keptBytes = heap.sizeBytes()
    }
    // The collection's own time does not count.
    spentMs = heap.cpuMs()
    sinceMs = clock.now()
    timer = clock.after(CHECK_EVERY_MS, check)
  }
  timer = clock.after(CHECK_EVERY_MS, check)
  return { [Symbol.dispose]: () => timer[Symbol.dispose]() }
}
