/** Who has to end so that another one can begin: the least important and youngest, and no more of them than it takes. */
import { findGang } from '../gangs/search-gang.ts'
import type { Cluster } from '../model/cluster.ts'
import type { ActiveJob, WaitingJob } from './predict.ts'
import { rankOf } from './turn.ts'

/**
 * May one that runs be ended for one that waits? Only for a higher priority: what waiting adds to it decides whose turn it is,
 * and would have equals end each other day after day. What it had itself gained by waiting before it began protects it, so
 * that one that was passed for days is not ended as soon as it runs; while it runs it gains nothing.
 */
export function mayEnd(running: ActiveJob, waiting: WaitingJob, nowS: number): boolean {
  return running.isPreemptible && running.priority < waiting.priority && rankAtStart(running) < rankOf(waiting, nowS)
}

const rankAtStart = (job: ActiveJob): number => rankOf(job, job.startS)

/** Of those that may be ended for it; undefined when even all of them together make no room. */
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
  // The most important first: whoever is not in the way after all stays.
  return ended.toReversed().filter(({ placements }) => {
    const back = placements.map(({ shape, host, devices }) => free.take(shape, { host, devices }))
    if (fits()) return false
    for (const placement of back) free.release(placement)
    return true
  })
}
