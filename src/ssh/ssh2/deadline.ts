/** A time limit for one phase of connecting, which stops while the user is asked. */
import type { Clock } from '../../base/clock.ts'

export class Deadline implements Disposable {
  readonly #clock: Clock
  readonly #onExpired: () => void
  #remainingMs: number
  #startedAtMs = 0
  #timer: Disposable | undefined
  #pauses = 0
  #isOver = false

  constructor(clock: Clock, limitMs: number, onExpired: () => void) {
    this.#clock = clock
    this.#remainingMs = limitMs
    this.#onExpired = onExpired
    this.#run()
  }

  /** Runs `work` with the time stopped; may be nested. */
  async whilePaused<T>(work: () => Promise<T>): Promise<T> {
    this.#pauses += 1
    if (this.#pauses === 1) this.#stop()
    try {
      return await work()
    } finally {
      this.#pauses -= 1
      if (this.#pauses === 0) this.#run()
    }
  }

  [Symbol.dispose](): void {
    this.#isOver = true
    this.#stop()
  }

  #run(): void {
    if (this.#isOver) return
    this.#startedAtMs = this.#clock.now()
    this.#timer = this.#clock.after(this.#remainingMs, () => {
      this.#isOver = true
      this.#onExpired()
    })
  }

  #stop(): void {
    if (this.#timer === undefined) return
    this.#timer[Symbol.dispose]()
    this.#timer = undefined
    this.#remainingMs = Math.max(0, this.#remainingMs - Math.max(0, this.#clock.now() - this.#startedAtMs))
  }
}
