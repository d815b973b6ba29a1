/**
 * A policy that scores hosts with whole numbers and takes the highest; of equals, the lowest host number. Scores are cached by
 * shape and renewed only for hosts that changed, so a scorer must be a pure function of shape and host state. Acceptable GPU
 * models may only decide whether a host fits: shapes that differ in nothing else share scores.
 */
import type { Cluster, Spot } from '../model/cluster.ts'
import { fitsBesidesDevices, tightestDevices } from '../model/fits.ts'
import { WHOLE_MILLI } from '../model/resources.ts'
import type { Shape } from '../model/shape.ts'
import { EmptyHosts, HostGroups, NO_FIT, ScoreIndex } from './score-index.ts'

export interface HostScorer {
  /**
   * NO_FIT, or how good the host is, within ±2^20; labels, CPU, memory and custom resources are known to suffice. For a share it
   * leaves the device within the host in `device`.
   */
  score(shape: Shape, host: number): number
  device: number
  /** Added for all hosts of a group; asked each time, may change at any time. */
  groupBonus?(shape: Shape, group: number): number
  /** Scores that were made under another stamp of the shape are renewed. */
  stampOf?(shape: Shape): number
}

/** Whose scores a shape uses, and in which groups. */
type Search = { readonly scored: Shape; readonly groups: readonly number[] }

/** One more preference outweighs any score. */
const PREFERENCE = 2 ** 22

/** How many shapes keep their scores; the least recently used goes first. */
const KEPT_SHAPES = 1024

export class ScoredPolicy implements PlacementPolicy {
  readonly name: string
  readonly groups: HostGroups
  readonly #cluster: Cluster
  readonly #scorer: HostScorer
  /** By shape. */
  readonly #searches: Search[] = []
  readonly #indexes = new Map<number, ScoreIndex>()
  readonly #empty: EmptyHosts

  constructor(name: string, cluster: Cluster, scorer: HostScorer, groups = new HostGroups(cluster)) {
    this.name = name
    this.groups = groups
    this.#cluster = cluster
    this.#scorer = scorer
    this.#empty = new EmptyHosts(cluster)
  }

  choose(shape: Shape, allowed?: HostFilter): Spot | undefined {
    this.#searches[shape.id] ??= this.#searchFor(shape)
    const { scored, groups } = this.#searches[shape.id] as Search
    const index = this.#indexOf(scored)
    const first = this.#best(shape, index, groups)
    const host = first < 0 || !allowed || allowed(first) ? first : this.#bestAllowed(shape, index, groups, allowed)
    if (host < 0) return undefined
    if (shape.gpuCount === 1 && shape.gpuMilli < WHOLE_MILLI) return { host, devices: [index.devices[host] as number] }
    const devices = tightestDevices(this.#cluster, shape, host)
    return devices && { host, devices }
  }

  /** A shape without models shares its scores, unless a host mixes acceptable GPUs with others. */
  #searchFor(shape: Shape): Search {
    const all = [...this.groups.models.keys()]
    if (shape.takesAnyModel) return { scored: shape, groups: all }
    const takes = (model: number) => shape.takesModel[model] === 1
    const groups = all.filter((group) => this.groups.models[group]?.some(takes))
    const isMixed = groups.some((group) => !this.groups.models[group]?.every(takes))
    return { scored: isMixed ? shape : this.#cluster.shapeOf({ ...shape.request, gpuModels: [] }), groups }
  }

  #best(shape: Shape, index: ScoreIndex, groups: readonly number[]): number {
    let best = -1
    let bestScore = Number.NEGATIVE_INFINITY
    for (const group of groups) {
      const host = index.bestOf(group)
      if (host < 0) continue
      const score = (index.scores[host] as number) + (this.#scorer.groupBonus?.(shape, group) ?? 0)
      if (score > bestScore || (score === bestScore && host < best)) {
        best = host
        bestScore = score
      }
    }
    return best
  }

  #bestAllowed(shape: Shape, index: ScoreIndex, groups: readonly number[], allowed: HostFilter): number {
    let best = -1
    let bestScore = Number.NEGATIVE_INFINITY
    for (const group of groups) {
      const bonus = this.#scorer.groupBonus?.(shape, group) ?? 0
      for (const host of this.groups.members[group] as Int32Array) {
        const own = index.scores[host] as number
        if (own === NO_FIT) continue
        const score = own + bonus
        if ((score > bestScore || (score === bestScore && host < best)) && allowed(host)) {
          best = host
          bestScore = score
        }
      }
    }
    return best
  }

