/** How long hosts have been in use, which one is cleared for a request for several GPUs, and what an idle host is worth. */
import type { Cluster } from '../../model/cluster.ts'
import { WHOLE_MILLI } from '../../model/resources.ts'
import type { Shape } from '../../model/shape.ts'

/** Changes between two searches for the host: at least, and as a fraction of all hosts. */
const LEAST_CHANGES = 32
const CHANGES = 1 / 4
/** Another host replaces the cleared one only when it will probably be free in half the time, and this many changes sooner. */
const RELUCTANCE = 2
const LEAST_GAIN = 64
/** A shape that was not tried for this many changes, or as many as there are GPUs, does not wait any more. */
const LEAST_PATIENCE = 256

/** While a request waits for several idle GPUs on one host, the host that will probably be free first is cleared for it. */
export class Clearing {
  readonly #cluster: Cluster
  readonly #ages: HostAges
  /** Refused shapes, with the change at which they were last tried. */
  readonly #waiting = new Map<Shape, number>()
  #shape: Shape | undefined
  #host = -1
  #searchedAt = 0

  constructor(cluster: Cluster, ages: HostAges) {
    this.#cluster = cluster
    this.#ages = ages
  }

  /** Whether the shape should avoid the host. */
  isFrom(shape: Shape, host: number): boolean {
    return host === this.#host && shape.gpuCount < (this.#shape?.gpuCount ?? 0)
  }

  noteChoice(shape: Shape, isRefused: boolean): void {
    if (shape.gpuCount < 2) return
    if (isRefused) this.#waiting.set(shape, this.#cluster.changeCount)
    else this.#waiting.delete(shape)
  }

  refresh(): void {
    const { changeCount, hostCount } = this.#cluster
    if (this.#waiting.size === 0) this.#clear(-1, undefined)
    else if (changeCount - this.#searchedAt >= Math.max(LEAST_CHANGES, CHANGES * hostCount)) {
      this.#searchedAt = changeCount
      const shape = this.#largest()
      this.#clear(shape === undefined || !this.#ages.isKnown ? -1 : this.#soonest(shape), shape)
    }
  }

  #largest(): Shape | undefined {
    const { changeCount, deviceLeftMilli } = this.#cluster
    const patience = Math.max(LEAST_PATIENCE, deviceLeftMilli.length)
    let largest: Shape | undefined
    for (const [shape, triedAt] of this.#waiting)
      if (changeCount - triedAt > patience) this.#waiting.delete(shape)
      else if (shape.gpuCount > (largest?.gpuCount ?? 0)) largest = shape
    return largest
  }

  /** The host that will probably have enough idle GPUs first; the present one unless another is far better. */
  #soonest(shape: Shape): number {
    let best = -1
    let bestAge = Number.POSITIVE_INFINITY
    for (let host = 0; host < this.#cluster.hostCount; host++) {
      const age = this.#ageOfEnough(shape, host)
      if (age >= bestAge) continue
      bestAge = age
      best = host
    }
    const ownAge = this.#host < 0 ? Number.POSITIVE_INFINITY : this.#ageOfEnough(shape, this.#host)
    return ownAge < RELUCTANCE * bestAge + LEAST_GAIN ? this.#host : best
  }

  /** The age of the oldest tenant that has to leave, if the youngest do. Infinite: never enough. */
  #ageOfEnough({ gpuCount, takesModel, allowedOn }: Shape, host: number): number {
    const { deviceStart, deviceModel, isClosed } = this.#cluster
    const ages: number[] = []
    if (allowedOn[host] !== 1 || isClosed[host] === 1) return Number.POSITIVE_INFINITY
    for (let device = deviceStart[host] as number; device < (deviceStart[host + 1] as number); device++)
      if (takesModel[deviceModel[device] as number] === 1) ages.push(this.#ages.ageOf(device))
    if (ages.length < gpuCount) return Number.POSITIVE_INFINITY
    return ages.sort((one, other) => one - other)[gpuCount - 1] as number
  }

  #clear(host: number, shape: Shape | undefined): void {
    const before = this.#host
    const isForOther = shape?.gpuCount !== this.#shape?.gpuCount
    this.#host = host
    this.#shape = shape
    if (before >= 0 && (before !== host || isForOther)) this.#cluster.touch(before)
    if (host >= 0 && before !== host) this.#cluster.touch(host)
  }
}

const MILLI = { whileAllStay: 6.25, whileSomeLeave: 50, whileOnlyWideWait: 200 }
/** A refusal counts for this many changes of the cluster per GPU. */
const WIDE_COUNTS = 4
const NARROW_COUNTS = 1

