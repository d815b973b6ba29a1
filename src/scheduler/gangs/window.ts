/**
 * Chooses gangs of a window of the queue that use the most GPUs together: tries orders, each filled greedily. It may pass
 * over gangs for ever; the queue has to prevent that.
 */
import type { Cluster, Placement } from '../model/cluster.ts'
import type { Gang } from '../model/resources.ts'
import { createRandomNumbers } from '../policies/random.ts'
import { placeAsRay } from '../ray/ray-placement.ts'
import { gpuOf, placeGang } from './place-gang.ts'

const TRIALS = 1500

type Filling = {
  readonly order: readonly Gang[]
  readonly usedGpuMilli: number
  readonly refused: readonly Gang[]
}

/**
 * Gangs with GPUs go first; those without must leave cores for idle GPUs. A gang alone goes to the emptiest hosts, as in
 * Ray, so that later gangs that need several hosts find some room on each.
 */
export function placeWindow(cluster: Cluster, window: readonly Gang[]): ReadonlyMap<Gang, readonly Placement[]> {
  if (window.length === 1) return fill(cluster, window, placeAlone)
  const withGpus = window.filter((gang) => gpuMilliOf(gang) > 0)
  const order = withGpus.length < 2 ? withGpus : searchOrder(cluster, withGpus)
  const withoutGpus = window.filter((gang) => gpuMilliOf(gang) === 0)
  return new Map([...fill(cluster, order), ...fill(cluster, withoutGpus, placeAlone)])
}

function placeAlone(cluster: Cluster, gang: Gang): readonly Placement[] | undefined {
  if (gpuMilliOf(gang) > 0) return placeAsRay(cluster, gang) ?? placeGang(cluster, gang)
  const others = cluster.copy()
  for (let host = 0; host < cluster.hostCount; host++) others.withholdCpu(host, coresKept(cluster, host))
  const planned = placeAsRay(others, gang) ?? placeGang(others, gang)
  return planned?.map(({ shape, host, devices }) => cluster.take(shape, { host, devices }))
}

/** Half of a host's cores per GPU are kept for its idle GPUs. */
function coresKept(cluster: Cluster, host: number): number {
  const { cpuMilli = 0, gpus = [] } = cluster.hosts[host] ?? {}
  if (gpus.length === 0) return 0
  return Math.floor((cpuMilli * (cluster.idleDevices[host] as number)) / (2 * gpus.length))
}

function searchOrder(cluster: Cluster, gangs: readonly Gang[]): readonly Gang[] {
  const asked = gangs.reduce((sum, gang) => sum + gpuMilliOf(gang), 0)
  const goal = Math.min(cluster.totalGpuMilli, cluster.usedGpuMilli + asked)
  const random = createRandomNumbers(1)
  const mostUrgentFirst = gangs.toSorted((one, other) => urgency(other) - urgency(one))
  let best = tryOrder(cluster, mostUrgentFirst)
  let current = best
  for (let trial = 0; trial < TRIALS && best.usedGpuMilli < goal; trial++) {
    const next = tryOrder(cluster, change(current, random))
    // Now and then it gives up half a GPU, to leave a local optimum.
    const slack = random() < 0.05 ? 500 : 0
    if (next.usedGpuMilli >= current.usedGpuMilli - slack) current = next
    if (next.usedGpuMilli > best.usedGpuMilli) best = next
  }
  return best.order
}

/** Moves one gang within the order, mostly one that was not placed. */
function change({ order, refused }: Filling, random: () => number): readonly Gang[] {
  const pool = refused.length > 0 && random() < 0.7 ? refused : order
  const moved = pool[Math.floor(random() * pool.length)] as Gang
  const others = order.filter((gang) => gang !== moved)
  return others.toSpliced(Math.floor(random() * order.length), 0, moved)
}

function tryOrder(cluster: Cluster, order: readonly Gang[]): Filling {
  const placed = fill(cluster, order)
  const { usedGpuMilli } = cluster
  for (const placement of [...placed.values()].flat()) cluster.release(placement)
  return { order, usedGpuMilli, refused: order.filter((gang) => !placed.has(gang)) }
}

function fill(cluster: Cluster, order: readonly Gang[], place = placeGang): Map<Gang, readonly Placement[]> {
  return new Map(
    order.flatMap((gang) => {
      const placements = place(cluster, gang)
      return placements ? [[gang, placements]] : []
    }),
  )
}

function urgency(gang: Gang): number {
  const isStrict = gang.strategy === 'STRICT_PACK' && gang.bundles.length > 1
  return gpuMilliOf(gang) * (isStrict ? 3 : 1)
}

function gpuMilliOf({ bundles }: Gang): number {
  return bundles.reduce((sum, bundle) => sum + gpuOf(bundle), 0)
}
