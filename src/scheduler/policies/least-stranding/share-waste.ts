/**
 * What will probably never be used of a GPU that shares have begun to fill. A GPU with some amount left sees a few requests,
 * takes the one after which the least is wasted, and so on until none fits. The number of requests is its patience: with 1 it
 * takes what comes, with very many it finds a perfect partner.
 */
import type { WorkloadMix } from '../../model/mix.ts'
import { WHOLE_MILLI } from '../../model/resources.ts'

const PATIENCE = 16
/** Amounts are looked up in steps of this size. */
const STEP_MILLI = 10
const STEPS = WHOLE_MILLI / STEP_MILLI

export class ShareWaste {
  readonly #wasteMilli = new Float64Array(STEPS + 1)

  constructor(mix: WorkloadMix) {
    const counts = new Map<number, number>()
    let total = 0
    for (const { request, count } of mix.entries()) {
      if (request.gpuCount !== 1 || request.gpuMilli === WHOLE_MILLI) continue
      const steps = Math.ceil(request.gpuMilli / STEP_MILLI)
      counts.set(steps, (counts.get(steps) ?? 0) + count)
      total += count
    }
    const shares = [...counts].map(([steps, count]) => ({ steps, part: count / total }))
    for (let left = 0; left <= STEPS; left++) this.#wasteMilli[left] = this.#expect(left, shares)
  }

  /** In milli, of a GPU with this much left. */
  of(leftMilli: number): number {
    return this.#wasteMilli[Math.floor(leftMilli / STEP_MILLI)] as number
  }

  #expect(left: number, shares: readonly { readonly steps: number; readonly part: number }[]): number {
    const choices = shares
      .filter(({ steps }) => steps <= left)
      .map(({ steps, part }) => ({ waste: this.#wasteMilli[left - steps] as number, part }))
      .sort((one, other) => one.waste - other.waste)
    // The best of the requests seen is this choice or a worse one with probability `worse ** PATIENCE`.
    let expected = 0
    let worse = 1
    for (const { waste, part } of choices) {
      const next = Math.max(0, worse - part)
      expected += (worse ** PATIENCE - next ** PATIENCE) * waste
      worse = next
    }
    expected += worse ** PATIENCE * left * STEP_MILLI
    return Math.min(expected, left * STEP_MILLI)
  }
}
