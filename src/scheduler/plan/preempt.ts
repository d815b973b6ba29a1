/**
 * Which running jobs are stopped so that another one can begin: those of the lowest priority, the youngest first, and no more
 * than needed.
 */
import { findGang } from '../gangs/search-gang.ts'
import type { Cluster } from '../model/cluster.ts'
import type { ActiveJob, WaitingJob } from './predict.ts'
import { rankOf } from './turn.ts'

/**
 * Only a higher priority may stop a running job: if waiting counted, equals would stop each other day after day. But what a job
 * gained by waiting before it began protects it, so that one that waited for days is not stopped as soon as it runs.
 */
export function mayEnd(running: ActiveJob, waiting: WaitingJob, nowS: number): boolean {
  return running.isPreemptible && running.priority < waiting.priority && rankAtStart(running) < rankOf(waiting, nowS)
}

const rankAtStart = (job: ActiveJob): number => rankOf(job, job.startS)

/** Undefined when even stopping all of them makes no room. */
export function chooseVictims(
  cluster: Cluster,
  waiting: WaitingJob,
  running: readonly ActiveJob[],
  nowS: number,
): readonly ActiveJob[] | undefined {
  const { gang } = waiting
  const candidates = running
    .filter((job) => mayEnd(job, waiting, nowS))
    .sort(
      (one, other) =>
        one.priority - other.priority ||
        rankAtStart(one) - rankAtStart(other) ||
        other.startS - one.startS ||
        other.order - one.order,
    )
  const free = cluster.copy()
  const fits = () => {
    const placements = findGang(free, gang)
    for (const placement of placements ?? []) free.release(placement)
    return placements !== undefined
  }
  let count = 0
  while (!fits()) {
    const next = candidates[count++]
    if (next === undefined) return undefined
    for (const placement of next.placements) free.release(placement)
  }
  const ended = candidates.slice(0, count)
  // The most important first: a job that is not in the way after all stays.
  return ended.toReversed().filter(({ placements }) => {
    const back = placements.map(({ shape, host, devices }) => free.take(shape, { host, devices }))
    if (fits()) return false
    for (const placement of back) free.release(placement)
    return true
  })
}
