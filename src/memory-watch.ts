/**
 * Ends the program with one line before V8 does it with a page of its own and a core dump: that end cannot be caught. What
 * allocates everything within one turn of the event loop, or memory that the system refuses, is beyond this.
 */
import { getHeapStatistics } from 'node:v8'
import { collectGarbage, oldBytes } from './base/own-heap.ts'

/** Until the next check: a millisecond for each free MB. An idle program, which is far from full, seldom wakes up. */
const LEAST_MS = 50
const MOST_MS = 500
/** Of what old objects may take. V8 gives up before all of it is used, when collecting frees too little for the time it takes. */
const FULL = 0.8
const MB = 2 ** 20
/** What V8's limit of the whole has for young objects: more since V8 13. */
const YOUNG_BYTES = Number.parseInt(process.versions.v8, 10) >= 13 ? 192 * MB : 48 * MB

export function watchMemory(onFull: (limitBytes: number) => void): void {
  const limitBytes = getHeapStatistics().heap_size_limit - YOUNG_BYTES
  const check = (): void => {
    if (limitBytes * FULL <= oldBytes()) {
      // Much of it may be garbage.
      collectGarbage()
      if (limitBytes * FULL <= oldBytes()) return onFull(limitBytes)
    }
    wait()
  }
  const wait = (): void => {
    const freeMB = (limitBytes * FULL - oldBytes()) / MB
    setTimeout(check, Math.max(LEAST_MS, Math.min(MOST_MS, freeMB))).unref()
  }
  wait()
}
