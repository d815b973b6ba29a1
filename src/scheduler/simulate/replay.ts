/**
 * The published experiment: requests come one at a time, are placed or dropped, and nothing leaves. What counts is the part of
 * all GPUs in use by the time that a given part was requested.
 */
import type { ResultOf } from '../../base/calculation.ts'
import { getOrMake } from '../../base/collections.ts'
import { Cluster } from '../model/cluster.ts'
import type { WorkloadMix } from '../model/mix.ts'
import type { HostCapacity, ResourceRequest } from '../model/resources.ts'
import type { PlacementPolicy } from '../policies/scored-policy.ts'

export type ReplayResult = ResultOf<ReturnType<typeof replayArrivals>>

export type TraceInput = {
  readonly hosts: readonly HostCapacity[]
  readonly mix: WorkloadMix
  /** Adds requests to the mix as they come. */
  readonly isLearning?: boolean
  readonly createPolicy: (cluster: Cluster, mix: WorkloadMix) => PlacementPolicy
}

type ReplayInput = TraceInput & {
  readonly arrivals: readonly ResourceRequest[]
  /** Milliseconds from any origin. */
  readonly now: () => number
}

/**
 * `curve`: by percent of the GPUs requested, percent in use, averaged over the requests of that percent. `durationsUs`: per
 * decision, placing included, in order of arrival.
 */
export function* replayArrivals({ hosts, arrivals, mix, isLearning = false, createPolicy, now }: ReplayInput) {
  const cluster = new Cluster(hosts)
  const policy = createPolicy(cluster, mix)
  const buckets = new Map<number, { sum: number; count: number }>()
  const durationsUs = new Float64Array(arrivals.length)
  let askedMilli = 0
  let dropped = 0
  for (const [index, request] of arrivals.entries()) {
    yield
    if (isLearning) mix.add(request)
    const start = now()
    const shape = cluster.shapeOf(request)
    const spot = policy.choose(shape)
    if (spot) cluster.take(shape, spot)
    durationsUs[index] = (now() - start) * 1000
    if (!spot) dropped++
    askedMilli += shape.gpuCount * shape.gpuMilli
    const percent = toNearestEven((askedMilli * 100) / cluster.totalGpuMilli)
    const bucket = getOrMake(buckets, percent, () => ({ sum: 0, count: 0 }))
    bucket.sum += Math.round((cluster.usedGpuMilli / cluster.totalGpuMilli) * 10_000) / 100
    bucket.count++
  }
  const curve = new Map([...buckets].map(([percent, { sum, count }]) => [percent, sum / count]))
  return { curve, placements: cluster.placementCount, dropped, durationsUs, cluster }
}

/** Halves go to the even neighbour, as in the published analysis (NumPy's round). */
function toNearestEven(value: number): number {
  const rounded = Math.round(value)
  return rounded - value === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded
}

/** 0 of none. */
export function percentile(values: Float64Array, part: number): number {
  return values.toSorted()[Math.min(values.length - 1, Math.floor(values.length * part))] ?? 0
}
