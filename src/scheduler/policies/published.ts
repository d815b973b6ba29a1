/**
 * The baselines of the FGD paper (Weng et al., USENIX ATC '23) with their scores from 0 to 100, cut to whole numbers as in the
 * published simulator: its curves are reproduced within 0.01 point.
 */
import type { Cluster } from '../model/cluster.ts'
import { tightestDevice } from '../model/fits.ts'
import { WHOLE_MILLI } from '../model/resources.ts'
import type { Shape } from '../model/shape.ts'
import { NO_FIT } from './score-index.ts'
import { type HostScorer, ScoredPolicy } from './scored-policy.ts'

/** The largest host of the published fleet. */
const MAX_CPU_MILLI = 128_000
const MAX_GPU_MILLI = 8000

/** The least left over, CPU and GPU weighing the same. */
export function createBestFit(cluster: Cluster): ScoredPolicy {
  return createTightestPolicy('best-fit', cluster, (shape, host) => {
    const cpu = (((cluster.cpuLeftMilli[host] as number) - shape.cpuMilli) / MAX_CPU_MILLI) * 0.5
    const gpu = (((cluster.gpuLeftMilli[host] as number) - shape.gpuCount * shape.gpuMilli) / MAX_GPU_MILLI) * 0.5
    return Math.trunc((1 - (cpu + gpu)) * 100)
  })
}

/** The smallest product of request and free amounts as vectors. */
export function createDotProduct(cluster: Cluster): ScoredPolicy {
  return createTightestPolicy('dot-product', cluster, (shape, host) => {
    const cpu = ((cluster.cpuLeftMilli[host] as number) / MAX_CPU_MILLI) * (shape.cpuMilli / MAX_CPU_MILLI)
    const gpu =
      ((cluster.gpuLeftMilli[host] as number) / MAX_GPU_MILLI) * ((shape.gpuCount * shape.gpuMilli) / MAX_GPU_MILLI)
    return Math.trunc(100 * (1 - 0.5 * (cpu + gpu)))
  })
}

/** A shared GPU before an idle one, an idle GPU of a used host before an idle host. */
export function createGpuPacking(cluster: Cluster): ScoredPolicy {
  return createTightestPolicy('gpu-packing', cluster, (shape, host, device) => {
    if (shape.gpuCount === 0) return 0
    const first = cluster.deviceStart[host] as number
    const idle = cluster.idleDevices[host] as number
    if (idle === (cluster.deviceStart[host + 1] as number) - first) return Math.max(33 - idle, idle)
    const left = cluster.deviceLeftMilli[first + device] as number
    if (shape.gpuMilli === WHOLE_MILLI) return Math.max(50 - shape.gpuCount, 33)
    if (left === WHOLE_MILLI) return 49
    return Math.max(100 - Math.trunc(Math.trunc(left / 10) / 10), 50)
  })
}

/** To hosts with requests of the same kind: shares with shares, n GPUs with n GPUs. */
export function createGpuClustering(cluster: Cluster): ScoredPolicy {
  const kinds = Array.from(cluster.hosts, () => new Map<number, number>())
  cluster.watch(({ shape, host }, isTake) => {
    if (shape.gpuCount === 0) return
    const counts = kinds[host] as Map<number, number>
    const count = (counts.get(kindOf(shape)) ?? 0) + (isTake ? 1 : -1)
    if (count > 0) counts.set(kindOf(shape), count)
    else counts.delete(kindOf(shape))
  })
  return createTightestPolicy('gpu-clustering', cluster, (shape, host) => {
    if (shape.gpuCount === 0) return 0
    const counts = kinds[host] as Map<number, number>
    const fullness = Math.trunc((25 * (MAX_GPU_MILLI - (cluster.gpuLeftMilli[host] as number))) / MAX_GPU_MILLI)
    if (counts.has(kindOf(shape))) return fullness + (counts.size === 1 ? 75 : 50)
    return fullness + (counts.size === 0 ? 25 : 0)
  })
}

function kindOf(shape: Shape): number {
  return shape.gpuMilli < WHOLE_MILLI ? 0 : shape.gpuCount
}

/** Scores a host as a whole; a share goes to its tightest device. `device`: within the host for a share; else 0. */
type ScoreHost = (shape: Shape, host: number, device: number) => number

export function createTightestPolicy(name: string, cluster: Cluster, scoreHost: ScoreHost): ScoredPolicy {
  const scorer: HostScorer = {
    device: 0,
    score(shape, host) {
      this.device = tightestDevice(cluster, shape, host)
      return this.device < 0 ? NO_FIT : scoreHost(shape, host, this.device)
    },
  }
  return new ScoredPolicy(name, cluster, scorer)
}

export function createFirstFit(cluster: Cluster): ScoredPolicy {
  return createTightestPolicy('first-fit', cluster, () => 0)
}
