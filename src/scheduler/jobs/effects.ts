/** The effects of a what-if gang on the jobs of the queue: which would start later, or have to end for it. Pure. */
import type { Placement } from '../model/cluster.ts'
import type { Gang } from '../model/resources.ts'
import { chooseVictims, planLines } from '../plan/plan-queue.ts'
import type { ActiveJob, RunTimes } from '../plan/predict.ts'
import type { Job } from './job.ts'
import { occupy, runningOf, waitingLine } from './plan-jobs.ts'

export type EffectsInput = {
  readonly hosts: Parameters<typeof occupy>[0]
  readonly active: readonly Job[]
  /** Those that may begin now. */
  readonly lines: readonly Parameters<typeof waitingLine>[0][]
  readonly runTimes: RunTimes
  readonly nowMs: number
  readonly gang: Gang
}

export type Delay = { readonly job: number; readonly fromS: number; readonly toS: number | undefined }

/** How long it is assumed to run. */
const TRIED_S = 3600

/** Jobs with a place in the plan that would lose it to the gang, or get a later one; `toS` undefined: no known start. */
export function delaysOf(
  { hosts, active, lines, runTimes, nowMs, gang }: EffectsInput,
  places: readonly { readonly host: number; readonly devices: readonly number[] }[],
): readonly Delay[] {
  const nowS = Math.floor(nowMs / 1000)
  const planWith = (tried: typeof places) => {
    const { cluster, placements } = occupy(hosts, active)
    const running = active.map((job) => runningOf(job, placements.get(job.id) ?? [], nowS))
    const own = tried.flatMap((place, rank): Placement[] => {
      const bundle = gang.bundles[rank]
      return bundle === undefined ? [] : [cluster.take(cluster.shapeOf(bundle), place)]
    })
    const all = tried.length === 0 ? running : [...running, triedJob(gang, nowS, own)]
    return planLines({ cluster, nowS, running: all, lines: lines.map(waitingLine), runTimes }).expectedS
  }
  const [before, after] = [planWith([]), planWith(places)]
  return [...before].flatMap(([job, fromS]): Delay[] => {
    if (fromS === undefined) return []
    const toS = after.get(job)
    return toS === undefined || toS > fromS ? [{ job, fromS, toS }] : []
  })
}

const triedJob = (gang: Gang, nowS: number, placements: readonly Placement[]): ActiveJob => ({
  ...{ order: Number.MAX_SAFE_INTEGER, gang, user: '', submitS: nowS, priority: 0, estimateS: TRIED_S },
  ...{ startS: nowS, placements, isPreemptible: false },
})

/** Running jobs whose end would make room, none of them needlessly; undefined: not even the end of all would. */
export function victimsFor({ hosts, active, nowMs, gang }: EffectsInput): readonly number[] | undefined {
  const nowS = Math.floor(nowMs / 1000)
  const { cluster, placements } = occupy(hosts, active)
  const running = active.map((job) => ({
    ...runningOf(job, placements.get(job.id) ?? [], nowS),
    isPreemptible: true,
  }))
  const first = { ...triedJob(gang, nowS, []), priority: Number.MAX_SAFE_INTEGER }
  return chooseVictims(cluster, first, running, nowS)?.map(({ order }) => order)
}
