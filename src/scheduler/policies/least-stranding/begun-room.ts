/** What shares will probably never use of the GPUs that they have begun to fill, and how much usable room they leave. */
import type { Cluster } from '../../model/cluster.ts'
import type { WorkloadMix } from '../../model/mix.ts'
import { WHOLE_MILLI } from '../../model/resources.ts'

/** As fractions of all GPUs: welcome room, and room per further level. */
const LEVELS = { whileAllStay: { welcome: 0.04, level: 0.02 }, whileSomeLeave: { welcome: 0.01, level: 0.01 } }
const MAX_LEVEL = 10
/** A level is left only when the room has shrunk by this part of a level more. */
const HYSTERESIS = 0.5

/**
 * A few percent of usable room on shared GPUs help each share to find a good partner; with much more, opening idle GPUs becomes
 * dearer. Once requests leave, room appears by itself, and less of it is welcome.
 */
export class BegunRoom {
  readonly #cluster: Cluster
  #waste!: ShareWaste
  #roomMilli = 0
  #level = 0

  /** Knows nothing until it has learnt. */
  constructor(cluster: Cluster) {
    this.#cluster = cluster
    cluster.watch(({ shape, host, devices }, isTake) => {
      if (shape.gpuCount !== 1 || shape.gpuMilli === WHOLE_MILLI) return
      const after = cluster.deviceLeftMilli[(cluster.deviceStart[host] as number) + (devices[0] as number)] as number
      const before = isTake ? after + shape.gpuMilli : after - shape.gpuMilli
      this.#roomMilli += this.#usable(after) - this.#usable(before)
    })
  }

  learn(waste: ShareWaste): void {
    this.#waste = waste
    this.#roomMilli = this.#cluster.deviceLeftMilli.reduce((sum, left) => sum + this.#usable(left), 0)
  }

  /** From 0 (no more than is welcome) to 10. */
  level(isLeaving: boolean): number {
    const { welcome, level } = isLeaving ? LEVELS.whileSomeLeave : LEVELS.whileAllStay
    const exact = (this.#roomMilli / Math.max(1, this.#cluster.totalGpuMilli) - welcome) / level
    if (exact >= this.#level + 1 || exact < this.#level - HYSTERESIS)
      this.#level = Math.min(MAX_LEVEL, Math.max(0, Math.floor(exact)))
    return this.#level
  }

  #usable(leftMilli: number): number {
    return leftMilli === 0 || leftMilli === WHOLE_MILLI ? 0 : leftMilli - this.#waste.of(leftMilli)
  }
}

const PATIENCE = 16
/** Amounts are looked up in steps of this size. */
const STEP_MILLI = 10
const STEPS = WHOLE_MILLI / STEP_MILLI

/**
 * A shared GPU is taken to see a few requests, to take the one after which the least is wasted, and so on until none fits. The number
 * of requests is its patience: with 1 it takes what comes, with very many it finds a perfect partner.
 */
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
