/**
 * The default policy: a request goes where the GPU amount that will probably never be used grows least. Each host has a
 * potential, the sum of what is stranded on it: on shared GPUs, for want of CPU or memory, and for want of idle GPUs side by
 * side. Scores are coarse on purpose: among near-equals the lowest host number wins, which keeps whole hosts empty. Scarce GPU
 * models are left to requests that can use no others. It knows the mix of requests and what is free now, not the future.
 */
import type { Cluster } from '../../model/cluster.ts'
import { countDevices, hasDevice } from '../../model/fits.ts'
import type { WorkloadMix } from '../../model/mix.ts'
import { WHOLE_MILLI } from '../../model/resources.ts'
import type { Shape } from '../../model/shape.ts'
import { type HostFilter, HostGroups, type HostScorer, NO_FIT, ScoredPolicy } from '../scored-policy.ts'
import { BegunRoom, ShareWaste } from './begun-room.ts'
import { Clearing, HostAges, IdleHostPrice } from './clearing.ts'
import { HostStranding } from './host-stranding.ts'
import { ModelTension } from './model-tension.ts'

/** Weights of the parts, chosen on replays (docs/scheduler.md says which). */
const WEIGHTS = {
  waste: 2,
  shortage: 0.57,
  scatter: 0.57,
  /** An idle GPU already counts for this much, so opening one is a little cheaper than its waste. */
  openMilli: 20,
  /** Opening a GPU is dearer by this for each level of room on shared GPUs beyond what is welcome. */
  crowdMilli: 40,
  /** For a scarce model: by the square of its tension, per milli requested. */
  scarcity: 2,
}
const MAX_TENSION = 2
/** If the mix asks for more CPU than there is by this part, a shortage counts this many times; below that, in proportion. */
const CPU_SCARCITY = { excess: 0.14, times: 7 }
/** This much potential makes a difference of one in the score. */
const GRAIN_MILLI = 20
/** A learned mix is read again whenever it has grown by a quarter. */
const GROWTH = 1.25
/** More than anything else in a score, except the scarcity of a model. */
const CLEARING = 200
const NEVER = -2

export function createLeastStranding(cluster: Cluster, mix: WorkloadMix): ScoredPolicy {
  const groups = new HostGroups(cluster)
  const scorer = new StrandingScorer(cluster, mix, groups)
  return new (class extends ScoredPolicy {
    override choose(shape: Shape, allowed?: HostFilter) {
      scorer.refresh()
      const spot = super.choose(shape, allowed)
      if (allowed === undefined) scorer.noteChoice(shape, spot === undefined)
      return spot
    }
  })(cluster, scorer, groups)
}

class StrandingScorer implements HostScorer {
  device = 0
  /** With less CPU or memory left, no less is stranded. */
  readonly prefersSmall = true
  /** How often the potentials of all hosts changed, and how often the price of an idle GPU. */
  #revalued = 0
  #repriced = 0
  readonly #cluster: Cluster
  readonly #mix: WorkloadMix
  readonly #groups: HostGroups
  readonly #maxGpus: number
  readonly #tension: ModelTension
  readonly #hasCustom: Uint8Array
  readonly #potentials: Float64Array
  /** By host: the change after which its potential was computed. */
  readonly #potentialAt: Int32Array
  readonly #room: BegunRoom
  readonly #ages: HostAges
  readonly #clearing: Clearing
  readonly #idleHostPrice: IdleHostPrice
  #idleHostMilli: number
  #highestLevel = 0
  #openMilli = WEIGHTS.openMilli
  #waste!: ShareWaste
  #stranding!: HostStranding
  #learnAt = 0
  #shortageWeight = WEIGHTS.shortage

