/** What is requested, and how often: all that a policy may know of the future. */
import { getOrMake } from '../../base/collections.ts'
import type { ResourceRequest } from './resources.ts'
import { shapeKey } from './shape.ts'

export type MixEntry = { readonly request: ResourceRequest; readonly count: number }

export class WorkloadMix {
  readonly #counts = new Map<string, { readonly request: ResourceRequest; count: number }>()
  #total = 0

  static of(requests: Iterable<ResourceRequest>): WorkloadMix {
    const mix = new WorkloadMix()
    for (const request of requests) mix.add(request)
    return mix
  }

  add(request: ResourceRequest): void {
    getOrMake(this.#counts, shapeKey(request), () => ({ request, count: 0 })).count++
    this.#total++
  }

  get total(): number {
    return this.#total
  }

  /** In order of first appearance. */
  entries(): readonly MixEntry[] {
    return [...this.#counts.values()]
  }
}
