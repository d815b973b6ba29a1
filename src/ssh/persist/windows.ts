/**
 * Back-pressure of one direction of one channel, as SSH's own windows do it (RFC 4254, section 5.2): the sender may have
 * so many bytes under way, and gets room again when the receiver's user has taken them. A slow reader holds back its own
 * channel alone, and neither side buffers more than the window and one read.
 */

export const WINDOW_BYTES = 128 * 1024

export class SendWindow {
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
    this.#roomBytes += sizeBytes
    return wasFull && this.#roomBytes > 0
  }
}

export class ReceiveWindow {
  readonly #grant: (sizeBytes: number) => void
  #owedBytes = 0

  constructor(grant: (sizeBytes: number) => void) {
    this.#grant = grant
  }

  /** Small amounts are granted together. */
  consumed(sizeBytes: number): void {
    this.#owedBytes += sizeBytes
    if (this.#owedBytes < WINDOW_BYTES / 4) return
    this.#grant(this.#owedBytes)
    this.#owedBytes = 0
  }
}
