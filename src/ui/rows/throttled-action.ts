import { type Clock, remainingMs } from '../../base/clock.ts'

export type ThrottledActionOptions = {
  readonly clock: Clock
  /** Milliseconds between two runs. */
  readonly everyMs: number
  /** Milliseconds to wait at least, so that what comes together runs once; 0 unless given. */
  readonly gatherMs?: number
}

/** Runs an action soon, but not more often than once in an interval. */
export class ThrottledAction implements Disposable {
  readonly #options: ThrottledActionOptions
  readonly #action: () => void
  #timer: Disposable | undefined
  #lastMs = Number.NEGATIVE_INFINITY

  constructor(options: ThrottledActionOptions, action: () => void) {
    this.#options = options
    this.#action = action
  }

  get isWaiting(): boolean {
    return this.#timer !== undefined
  }

  soon(): void {
    if (this.#timer) return
    const { clock, everyMs, gatherMs = 0 } = this.#options
    this.#timer = clock.after(Math.max(gatherMs, remainingMs(this.#lastMs, everyMs, clock.now())), () => this.now())
  }

  /** At once if the interval has passed. */
  nowOrSoon(): void {
    const { clock, everyMs } = this.#options
    if (remainingMs(this.#lastMs, everyMs, clock.now()) > 0) this.soon()
    else this.now()
  }

  now(): void {
    this[Symbol.dispose]()
    this.#lastMs = this.#options.clock.now()
    this.#action()
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]()
    this.#timer = undefined
  }
}
