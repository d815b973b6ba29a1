/**
 * How long jobs and studies have lasted, for their limits. The system's clock says so, and a second clock, which nobody can set, from
 * the first question on. The larger time counts, so a system clock that is set back puts off no limit.
 */
import { getOrMake } from '../../base/collections.ts'

type Known = { readonly sinceMs: number; readonly elapsedMs: number; readonly atMs: number }

export class ElapsedTimes {
  readonly #passedMs: () => number
  #known = new Map<string, Known>()
  #before: ReadonlyMap<string, Known> = new Map()

  /** `passedMs`: a monotonic clock with any origin. */
  constructor(passedMs: () => number = () => performance.now()) {
    this.#passedMs = passedMs
  }

  /** Before all that lasts is asked for again: the rest is forgotten. */
  beginRound(): void {
    this.#before = this.#known
    this.#known = new Map()
  }

  /** In ms; `sinceMs` and `nowMs`: by the system's clock. */
  of(name: string, sinceMs: number, nowMs: number): number {
    const atMs = this.#passedMs()
    const own = getOrMake(this.#known, name, () => {
      const before = this.#before.get(name)
      if (before?.sinceMs === sinceMs) return before
      return { sinceMs, elapsedMs: Math.max(0, nowMs - sinceMs), atMs }
    })
    return Math.max(nowMs - sinceMs, own.elapsedMs + (atMs - own.atMs))
  }
}
