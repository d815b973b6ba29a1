/**
 * How long hosts have been in use. Most requests leave soon, but those that stayed long will probably stay longer and hold most
 * GPUs: a host with an old tenant will not be empty soon, one with young tenants may. Time counts in changes of the cluster, from
 * the first that leaves.
 */
import type { Cluster } from '../../model/cluster.ts'
import { WHOLE_MILLI } from '../../model/resources.ts'

const PER_DOUBLING = 2
/** The first doubling, in changes as a fraction of all GPUs. */
const UNIT = 1 / 12
const IDLE = -1

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
      for (const device of devices) this.#note(start + device, isTake)
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

  #note(device: number, isTake: boolean): void {
    if (this.#cluster.deviceLeftMilli[device] === WHOLE_MILLI) this.#begunAt[device] = IDLE
    else if (isTake && this.#begunAt[device] === IDLE) this.#begunAt[device] = this.#cluster.changeCount
  }

  #levelOf(host: number): number {
    if (!this.isKnown) return 0
    const { deviceStart } = this.#cluster
    let oldest = 0
    for (let device = deviceStart[host] as number; device < (deviceStart[host + 1] as number); device++)
      oldest = Math.max(oldest, this.ageOf(device))
    return Math.floor(PER_DOUBLING * Math.log2(1 + oldest / this.#unit))
  }
}
