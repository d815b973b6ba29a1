/**
 * When the driver plans again although nothing happened on its hosts: after what others wrote to the queue, as often as plans are
 * cheap, so that many small writes do not keep it busy with planning; and now and then anyway.
 */
import { hasPassed } from '../../base/clock.ts'

/** Such plans take at most a fifth of the driver's time. */
const SHARE = 5

export class PlanPace {
  readonly #mostMs: number
  #hasNews = false
  #plannedMs = 0
  #tookMs = 0

  /** `mostMs`: the longest time between two plans. */
  constructor(mostMs: number) {
    this.#mostMs = mostMs
  }

  /** Another program wrote to the queue. */
  noteNews(): void {
    this.#hasNews = true
  }

  notePlan(fromMs: number, toMs: number): void {
    this.#hasNews = false
    this.#plannedMs = fromMs
    this.#tookMs = Math.max(0, toMs - fromMs)
  }

  isDue(nowMs: number): boolean {
    const restMs = this.#hasNews ? Math.min(this.#mostMs, this.#tookMs * SHARE) : this.#mostMs
    return hasPassed(this.#plannedMs, restMs, nowMs)
  }
}
