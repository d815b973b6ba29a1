const EMPTY = new Uint8Array(0)

/** Chunks of bytes that wait, in order, up to a limit; taken without copying. */
export class ByteQueue {
  readonly #limitBytes: number
  #chunks: Uint8Array[] = []
  /** Chunks before this one are taken already. */
  #head = 0
  #bytes = 0

  constructor(limitBytes = Number.POSITIVE_INFINITY) {
    this.#limitBytes = limitBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  /** False: there is no room, and nothing was taken. The bytes are kept by reference. */
  push(chunk: Uint8Array): boolean {
    if (this.#bytes + chunk.length > this.#limitBytes) return false
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    return true
  }

  /** The next bytes, at most to the end of a chunk; undefined when there are none. */
  take(most = Number.POSITIVE_INFINITY): Uint8Array | undefined {
    const chunk = this.#chunks[this.#head]
    if (!chunk) return undefined
    if (chunk.length > most) {
      this.#chunks[this.#head] = chunk.subarray(most)
      this.#bytes -= most
      return chunk.subarray(0, most)
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
