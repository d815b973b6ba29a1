/**
 * A policy that scores hosts with whole numbers and takes the highest; of equals, the lowest host number. Scores are cached by
 * shape and renewed only for hosts that changed, so a scorer must be a pure function of shape and host state. Acceptable GPU
 * models may only decide whether a host fits: shapes that differ in nothing else share scores.
 */
import type { Cluster, Spot } from '../model/cluster.ts'
import { fitsBesidesDevices, tightestDevices } from '../model/fits.ts'
import { WHOLE_MILLI } from '../model/resources.ts'
import type { Shape } from '../model/shape.ts'

export interface HostScorer {
  /**
   * NO_FIT, or how good the host is, within ±2^20; all but devices is known to suffice. For a share it leaves the device
   * within the host in `device`.
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
  readonly groups: HostGroups
  readonly #cluster: Cluster
  readonly #scorer: HostScorer
  /** By shape. */
  readonly #searches: Search[] = []
  readonly #indexes = new Map<number, ScoreIndex>()
  readonly #empty: EmptyHosts

  constructor(cluster: Cluster, scorer: HostScorer, groups = new HostGroups(cluster)) {
    this.groups = groups
    this.#cluster = cluster
    this.#scorer = scorer
    this.#empty = new EmptyHosts(cluster)
  }

  choose(shape: Shape, allowed?: HostFilter): Spot | undefined {
    this.#searches[shape.id] ??= this.#searchFor(shape)
    const { scored, groups } = this.#searches[shape.id] as Search
    const index = this.#indexOf(scored)
    const host = this.#best(shape, index, groups, allowed)
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

  #best(shape: Shape, index: ScoreIndex, groups: readonly number[], allowed?: HostFilter): number {
    let best = -1
    let bestScore = Number.NEGATIVE_INFINITY
    for (const group of groups) {
      const host = this.#bestIn(group, index, allowed)
      if (host < 0) continue
      const score = (index.scores[host] as number) + (this.#scorer.groupBonus?.(shape, group) ?? 0)
      if (score > bestScore || (score === bestScore && host < best)) {
        best = host
        bestScore = score
      }
    }
    return best
  }

  #bestIn(group: number, index: ScoreIndex, allowed?: HostFilter): number {
    const first = index.bestOf(group)
    if (first < 0 || !allowed || allowed(first)) return first
    let best = -1
    let bestScore = NO_FIT
    for (const host of this.groups.members[group] as Int32Array) {
      const score = index.scores[host] as number
      if (score <= bestScore || !allowed(host)) continue
      best = host
      bestScore = score
    }
    return best
  }

  #indexOf(shape: Shape): ScoreIndex {
    let index = this.#indexes.get(shape.id)
    if (index === undefined) {
      index = new ScoreIndex(this.#cluster.hostCount, this.groups)
      const [oldest] = this.#indexes.size >= KEPT_SHAPES ? this.#indexes.keys() : []
      if (oldest !== undefined) this.#indexes.delete(oldest)
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
      if (fitsBesidesDevices(cluster, shape, host)) this.#scoreFitting(shape, index, host)
      else scores[host] = NO_FIT
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
  /** The best spot now, without taking it; undefined only when no (allowed) host holds it. */
  choose(shape: Shape, allowed?: HostFilter): Spot | undefined
}

/** The host does not hold the shape; all scores are larger. */
export const NO_FIT = -0x8000_0000

/**
 * The scores of one shape on all hosts. Each group of hosts with the same GPU models has a tournament tree whose root is its best
 * host, so a change of a host costs the height of a tree.
 */
class ScoreIndex {
  readonly scores: Int32Array
  /** For shares: the device within the host that the score is for. */
  readonly devices: Int16Array
  /** The cluster's `changeCount` up to which it is valid. */
  cursor = -1
  /** The scorer's stamp when it was made. */
  stamp = 0
  readonly #groups: HostGroups
  /** By group: node 1 is the root, node n has the children 2n and 2n + 1; each is a host, or -1. */
  readonly #trees: readonly Int32Array[]

  constructor(hostCount: number, groups: HostGroups) {
    this.scores = new Int32Array(hostCount).fill(NO_FIT)
    this.devices = new Int16Array(hostCount)
    this.#groups = groups
    this.#trees = groups.members.map((members) => new Int32Array(2 * members.length).fill(-1))
  }

  /** After all scores were written. */
  rebuild(): void {
    this.#trees.forEach((tree, group) => {
      const members = this.#groups.members[group] as Int32Array
      const leaves = members.length
      for (let slot = 0; slot < leaves; slot++) tree[leaves + slot] = members[slot] as number
      for (let node = leaves - 1; node > 0; node--)
        tree[node] = this.#better(tree[2 * node] as number, tree[2 * node + 1] as number)
    })
  }

