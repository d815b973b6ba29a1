/**
 * How much of a file may be under way to one host: as much as its link takes in about a second, so that orders and the
 * connection's own questions on the same link never wait long behind it. It grows while answers come soon after what the
 * link needs in any case, and shrinks as soon as they queue.
 */
import type { Clock } from '../../base/clock.ts'
import { UNIT_BYTES } from './remote-script.ts'

const SEGMENT_BYTES = 1024 * 1024
const LEAST_BYTES = 2 * UNIT_BYTES
const MOST_BYTES = 5 * SEGMENT_BYTES
/** Answers that come so much later than the soonest one: more would only queue. */
const GROW_MS = 200
const SHRINK_MS = 800

/** What is asked of the host at once, until it answers. */
export type Flight = { readonly sentAtMs: number; readonly window: number; readonly isFull: boolean }

export class Pace {
  readonly #clock: Clock
  #windowBytes = LEAST_BYTES
  /** Counts the changes of the window: what was sent under an earlier one says nothing about this one. */
  #window = 0
  #soonestMs = Number.POSITIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** With one order. */
  get segmentBytes(): number {
    const bytes = Math.min(SEGMENT_BYTES, this.#windowBytes / 4)
    return Math.max(UNIT_BYTES, bytes - (bytes % UNIT_BYTES))
  }

  get windowBytes(): number {
    return this.#windowBytes
  }

  /** `underWayBytes`: with what is sent now. Where others keep it small, answers that come soon say nothing of the link. */
  send(underWayBytes: number): Flight {
    return { sentAtMs: this.#clock.now(), window: this.#window, isFull: underWayBytes * 2 > this.#windowBytes }
  }

  handleAnswer({ sentAtMs, window, isFull }: Flight): void {
    const tookMs = this.#clock.now() - sentAtMs
    // The first answer says how long one takes at least, and nothing of how they queue.
    const isFirst = this.#soonestMs === Number.POSITIVE_INFINITY
    this.#soonestMs = Math.min(this.#soonestMs, tookMs)
    if (isFirst || window !== this.#window) return
    const queuedMs = tookMs - this.#soonestMs
    if (isFull && queuedMs < GROW_MS) this.#resize(this.#windowBytes * 2)
    else if (queuedMs > SHRINK_MS) this.#resize(this.#windowBytes / 2)
  }

  #resize(bytes: number): void {
    const resized = Math.min(MOST_BYTES, Math.max(LEAST_BYTES, bytes))
    if (resized === this.#windowBytes) return
    this.#windowBytes = resized
    this.#window += 1
  }
}