/**
 * What an idle host is worth, per GPU: a request opens it only where it would strand more elsewhere. It is worth little while
 * nothing leaves; more once requests leave, as those for many GPUs may wait as long as the oldest tenant stays; and most while
 * only such requests wait.
 */
export class IdleHostPrice {
  readonly #cluster: Cluster
  #isLeaving = false
  #wideRefusedAt = Number.NEGATIVE_INFINITY
  #narrowRefusedAt = Number.NEGATIVE_INFINITY

  constructor(cluster: Cluster) {
    this.#cluster = cluster
    cluster.watch((_, isTake) => {
      this.#isLeaving ||= !isTake
    })
  }

  noteChoice({ gpuCount }: Shape, isRefused: boolean): void {
    if (!isRefused) return
    if (gpuCount > 1) this.#wideRefusedAt = this.#cluster.changeCount
    else if (gpuCount === 1) this.#narrowRefusedAt = this.#cluster.changeCount
  }

  /** Per GPU of the host. */
  get milli(): number {
    if (!this.#isLeaving) return MILLI.whileAllStay
    const { changeCount, deviceLeftMilli } = this.#cluster
    const isWideWaiting = changeCount - this.#wideRefusedAt <= WIDE_COUNTS * deviceLeftMilli.length
    const isNarrowWaiting = changeCount - this.#narrowRefusedAt <= NARROW_COUNTS * deviceLeftMilli.length
    return isWideWaiting && !isNarrowWaiting ? MILLI.whileOnlyWideWait : MILLI.whileSomeLeave
  }
}

const PER_DOUBLING = 2
/** The first doubling, in changes as a fraction of all GPUs. */
const UNIT = 1 / 12
const IDLE = -1

/**
 * Most requests leave soon, but those that stayed long will probably stay longer: a host with an old tenant will not be empty soon.
 * Time counts in changes of the cluster, from the first that leaves.
 */
export class HostAges {
  readonly #cluster: Cluster
  /** By device: the change that put it into use. */
  readonly #begunAt: Float64Array
  readonly #levels: Int16Array
  readonly #unit: number
  #releases = 0
  #next = 0

  constructor(cluster: Cluster) {
    this.#cluster = cluster
    this.#begunAt = Float64Array.from(cluster.deviceLeftMilli, (left) => (left === WHOLE_MILLI ? IDLE : 0))
    this.#levels = new Int16Array(cluster.hostCount)
    this.#unit = Math.max(1, UNIT * cluster.deviceLeftMilli.length)
    cluster.watch(({ host, devices }, isTake) => {
      if (devices.length === 0) return
      const start = cluster.deviceStart[host] as number
      for (const device of devices.map((one) => start + one))
        if (cluster.deviceLeftMilli[device] === WHOLE_MILLI) this.#begunAt[device] = IDLE
        else if (isTake && this.#begunAt[device] === IDLE) this.#begunAt[device] = cluster.changeCount
      if (!isTake) this.#releases++
      this.#levels[host] = this.#levelOf(host)
    })
  }

  /** Whether enough requests have left for ages to mean something. */
  get isKnown(): boolean {
    return this.#releases > this.#cluster.hostCount
  }

  /** Grows by two with each doubling of the oldest tenant's age; 0: no tenant. */
  level(host: number): number {
    return this.#levels[host] as number
  }

  /** Of a host with a tenant from the very beginning. */
  get highestLevel(): number {
    return this.isKnown ? this.#levelAfter(this.#cluster.changeCount + 1) : 0
  }

  /** In changes; 0: it is idle. */
  ageOf(device: number): number {
    const begunAt = this.#begunAt[device] as number
    return begunAt === IDLE ? 0 : this.#cluster.changeCount - begunAt + 1
  }

  /** Renews one more host each time. */
  refresh(): void {
    if (!this.isKnown) return
    this.#next = (this.#next + 1) % this.#cluster.hostCount
    const level = this.#levelOf(this.#next)
    if (level === this.#levels[this.#next]) return
    this.#levels[this.#next] = level
    this.#cluster.touch(this.#next)
  }

  #levelOf(host: number): number {
    if (!this.isKnown) return 0
    const { deviceStart } = this.#cluster
    let oldest = 0
    for (let device = deviceStart[host] as number; device < (deviceStart[host + 1] as number); device++)
      oldest = Math.max(oldest, this.ageOf(device))
    return this.#levelAfter(oldest)
  }

  #levelAfter(age: number): number {
    return Math.floor(PER_DOUBLING * Math.log2(1 + age / this.#unit))
  }
}
