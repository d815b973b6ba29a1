/**
 * Which jobs begin now and where, which begin when, and which have to make room: back-fill over placements. The first jobs
 * reserve places in the plan; later ones use what is left without delaying them.
 */
import { findGang } from '../gangs/place-gang.ts'
import type { Cluster, Placement } from '../model/cluster.ts'
import type { Gang } from '../model/resources.ts'
import {
  type ActiveJob,
  ENDLESS_S,
  expectedEndS,
  predictS,
  type Reservation,
  type RunTimes,
  type WaitingJob,
} from './predict.ts'
import { type QueueLine, rankOf, Turns, type Usage } from './turn.ts'

/** How many waiting jobs reserve places. More: closer to conservative back-fill, and slower. */
const RESERVED = 8
/** Behind a job that has waited this long, jobs of unknown length may only take what it will not need. */
const PATIENCE_S = 6 * 3600

export type LinesSnapshot<Job extends WaitingJob = WaitingJob> = {
  /** Its placements are those of `running`. */
  readonly cluster: Cluster
  readonly nowS: number
  readonly running: readonly ActiveJob[]
  readonly lines: readonly QueueLine<Job>[]
  /** Whether it fits on no host, even when all are idle; then no later time is tried. */
  neverFits?(gang: Gang): boolean
  readonly reservations?: readonly Reservation[]
  readonly usage?: Usage
  readonly runTimes?: RunTimes
  /** Running jobs may be stopped for those of higher priority. */
  readonly isPreempting?: boolean
}

/** Each waiting job is a line of its own. */
export type QueueSnapshot<Job extends WaitingJob = WaitingJob> = Omit<LinesSnapshot<Job>, 'lines'> & {
  readonly waiting: readonly Job[]
}

export type QueuePlan<Job extends WaitingJob = WaitingJob> = {
  readonly starts: readonly { readonly job: Job; readonly placements: readonly Placement[] }[]
  /** By order, of jobs with a place in the plan: when it begins; undefined: never, as things are. */
  readonly expectedS: ReadonlyMap<number, number | undefined>
  /** Jobs to stop, each for the waiting job of that order. */
  readonly victims: readonly { readonly job: ActiveJob; readonly forOrder: number }[]
}

export function planQueue<Job extends WaitingJob>({ waiting, ...snapshot }: QueueSnapshot<Job>): QueuePlan<Job> {
  return planLines({ ...snapshot, lines: waiting.map((job) => [job]) })
}

/** When the head of a line finds no place, neither does the rest of the line. */
export function planLines<Job extends WaitingJob>(snapshot: LinesSnapshot<Job>): QueuePlan<Job> {
  return new QueuePlanner(snapshot).plan()
}

type Taken = { readonly startS: number; readonly durationS: number; readonly placements: readonly Placement[] }

class QueuePlanner<Job extends WaitingJob> {
  readonly #snapshot: LinesSnapshot<Job>
  readonly #runTimes: RunTimes
  readonly #victims: { readonly job: ActiveJob; readonly forOrder: number }[] = []
  readonly #starts: { readonly job: Job; readonly placements: readonly Placement[] }[] = []
  readonly #expectedS = new Map<number, number | undefined>()
  readonly #taken: Taken[] = []
  /** Gangs that found no place now, with the shortest duration tried: nothing becomes free within one plan. */
  readonly #refused = new Map<string, number>()
  #timeLine: TimeLine
  #isPatienceOver = false

  constructor(snapshot: LinesSnapshot<Job>) {
    this.#snapshot = snapshot
    this.#runTimes = snapshot.runTimes ?? new Map()
    this.#timeLine = this.#drawTimeLine()
  }

