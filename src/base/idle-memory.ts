/**
 * Gives memory back while the program idles: V8 collects old objects only when new ones are made, so the garbage of the start and
 * of the last work would stay for hours. A collection stops the program for up to 100 ms, which matters little while it idles.
 */
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Clock, systemClock } from './clock.ts'

/** A program that was idle for this long counts as idle. */
const CHECK_MS = 5_000
/** At most this share of one processor counts as idle. */
const IDLE_SHARE = 0.005
/** While the heap does not grow, it is checked less and less often, at least this often. */
const LONGEST_MS = 80_000
/** Less growth than this is not worth a collection. */
const WORTH_BYTES = 4 * 2 ** 20

/** `oldBytes`: of the objects that only a collection removes, living or not. */
export type Heap = { cpuMs(): number; oldBytes(): number; collect(): void }

/** Young objects come and go while the program idles, and V8 collects them by itself. */
const isOld = ({ space_name: name }: { readonly space_name: string }): boolean => /^(old|code|large_object)/.test(name)

/** Of this program. */
export const ownHeap: Heap = {
  cpuMs() {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  },
  oldBytes: () =>
    getHeapSpaceStatistics()
      .filter(isOld)
      .reduce((sum, { space_used_size: bytes }) => sum + bytes, 0),
  collect() {
    setFlagsFromString('--expose-gc')
    const collect: unknown = runInNewContext('globalThis.gc')
    if (typeof collect === 'function') collect()
  },
}

/** Collects garbage while the program idles, until it is disposed of. */
export function collectWhenIdle(heap: Heap = ownHeap, clock: Clock = systemClock): Disposable {
  let keptBytes = 0
  let spentMs: number
  let sinceMs: number
  let timer: Disposable
  const checkAfter = (delayMs: number): void => {
    // The collection's own time does not count.
    spentMs = heap.cpuMs()
    sinceMs = clock.now()
    timer = clock.after(delayMs, () => check(delayMs))
  }
  const check = (delayMs: number): void => {
    if (heap.oldBytes() - keptBytes < WORTH_BYTES) return checkAfter(Math.min(2 * delayMs, LONGEST_MS))
    const isIdle = heap.cpuMs() - spentMs <= (clock.now() - sinceMs) * IDLE_SHARE
    // After a long wait, only the next seconds show whether it idles now.
    if (isIdle && delayMs === CHECK_MS) {
      heap.collect()
      keptBytes = heap.oldBytes()
    }
    checkAfter(CHECK_MS)
  }
  checkAfter(CHECK_MS)
  return { [Symbol.dispose]: () => timer[Symbol.dispose]() }
}
