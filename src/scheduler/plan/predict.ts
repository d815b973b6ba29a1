/**
 * Jobs as the planner sees them. Without an estimate a job is expected to run as long as the last two of its user on
 * average (Tsafrir, Etsion, Feitelson, "Backfilling using system-generated predictions", 2007), or an hour.
 */
import type { Placement } from '../model/cluster.ts'
import type { Gang } from '../model/resources.ts'

export type WaitingJob = {
  /** Unique; of jobs alike in all else the lower number was submitted first. */
  readonly order: number
  readonly gang: Gang
  readonly user: string
  /** When its wait began: its submission, plus the time that it ran meanwhile. */
  readonly submitS: number
  /** Higher goes first; 0 by default. */
  readonly priority: number
  /** From 1 on; undefined: unknown. */
  readonly estimateS: number | undefined
}

export type ActiveJob = WaitingJob & {
  readonly startS: number
  readonly placements: readonly Placement[]
  /** May be stopped for a job of higher priority. */
  readonly isPreemptible: boolean
}

/** Hosts that are kept for these users for a time; without users: maintenance. */
export type Reservation = {
  readonly hosts: readonly number[]
  readonly fromS: number
  readonly untilS: number
  readonly users: readonly string[]
}

const UNKNOWN_S = 3600

/** Run times by user, the latest last. */
export type RunTimes = ReadonlyMap<string, readonly number[]>

/** For a job that may run for ever. */
export const ENDLESS_S = 2 ** 31

export function predictS({ user, estimateS }: Pick<WaitingJob, 'user' | 'estimateS'>, times: RunTimes): number {
  if (estimateS !== undefined) return estimateS
  const last = times.get(user)?.slice(-2) ?? []
  if (last.length === 0) return UNKNOWN_S
  return Math.max(1, Math.ceil(last.reduce((sum, one) => sum + one, 0) / last.length))
}

/**
 * When a running job is expected to end. One that exceeded its estimate is taken to need as long again as it is late, one
 * that exceeded a prediction as long again as it ran, so that nothing relies on the next second for ever.
 */
export function expectedEndS(job: ActiveJob, nowS: number, times: RunTimes): number {
  const endS = job.startS + predictS(job, times)
  if (endS > nowS) return endS
  return nowS + Math.max(1, nowS - (job.estimateS === undefined ? job.startS : endS))
}
