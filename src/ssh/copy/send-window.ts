/**
 * How much of a file may be in flight to one host: what its link takes in about a second, so that orders and keep-alives on the same
 * link never wait long. It doubles while answers are quick compared with the quickest one, and halves when they queue.
 */
import type { Clock } from '../../base/clock.ts'
import { UNIT_BYTES } from './remote-script.ts'

const SEGMENT_BYTES = 1024 * 1024
const LEAST_BYTES = 2 * UNIT_BYTES
const MOST_BYTES = 5 * SEGMENT_BYTES
/** How much later than the quickest answer: more in flight would only queue. */
const GROW_MS = 200
const SHRINK_MS = 800

/** One segment in flight. */
export type Flight = { readonly sentAtMs: number; readonly window: number; readonly isFull: boolean }

export class SendWindow {
  readonly #clock: Clock
  #bytes = LEAST_BYTES
  /** Counts resizes: what was sent under an earlier size says nothing about this one. */
  #size = 0
  #quickestMs = Number.POSITIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** For one order. */
  get segmentBytes(): number {
    const bytes = Math.min(SEGMENT_BYTES, this.#bytes / 4)
    return Math.max(UNIT_BYTES, bytes - (bytes % UNIT_BYTES))
  }

  get bytes(): number {
    return this.#bytes
  }

  /** `inFlightBytes`: with this segment. If the sender keeps it small, quick answers say nothing about the link. */
  send(inFlightBytes: number): Flight {
    return { sentAtMs: this.#clock.now(), window: this.#size, isFull: inFlightBytes * 2 > this.#bytes }
  }

  handleAnswer({ sentAtMs, window, isFull }: Flight): void {
    const tookMs = this.#clock.now() - sentAtMs
    // The first answer tells the round trip, and nothing about the queue.
    const isFirst = this.#quickestMs === Number.POSITIVE_INFINITY
    this.#quickestMs = Math.min(this.#quickestMs, tookMs)
    if (isFirst || window !== this.#size) return
    const queuedMs = tookMs - this.#quickestMs
    if (isFull && queuedMs < GROW_MS) this.#resize(this.#bytes * 2)
    else if (queuedMs > SHRINK_MS) this.#resize(this.#bytes / 2)
  }

  #resize(bytes: number): void {
    const resized = Math.min(MOST_BYTES, Math.max(LEAST_BYTES, bytes))
    if (resized === this.#bytes) return
    this.#bytes = resized
    this.#size += 1
  }
}
