/** What the simulations of queues have in common: events in time, and how long jobs waited. */
import { lowerBound } from '../../base/collections.ts'

/** Events by time; of equal times, what was added first. */
export class TimeQueue<T> {
  /** The last one is next. */
  readonly #events: { readonly timeS: number; readonly value: T }[] = []

  first() {
    return this.#events.at(-1)
  }

  /** The earlier of this time and that of the first event. */
  next(timeS = Number.POSITIVE_INFINITY): number {
    return Math.min(timeS, this.first()?.timeS ?? Number.POSITIVE_INFINITY)
  }

  add(timeS: number, value: T): void {
    const isLater = (index: number) => (this.#events[index]?.timeS ?? 0) > timeS
    this.#events.splice(lowerBound(this.#events.length, isLater), 0, { timeS, value })
  }

  removeFirst(): void {
    this.#events.pop()
  }
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