  #indexOf(shape: Shape): ScoreIndex {
    let index = this.#indexes.get(shape.id)
    if (index === undefined) {
      index = new ScoreIndex(this.#cluster.hostCount, this.groups)
      if (this.#indexes.size >= KEPT_SHAPES) this.#forgetOne()
    } else if (this.#indexes.size >= KEPT_SHAPES / 2) this.#indexes.delete(shape.id) // Comes back as the youngest.
    this.#indexes.set(shape.id, index)
    const stamp = this.#scorer.stampOf?.(shape) ?? 0
    if (index.stamp !== stamp) {
      index.stamp = stamp
      index.cursor = -1
    }
    this.#refresh(shape, index)
    return index
  }

  #forgetOne(): void {
    for (const oldest of this.#indexes.keys()) {
      this.#indexes.delete(oldest)
      return
    }
  }

  #refresh(shape: Shape, index: ScoreIndex): void {
    const cluster = this.#cluster
    const { cursor } = index
    if (cursor === cluster.changeCount) return
    if (cursor < 0) {
      this.#rescoreAll(shape, index)
      index.rebuild()
    } else this.#rescoreChanged(shape, index, cursor)
    index.cursor = cluster.changeCount
  }

  #rescoreChanged(shape: Shape, index: ScoreIndex, cursor: number): void {
    const cluster = this.#cluster
    const { lastChange, lastGain } = cluster
    const { scores } = index
    for (
      let host = cluster.changedLast;
      host >= 0 && (lastChange[host] as number) >= cursor;
      host = cluster.changedBefore(host)
    ) {
      const before = scores[host]
      // A host that did not hold it and has only become fuller still does not.
      if (before === NO_FIT && (lastGain[host] as number) < cursor) continue
      this.#rescore(shape, index, host)
      if (before !== scores[host]) index.update(host)
    }
  }

  /** Of interchangeable empty hosts only the first is scored. */
  #rescoreAll(shape: Shape, index: ScoreIndex): void {
    const { scores, devices } = index
    const { hostCount } = this.#cluster
    this.#empty.forget()
    for (let host = 0; host < hostCount; host++) {
      if (!fitsBesidesDevices(this.#cluster, shape, host)) {
        scores[host] = NO_FIT
        continue
      }
      const twin = shape.preferredOn === undefined ? this.#empty.twinOf(host) : host
      if (twin === host) this.#scoreFitting(shape, index, host)
      else {
        scores[host] = scores[twin] as number
        devices[host] = devices[twin] as number
      }
    }
  }

  #rescore(shape: Shape, index: ScoreIndex, host: number): void {
    if (fitsBesidesDevices(this.#cluster, shape, host)) this.#scoreFitting(shape, index, host)
    else index.scores[host] = NO_FIT
  }

  #scoreFitting(shape: Shape, index: ScoreIndex, host: number): void {
    let score = this.#scorer.score(shape, host)
    index.devices[host] = this.#scorer.device
    if (shape.preferredOn !== undefined && score !== NO_FIT)
      score += PREFERENCE * Math.min(255, shape.preferredOn[host] as number)
    index.scores[host] = score
  }
}

export type HostFilter = (host: number) => boolean

export interface PlacementPolicy {
  readonly name: string
  /** The best spot now, without taking it; undefined only when no (allowed) host holds it. */
  choose(shape: Shape, allowed?: HostFilter): Spot | undefined
}
