/** When the driver acts again: the pause between two ticks, and how soon it plans again. */
import { type Clock, hasPassed } from '../../base/clock.ts'

export class Pause {
  readonly #clock: Clock
  /** Something has come since `reset`. */
  #isAwake = false
  #isResting = false
  #resume = () => {}

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get isAwake(): boolean {
    return this.#isAwake
  }

  /** What comes from now on ends the next pause. */
  reset(): void {
    this.#isAwake = false
  }

  wake(): void {
    if (this.#isAwake) return
    this.#isAwake = true
    if (!this.#isResting) this.#resume()
  }

  /** Ends the first part of the pause as well. */
  end(): void {
    this.#isAwake = true
    this.#resume()
  }

  async take(restMs: number, thenMs: number): Promise<void> {
    this.#isResting = true
    await this.#wait(restMs)
    this.#isResting = false
    if (!this.#isAwake) await this.#wait(thenMs)
  }

  async #wait(forMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#resume = resolve
    using _ = this.#clock.after(forMs, resolve)
    await promise
  }
}

/** Plans for others' writes take at most a fifth of the driver's time, so that many small writes do not keep it busy. */
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
