import type { Clock } from '../../../src/base/clock.ts'

/** Time that stands still until a test moves it. */
export class ManualClock implements Clock {
  #nowMs = 1_000_000
  readonly #timers = new Set<{ atMs: number; readonly callback: () => void }>()

  now(): number {
    return this.#nowMs
  }

  after(delayMs: number, callback: () => void): Disposable {
    const timer = { atMs: this.#nowMs + delayMs, callback }
    this.#timers.add(timer)
    return { [Symbol.dispose]: () => this.#timers.delete(timer) }
  }

  get timerCount(): number {
    return this.#timers.size
  }

  /** Sets the clock and leaves timers as they are: they count time that passes. */
  set(byMs: number): void {
    this.#nowMs += byMs
    const timers = [...this.#timers]
    this.#timers.clear()
    for (const timer of timers) {
      timer.atMs += byMs
      this.#timers.add(timer)
    }
  }

  advance(byMs: number): void {
    const untilMs = this.#nowMs + byMs
    for (;;) {
      const due = [...this.#timers].filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0]
      if (due === undefined) break
      this.#timers.delete(due)
      this.#nowMs = Math.max(this.#nowMs, due.atMs)
      due.callback()
    }
    this.#nowMs = untilMs
  }
}
