/**
 * How fast a policy decides on a large synthetic fleet: gangs come until it runs as many as wanted; then, for each that comes,
 * another one leaves, and only this part is measured.
 */
import { Cluster, type Placement } from '../model/cluster.ts'
import { WorkloadMix } from '../model/mix.ts'
import type { HostCapacity, ResourceRequest } from '../model/resources.ts'
import { createRandomNumbers } from '../policies/random.ts'
import type { PlacementPolicy } from '../policies/scored-policy.ts'

type FleetInput = {
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

export function* runFleet({ hostCount, gangCount, seed, createPolicy, now }: FleetInput) {
  const hosts = syntheticHosts(hostCount, seed)
  const past = createSyntheticGangs(hosts, gangCount, seed + 1)
  const next = createSyntheticGangs(hosts, gangCount, seed + 2)
  const random = createRandomNumbers(seed + 3)
  const cluster = new Cluster(hosts)
  const mix = WorkloadMix.of(Array.from({ length: PAST_GANGS }, past).flat())
  const policy = createPolicy(cluster, mix)
  const running: (readonly Placement[])[] = []
  for (let failures = 0; running.length < gangCount && failures < ENOUGH_FAILURES; ) {
    yield
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
    yield
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
    /** In the end; fewer than wanted when the fleet does not hold them. */
    gangs: running.length,
    /** Bundles placed while measuring. */
    placements,
    /** The time includes what left and what did not fit. */
    placementsPerSecond: placements / seconds,
    /** Per bundle. */
    p50Us: sorted[Math.floor(sorted.length * 0.5)] ?? 0,
    p99Us: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
    allocationPercent: (100 * cluster.usedGpuMilli) / Math.max(1, cluster.totalGpuMilli),
  }
}

function placeGang(cluster: Cluster, policy: PlacementPolicy, bundles: readonly ResourceRequest[]) {
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

const GIB = 2 ** 30
/** Of the fleet's GPUs, when all the wanted gangs run. */
const LOAD = 0.85

type Weighted = { readonly weight: number }
type HostKind = Weighted & { readonly gpus: number; readonly model: string; readonly cpu: number; readonly gib: number }
type BundleKind = Weighted & { readonly count: number; readonly milli: number }

const HOSTS: readonly HostKind[] = [
  { weight: 45, gpus: 8, model: 'A100', cpu: 128, gib: 1024 },
  { weight: 30, gpus: 2, model: 'T4', cpu: 96, gib: 512 },
  { weight: 15, gpus: 4, model: 'V100', cpu: 48, gib: 384 },
  { weight: 10, gpus: 0, model: '', cpu: 64, gib: 256 },
]
const SMALL: readonly BundleKind[] = [
  { weight: 40, count: 0, milli: 0 },
  { weight: 20, count: 1, milli: 50 },
  { weight: 20, count: 1, milli: 160 },
  { weight: 20, count: 1, milli: 320 },
]
const LARGE: readonly BundleKind[] = [
  { weight: 15, count: 1, milli: 470 },
  { weight: 15, count: 1, milli: 810 },
  { weight: 56, count: 1, milli: 1000 },
  { weight: 8, count: 2, milli: 1000 },
  { weight: 4, count: 4, milli: 1000 },
  { weight: 2, count: 8, milli: 1000 },
]
const BUNDLES: readonly (Weighted & { readonly bundles: number })[] = [
  { weight: 80, bundles: 1 },
  { weight: 12, bundles: 2 },
  { weight: 6, bundles: 4 },
  { weight: 2, bundles: 8 },
]
/** Of a bundle; of a large one, per GPU. */
const CORES = [1, 1, 2, 2, 3, 4]
const GIBS = [2, 4, 4, 8, 8, 16]

export function syntheticHosts(count: number, seed: number): readonly HostCapacity[] {
  const random = createRandomNumbers(seed)
  return Array.from({ length: count }, (_, index) => {
    const kind = pick(random, HOSTS)
    const gpus = new Array<string>(kind.gpus).fill(kind.model)
    return { name: `h${index + 1}`, cpuMilli: kind.cpu * 1000, memoryBytes: kind.gib * GIB, gpus }
  })
}

/** Each call returns the bundles of another gang. */
export function createSyntheticGangs(hosts: readonly HostCapacity[], gangs: number, seed: number) {
  const random = createRandomNumbers(seed)
  const gpus = hosts.reduce((sum, host) => sum + (host.gpus?.length ?? 0), 0)
  const bundles = mean(BUNDLES, (choice) => choice.bundles)
  const small = bundles * mean(SMALL, meanGpus)
  const large = bundles * mean(LARGE, meanGpus)
  const partLarge = Math.min(1, Math.max(0, ((LOAD * gpus) / gangs - small) / (large - small)))
  return () => {
    const { count, milli } = pick(random, random() < partLarge ? LARGE : SMALL)
    const times = Math.max(1, count)
    const request: ResourceRequest = {
      cpuMilli: 1000 * times * (CORES[Math.floor(random() * CORES.length)] ?? 1),
      memoryBytes: GIB * times * (GIBS[Math.floor(random() * GIBS.length)] ?? 1),
      gpuCount: count,
      gpuMilli: milli,
    }
    return new Array<ResourceRequest>(pick(random, BUNDLES).bundles).fill(request)
  }
}

function meanGpus({ count, milli }: BundleKind): number {
  return (count * milli) / 1000
}

function mean<T extends Weighted>(choices: readonly T[], weigh: (choice: T) => number): number {
  const weights = choices.reduce((sum, { weight }) => sum + weight, 0)
  return choices.reduce((sum, choice) => sum + choice.weight * weigh(choice), 0) / weights
}

function pick<T extends Weighted>(random: () => number, choices: readonly T[]): T {
  let rest = random() * choices.reduce((sum, { weight }) => sum + weight, 0)
  for (const choice of choices) {
    rest -= choice.weight
    if (rest < 0) return choice
  }
  return choices.at(-1) as T
}
