/** The pause between two looks at the queue: what comes in its first part is seen together, what comes later ends it. */
import type { Clock } from '../../base/clock.ts'

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

  /** Ends its first part, too. */
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
