/**
 * Gives memory back while the program idles: V8 collects old objects only when new ones are made, so the garbage of the start and
 * of the last work would stay for hours. A collection stops the program for up to 100 ms, which matters little while it idles.
 */
import { type Clock, systemClock } from './clock.ts'
import { collectGarbage, oldBytes } from './own-heap.ts'

/** The program must be idle for this long before a collection. */
const CHECK_MS = 5_000
/** At most this share of one processor counts as idle. */
const IDLE_SHARE = 0.005
/** Less growth than this is not worth a collection. */
const WORTH_BYTES = 4 * 2 ** 20

/** `oldBytes` and `collect`: as in `own-heap.ts`. */
export type Heap = { cpuMs(): number; oldBytes(): number; collect(): void }

const OWN: Heap = {
  cpuMs() {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  },
  oldBytes,
  collect: collectGarbage,
}

/** Collects garbage while the program idles, until it is disposed of. */
export function collectWhenIdle(heap: Heap = OWN, clock: Clock = systemClock): Disposable {
  let keptBytes = 0
  let spentMs: number
  let timer: Disposable
  const checkLater = (): void => {
    // The collection's own time does not count.
    spentMs = heap.cpuMs()
    timer = clock.after(CHECK_MS, check)
  }
  const check = (): void => {
    const isIdle = heap.cpuMs() - spentMs <= CHECK_MS * IDLE_SHARE
    if (isIdle && heap.oldBytes() - keptBytes >= WORTH_BYTES) {
      heap.collect()
      keptBytes = heap.oldBytes()
    }
    checkLater()
  }
  checkLater()
  return { [Symbol.dispose]: () => timer[Symbol.dispose]() }
}
