/** How long a console stays detached. It uses a monotonic clock, so setting the system's clock changes nothing. */
import { type Clock, systemClock } from '../../base/clock.ts'

export class DetachedTime implements Disposable {
  /** Wall-clock time since the epoch, for display. */
  readonly sinceMs: number
  readonly #clock: Clock
  readonly #passedMs: () => number
  readonly #untilMs: number
  readonly #onEnd: () => void
  #timer: Disposable | undefined

  /** `passedMs`: a monotonic clock with any origin; on Linux it stops while the machine sleeps. */
  constructor(forMs: number, onEnd: () => void, clock: Clock = systemClock, passedMs = () => performance.now()) {
    this.#clock = clock
    this.#passedMs = passedMs
    this.#onEnd = onEnd
    this.sinceMs = clock.now()
    this.#untilMs = passedMs() + forMs
    this.#watch()
  }

  /** Since the epoch, by the clock as it is set now. */
  get endsAtMs(): number {
    return this.#clock.now() + Math.max(0, this.#leftMs)
  }

  get #leftMs(): number {
    return this.#untilMs - this.#passedMs()
  }

  /** Checks again, as a timer may fire a little early, and the longest is 24 days. */
  #watch(): void {
    if (this.#leftMs <= 0) return this.#onEnd()
    this.#timer = this.#clock.after(Math.ceil(this.#leftMs), () => this.#watch())
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]()
  }
}
