/**
 * The scores of one shape on all hosts, and the best of them at once: each group of hosts with the same GPU models has a
 * tournament tree whose root is its best host, of equals the lowest number. A change of a host costs the height of a tree.
 */
import type { Cluster } from '../model/cluster.ts'
import { WHOLE_MILLI } from '../model/resources.ts'

/** The host does not hold the shape; all scores are larger. */
export const NO_FIT = -0x8000_0000

export class ScoreIndex {
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
export class EmptyHosts {
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
