/** A clock that stands still until a test moves it. */
import type { Clock } from '../../../src/base/clock.ts'

export class ManualClock implements Clock {
  #now = 1_000_000
  #timers: { at: number; callback: () => void }[] = []

  now(): number {
    return this.#now
  }

  after(delayMs: number, callback: () => void): Disposable {
    const timer = { at: this.#now + delayMs, callback }
    this.#timers.push(timer)
    return {
      [Symbol.dispose]: () => {
        this.#timers = this.#timers.filter((other) => other !== timer)
      },
    }
  }

  /** Moves on, calling back what is due in order. */
  advance(byMs: number): void {
    const end = this.#now + byMs
    for (;;) {
      const due = this.#timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0]
      if (!due) break
      this.#timers = this.#timers.filter((other) => other !== due)
      this.#now = Math.max(this.#now, due.at)
      due.callback()
    }
    this.#now = end
  }

  get pending(): number {
    return this.#timers.length
  }
}
