/**
 * A policy that scores hosts with whole numbers and takes the highest; of equals, the lowest host number. Scores are cached by
 * kind of request and renewed only for hosts that changed, so a scorer must be a pure function of shape and host state. Acceptable
 * GPU models may only decide whether a host fits: shapes that differ in nothing else share scores. If a request for less CPU or
 * memory never scores lower, shapes that differ only in these share the scores of the smallest one as upper bounds, and only the
 * few hosts with the highest bounds are scored exactly.
 */
import type { Cluster, Spot } from '../model/cluster.ts'
import { fitsBesidesDevices, tightestDevices } from '../model/fits.ts'
import { WHOLE_MILLI } from '../model/resources.ts'
import { type Shape, shapeKey } from '../model/shape.ts'

export interface HostScorer {
  /**
   * NO_FIT, or how good the host is, within ±2^20; all but devices is known to suffice. For a share it leaves the device
   * within the host in `device`.
   */
  score(shape: Shape, host: number): number
  device: number
  /** A request for less CPU or memory, and otherwise the same, never scores lower. */
  readonly prefersSmall?: boolean
  /** Added for all hosts of a group; asked each time, may change at any time. */
  groupBonus?(shape: Shape, group: number): number
  /** Scores that were made under another stamp of the shape are renewed. Equal for shapes that differ in CPU or memory alone. */
  stampOf?(shape: Shape): number
}

/** How a shape is searched. */
type Search = {
  /** Shapes of a kind share their bounds. */
  readonly kind: string
  /** The shape without GPU models, where these do not matter. */
  readonly scored: Shape
  readonly groups: readonly number[]
  /** Into `SHARED`. */
  readonly level: number
  /** The sum of hosts that were scored exactly beyond `FREE_SCORES` in a search. */
  excess: number
}

/** What may differ between shapes of a kind. A shape whose bound is too loose moves to the next level. */
const SHARED = [{ cpuMilli: 0, memoryBytes: 0 }, { memoryBytes: 0 }, {}]
const FREE_SCORES = 32
const MOST_EXCESS = 100

type Query = {
  readonly shape: Shape
  readonly isExact: boolean
  readonly tree: Int32Array
  readonly scores: Int32Array
  readonly bonus: number
  readonly allowed: HostFilter | undefined
}

type Best = { host: number; score: number; scoredHosts: number }

/** One more preference outweighs any score. */
const PREFERENCE = 2 ** 22

/** Lower than the score of any host that fits, whatever its group's bonus. */
const LEAST_SCORE = -(2 ** 30)

/** How many kinds keep their scores; the least recently used goes first. */
const KEPT_KINDS = 1024

export class ScoredPolicy implements PlacementPolicy {
  readonly groups: HostGroups
  readonly #cluster: Cluster
  readonly #scorer: HostScorer
  /** By shape. */
  readonly #searches: Search[] = []
  readonly #indexes = new Map<string, ScoreIndex>()
  readonly #empty: EmptyHosts

  constructor(cluster: Cluster, scorer: HostScorer, groups = new HostGroups(cluster)) {
    this.groups = groups
    this.#cluster = cluster
    this.#scorer = scorer
    this.#empty = new EmptyHosts(cluster)
  }

