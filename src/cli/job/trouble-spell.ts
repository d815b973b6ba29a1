/** A trouble that lasts is met again and again: it is told once, and once more when it comes back after all went well. */
export class TroubleSpell {
  readonly #overAfterMs: number
  #isTold = false

  /** `overAfterMs`: when it has not been met for so long, it is over. */
  constructor(overAfterMs: number) {
    this.#overAfterMs = overAfterMs
  }

  /** Whether it is to be told. `wellSinceMs`: since when all went well before it was met now. */
  meet(wellSinceMs: number, nowMs: number): boolean {
    const isNews = !this.#isTold || nowMs - wellSinceMs >= this.#overAfterMs
    this.#isTold = true
    return isNews
  }
}
