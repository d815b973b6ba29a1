/**
 * Finds a place for a gang where greedy placement fails: tries hosts and devices one after the other, up to a number of steps,
 * which is exhaustive for small gangs.
 */
import type { Cluster, Placement, Spot } from '../model/cluster.ts'
import { fitsBesidesDevices, holdsPart, tightestDevices } from '../model/fits.ts'
import { type Gang, WHOLE_MILLI } from '../model/resources.ts'
import type { Shape } from '../model/shape.ts'
import { gpuOf, placeGang } from './place-gang.ts'

const STEPS = 500

/** As `placeGang`, and thorough where that fails. */
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
    this.#order = [...this.#shapes.entries()]
      .sort(([, one], [, other]) => gpuOf(other) - gpuOf(one) || other.cpuMilli - one.cpuMilli || one.id - other.id)
      .map(([index]) => index)
  }

  run(): readonly Placement[] | undefined {
    return this.#isHopeless() || !this.#placeFrom(0) ? undefined : [...this.#taken]
  }

  /** The sums show that it cannot fit. */
  #isHopeless(): boolean {
    const { cpuLeftMilli, memoryLeftBytes, gpuLeftMilli } = this.#cluster
    const asked = (amountOf: (shape: Shape) => number) => this.#shapes.reduce((sum, shape) => sum + amountOf(shape), 0)
    return (
      asked((shape) => shape.cpuMilli) > total(cpuLeftMilli) ||
      asked((shape) => shape.memoryBytes) > total(memoryLeftBytes) ||
      asked(gpuOf) > total(gpuLeftMilli)
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
    const { deviceStart, deviceLeftMilli } = this.#cluster
    const start = deviceStart[host] as number
    const byLeft = new Map<string, number>()
    for (let device = start; device < (deviceStart[host + 1] as number); device++) {
      const key = `${deviceLeftMilli[device]} ${this.#cluster.deviceModel[device]}`
      if (holdsPart(this.#cluster, shape, device) && !byLeft.has(key)) byLeft.set(key, device - start)
    }
    return [...byLeft.values()].map((device) => [device])
  }
}

function total(amounts: Int32Array | Float64Array): number {
  let sum = 0
  for (const amount of amounts) sum += amount
  return sum
}
