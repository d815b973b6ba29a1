/**
 * FGD and the baselines of its paper (Weng et al., "Beware of Fragmentation", USENIX ATC '23). As in the published simulator, scores
 * are cut to whole numbers from 0 to 100: its curves are reproduced within 0.01 point.
 */
import { getOrMake } from '../../base/collections.ts'
import type { Cluster } from '../model/cluster.ts'
import { countDevices, tightestDevice, tightestDevices } from '../model/fits.ts'
import type { WorkloadMix } from '../model/mix.ts'
import { type ResourceRequest, WHOLE_MILLI } from '../model/resources.ts'
import type { Shape } from '../model/shape.ts'
import { type HostScorer, NO_FIT, ScoredPolicy } from './scored-policy.ts'

/** The largest host of the published fleet. */
const MAX_CPU_MILLI = 128_000
const MAX_GPU_MILLI = 8000

/** The least left over, CPU and GPU weighing the same. */
export function createBestFit(cluster: Cluster): ScoredPolicy {
  return createTightestPolicy(cluster, (shape, host) => {
    const cpu = (((cluster.cpuLeftMilli[host] as number) - shape.cpuMilli) / MAX_CPU_MILLI) * 0.5
    const gpu = (((cluster.gpuLeftMilli[host] as number) - shape.gpuCount * shape.gpuMilli) / MAX_GPU_MILLI) * 0.5
    return Math.trunc((1 - (cpu + gpu)) * 100)
  })
}

/** The smallest product of request and free amounts as vectors. */
export function createDotProduct(cluster: Cluster): ScoredPolicy {
  return createTightestPolicy(cluster, (shape, host) => {
    const cpu = ((cluster.cpuLeftMilli[host] as number) / MAX_CPU_MILLI) * (shape.cpuMilli / MAX_CPU_MILLI)
    const gpu =
      ((cluster.gpuLeftMilli[host] as number) / MAX_GPU_MILLI) * ((shape.gpuCount * shape.gpuMilli) / MAX_GPU_MILLI)
    return Math.trunc(100 * (1 - 0.5 * (cpu + gpu)))
  })
}

