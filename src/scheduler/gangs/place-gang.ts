/** Greedy placement of one gang: all bundles or none, on the fullest hosts that its strategy allows. */
import type { Cluster, Placement } from '../model/cluster.ts'
import { fits, spotOn } from '../model/fits.ts'
import type { Gang } from '../model/resources.ts'
import type { Shape } from '../model/shape.ts'

/** Takes a place for every bundle, in their order, or none: undefined. */
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
  /** The largest first. */
  readonly #order: readonly number[]
  readonly #sum: { readonly cpuMilli: number; readonly memoryBytes: number; readonly gpuMilli: number }
  readonly #perHost = new Map<number, number>()
  #taken: Placement[] = []

  constructor(cluster: Cluster, gang: Gang) {
    this.#cluster = cluster
    this.#gang = gang
    this.#shapes = gang.bundles.map((bundle) => cluster.shapeOf(bundle))
    this.#order = largestFirst(this.#shapes)
    this.#sum = this.#shapes.reduce(
      (sum, shape) => ({
        cpuMilli: sum.cpuMilli + shape.cpuMilli,
        memoryBytes: sum.memoryBytes + shape.memoryBytes,
        gpuMilli: sum.gpuMilli + gpuOf(shape),
      }),
      { cpuMilli: 0, memoryBytes: 0, gpuMilli: 0 },
    )
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
    // `forEach` skips bundles that were not placed.
    this.#taken.forEach((placement) => {
      this.#cluster.release(placement)
    })
    this.#taken = []
    this.#perHost.clear()
  }

  #packOnOne(): boolean {
    const [first] = this.#order
    if (first === undefined) return true
    const tried = new Set<number>()
    for (;;) {
      const host = this.#bestHost(first, (one) => !tried.has(one) && this.#holdsSum(one))
      if (host === undefined) return false
      if (this.#order.every((index) => this.#take(index, host))) return true
      this.undo()
      tried.add(host)
    }
  }

  #pack(): boolean {
    const swept = new Set<number>()
    let remaining = this.#order
    for (let first = remaining[0]; first !== undefined; first = remaining[0]) {
      const host = this.#bestHost(first, (one) => !swept.has(one))
      if (host === undefined) return false
      swept.add(host)
      remaining = remaining.filter((index) => !this.#take(index, host))
    }
    return true
  }

  #spread(): boolean {
    return this.#order.every((index) => {
      const unused = this.#bestHost(index, (one) => !this.#perHost.has(one))
      const host = this.#gang.strategy === 'SPREAD' ? (unused ?? this.#bestHost(index, () => true)) : unused
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

  /** Judged by sums. */
  #holdsSum(host: number): boolean {
    const { cpuLeftMilli, memoryLeftBytes, gpuLeftMilli } = this.#cluster
    return (
      (cpuLeftMilli[host] as number) >= this.#sum.cpuMilli &&
      (memoryLeftBytes[host] as number) >= this.#sum.memoryBytes &&
      (gpuLeftMilli[host] as number) >= this.#sum.gpuMilli
    )
  }

  /** Of the allowed hosts that hold it: a preferred one, then the fullest, then the lowest number. */
  #bestHost(index: number, isAllowed: (host: number) => boolean): number | undefined {
    const cluster = this.#cluster
    const shape = this.#shapes[index] as Shape
    let best: number | undefined
    for (let host = 0; host < cluster.hostCount; host++) {
      if (best !== undefined && this.#compare(shape, best, host) <= 0) continue
      if (!this.#mayTakeMore(host) || !isAllowed(host) || !fits(cluster, shape, host)) continue
      best = host
    }
    return best
  }

  #compare({ preferredOn }: Shape, one: number, other: number): number {
    const { gpuLeftMilli, cpuLeftMilli } = this.#cluster
    const liking = (preferredOn?.[other] ?? 0) - (preferredOn?.[one] ?? 0)
    if (liking !== 0) return liking
    const gpu = (gpuLeftMilli[one] as number) - (gpuLeftMilli[other] as number)
    return gpu !== 0 ? gpu : (cpuLeftMilli[one] as number) - (cpuLeftMilli[other] as number)
  }
}

/** The indices of the shapes. */
export function largestFirst(shapes: readonly Shape[]): readonly number[] {
  return [...shapes.entries()]
    .sort(([, one], [, other]) => gpuOf(other) - gpuOf(one) || other.cpuMilli - one.cpuMilli)
    .map(([index]) => index)
}

export function gpuOf({ gpuCount, gpuMilli }: { readonly gpuCount: number; readonly gpuMilli: number }): number {
  return gpuCount * gpuMilli
}
