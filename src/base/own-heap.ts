/** The heap of this program, as V8 sees it. */
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** They come and go, and V8 collects them by itself; `read_only_space` never changes. */
const YOUNG_SPACES = new Set(['new_space', 'new_large_object_space', 'read_only_space'])

/** Of objects that only a whole collection removes, living or not. */
export function oldBytes(): number {
  return getHeapSpaceStatistics().reduce(
    (sum, { space_name, space_used_size }) => (YOUNG_SPACES.has(space_name) ? sum : sum + space_used_size),
    0,
  )
}

let collect: unknown

/** Collects all that nothing refers to; stops the program for up to 100 ms. */
export function collectGarbage(): void {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc')
    collect = runInNewContext('globalThis.gc')
  }
  if (typeof collect === 'function') collect()
}
