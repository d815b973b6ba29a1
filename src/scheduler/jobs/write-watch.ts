/**
 * Finds a write to the queue soon after its file system reported it. SQLite appends to its log, syncs that, and only then shows
 * the write to readers, which is not reported. So after each report it looks again and again, less and less often.
 */
import { type Clock, hasPassed } from '../../base/clock.ts'

/** Syncing a log seldom takes longer. */
const LOOKING_MS = 50
const LEAST_MS = 1

export class WriteWatch implements Disposable {
  readonly #clock: Clock
  readonly #findNews: () => boolean
  #reportedMs = 0
  #next: Disposable | undefined

  /** `findNews`: acts on what is new, and returns whether anything was. */
  constructor(clock: Clock, findNews: () => boolean) {
    this.#clock = clock
    this.#findNews = findNews
  }

  /** A write was reported. */
  note(): void {
    this.#reportedMs = this.#clock.now()
    this.#look()
  }

  [Symbol.dispose](): void {
    this.#next?.[Symbol.dispose]()
  }

  #look(): void {
    this.#next?.[Symbol.dispose]()
    this.#next = undefined
    if (this.#findNews()) return
    const nowMs = this.#clock.now()
    if (hasPassed(this.#reportedMs, LOOKING_MS, nowMs)) return
    const waitMs = Math.max(LEAST_MS, (nowMs - this.#reportedMs) / 2)
    this.#next = this.#clock.after(waitMs, () => this.#look())
  }
}
