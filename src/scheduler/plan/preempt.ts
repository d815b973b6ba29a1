/** Who has to end so that another one can begin: the least important and youngest, and no more of them than it takes. */
import { findGang } from '../gangs/search-gang.ts'
import type { Cluster } from '../model/cluster.ts'
import type { ActiveJob, WaitingJob } from './job.ts'
import { rankOf } from './turn.ts'

/** Of those that rank below it; undefined when even all of them together make no room. */
export function chooseVictims(
  cluster: Cluster,
  waiting: WaitingJob,
  running: readonly ActiveJob[],
  nowS: number,
): readonly ActiveJob[] | undefined {
  const { gang } = waiting
  const candidates = running
    .filter((job) => job.isPreemptible && rankOf(job, nowS) < rankOf(waiting, nowS))
    .sort(
      (one, other) => rankOf(one, nowS) - rankOf(other, nowS) || other.startS - one.startS || other.order - one.order,
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
