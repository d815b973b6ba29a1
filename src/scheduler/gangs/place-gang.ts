/** Placement of one gang, all bundles or none: greedily on the fullest hosts that its strategy allows, then by search. */
import type { Cluster, Placement, Spot } from '../model/cluster.ts'
import { fits, fitsBesidesDevices, holdsPart, spotOn, tightestDevices } from '../model/fits.ts'
import { type Gang, WHOLE_MILLI } from '../model/resources.ts'
import type { Shape } from '../model/shape.ts'

/** Greedy: takes a place for every bundle, in their order, or none: undefined. */
export function placeGang(cluster: Cluster, gang: Gang): readonly Placement[] | undefined {
  const { strategy, maxBundlesPerHost = Number.POSITIVE_INFINITY } = gang
  const { cpuLeftMilli, memoryLeftBytes, gpuLeftMilli } = cluster
  const shapes = gang.bundles.map((bundle) => cluster.shapeOf(bundle))
  const order = largestFirst(shapes)
  const sum = sumOf(shapes)
  const perHost = new Map<number, number>()
  let taken: Placement[] = []
  const mayTakeMore = (host: number) => (perHost.get(host) ?? 0) < maxBundlesPerHost
  const take = (index: number, host: number): boolean => {
    const shape = shapes[index] as Shape
    const spot = mayTakeMore(host) ? spotOn(cluster, shape, host) : undefined
    if (spot === undefined) return false
    taken[index] = cluster.take(shape, spot)
    perHost.set(host, (perHost.get(host) ?? 0) + 1)
    return true
  }
  const undo = () => {
    // `forEach` skips bundles that were not placed.
    taken.forEach((placement) => {
      cluster.release(placement)
    })
    taken = []
    perHost.clear()
  }
  const compare = ({ preferredOn }: Shape, one: number, other: number): number =>
    (preferredOn?.[other] ?? 0) - (preferredOn?.[one] ?? 0) ||
    (gpuLeftMilli[one] as number) - (gpuLeftMilli[other] as number) ||
    (cpuLeftMilli[one] as number) - (cpuLeftMilli[other] as number)
  /** Of the allowed hosts that hold it: a preferred one, then the fullest, then the lowest number. */
  const bestHost = (index: number, isAllowed: (host: number) => boolean): number | undefined => {
    const shape = shapes[index] as Shape
    let best: number | undefined
    for (let host = 0; host < cluster.hostCount; host++) {
      if (best !== undefined && compare(shape, best, host) <= 0) continue
      if (mayTakeMore(host) && isAllowed(host) && fits(cluster, shape, host)) best = host
    }
    return best
  }
  const holdsSum = (host: number): boolean =>
    (cpuLeftMilli[host] as number) >= sum.cpuMilli &&
    (memoryLeftBytes[host] as number) >= sum.memoryBytes &&
    (gpuLeftMilli[host] as number) >= sum.gpuMilli
  const packOnOne = (): boolean => {
    const [first] = order
    if (first === undefined) return true
    const tried = new Set<number>()
    for (;;) {
      const host = bestHost(first, (one) => !tried.has(one) && holdsSum(one))
      if (host === undefined) return false
      if (order.every((index) => take(index, host))) return true
      undo()
      tried.add(host)
    }
  }
  const pack = (): boolean => {
    const swept = new Set<number>()
    let remaining = order
    for (let first = remaining[0]; first !== undefined; first = remaining[0]) {
      const host = bestHost(first, (one) => !swept.has(one))
      if (host === undefined) return false
      swept.add(host)
      remaining = remaining.filter((index) => !take(index, host))
    }
    return true
  }
  const spread = (): boolean =>
    order.every((index) => {
      const unused = bestHost(index, (one) => !perHost.has(one))
      const host = unused ?? (strategy === 'SPREAD' ? bestHost(index, () => true) : undefined)
      return host !== undefined && take(index, host)
    })
  if (strategy.endsWith('SPREAD') ? spread() : packOnOne() || (strategy === 'PACK' && pack())) return taken
  undo()
  return undefined
}

/** The indices of the shapes. */
export function largestFirst(shapes: readonly Shape[], isById = false): readonly number[] {
  return [...shapes.entries()]
    .sort(
      ([, one], [, other]) =>
        gpuOf(other) - gpuOf(one) || other.cpuMilli - one.cpuMilli || (isById ? one.id - other.id : 0),
    )
    .map(([index]) => index)
}

export function gpuOf({ gpuCount, gpuMilli }: { readonly gpuCount: number; readonly gpuMilli: number }): number {
  return gpuCount * gpuMilli
}

