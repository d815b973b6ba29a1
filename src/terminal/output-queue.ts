/** Chunks that wait to be parsed, taken in slices without copying. */
const EMPTY = new Uint8Array(0)

export class OutputQueue {
  #chunks: Uint8Array[] = []
  /** Chunks before this one are taken already. */
  #head = 0
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  push(chunk: Uint8Array): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
  }

  /** The next bytes, at most `limit` and at most to the end of a chunk; undefined when there are none. */
  take(limit: number): Uint8Array | undefined {
    const chunk = this.#chunks[this.#head]
    if (!chunk) return undefined
    if (chunk.length > limit) {
      this.#chunks[this.#head] = chunk.subarray(limit)
      this.#bytes -= limit
      return chunk.subarray(0, limit)
    }
    this.#chunks[this.#head] = EMPTY
    this.#head++
    if (this.#head === this.#chunks.length || this.#head > 256) {
      this.#chunks.splice(0, this.#head)
      this.#head = 0
    }
    this.#bytes -= chunk.length
    return chunk
  }

  takeAll(): Uint8Array {
    const all = Buffer.concat(this.#chunks.slice(this.#head))
    this.#chunks = []
    this.#head = 0
    this.#bytes = 0
    return all
  }
}
