/** What is free by host as Ray's scheduler sees it (sums, not devices), and its LeastResourceScorer: the emptiest host wins. */
import type { Cluster } from '../model/cluster.ts'
import type { Shape } from '../model/shape.ts'

type Amounts = readonly [cpuMilli: number, memoryBytes: number, gpuMilli: number]

export class HostSums {
  readonly #cluster: Cluster
  readonly #left: Amounts[]

  constructor(cluster: Cluster) {
    this.#cluster = cluster
    this.#left = cluster.hosts.map((_, host) => [
      cluster.cpuLeftMilli[host] as number,
      cluster.memoryLeftBytes[host] as number,
      cluster.gpuLeftMilli[host] as number,
    ])
  }

  /** The host with the highest score, the lowest number of equals. */
  best(shape: Shape, allowed: (host: number) => boolean): number | undefined {
    return this.#best([shape], allowed)
  }

  /** All of them as one request. */
  bestForAll(shapes: readonly Shape[]): number | undefined {
    return this.#best(shapes, () => true)
  }

  take(shape: Shape, host: number): boolean {
    if (this.#score([shape], host) === undefined) return false
    const [cpu, memory, gpu] = this.#left[host] as Amounts
    const [askedCpu, askedMemory, askedGpu] = sumOf([shape])
    this.#left[host] = [cpu - askedCpu, memory - askedMemory, gpu - askedGpu]
    return true
  }

  #best(shapes: readonly Shape[], allowed: (host: number) => boolean): number | undefined {
    let best: number | undefined
    let bestScore = Number.NEGATIVE_INFINITY
    for (let host = 0; host < this.#left.length; host++) {
      const score = allowed(host) ? this.#score(shapes, host) : undefined
      if (score === undefined || score <= bestScore) continue
      best = host
      bestScore = score
    }
    return best
  }

  #score(shapes: readonly Shape[], host: number): number | undefined {
    if (this.#cluster.isClosed[host] === 1 || shapes.some(({ allowedOn }) => allowedOn[host] !== 1)) return undefined
    const left = this.#left[host] as Amounts
    let score = 0
    for (const [index, asked] of sumOf(shapes).entries()) {
      const available = left[index] as number
      if (available < asked) return undefined
      if (asked > 0) score += (available - asked) / available
    }
    return score
  }
}

function sumOf(shapes: readonly Shape[]): Amounts {
  let [cpu, memory, gpu] = [0, 0, 0]
  for (const { cpuMilli, memoryBytes, gpuCount, gpuMilli } of shapes) {
    cpu += cpuMilli
    memory += memoryBytes
    gpu += gpuCount * gpuMilli
  }
  return [cpu, memory, gpu]
}