  choose(shape: Shape, allowed?: HostFilter): Spot | undefined {
    this.#searches[shape.id] ??= this.#searchFor(shape)
    const search = this.#searches[shape.id] as Search
    const index = this.#indexOf(search)
    const { scores } = index
    const isExact = search.scored === index.least
    const best: Best = { host: -1, score: LEAST_SCORE, scoredHosts: 0 }
    for (const group of search.groups) {
      const bonus = this.#scorer.groupBonus?.(shape, group) ?? 0
      this.#searchNode({ shape, isExact, tree: index.treeOf(group), scores, bonus, allowed }, 1, best)
    }
    search.excess = Math.max(0, search.excess + best.scoredHosts - FREE_SCORES)
    if (search.excess > MOST_EXCESS) this.#searches[shape.id] = this.#searchFor(shape, search.level + 1)
    const { host } = best
    if (host < 0) return undefined
    if (shape.gpuCount === 1 && shape.gpuMilli < WHOLE_MILLI) {
      this.#scorer.score(shape, host)
      return { host, devices: [this.#scorer.device] }
    }
    const devices = tightestDevices(this.#cluster, shape, host)
    return devices && { host, devices }
  }

  /** A shape without models shares its scores, unless a host mixes acceptable GPUs with others. */
  #searchFor(shape: Shape, level = 0): Search {
    const all = [...this.groups.models.keys()]
    const takes = (model: number) => shape.takesModel[model] === 1
    const groups = shape.takesAnyModel ? all : all.filter((group) => this.groups.models[group]?.some(takes))
    const isMixed = groups.some((group) => !this.groups.models[group]?.every(takes))
    const request = isMixed ? shape.request : { ...shape.request, gpuModels: [] }
    const kind = { ...request, ...(this.#scorer.prefersSmall ? SHARED[level] : {}) }
    return { kind: shapeKey(kind), scored: this.#cluster.shapeOf(request), groups, level, excess: 0 }
  }

  /** Visits the subtree of a node only where its bound may exceed the best score so far, the better half first. */
  #searchNode(query: Query, node: number, best: Best): void {
    const { shape, isExact, tree, scores, bonus, allowed } = query
    const host = tree[node] as number
    if (!mayBeat(best, (scores[host] as number) + bonus, host)) return
    if (2 * node < tree.length) {
      const child = tree[2 * node] === host ? 2 * node : 2 * node + 1
      this.#searchNode(query, child, best)
      this.#searchNode(query, child ^ 1, best)
    } else if (allowed === undefined || allowed(host)) {
      if (!isExact) best.scoredHosts++
      const score = (isExact ? (scores[host] as number) : this.#scoreOf(shape, host)) + bonus
      if (!mayBeat(best, score, host)) return
      best.host = host
      best.score = score
    }
  }

  #indexOf({ kind, scored }: Search): ScoreIndex {
    let index = this.#indexes.get(kind)
    if (index === undefined) {
      index = new ScoreIndex(this.#cluster.hostCount, this.groups, scored)
      const [oldest] = this.#indexes.size >= KEPT_KINDS ? this.#indexes.keys() : []
      if (oldest !== undefined) this.#indexes.delete(oldest)
    } else if (this.#indexes.size >= KEPT_KINDS / 2) this.#indexes.delete(kind) // Comes back as the youngest.
    this.#indexes.set(kind, index)
    index.include(scored, this.#cluster)
    const stamp = this.#scorer.stampOf?.(scored) ?? 0
    if (index.stamp !== stamp) {
      index.stamp = stamp
      index.cursor = -1
    }
    this.#refresh(index)
    return index
  }

  #refresh(index: ScoreIndex): void {
    const cluster = this.#cluster
    const { cursor } = index
    if (cursor === cluster.changeCount) return
    if (cursor < 0) {
      this.#rescoreAll(index)
      index.rebuild()
    } else this.#rescoreChanged(index, cursor)
    index.cursor = cluster.changeCount
  }

  #rescoreChanged(index: ScoreIndex, cursor: number): void {
    const cluster = this.#cluster
    const { lastChange, lastGain } = cluster
    const { scores, least } = index
    for (
      let host = cluster.changedLast;
      host >= 0 && (lastChange[host] as number) >= cursor;
      host = cluster.changedBefore(host)
    ) {
      const before = scores[host]
      // A host that did not hold it and has only become fuller still does not.
      if (before === NO_FIT && (lastGain[host] as number) < cursor) continue
      scores[host] = this.#scoreOf(least, host)
      if (before !== scores[host]) index.update(host)
    }
  }

  /** Of interchangeable empty hosts only the first is scored. */
  #rescoreAll({ scores, least }: ScoreIndex): void {
    const { hostCount } = this.#cluster
    this.#empty.forget()
    for (let host = 0; host < hostCount; host++) {
      const mayHaveTwin = least.preferredOn === undefined && fitsBesidesDevices(this.#cluster, least, host)
      const twin = mayHaveTwin ? this.#empty.twinOf(host) : host
      scores[host] = twin === host ? this.#scoreOf(least, host) : (scores[twin] as number)
    }
  }

  #scoreOf(shape: Shape, host: number): number {
    if (!fitsBesidesDevices(this.#cluster, shape, host)) return NO_FIT
    const score = this.#scorer.score(shape, host)
    if (shape.preferredOn === undefined || score === NO_FIT) return score
    return score + PREFERENCE * Math.min(255, shape.preferredOn[host] as number)
  }
}

export type HostFilter = (host: number) => boolean

export interface PlacementPolicy {
  /** The best spot now, without taking it; undefined only when no (allowed) host holds it. */
  choose(shape: Shape, allowed?: HostFilter): Spot | undefined
}

/** The host does not hold the shape; all scores are larger. */
export const NO_FIT = -0x8000_0000

function mayBeat(best: Best, score: number, host: number): boolean {
  return score > best.score || (score === best.score && host < best.host)
}

/**
 * The scores of the smallest shape of a kind on all hosts, which are upper bounds for its other shapes. Each group of hosts with the
 * same GPU models has a tournament tree whose root is its best host, so a change of a host costs the height of a tree.
 */
class ScoreIndex {
  readonly scores: Int32Array
  /** The cluster's `changeCount` up to which it is valid. */
  cursor = -1
  /** The scorer's stamp when it was made. */
  stamp = 0
  #least: Shape
  readonly #groups: HostGroups
  /** By group: node 1 is the root, node n has the children 2n and 2n + 1; each is a host. */
  readonly #trees: readonly Int32Array[]

  constructor(hostCount: number, groups: HostGroups, shape: Shape) {
    this.scores = new Int32Array(hostCount).fill(NO_FIT)
    this.#least = shape
    this.#groups = groups
    this.#trees = groups.members.map((members) => new Int32Array(2 * members.length))
  }

  /** Needs no more CPU and memory than any shape that was included. */
  get least(): Shape {
    return this.#least
  }

  include({ cpuMilli, memoryBytes }: Shape, cluster: Cluster): void {
    const { request } = this.#least
    if (cpuMilli >= request.cpuMilli && memoryBytes >= request.memoryBytes) return
    this.#least = cluster.shapeOf({
      ...request,
      cpuMilli: Math.min(cpuMilli, request.cpuMilli),
      memoryBytes: Math.min(memoryBytes, request.memoryBytes),
    })
    this.cursor = -1
  }

  treeOf(group: number): Int32Array {
    return this.#trees[group] as Int32Array
  }

  /** After all scores were written. */
  rebuild(): void {
    this.#trees.forEach((tree, group) => {
      const members = this.#groups.members[group] as Int32Array
      tree.set(members, members.length)
      for (let node = members.length - 1; node > 0; node--)
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