  plan(): QueuePlan<Job> {
    const { lines, nowS, usage = new Map() } = this.#snapshot
    const turns = new Turns(lines, { nowS, usage, lengthS: (job) => predictS(job, this.#runTimes) })
    let reserved = 0
    for (let head = turns.take(); head !== undefined; head = turns.take()) {
      const { job } = head
      const isStarted = this.#startNow(job)
      const isReserved = !isStarted && reserved < RESERVED && this.#reserve(job)
      if (isStarted || isReserved) turns.follow(head)
      if (!isReserved) continue
      reserved++
      if (nowS - job.submitS > PATIENCE_S) this.#isPatienceOver = true
    }
    return { starts: this.#starts, expectedS: this.#expectedS, victims: this.#victims }
  }

  #startNow(job: Job): boolean {
    const durationS = this.#durationS(job)
    const key = gangKey(this.#snapshot.cluster, job)
    if ((this.#refused.get(key) ?? Number.POSITIVE_INFINITY) <= durationS) return false
    const placements = this.#timeLine.placeNow(job.gang, job.user, durationS)
    if (placements === undefined) {
      this.#refused.set(key, durationS)
      return false
    }
    const { nowS } = this.#snapshot
    this.#take({ startS: nowS, durationS, placements })
    this.#starts.push({ job, placements })
    this.#expectedS.set(job.order, nowS)
    return true
  }

  #reserve(job: Job): boolean {
    if (this.#snapshot.neverFits?.(job.gang)) {
      this.#expectedS.set(job.order, undefined)
      return false
    }
    const durationS = this.#durationS(job)
    let place = this.#timeLine.earliest(job.gang, job.user, durationS)
    const { isPreempting, nowS } = this.#snapshot
    if (isPreempting && (place === undefined || place.startS > nowS + 1))
      place = this.#makeRoomFor(job, durationS) ?? place
    this.#expectedS.set(job.order, place?.startS)
    if (place === undefined) return false
    this.#take({ ...place, durationS })
    return true
  }

  /** Its place after stopping others; undefined: stopping them does not help. */
  #makeRoomFor(job: Job, durationS: number): PlannedStart | undefined {
    const { cluster, running, nowS } = this.#snapshot
    const gone = new Set(this.#victims.map((victim) => victim.job))
    const now = cluster.copy()
    for (const { placements } of this.#starts)
      for (const { shape, host, devices } of placements) now.take(shape, { host, devices })
    this.#timeLine.closeReserved(now, job.user, nowS, nowS + 1 + durationS)
    const left = running.filter((one) => !gone.has(one))
    const victims = chooseVictims(now, job, left, nowS)
    if (victims === undefined || victims.length === 0) return undefined
    const before = this.#timeLine
    const count = this.#victims.length
    this.#victims.push(...victims.map((victim) => ({ job: victim, forOrder: job.order })))
    this.#timeLine = this.#drawTimeLine()
    for (const taken of this.#taken) this.#timeLine.take(taken, taken.durationS)
    const place = this.#timeLine.earliest(job.gang, job.user, durationS)
    if (place?.startS === nowS + 1) return place
    // Another job needs the room soon: nothing is stopped in vain.
    this.#victims.length = count
    this.#timeLine = before
    return undefined
  }

  #take(taken: Taken): void {
    this.#taken.push(taken)
    this.#timeLine.take(taken, taken.durationS)
  }

  #drawTimeLine(): TimeLine {
    const { cluster, nowS, running, reservations = [] } = this.#snapshot
    const gone = new Set(this.#victims.map(({ job }) => job))
    const endings = running.map((job) => ({
      endS: gone.has(job) ? nowS + 1 : expectedEndS(job, nowS, this.#runTimes),
      placements: job.placements,
    }))
    return new TimeLine(cluster, nowS, endings, reservations)
  }

  #durationS(job: Job): number {
    return this.#isPatienceOver && job.estimateS === undefined ? ENDLESS_S : predictS(job, this.#runTimes)
  }
}

/** The same text for gangs that are placed alike. */
function gangKey(cluster: Cluster, { gang, user }: WaitingJob): string {
  const shapes = gang.bundles.map((bundle) => cluster.shapeOf(bundle).id)
  return `${gang.strategy} ${gang.maxBundlesPerHost ?? ''} ${user} ${shapes.join()}`
}

const rankAtStart = (job: ActiveJob): number => rankOf(job, job.startS)

/** The lowest priority and youngest first, and no more than needed; undefined: even stopping all of them makes no room. */
export function chooseVictims(cluster: Cluster, waiting: WaitingJob, running: readonly ActiveJob[], nowS: number) {
  const { gang, priority } = waiting
  const rank = rankOf(waiting, nowS)
  // If waiting counted, equals would stop each other day after day. What a job gained by waiting before it began protects it.
  const candidates = running
    .filter((job) => job.isPreemptible && job.priority < priority && rankAtStart(job) < rank)
    .sort(
      (one, other) =>
        one.priority - other.priority ||
        rankAtStart(one) - rankAtStart(other) ||
        other.startS - one.startS ||
        other.order - one.order,
    )
  const free = cluster.copy()
  let count = 0
  while (!fitsIn(free, gang)) {
    const next = candidates[count++]
    if (next === undefined) return undefined
    for (const placement of next.placements) free.release(placement)
  }
  const ended = candidates.slice(0, count)
  // The most important first: a job that is not in the way after all stays.
  return ended.toReversed().filter(({ placements }) => {
    const back = placements.map(({ shape, host, devices }) => free.take(shape, { host, devices }))
    if (fitsIn(free, gang)) return false
    for (const placement of back) free.release(placement)
    return true
  })
}

/** Ends with a step of their own; later ones share steps, at the latest end of each. */
const FINE_STEPS = 32
const COARSE_STEPS = 16

type Step = { readonly startS: number; readonly free: Cluster }

export type Ending = { readonly endS: number; readonly placements: readonly Placement[] }

export type PlannedStart = { readonly startS: number; readonly placements: readonly Placement[] }

/** What will be free when, on each device, by estimates: a copy of the cluster for each step of time. */
class TimeLine {
  readonly #nowS: number
  readonly #reservations: readonly Reservation[]
  /** Step i lasts from its start to that of the next one; the last one for ever. Ascending. */
  readonly #steps: Step[]

  /** All of `running` end after now. */
  constructor(cluster: Cluster, nowS: number, running: readonly Ending[], reservations: readonly Reservation[]) {
    this.#nowS = nowS
    this.#reservations = reservations.filter(({ untilS }) => untilS > nowS)
    this.#steps = [{ startS: nowS, free: cluster.copy() }]
    for (const { endS, placements } of roundUp(running)) {
      const last = this.#steps.at(-1) as Step
      const step = last.startS === endS ? last : { startS: endS, free: last.free.copy() }
      for (const placement of placements) step.free.release(placement)
      if (step !== last) this.#steps.push(step)
    }
    for (const { untilS } of this.#reservations) this.#split(untilS)
  }

  /** Where it fits now for that long. */
  placeNow(gang: Gang, user: string, durationS: number): readonly Placement[] | undefined {
    return this.#place(gang, user, 0, durationS)
  }

  /** The first time from which it fits for that long; undefined: never. */
  earliest(gang: Gang, user: string, durationS: number): PlannedStart | undefined {
    for (let index = 0; index < this.#steps.length; index++) {
      const { startS, free } = this.#steps[index] as Step
      if (!fitsIn(free, gang)) continue
      const placements = this.#place(gang, user, index, durationS)
      if (placements) return { startS, placements }
    }
    return undefined
  }

  take({ startS, placements }: PlannedStart, durationS: number): void {
    const from = this.#split(startS)
    const to = this.#split(startS + durationS)
    for (const { free } of this.#steps.slice(from, to))
      for (const { shape, host, devices } of placements) free.take(shape, { host, devices })
  }

  /** Closes hosts that are reserved for others at some time of this span. */
  closeReserved(cluster: Cluster, user: string, startS: number, endS: number): void {
    for (const { hosts, fromS, untilS, users } of this.#reservations)
      if (fromS < endS && untilS > startS && !users.includes(user)) for (const host of hosts) cluster.close(host, true)
  }

  #place(gang: Gang, user: string, first: number, durationS: number): readonly Placement[] | undefined {
    const { startS, free } = this.#steps[first] as Step
    const endS = startS + durationS
    const common = free.copy()
    for (let index = first + 1; index < this.#steps.length; index++) {
      const step = this.#steps[index] as Step
      if (step.startS >= endS) break
      common.keepLeast(step.free)
    }
    this.closeReserved(common, user, startS, endS)
    return findGang(common, gang)
  }

  /** The step that begins at that time, created if there is none. */
  #split(timeS: number): number {
    const after = this.#steps.findIndex(({ startS }) => startS >= timeS)
    if (after >= 0 && this.#steps[after]?.startS === timeS) return after
    const at = after < 0 ? this.#steps.length : after
    const before = this.#steps[at - 1]
    if (before === undefined || timeS < this.#nowS) return 0
    this.#steps.splice(at, 0, { startS: timeS, free: before.free.copy() })
    return at
  }
}

/** Whether it fits when it may stay for ever. */
function fitsIn(free: Cluster, gang: Gang): boolean {
  const placements = findGang(free, gang)
  for (const placement of placements ?? []) free.release(placement)
  return placements !== undefined
}

function roundUp(running: readonly Ending[]): readonly Ending[] {
  const sorted = running.toSorted((one, other) => one.endS - other.endS)
  const coarse = sorted.slice(FINE_STEPS)
  const size = Math.ceil(coarse.length / COARSE_STEPS)
  return sorted.map((ending, index) => {
    if (index < FINE_STEPS) return ending
    const group = Math.floor((index - FINE_STEPS) / size)
    return { ...ending, endS: coarse[Math.min(coarse.length, (group + 1) * size) - 1]?.endS ?? ending.endS }
  })
}
