/**
 * The scores of one shape on all hosts, and the best of them at once: each group of hosts with the same GPU models has a
 * tournament tree whose root is its best host, of equals the lowest number. A change of a host costs the height of a tree.
 */
import type { HostGroups } from './host-groups.ts'

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
