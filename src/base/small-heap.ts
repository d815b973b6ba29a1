/** For hundreds of connections: V8 lets its young generation grow to 48 MB, and a dead view of 100 bytes keeps 64 KB of a socket. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Bytes from hosts between two collections of the young generation (about a millisecond each). */
const COLLECT_EVERY_BYTES = 8 * 2 ** 20

/** Cannot be undone. */
export function keepHeapSmall() {
  setFlagsFromString('--semi-space-growth-factor=1')
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('globalThis.gc')
  let sizeBytes = 0
  return {
    /** Called with the number of bytes that arrived and were processed. */
    passed(more: number): void {
      sizeBytes += more
      if (sizeBytes < COLLECT_EVERY_BYTES || typeof collect !== 'function') return
      sizeBytes = 0
      collect({ type: 'minor' })
    },
  }
}
