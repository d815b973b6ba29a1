/**
 * How long a job will run when nobody said: as long as the last two of its user ran on average (Tsafrir, Etsion, Feitelson,
 * "Backfilling using system-generated predictions", 2007), an hour while there are none.
 */
import type { Placement } from '../model/cluster.ts'
import type { Gang } from '../model/gang.ts'

export type WaitingJob = {
  /** Unique; of jobs that are alike in all else the one with the lower number was submitted first. */
  readonly order: number
  readonly gang: Gang
  readonly user: string
  /** Since when it waits: from its submission on, later by the time that it ran meanwhile. */
  readonly submitS: number
  /** Any whole number; the higher goes first, 0 is what everyone has. */
  readonly priority: number
  /** How long it will run at most, from 1 on; undefined: nobody said. */
  readonly estimateS: number | undefined
}

export type ActiveJob = WaitingJob & {
  readonly startS: number
  readonly placements: readonly Placement[]
  /** May be ended for a job of higher priority. */
  readonly isPreemptible: boolean
}

/** Hosts that some time belongs to nobody (maintenance) or to these users. */
export type Reservation = {
  readonly hosts: readonly number[]
  readonly fromS: number
  readonly untilS: number
  readonly users: readonly string[]
}

const UNKNOWN_S = 3600

/** By user: how long the last ones ran, the latest last. */
export type RunTimes = ReadonlyMap<string, readonly number[]>

/** Stands for one that may run for ever. */
export const ENDLESS_S = 2 ** 31

export function predictS(
  { user, estimateS }: { user: string; estimateS: number | undefined },
  times: RunTimes,
): number {
  if (estimateS !== undefined) return estimateS
  const last = times.get(user)?.slice(-2) ?? []
  if (last.length === 0) return UNKNOWN_S
  return Math.max(1, Math.ceil(last.reduce((sum, one) => sum + one, 0) / last.length))
}

/**
 * When a running one is taken to end. One that has outrun its estimate is taken to need as long again as it is late: it may
 * have forgotten the end, and nothing that waits may count on the next second for ever. One that has outrun a prediction is
 * taken to run as long again as it has.
 */
export function expectedEndS(
  job: { user: string; estimateS: number | undefined; startS: number },
  nowS: number,
  times: RunTimes,
): number {
  const endS = job.startS + predictS(job, times)
  if (endS > nowS) return endS
  return nowS + Math.max(1, nowS - (job.estimateS === undefined ? job.startS : endS))
}
