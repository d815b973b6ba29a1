/**
 * Bytes on their way into a pseudo-terminal whose program may not read. It never blocks: libuv would (it takes the
 * terminal's own end for a blocking file), and would then wait for ever for a program that waits for us to read.
 */
import { writeSync } from 'node:fs'

export type PtyWriterOptions = {
  /** Non-blocking. */
  readonly fileDescriptor: number
  /** The descriptor is closed, and may soon be another file's. */
  isClosed(): boolean
  /** All that waited was taken. */
  onDrain(): void
}

/** There is no event for 'can be written' in Node: it is tried again, soon at first, then more calmly. */
const FIRST_RETRY_MS = 2
const LAST_RETRY_MS = 50

export class PtyWriter {
  readonly #options: PtyWriterOptions
  #waiting: Uint8Array[] = []
  #retryMs = FIRST_RETRY_MS

  constructor(options: PtyWriterOptions) {
    this.#options = options
  }

  /** False: the program does not read; the bytes wait for it. */
  write(bytes: Uint8Array): boolean {
    if (this.#waiting.length > 0) {
      this.#waiting.push(bytes)
      return false
    }
    const rest = this.#writeSome(bytes)
    if (rest.length === 0) return true
    this.#waiting.push(rest)
    this.#retryLater()
    return false
  }

  #retryLater(): void {
    setTimeout(() => this.#retry(), this.#retryMs)
    this.#retryMs = Math.min(2 * this.#retryMs, LAST_RETRY_MS)
  }

  #retry(): void {
    while (this.#waiting.length > 0) {
      const first = this.#waiting[0] as Uint8Array
      const rest = this.#writeSome(first)
      if (rest.length < first.length) this.#retryMs = FIRST_RETRY_MS
      if (rest.length > 0) {
        this.#waiting[0] = rest
        return this.#retryLater()
      }
      this.#waiting.shift()
    }
    this.#options.onDrain()
  }

  /** What is left. A terminal that is gone takes everything, as nobody will read it. */
  #writeSome(bytes: Uint8Array): Uint8Array {
    let rest = bytes
    while (rest.length > 0 && !this.#options.isClosed()) {
      try {
        rest = rest.subarray(writeSync(this.#options.fileDescriptor, rest))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return rest
        return new Uint8Array()
      }
    }
    return this.#options.isClosed() ? new Uint8Array() : rest
  }
}
