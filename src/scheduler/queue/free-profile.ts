/** What queue policies see (widths and whole seconds, no hosts), and how much is free when, by estimates. */

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
    let low = 0
    let high = this.#startsS.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#startAt(middle) < timeS) low = middle + 1
      else high = middle
    }
    if (this.#startsS[low] === timeS) return low
    this.#startsS.splice(low, 0, timeS)
    this.#free.splice(low, 0, this.#freeAt(low - 1))
    return low
  }

  #startAt(step: number): number {
    return this.#startsS[step] as number
  }

  #freeAt(step: number): number {
    return this.#free[step] as number
  }
}

/**
 * Conservative back-fill: every job has a place in the plan from its submission on, and begins earlier only if that moves no
 * other place. When a job ends early, all places are assigned again in the order of submission.
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
    for (const job of waiting) if (!this.#startsS.has(job.order)) this.#plan(job, this.#profile)
    let left = state.free
    const chosen = waiting.filter(({ order, width }) => {
      if (this.#startsS.get(order) !== nowS || width > left) return false
      left -= width
      return true
    })
    for (const { order } of chosen) this.#startsS.delete(order)
    return chosen
  }

  #plan({ order, width, estimateS }: QueuedJob, profile: FreeProfile): void {
    const startS = profile.earliest(width, estimateS)
    if (startS === undefined) return
    profile.take(startS, estimateS, width)
    this.#startsS.set(order, startS)
  }
}