export function sumOf(shapes: readonly Shape[]) {
  const sum = { cpuMilli: 0, memoryBytes: 0, gpuMilli: 0 }
  for (const shape of shapes) {
    sum.cpuMilli += shape.cpuMilli
    sum.memoryBytes += shape.memoryBytes
    sum.gpuMilli += gpuOf(shape)
  }
  return sum
}

const STEPS = 500

/** As `placeGang`, and where that fails by trying up to so many hosts and devices, which is exhaustive for small gangs. */
export function findGang(cluster: Cluster, gang: Gang, steps = STEPS): readonly Placement[] | undefined {
  return placeGang(cluster, gang) ?? (gang.bundles.length < 2 ? undefined : new GangSearch(cluster, gang, steps).run())
}

class GangSearch {
  readonly #cluster: Cluster
  readonly #gang: Gang
  readonly #shapes: readonly Shape[]
  readonly #order: readonly number[]
  readonly #taken: Placement[] = []
  #stepsLeft: number

  constructor(cluster: Cluster, gang: Gang, steps: number) {
    this.#cluster = cluster
    this.#gang = gang
    this.#stepsLeft = steps
    this.#shapes = gang.bundles.map((bundle) => cluster.shapeOf(bundle))
    this.#order = largestFirst(this.#shapes, true)
  }

  run(): readonly Placement[] | undefined {
    return this.#isHopeless() || !this.#placeFrom(0) ? undefined : [...this.#taken]
  }

  /** The sums show that it cannot fit. */
  #isHopeless(): boolean {
    const { cpuLeftMilli, memoryLeftBytes, gpuLeftMilli } = this.#cluster
    const { cpuMilli, memoryBytes, gpuMilli } = sumOf(this.#shapes)
    const total = (sum: number, amount: number) => sum + amount
    return (
      cpuMilli > cpuLeftMilli.reduce(total, 0) ||
      memoryBytes > memoryLeftBytes.reduce(total, 0) ||
      gpuMilli > gpuLeftMilli.reduce(total, 0)
    )
  }

  #placeFrom(position: number): boolean {
    const index = this.#order[position]
    if (index === undefined) return true
    for (const spot of this.#spots(position)) {
      if (this.#stepsLeft-- <= 0) return false
      const placement = this.#cluster.take(this.#shapes[index] as Shape, spot)
      this.#taken[index] = placement
      if (this.#placeFrom(position + 1)) return true
      this.#cluster.release(placement)
      delete this.#taken[index]
    }
    return false
  }

  *#spots(position: number): Generator<Spot> {
    const shape = this.#shapes[this.#order[position] as number] as Shape
    const before = this.#placed(position - 1)
    // Equal bundles are interchangeable: each goes to the host of the previous one or to a later one.
    const first = before !== undefined && before.shape.id === shape.id ? before.host : 0
    for (let host = first; host < this.#cluster.hostCount; host++) {
      if (!this.#isAllowed(host, position) || !fitsBesidesDevices(this.#cluster, shape, host)) continue
      for (const devices of this.#devices(shape, host)) yield { host, devices }
    }
  }

  #placed(position: number): Placement | undefined {
    const index = this.#order[position]
    return index === undefined ? undefined : this.#taken[index]
  }

  #isAllowed(host: number, position: number): boolean {
    const { strategy, maxBundlesPerHost = Number.POSITIVE_INFINITY } = this.#gang
    if (strategy === 'STRICT_PACK' && position > 0) return this.#placed(0)?.host === host
    let count = 0
    for (let earlier = 0; earlier < position; earlier++) if (this.#placed(earlier)?.host === host) count++
    return count < (strategy === 'STRICT_SPREAD' ? 1 : maxBundlesPerHost) && count < maxBundlesPerHost
  }

  /** Whole GPUs: the first idle ones. A share: one device for each different amount left. */
  #devices(shape: Shape, host: number): readonly (readonly number[])[] {
    if (shape.gpuCount === 0 || shape.gpuMilli === WHOLE_MILLI) {
      const devices = tightestDevices(this.#cluster, shape, host)
      return devices ? [devices] : []
    }
    const { deviceStart, deviceLeftMilli, deviceModel } = this.#cluster
    const start = deviceStart[host] as number
    const byLeft = new Map<string, readonly number[]>()
    for (let device = start; device < (deviceStart[host + 1] as number); device++) {
      const key = `${deviceLeftMilli[device]} ${deviceModel[device]}`
      if (holdsPart(this.#cluster, shape, device) && !byLeft.has(key)) byLeft.set(key, [device - start])
    }
    return [...byLeft.values()]
  }
}
