/** Queue policies by name, over widths and whole seconds, without hosts. */

export type QueuedJob = {
  /** In the order of submission; unique. */
  readonly order: number
  readonly submitS: number
  /** Processors, GPUs or whatever is counted, from 1 to what the machine has. */
  readonly width: number
  /** At least 1. */
  readonly estimateS: number
}

export type RunningJob = {
  readonly width: number
  /** It may end earlier; once that time has passed it is expected to end soon. */
  readonly estimatedEndS: number
}

export type QueueState = {
  readonly nowS: number
  readonly free: number
  readonly running: readonly RunningJob[]
  readonly waiting: readonly QueuedJob[]
  /** A job ended before its estimated end, so the plan is out of date. */
  readonly hasEndedEarly: boolean
}

/** Decides at each change which jobs begin. It may remember its plan, so each machine needs its own. */
export interface QueuePolicy {
  /** Jobs that begin now; together they fit in `free`. */
  choose(state: QueueState): readonly QueuedJob[]
}

/** A step function over time. */
export class FreeProfile {
  /** Step i lasts from `#startsS[i]` to the next one; the last one for ever. Ascending. */
  readonly #startsS: number[]
  readonly #free: number[]

  constructor(nowS: number, free: number, running: readonly RunningJob[]) {
    this.#startsS = [nowS]
    this.#free = [free]
    // A job that exceeded its estimate is expected to end in the next second, so that the plan never waits for ever.
    const ends = running.map(({ estimatedEndS, width }) => ({ endS: Math.max(estimatedEndS, nowS + 1), width }))
    for (const { endS, width } of ends.sort((one, other) => one.endS - other.endS)) {
      const last = this.#startsS.length - 1
      const freeAfter = this.#freeAt(last) + width
      if (this.#startAt(last) === endS) this.#free[last] = freeAfter
      else {
        this.#startsS.push(endS)
        this.#free.push(freeAfter)
      }
    }
  }

  /** The first time from which `width` is free for that long; undefined: never. */
  earliest(width: number, durationS: number): number | undefined {
    const count = this.#startsS.length
    for (let step = 0; step < count; ) {
      if (this.#freeAt(step) < width) {
        step++
        continue
      }
      const startS = this.#startAt(step)
      const obstacle = this.#firstBelow(width, step + 1, startS + durationS)
      if (obstacle === undefined) return startS
      step = obstacle
    }
    return undefined
  }

  /** Whether `width` is free now for that long. */
  holdsNow(width: number, durationS: number): boolean {
    return this.#firstBelow(width, 0, this.#startAt(0) + durationS) === undefined
  }

  /** Takes what `earliest` or `holdsNow` found. */
  take(startS: number, durationS: number, width: number): void {
    const from = this.#split(startS)
    const to = this.#split(startS + durationS)
    for (let step = from; step < to; step++) this.#free[step] = this.#freeAt(step) - width
  }

  /** Drops what is past. */
  advance(nowS: number): void {
    const current = this.#split(nowS)
    this.#startsS.splice(0, current)
    this.#free.splice(0, current)
  }

  #firstBelow(width: number, first: number, untilS: number): number | undefined {
    for (let step = first; step < this.#startsS.length && this.#startAt(step) < untilS; step++)
      if (this.#freeAt(step) < width) return step
    return undefined
  }

  /** The step that begins at that time, created if there is none. */
  #split(timeS: number): number {
    // A loop of its own: plans of long queues spend their time here.
    let [step, end] = [0, this.#startsS.length]
    while (step < end) {
      const middle = (step + end) >> 1
      if (this.#startAt(middle) < timeS) step = middle + 1
      else end = middle
    }
    if (this.#startsS[step] === timeS) return step
    this.#startsS.splice(step, 0, timeS)
    this.#free.splice(step, 0, this.#freeAt(step - 1))
    return step
  }

  #startAt(step: number): number {
    return this.#startsS[step] as number
  }

  #freeAt(step: number): number {
    return this.#free[step] as number
  }
}

/**
 * Conservative back-fill: every job has a place in the plan, and begins earlier only if that moves no other place. When a
 * job ends early, all places are assigned again in the order of submission.
 */
export class ConservativeBackfill implements QueuePolicy {
  readonly #startsS = new Map<number, number>()
  #profile: FreeProfile | undefined

  choose(state: QueueState): readonly QueuedJob[] {
    const { nowS, waiting } = state
    const isOverdue = waiting.some(({ order }) => (this.#startsS.get(order) ?? nowS) < nowS)
    if (this.#profile === undefined || state.hasEndedEarly || isOverdue) {
      this.#startsS.clear()
      this.#profile = new FreeProfile(nowS, state.free, state.running)
    } else this.#profile.advance(nowS)
    for (const { order, width, estimateS } of waiting) {
      const startS = this.#startsS.has(order) ? undefined : this.#profile.earliest(width, estimateS)
      if (startS === undefined) continue
      this.#profile.take(startS, estimateS, width)
      this.#startsS.set(order, startS)
    }
    let left = state.free
    const chosen = waiting.filter(({ order, width }) => {
      if (this.#startsS.get(order) !== nowS || width > left) return false
      left -= width
      return true
    })
    for (const { order } of chosen) this.#startsS.delete(order)
    return chosen
  }
}

const fcfs: QueuePolicy = {
  choose({ waiting, free }) {
    let left = free
    const blocked = waiting.findIndex(({ width }) => {
      left -= width
      return left < 0
    })
    return blocked < 0 ? waiting : waiting.slice(0, blocked)
  },
}

/** Nothing passes the shortest job, so the machine drains for wide ones; long jobs may starve. */
const shortestFirst: QueuePolicy = {
  choose: (state) => fcfs.choose({ ...state, waiting: state.waiting.toSorted(byEstimate) }),
}

/** EASY back-fill: only the head of the queue has a reservation (Lifka, The ANL/IBM SP scheduling system, 1995). */
function chooseEasy(state: QueueState, isShortestFirst: boolean): readonly QueuedJob[] {
  const begun = [...fcfs.choose(state)]
  const head = state.waiting[begun.length]
  let left = begun.reduce((rest, { width }) => rest - width, state.free)
  if (head === undefined || left === 0) return begun
  const { nowS } = state
  const running = [
    ...state.running,
    ...begun.map(({ width, estimateS }) => ({ width, estimatedEndS: nowS + estimateS })),
  ]
  const { shadowS, ...reserved } = reserve(head, left, running)
  let { extra } = reserved
  const behind = state.waiting.slice(begun.length + 1)
  for (const job of isShortestFirst ? behind.sort(byEstimate) : behind) {
    const isOver = nowS + job.estimateS <= shadowS
    if (job.width > left || !(isOver || job.width <= extra)) continue
    if (!isOver) extra -= job.width
    left -= job.width
    begun.push(job)
  }
  return begun
}

/** When the head can begin, and what is free beside it then. */
function reserve(head: QueuedJob, free: number, running: readonly RunningJob[]): { shadowS: number; extra: number } {
  let left = free
  for (const { width, estimatedEndS } of running.toSorted((one, other) => one.estimatedEndS - other.estimatedEndS)) {
    left += width
    if (left >= head.width) return { shadowS: estimatedEndS, extra: left - head.width }
  }
  return { shadowS: Number.POSITIVE_INFINITY, extra: 0 }
}

function byEstimate(one: QueuedJob, other: QueuedJob): number {
  return one.estimateS - other.estimateS || one.order - other.order
}

/** More: closer to conservative back-fill. Fewer: less waiting on average, longer for the widest. */
const RESERVED = 64

const OLD_S = 3600

/** Shorter jobs count as equal. */
const SHORT_S = 10

/**
 * The default: 64 waiting jobs reserve places, the rest fills what is free now. Places go first to jobs that have waited
 * for an hour, by submission, then to those with the longest wait in relation to their length, so none starves.
 */
const oldestReserved: QueuePolicy = {
  choose({ nowS, free, running, waiting }: QueueState): readonly QueuedJob[] {
    const profile = new FreeProfile(nowS, free, running)
    const begun: QueuedJob[] = []
    let left = free
    let reserved = 0
    for (const job of inTurn(waiting, nowS)) {
      if (left === 0) break
      const startS =
        reserved < RESERVED
          ? profile.earliest(job.width, job.estimateS)
          : job.width <= left && profile.holdsNow(job.width, job.estimateS)
            ? nowS
            : undefined
      if (startS === undefined) continue
      profile.take(startS, job.estimateS, job.width)
      if (startS === nowS) {
        begun.push(job)
        left -= job.width
      } else reserved++
    }
    return begun
  },
}

function inTurn(waiting: readonly QueuedJob[], nowS: number): readonly QueuedJob[] {
  const firstYoung = waiting.slice(0, RESERVED).findIndex(({ submitS }) => nowS - submitS <= OLD_S)
  const oldCount = firstYoung < 0 ? RESERVED : firstYoung
  const slowdown = ({ submitS, estimateS }: QueuedJob) => (nowS - submitS + estimateS) / Math.max(SHORT_S, estimateS)
  const rest = waiting.slice(oldCount)
  rest.sort((one, other) => slowdown(other) - slowdown(one) || one.order - other.order)
  return [...waiting.slice(0, oldCount), ...rest]
}

export const QUEUE_POLICIES = {
  'oldest-reserved': () => oldestReserved,
  conservative: () => new ConservativeBackfill(),
  easy: () => ({ choose: (state) => chooseEasy(state, false) }),
  'easy-sjf': () => ({ choose: (state) => chooseEasy(state, true) }),
  sjf: () => shortestFirst,
  fcfs: () => fcfs,
} satisfies Record<string, () => QueuePolicy>

export type QueuePolicyName = keyof typeof QUEUE_POLICIES

export const DEFAULT_QUEUE_POLICY: QueuePolicyName = 'oldest-reserved'