  /** After the score of one host was written. */
  update(host: number): void {
    const tree = this.#trees[this.#groups.groupOf[host] as number] as Int32Array
    let node = (tree.length / 2 + (this.#groups.slotOf[host] as number)) >> 1
    for (; node > 0; node >>= 1) {
      const before = tree[node] as number
      const best = this.#better(tree[2 * node] as number, tree[2 * node + 1] as number)
      tree[node] = best
      // The host was not the best here and is not now, so nothing changes further up.
      if (best === before && best !== host) return
    }
  }

  /** The best host of a group; -1: none holds the shape. */
  bestOf(group: number): number {
    const tree = this.#trees[group] as Int32Array
    const host = tree[1] as number
    return host >= 0 && this.scores[host] !== NO_FIT ? host : -1
  }

  #better(left: number, right: number): number {
    const difference = (this.scores[left] as number) - (this.scores[right] as number)
    if (difference !== 0) return difference > 0 ? left : right
    return left < right ? left : right
  }
}

/** Empty hosts of one kind (CPU, memory, GPU models in order, nothing custom) are interchangeable. */
class EmptyHosts {
  readonly #cluster: Cluster
  /** By host: its kind; -1: like no other. */
  readonly #kindOf: Int32Array
  readonly #cpuMilli: Int32Array
  readonly #memoryBytes: Float64Array
  /** By kind: the first empty host that was asked about; -1: none. */
  readonly #first: Int32Array

  constructor(cluster: Cluster) {
    const kinds = new Map<string, number>()
    this.#cluster = cluster
    this.#kindOf = Int32Array.from(cluster.hosts, ({ cpuMilli, memoryBytes, gpus = [], custom }) => {
      if (custom !== undefined) return -1
      const key = JSON.stringify([cpuMilli, memoryBytes, gpus])
      const kind = kinds.get(key) ?? kinds.size
      kinds.set(key, kind)
      return kind
    })
    this.#cpuMilli = Int32Array.from(cluster.hosts, ({ cpuMilli }) => cpuMilli)
    this.#memoryBytes = Float64Array.from(cluster.hosts, ({ memoryBytes }) => memoryBytes)
    this.#first = new Int32Array(kinds.size)
  }

  forget(): void {
    this.#first.fill(-1)
  }

  /** The first empty host of its kind since `forget`, if the host is empty; else the host itself. */
  twinOf(host: number): number {
    const kind = this.#kindOf[host] as number
    const { cpuLeftMilli, memoryLeftBytes, gpuLeftMilli, deviceStart } = this.#cluster
    if (kind < 0 || cpuLeftMilli[host] !== this.#cpuMilli[host] || memoryLeftBytes[host] !== this.#memoryBytes[host])
      return host
    const gpus = (deviceStart[host + 1] as number) - (deviceStart[host] as number)
    if (gpuLeftMilli[host] !== gpus * WHOLE_MILLI) return host
    const first = this.#first[kind] as number
    if (first >= 0) return first
    this.#first[kind] = host
    return host
  }
}

/** Hosts grouped by their GPU models. */
export class HostGroups {
  /** By group: its hosts, ascending; never empty. */
  readonly members: readonly Int32Array[]
  readonly groupOf: Uint16Array
  /** By host: its index in `members` of its group. */
  readonly slotOf: Int32Array
  /** By group: its model numbers. */
  readonly models: readonly (readonly number[])[]

  constructor(cluster: Cluster) {
    const members: number[][] = []
    const models: (readonly number[])[] = []
    const groupByModels = new Map<string, number>()
    this.groupOf = new Uint16Array(cluster.hostCount)
    this.slotOf = new Int32Array(cluster.hostCount)
    for (let host = 0; host < cluster.hostCount; host++) {
      const range = cluster.deviceModel.subarray(cluster.deviceStart[host], cluster.deviceStart[host + 1])
      const own = [...new Set(range)].sort((left, right) => left - right)
      let group = groupByModels.get(own.join())
      if (group === undefined) {
        group = members.push([]) - 1
        models.push(own)
        groupByModels.set(own.join(), group)
      }
      this.groupOf[host] = group
      this.slotOf[host] = (members[group]?.push(host) ?? 1) - 1
    }
    this.members = members.map((hosts) => Int32Array.from(hosts))
    this.models = models
  }
}