/** A shared GPU before an idle one, an idle GPU of a used host before an idle host. */
export function createGpuPacking(cluster: Cluster): ScoredPolicy {
  return createTightestPolicy(cluster, (shape, host, device) => {
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
  return createTightestPolicy(cluster, (shape, host) => {
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

export function createTightestPolicy(cluster: Cluster, scoreHost: ScoreHost): ScoredPolicy {
  const scorer: HostScorer = {
    device: 0,
    score(shape, host) {
      this.device = tightestDevice(cluster, shape, host)
      return this.device < 0 ? NO_FIT : scoreHost(shape, host, this.device)
    },
  }
  return new ScoredPolicy(cluster, scorer)
}

export function createFirstFit(cluster: Cluster): ScoredPolicy {
  return createTightestPolicy(cluster, () => 0)
}

/** `gain`: by how many milli the unusable amount shrinks; `leftMilli`: what is left of each GPU that is taken from. */
type Score = (gain: number, shape: Shape, host: number, leftMilli: number) => number

/** Chooses where the GPU amount that typical requests cannot use grows least. */
export function createFgd(cluster: Cluster, mix: WorkloadMix): ScoredPolicy {
  return createByFragments(cluster, mix, (gain) => Math.trunc((1 / (1 + Math.exp(-gain / WHOLE_MILLI))) * 100))
}

export function createByFragments(cluster: Cluster, mix: WorkloadMix, score: Score): ScoredPolicy {
  return new ScoredPolicy(cluster, new FragmentScorer(cluster, mix, score))
}

class FragmentScorer implements HostScorer {
  device = 0
  readonly #cluster: Cluster
  readonly #score: Score
  readonly #cpuMilli: Int32Array
  readonly #gpuMilli: Int32Array
  readonly #gpuCount: Int32Array
  readonly #part: Float64Array
  /** By typical request and model: 1 where the model is acceptable. */
  readonly #takesModel: readonly Uint8Array[]
  /** What is left on each device of the present host. */
  readonly #left: Int32Array
  #deviceCount = 0

  constructor(cluster: Cluster, mix: WorkloadMix, score: Score) {
    const typical = typicalRequests(mix)
    this.#cluster = cluster
    this.#score = score
    this.#cpuMilli = Int32Array.from(typical, (request) => request.cpuMilli)
    this.#gpuMilli = Int32Array.from(typical, (request) => request.gpuMilli)
    this.#gpuCount = Int32Array.from(typical, (request) => request.gpuCount)
    this.#part = Float64Array.from(typical, (request) => request.part)
    this.#takesModel = typical.map(({ gpuModels }) =>
      Uint8Array.from(cluster.models, (model) => (gpuModels.length === 0 || gpuModels.includes(model) ? 1 : 0)),
    )
    this.#left = new Int32Array(Math.max(1, ...cluster.hosts.map((host) => host.gpus?.length ?? 0)))
  }

  score(shape: Shape, host: number): number {
    if (countDevices(this.#cluster, shape, host) < shape.gpuCount) return NO_FIT
    const start = this.#cluster.deviceStart[host] as number
    this.#deviceCount = (this.#cluster.deviceStart[host + 1] as number) - start
    for (let device = 0; device < this.#deviceCount; device++)
      this.#left[device] = this.#cluster.deviceLeftMilli[start + device] as number
    const cpuLeft = this.#cluster.cpuLeftMilli[host] as number
    const model = this.#deviceCount === 0 ? 0 : (this.#cluster.deviceModel[start] as number)
    const before = this.#fragment(cpuLeft, model)
    const cpuAfter = cpuLeft - shape.cpuMilli
    if (shape.gpuCount !== 1 || shape.gpuMilli === WHOLE_MILLI) {
      this.device = 0
      for (const device of tightestDevices(this.#cluster, shape, host) ?? []) this.#left[device] = 0
      return this.#score(before - this.#fragment(cpuAfter, model), shape, host, WHOLE_MILLI)
    }
    let best = NO_FIT
    for (let device = 0; device < this.#deviceCount; device++) {
      const left = this.#left[device] as number
      if (left < shape.gpuMilli || shape.takesModel[this.#cluster.deviceModel[start + device] as number] !== 1) continue
      this.#left[device] = left - shape.gpuMilli
      const score = this.#score(before - this.#fragment(cpuAfter, model), shape, host, left)
      this.#left[device] = left
      if (score > best) {
        best = score
        this.device = device
      }
    }
    return best
  }

  /**
   * The average milli-GPU of the host that a typical request cannot use, added in the published order, so that rounding is
   * as published.
   */
  #fragment(cpuLeft: number, model: number): number {
    const lefts = this.#left
    const devices = this.#deviceCount
    let total = 0
    for (let device = 0; device < devices; device++) total += lefts[device] as number
    let lackBoth = 0
    let lackGpu = 0
    let lackCpu = 0
    let cpuOnlyFits = 0
    let cpuOnlyLacks = 0
    let noAccess = 0
    for (let index = 0; index < this.#part.length; index++) {
      const part = this.#part[index] as number
      const hasCpu = cpuLeft >= (this.#cpuMilli[index] as number)
      const milli = this.#gpuMilli[index] as number
      if (milli === 0) {
        if (hasCpu) cpuOnlyFits += part * total
        else cpuOnlyLacks += part * total
        continue
      }
      if ((this.#takesModel[index] as Uint8Array)[model] !== 1) {
        noAccess += part * total
        continue
      }
      let count = 0
      let tooSmall = 0
      for (let device = 0; device < devices; device++) {
        const left = lefts[device] as number
        if (left >= milli) count++
        else tooSmall += left
      }
      const hasGpu = count >= (this.#gpuCount[index] as number)
      if (hasGpu && hasCpu) lackGpu += part * tooSmall
      else if (hasGpu) lackCpu += part * total
      else if (hasCpu) lackGpu += part * total
      else lackBoth += part * total
    }
    return lackBoth + lackGpu + lackCpu + cpuOnlyFits + cpuOnlyLacks + noAccess
  }
}

type Typical = Required<Pick<ResourceRequest, 'cpuMilli' | 'gpuCount' | 'gpuMilli' | 'gpuModels'>>

/** The most frequent ones, until they cover 95 % of all requests. */
const COVERED = 0.95

/** What makes up nearly all of a workload: by CPU, GPUs and models, without memory. The parts add up to 1. */
function typicalRequests(mix: WorkloadMix): readonly (Typical & { readonly part: number })[] {
  const groups = new Map<string, Typical & { count: number; models: string }>()
  for (const { request, count } of mix.entries()) {
    const { cpuMilli, gpuCount, gpuModels = [] } = request
    const gpuMilli = gpuCount === 0 ? 0 : request.gpuMilli
    const models = gpuModels.join('|')
    const key = `${cpuMilli} ${gpuMilli} ${gpuCount} ${models}`
    getOrMake(groups, key, () => ({ cpuMilli, gpuCount, gpuMilli, gpuModels, models, count: 0 })).count += count
  }
  const sorted = [...groups.values()].sort(
    (left, right) =>
      right.count - left.count ||
      right.cpuMilli - left.cpuMilli ||
      right.gpuMilli - left.gpuMilli ||
      right.gpuCount - left.gpuCount ||
      (left.models < right.models ? 1 : -1),
  )
  let covered = 0
  const typical: typeof sorted = []
  for (const group of sorted) {
    if (covered >= COVERED * mix.total) break
    typical.push(group)
    covered += group.count
  }
  // Divided twice, as the published program does: the last bit decides whether a score is cut to 49 or 50.
  return typical.map(({ count, models: _, ...rest }) => ({ ...rest, part: count / mix.total / (covered / mix.total) }))
}