  constructor(cluster: Cluster, mix: WorkloadMix, groups: HostGroups) {
    this.#cluster = cluster
    this.#mix = mix
    this.#groups = groups
    this.#maxGpus = cluster.hosts.reduce((most, host) => Math.max(most, host.gpus?.length ?? 0), 0)
    this.#hasCustom = Uint8Array.from(cluster.hosts, (host) => (host.custom === undefined ? 0 : 1))
    this.#potentials = new Float64Array(cluster.hostCount)
    this.#potentialAt = new Int32Array(cluster.hostCount)
    this.#tension = new ModelTension(cluster)
    this.#room = new BegunRoom(cluster)
    this.#ages = new HostAges(cluster)
    this.#clearing = new Clearing(cluster, this.#ages)
    this.#idleHostPrice = new IdleHostPrice(cluster)
    this.#idleHostMilli = this.#idleHostPrice.milli
    this.#learn()
  }

  /** Before each choice: follows the cluster and the mix. */
  refresh(): void {
    this.#learn()
    this.#ages.refresh()
    this.#clearing.refresh()
    const { milli: idleHostMilli } = this.#idleHostPrice
    const { highestLevel } = this.#ages
    if (idleHostMilli !== this.#idleHostMilli || highestLevel !== this.#highestLevel) {
      this.#idleHostMilli = idleHostMilli
      this.#highestLevel = highestLevel
      this.#revalueAll()
    }
    const openMilli = WEIGHTS.openMilli - this.#room.level(this.#ages.isKnown) * WEIGHTS.crowdMilli
    if (openMilli === this.#openMilli) return
    this.#openMilli = openMilli
    this.#repriced++
  }

  noteChoice(shape: Shape, isRefused: boolean): void {
    this.#clearing.noteChoice(shape, isRefused)
    this.#idleHostPrice.noteChoice(shape, isRefused)
  }

  /** Only shares depend on the price of opening a GPU. */
  stampOf(shape: Shape): number {
    return isShare(shape) ? this.#revalued + this.#repriced : this.#revalued
  }

  #learn(): void {
    if (this.#mix.total < this.#learnAt) return
    this.#learnAt = this.#mix.total * GROWTH + 1
    this.#waste = new ShareWaste(this.#mix)
    this.#stranding = new HostStranding(this.#mix, this.#maxGpus)
    this.#tension.learn(this.#cluster, this.#mix)
    this.#room.learn(this.#waste)
    const excess = Math.max(0, cpuDemand(this.#cluster, this.#mix) - 1) / CPU_SCARCITY.excess
    this.#shortageWeight = WEIGHTS.shortage * (1 + (CPU_SCARCITY.times - 1) * Math.min(1, excess))
    this.#revalueAll()
  }

  #revalueAll(): void {
    this.#potentialAt.fill(NEVER)
    this.#revalued++
  }

  score(shape: Shape, host: number): number {
    const cluster = this.#cluster
    const { gpuCount, gpuMilli } = shape
    const start = cluster.deviceStart[host] as number
    const gpus = (cluster.deviceStart[host + 1] as number) - start
    const custom = this.#hasCustom[host] === 1 && shape.custom.length === 0 ? -1 : 0
    this.device = 0
    // Nothing can be stranded on a host without GPUs.
    if (gpus === 0) return gpuCount > 0 ? NO_FIT : custom
    const gpuLeft = cluster.gpuLeftMilli[host] as number
    if (gpuLeft === 0) return gpuCount > 0 ? NO_FIT : custom
    const share = isShare(shape)
    if (share ? !hasDevice(cluster, shape, host) : countDevices(cluster, shape, host) < gpuCount) return NO_FIT
    const cpuLeft = cluster.cpuLeftMilli[host] as number
    const memoryLeft = cluster.memoryLeftBytes[host] as number
    const idle = cluster.idleDevices[host] as number
    const gpuAfter = gpuLeft - gpuCount * gpuMilli
    const before = this.#potential(host, gpus)
    const bonus = custom + this.#bonusOf(shape, host, gpus)
    const shortage =
      this.#shortageWeight *
      this.#stranding.ofShortage(gpuAfter, cpuLeft - shape.cpuMilli, memoryLeft - shape.memoryBytes)
    if (!share) {
      const after = shortage + this.#scatter(gpus, idle - gpuCount, gpuAfter)
      return grains(before - after) + bonus
    }
    const onBegun = shortage + this.#scatter(gpus, idle, gpuAfter) - before
    const onIdle = shortage + this.#scatter(gpus, idle - 1, gpuAfter) - before
    let best = NO_FIT
    let seen = -1
    for (let device = 0; device < gpus; device++) {
      const left = cluster.deviceLeftMilli[start + device] as number
      if (left === seen || left < gpuMilli || shape.takesModel[cluster.deviceModel[start + device] as number] !== 1)
        continue
      seen = left
      const isIdle = left === WHOLE_MILLI
      const waste = this.#waste.of(left - gpuMilli) - (isIdle ? this.#openMilli : this.#waste.of(left))
      const score = grains(-WEIGHTS.waste * waste - (isIdle ? onIdle : onBegun))
      if (score > best) {
        best = score
        this.device = device
      }
    }
    return best === NO_FIT ? NO_FIT : best + bonus
  }

  /** Prefers hosts that will not become empty soon anyway, or that are too small for most requests for several GPUs. */
  #bonusOf(shape: Shape, host: number, gpus: number): number {
    if (shape.gpuCount === 0) return 0
    const youth = this.#stranding.partHeld(gpus) * (this.#highestLevel - this.#ages.level(host))
    return -Math.round(youth) - (this.#clearing.isFrom(shape, host) ? CLEARING : 0)
  }

  groupBonus(shape: Shape, group: number): number {
    if (shape.gpuCount === 0 || !this.#tension.isAny) return 0
    let least = MAX_TENSION
    for (let model = 0; model < shape.takesModel.length; model++)
      if (shape.takesModel[model] === 1 && this.#tension.hasFree(model))
        least = Math.min(least, this.#tension.of(model))
    let own = MAX_TENSION
    for (const model of this.#groups.models[group] ?? [])
      if (shape.takesModel[model] === 1) own = Math.min(own, this.#tension.of(model))
    return -grains(WEIGHTS.scarcity * (own * own - least * least) * shape.gpuCount * shape.gpuMilli)
  }

  /** Of the host without its shared GPUs; cached until the host changes. */
  #potential(host: number, gpus: number): number {
    const cluster = this.#cluster
    const change = cluster.lastChange[host] as number
    if (this.#potentialAt[host] === change) return this.#potentials[host] as number
    const gpuLeft = cluster.gpuLeftMilli[host] as number
    const shortage = this.#stranding.ofShortage(
      gpuLeft,
      cluster.cpuLeftMilli[host] as number,
      cluster.memoryLeftBytes[host] as number,
    )
    const potential =
      this.#shortageWeight * shortage + this.#scatter(gpus, cluster.idleDevices[host] as number, gpuLeft)
    this.#potentialAt[host] = change
    this.#potentials[host] = potential
    return potential
  }

  #scatter(gpus: number, idle: number, gpuLeft: number): number {
    const kept = idle === gpus && gpus > 1 ? this.#idleHostMilli * gpus : 0
    return WEIGHTS.scatter * this.#stranding.ofScatter(gpus, idle, gpuLeft) - kept
  }
}

function isShare({ gpuCount, gpuMilli }: Shape): boolean {
  return gpuCount === 1 && gpuMilli < WHOLE_MILLI
}

function grains(milli: number): number {
  return Math.floor(milli / GRAIN_MILLI + 0.5)
}

/** How much CPU is requested by the time that all GPUs are, as a part of all CPU. Above 1, CPU runs out first. */
function cpuDemand(cluster: Cluster, mix: WorkloadMix): number {
  let cpuMilli = 0
  let gpuMilli = 0
  for (const { request, count } of mix.entries()) {
    cpuMilli += count * request.cpuMilli
    gpuMilli += count * request.gpuCount * request.gpuMilli
  }
  const totalCpuMilli = cluster.hosts.reduce((sum, host) => sum + host.cpuMilli, 0)
  return gpuMilli === 0 ? 0 : ((cpuMilli / gpuMilli) * cluster.totalGpuMilli) / Math.max(1, totalCpuMilli)
}
