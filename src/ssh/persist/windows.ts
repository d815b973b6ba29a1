/**
 * Back-pressure of one direction of a channel, as in SSH (RFC 4254, section 5.2): the sender may have so many bytes under way,
 * and gets room again when the receiver's user has taken them.
 */

export const WINDOW_BYTES = 128 * 1024
/** What is sent in one go may be more than there is room for. */
const MOST_HELD_BYTES = WINDOW_BYTES + 1024 * 1024

/** Why a peer is cut off. */
export const UNBOUNDED = 'it sent more than its window allows'

export class OutgoingWindow {
  #roomBytes = WINDOW_BYTES

  get roomBytes(): number {
    return this.#roomBytes
  }

  /** Whether there is room for more. The bytes of this call go out in any case. */
  take(sizeBytes: number): boolean {
    this.#roomBytes -= sizeBytes
    return this.#roomBytes > 0
  }

  /** Whether there is room now where there was none. */
  give(sizeBytes: number): boolean {
    const wasFull = this.#roomBytes <= 0
    // No more than the window, whatever the peer grants.
    this.#roomBytes = Math.min(WINDOW_BYTES, this.#roomBytes + sizeBytes)
    return wasFull && this.#roomBytes > 0
  }
}

export class IncomingWindow {
  readonly #grant: (sizeBytes: number) => void
  #owedBytes = 0
  #heldBytes = 0

  constructor(grant: (sizeBytes: number) => void) {
    this.#grant = grant
  }

  /** False: the peer does not keep to its window. */
  received(sizeBytes: number): boolean {
    this.#heldBytes += sizeBytes
    return this.#heldBytes <= MOST_HELD_BYTES
  }

  /** Small amounts are granted together. */
  consumed(sizeBytes: number): void {
    this.#heldBytes -= sizeBytes
    this.#owedBytes += sizeBytes
    if (this.#owedBytes < WINDOW_BYTES / 4) return
    this.#grant(this.#owedBytes)
    this.#owedBytes = 0
  }
}
