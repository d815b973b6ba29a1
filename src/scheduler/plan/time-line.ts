/** What will be free when, on each device, by estimates: a copy of the cluster for each step of time. */
import { findGang } from '../gangs/search-gang.ts'
import type { Cluster, Placement } from '../model/cluster.ts'
import type { Gang } from '../model/resources.ts'
import type { Reservation } from './predict.ts'

/** Ends with a step of their own; later ones share steps, at the latest end of each. */
const FINE_STEPS = 32
const COARSE_STEPS = 16

type Step = { readonly startS: number; readonly free: Cluster }

export type Ending = { readonly endS: number; readonly placements: readonly Placement[] }

export type PlannedStart = { readonly startS: number; readonly placements: readonly Placement[] }

export class TimeLine {
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
