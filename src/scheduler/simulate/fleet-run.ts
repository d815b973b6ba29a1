/**
 * How fast a policy decides on a large fleet: gangs come until the fleet runs as many as wanted; then, for each that comes,
 * another one leaves, and only this part is measured.
 */
import { Cluster, type Placement } from '../model/cluster.ts'
import { WorkloadMix } from '../model/mix.ts'
import type { ResourceRequest } from '../model/resources.ts'
import { createRandomNumbers } from '../policies/random.ts'
import type { PlacementPolicy } from '../policies/scored-policy.ts'
import { createSyntheticGangs, syntheticHosts } from './synthetic-fleet.ts'

export type FleetResult = {
  /** In the end; fewer than wanted when the fleet does not hold them. */
  readonly gangs: number
  /** Bundles placed while measuring. */
  readonly placements: number
  /** The time includes what left and what did not fit. */
  readonly placementsPerSecond: number
  /** Per bundle. */
  readonly p50Us: number
  readonly p99Us: number
  readonly allocationPercent: number
}

export type FleetInput = {
  readonly hostCount: number
  readonly gangCount: number
  readonly seed: number
  readonly createPolicy: (cluster: Cluster, mix: WorkloadMix) => PlacementPolicy
  /** Milliseconds from any origin. */
  readonly now: () => number
}

const MEASURED_GANGS = 20_000
/** After this many failures in a row the fleet is full. */
const ENOUGH_FAILURES = 200
/** The policy learns the mix from this many earlier gangs. */
const PAST_GANGS = 5000

export function runFleet({ hostCount, gangCount, seed, createPolicy, now }: FleetInput): FleetResult {
  const hosts = syntheticHosts(hostCount, seed)
  const past = createSyntheticGangs(hosts, gangCount, seed + 1)
  const next = createSyntheticGangs(hosts, gangCount, seed + 2)
  const random = createRandomNumbers(seed + 3)
  const cluster = new Cluster(hosts)
  const mix = WorkloadMix.of(Array.from({ length: PAST_GANGS }, past).flat())
  const policy = createPolicy(cluster, mix)
  const running: (readonly Placement[])[] = []
  for (let failures = 0; running.length < gangCount && failures < ENOUGH_FAILURES; ) {
    const gang = placeGang(cluster, policy, next())
    if (gang === undefined) failures++
    else {
      failures = 0
      running.push(gang)
    }
  }
  const durationsUs: number[] = []
  let placements = 0
  const startMs = now()
  for (let count = 0; count < MEASURED_GANGS && running.length > 0; count++) {
    const leaving = Math.floor(random() * running.length)
    for (const placement of running[leaving] ?? []) cluster.release(placement)
    const last = running.pop()
    if (last && leaving < running.length) running[leaving] = last
    const bundles = next()
    const before = now()
    const gang = placeGang(cluster, policy, bundles)
    durationsUs.push(((now() - before) * 1000) / bundles.length)
    if (gang === undefined) continue
    running.push(gang)
    placements += gang.length
  }
  const seconds = (now() - startMs) / 1000
  const sorted = Float64Array.from(durationsUs).sort()
  return {
    gangs: running.length,
    placements,
    placementsPerSecond: placements / seconds,
    p50Us: sorted[Math.floor(sorted.length * 0.5)] ?? 0,
    p99Us: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
    allocationPercent: (100 * cluster.usedGpuMilli) / Math.max(1, cluster.totalGpuMilli),
  }
}

function placeGang(
  cluster: Cluster,
  policy: PlacementPolicy,
  bundles: readonly ResourceRequest[],
): readonly Placement[] | undefined {
  return cluster.attempt(() => {
    const placements: Placement[] = []
    for (const bundle of bundles) {
      const shape = cluster.shapeOf(bundle)
      const spot = policy.choose(shape)
      if (spot === undefined) return undefined
      placements.push(cluster.take(shape, spot))
    }
    return placements
  })
}
