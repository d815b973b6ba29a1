/** A budget that refills with time: so much at once, so much a second. */
export class RateLimit {
  readonly #burst: number
  readonly #perSecond: number
  readonly #now: () => number
  #left: number
  #at: number

  /** `now` in milliseconds. */
  constructor(options: { readonly burst: number; readonly perSecond: number; readonly now: () => number }) {
    this.#burst = options.burst
    this.#perSecond = options.perSecond
    this.#now = options.now
    this.#left = options.burst
    this.#at = options.now()
  }

  /** Takes `amount` if there is that much, else nothing. */
  take(amount = 1): boolean {
    const now = this.#now()
    // A clock that was set back refills nothing.
    this.#left = Math.min(this.#burst, this.#left + (Math.max(0, now - this.#at) / 1000) * this.#perSecond)
    this.#at = now
    if (this.#left < amount) return false
    this.#left -= amount
    return true
  }
}
