/**
 * How much of a host's free GPUs is stranded, in milli: because CPU or memory would run out first, averaged over the GPU requests
 * of the workload, each filling the host alone; and because too few GPUs are idle for requests for several.
 */
import type { WorkloadMix } from '../../model/mix.ts'
import { WHOLE_MILLI } from '../../model/resources.ts'

export class HostStranding {
  readonly #cpu: Shortage
  readonly #memory: Shortage
  /** By number of GPUs: the fraction of GPU requests for several, but not more than these. */
  readonly #severalUpTo: Float64Array
  /** By number of GPUs and of idle ones (`gpus * width + idle`): average milli-GPU that requests for several could use. */
  readonly #usable: Float64Array
  readonly #width: number

  constructor(mix: WorkloadMix, maxGpus: number) {
    const entries = mix.entries().filter(({ request }) => request.gpuCount > 0)
    const total = entries.reduce((sum, { count }) => sum + count, 0)
    const rates = (amountOf: (entry: (typeof entries)[number]) => number) =>
      new Shortage(
        entries.map((entry) => ({
          milliPerAmount: (entry.request.gpuCount * entry.request.gpuMilli) / amountOf(entry),
          part: entry.count / total,
        })),
      )
    this.#cpu = rates(({ request }) => request.cpuMilli)
    this.#memory = rates(({ request }) => request.memoryBytes)
    this.#width = maxGpus + 1
    this.#severalUpTo = new Float64Array(this.#width)
    this.#usable = new Float64Array(this.#width * this.#width)
    for (const { request, count } of entries) {
      const { gpuCount } = request
      for (let gpus = gpuCount; gpuCount > 1 && gpus < this.#width; gpus++) {
        this.#severalUpTo[gpus] = (this.#severalUpTo[gpus] as number) + count / total
        for (let idle = 0; idle <= gpus; idle++) {
          const at = gpus * this.#width + idle
          const used = Math.floor(idle / gpuCount) * gpuCount * WHOLE_MILLI
          this.#usable[at] = (this.#usable[at] as number) + (used * count) / total
        }
      }
    }
  }

  /** Of the requests for several GPUs, the part that a host with this many GPUs can hold. */
  partHeld(gpus: number): number {
    const several = this.#severalUpTo.at(-1) as number
    return several === 0 ? 0 : (this.#severalUpTo[gpus] as number) / several
  }

  ofShortage(gpuLeftMilli: number, cpuLeftMilli: number, memoryLeftBytes: number): number {
    if (gpuLeftMilli === 0) return 0
    return Math.max(this.#cpu.strands(gpuLeftMilli, cpuLeftMilli), this.#memory.strands(gpuLeftMilli, memoryLeftBytes))
  }

  /** Because requests for several GPUs do not fit. */
  ofScatter(gpus: number, idle: number, gpuLeftMilli: number): number {
    return gpuLeftMilli * (this.#severalUpTo[gpus] as number) - (this.#usable[gpus * this.#width + idle] as number)
  }
}

type Rate = { readonly milliPerAmount: number; readonly part: number }

/** Σ part · max(0, GPU left − amount left · milliPerAmount), by one search in sorted sums. */
class Shortage {
  readonly #rates: Float64Array
  /** Of the first n rates: the sum of their parts, and of part × rate. */
  readonly #parts: Float64Array
  readonly #products: Float64Array

  constructor(rates: readonly Rate[]) {
    // What needs none of it never lacks it.
    const sorted = rates.filter(({ milliPerAmount }) => Number.isFinite(milliPerAmount))
    sorted.sort((one, other) => one.milliPerAmount - other.milliPerAmount)
    this.#rates = Float64Array.from(sorted, ({ milliPerAmount }) => milliPerAmount)
    this.#parts = new Float64Array(sorted.length + 1)
    this.#products = new Float64Array(sorted.length + 1)
    sorted.forEach(({ milliPerAmount, part }, index) => {
      this.#parts[index + 1] = (this.#parts[index] as number) + part
      this.#products[index + 1] = (this.#products[index] as number) + part * milliPerAmount
    })
  }

  strands(gpuLeftMilli: number, amountLeft: number): number {
    const rates = this.#rates
    let low = 0
    let high = rates.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((rates[middle] as number) * amountLeft < gpuLeftMilli) low = middle + 1
      else high = middle
    }
    return gpuLeftMilli * (this.#parts[low] as number) - amountLeft * (this.#products[low] as number)
  }
}
