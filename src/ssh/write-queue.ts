/** Typed bytes that wait for a full channel: bounded, in order, each write whole or not at all, so that no keystroke is split. */

export const WRITE_QUEUE_LIMIT_BYTES = 1024 * 1024

export class WriteQueue {
  #chunks: Uint8Array[] = []
  #head = 0
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  /** False: there is no room, and nothing was taken. The bytes are kept by reference. */
  offer(bytes: Uint8Array): boolean {
    if (this.#bytes + bytes.length > WRITE_QUEUE_LIMIT_BYTES) return false
    this.#chunks.push(bytes)
    this.#bytes += bytes.length
    return true
  }

  /** Hands chunks to `write` until it returns false (that chunk counts as taken); true when nothing waits any more. */
  flush(write: (bytes: Uint8Array) => boolean): boolean {
    while (this.#head < this.#chunks.length) {
      const chunk = this.#chunks[this.#head++] as Uint8Array
      this.#bytes -= chunk.length
      if (!write(chunk)) {
        this.#compact()
        return false
      }
    }
    this.#compact()
    return true
  }

  /** Forgets what waits and says how much that was. */
  clear(): number {
    const bytes = this.#bytes
    this.#chunks = []
    this.#head = 0
    this.#bytes = 0
    return bytes
  }

  #compact(): void {
    if (this.#head === 0) return
    this.#chunks = this.#chunks.slice(this.#head)
    this.#head = 0
  }
}
