/** What the simulations of queues have in common: events in time, and how long jobs waited. */

type Entry<T> = { readonly timeS: number; readonly order: number; readonly value: T }

/** A heap by time; of equal times, what was added first. */
export class TimeQueue<T> {
  readonly #heap: Entry<T>[] = []
  #added = 0

  first(): { readonly timeS: number; readonly value: T } | undefined {
    return this.#heap[0]
  }

  /** The earlier of this time and that of the first event. */
  next(timeS = Number.POSITIVE_INFINITY): number {
    return Math.min(timeS, this.#heap[0]?.timeS ?? Number.POSITIVE_INFINITY)
  }

  add(timeS: number, value: T): void {
    const heap = this.#heap
    const entry = { timeS, order: this.#added++, value }
    let at = heap.push(entry) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = heap[parent] as Entry<T>
      if (!isBefore(entry, above)) break
      heap[at] = above
      at = parent
    }
    heap[at] = entry
  }

  removeFirst(): void {
    const heap = this.#heap
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Entry<T>, heap[child] as Entry<T>)) child++
      const below = heap[child] as Entry<T>
      if (!isBefore(below, last)) break
      heap[at] = below
      at = child
    }
    heap[at] = last
  }
}

function isBefore(one: Entry<unknown>, other: Entry<unknown>): boolean {
  return one.timeS < other.timeS || (one.timeS === other.timeS && one.order < other.order)
}

const SLOWDOWN_BOUND_S = 10

type RunJob = { readonly order: number; readonly submitS: number; readonly runS: number }

/** Of jobs in the order of submission, and the time from the first submission to the last end. Slowdown: (wait + run) / max(10 s, run). */
export function waitFigures(jobs: readonly RunJob[], startsS: ReadonlyMap<number, number>) {
  const firstS = jobs[0]?.submitS ?? 0
  const [count, total] = [Math.max(1, jobs.length), { waitS: 0, slowdown: 0 }]
  let [maximumWaitS, lastS] = [0, firstS + 1]
  for (const { order, submitS, runS } of jobs) {
    const startS = startsS.get(order) ?? submitS
    const waitS = startS - submitS
    total.waitS += waitS
    total.slowdown += Math.max(1, (waitS + runS) / Math.max(SLOWDOWN_BOUND_S, runS))
    maximumWaitS = Math.max(maximumWaitS, waitS)
    lastS = Math.max(lastS, startS + runS)
  }
  const figures = {
    jobs: jobs.length,
    averageWaitS: total.waitS / count,
    averageBoundedSlowdown: total.slowdown / count,
    maximumWaitS,
  }
  return { figures, firstS, spanS: lastS - firstS }
}
