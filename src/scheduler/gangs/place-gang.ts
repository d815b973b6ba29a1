/** Where the bundles of one gang go: on devices, whole or not at all, on the fullest hosts that its strategy allows. */
import type { Cluster, Placement } from '../model/cluster.ts'
import { spotOn } from '../model/fits.ts'
import type { Gang } from '../model/gang.ts'
import type { Shape } from '../model/shape.ts'

/** Takes a place for every bundle, in their order, or takes nothing: undefined. */
export function placeGang(cluster: Cluster, gang: Gang): readonly Placement[] | undefined {
  const planner = new GangPlanner(cluster, gang)
  if (planner.place()) return planner.placements
  planner.undo()
  return undefined
}

class GangPlanner {
  readonly #cluster: Cluster
  readonly #gang: Gang
  readonly #shapes: readonly Shape[]
  /** The largest bundles first. */
  readonly #order: readonly number[]
  readonly #perHost = new Map<number, number>()
  #taken: Placement[] = []

  constructor(cluster: Cluster, gang: Gang) {
    this.#cluster = cluster
    this.#gang = gang
    this.#shapes = gang.bundles.map((bundle) => cluster.shapeOf(bundle))
    const shapes = [...this.#shapes.entries()]
    this.#order = shapes
      .sort(([, one], [, other]) => gpuOf(other) - gpuOf(one) || other.cpuMilli - one.cpuMilli)
      .map(([index]) => index)
  }

  get placements(): readonly Placement[] {
    return this.#taken
  }

  place(): boolean {
    switch (this.#gang.strategy) {
      case 'STRICT_PACK':
        return this.#packOnOne()
      case 'PACK':
        return this.#packOnOne() || this.#pack()
      case 'SPREAD':
      case 'STRICT_SPREAD':
        return this.#spread()
    }
  }

  undo(): void {
    // Places that were not taken are holes, which forEach leaves out.
    this.#taken.forEach((placement) => {
      this.#cluster.release(placement)
    })
    this.#taken = []
    this.#perHost.clear()
  }

  #packOnOne(): boolean {
    const [first] = this.#order
    if (first === undefined) return true
    for (const host of this.#hostsFor(first)) {
      if (this.#order.every((index) => this.#take(index, host))) return true
      this.undo()
    }
    return false
  }

  #pack(): boolean {
    const swept = new Set<number>()
    let remaining = this.#order
    for (let first = remaining[0]; first !== undefined; first = remaining[0]) {
      const host = this.#hostsFor(first).find((one) => !swept.has(one))
      if (host === undefined) return false
      swept.add(host)
      remaining = remaining.filter((index) => !this.#take(index, host))
    }
    return true
  }

  #spread(): boolean {
    return this.#order.every((index) => {
      const hosts = this.#hostsFor(index)
      const unused = hosts.find((host) => !this.#perHost.has(host))
      const host = this.#gang.strategy === 'SPREAD' ? (unused ?? hosts[0]) : unused
      return host !== undefined && this.#take(index, host)
    })
  }

  #take(index: number, host: number): boolean {
    if (!this.#mayTakeMore(host)) return false
    const shape = this.#shapes[index] as Shape
    const spot = spotOn(this.#cluster, shape, host)
    if (spot === undefined) return false
    this.#taken[index] = this.#cluster.take(shape, spot)
    this.#perHost.set(host, (this.#perHost.get(host) ?? 0) + 1)
    return true
  }

  #mayTakeMore(host: number): boolean {
    return (this.#perHost.get(host) ?? 0) < (this.#gang.maxBundlesPerHost ?? Number.POSITIVE_INFINITY)
  }

  /** Hosts that hold it: those it prefers, then the fullest, first. */
  #hostsFor(index: number): readonly number[] {
    const { hostCount, gpuLeftMilli, cpuLeftMilli } = this.#cluster
    const shape = this.#shapes[index] as Shape
    const hosts: number[] = []
    for (let host = 0; host < hostCount; host++)
      if (this.#mayTakeMore(host) && spotOn(this.#cluster, shape, host) !== undefined) hosts.push(host)
    const preferred = (host: number) => shape.preferredOn?.[host] ?? 0
    const left = (amounts: Int32Array, host: number) => amounts[host] as number
    return hosts.sort(
      (one, other) =>
        preferred(other) - preferred(one) ||
        left(gpuLeftMilli, one) - left(gpuLeftMilli, other) ||
        left(cpuLeftMilli, one) - left(cpuLeftMilli, other) ||
        one - other,
    )
  }
}

/** Milli-GPU on all its devices. */
export function gpuOf({ gpuCount, gpuMilli }: { readonly gpuCount: number; readonly gpuMilli: number }): number {
  return gpuCount * gpuMilli
}
