/** Empty hosts of one kind (CPU, memory, GPU models in order, nothing custom) are interchangeable. */
import type { Cluster } from '../model/cluster.ts'
import { WHOLE_MILLI } from '../model/resources.ts'

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
