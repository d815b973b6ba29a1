/**
 * A file that grows by whole lines and never holds up its writer: lines are gathered while a write is under way, up to a
 * bound. It owns its file descriptor.
 */
import { closeSync, constants, openSync, write, writeSync } from 'node:fs'
import { join } from 'node:path'

const MAX_WAITING_BYTES = 8 * 1024 * 1024
/** So many recordings of one host in one directory. */
const MAX_NUMBER = 1000

/** A new file `stem.ext`, `stem-2.ext`, …, readable and writable by the user alone; an existing file or link is never opened. */
export function createExclusive(
  directory: string,
  stem: string,
  extension: string,
): { readonly path: string; readonly descriptor: number } {
  for (let number = 1; ; number++) {
    const path = join(directory, `${stem}${number === 1 ? '' : `-${number}`}${extension}`)
    try {
      const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL
      return { path, descriptor: openSync(path, flags, 0o600) }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || number === MAX_NUMBER) throw error
    }
  }
}

export class LineFile implements Disposable {
  readonly #descriptor: number
  readonly #onError: (error: Error) => void
  #position = 0
  #lines: Buffer[] = []
  #waitingBytes = 0
  #writing: Buffer | undefined
  #hasFailed = false
  #isDisposed = false

  /** The file is empty. */
  constructor(descriptor: number, onError: (error: Error) => void) {
    this.#descriptor = descriptor
    this.#onError = onError
  }

  /** False: the line was not taken, since too much waits for the disk already (a line that `isLast` always is). */
  writeLine(text: string, isLast = false): boolean {
    if (this.#isDisposed || this.#hasFailed) return true
    const line = Buffer.from(`${text}\n`)
    if (!isLast && this.#waitingBytes > 0 && this.#waitingBytes + line.length > MAX_WAITING_BYTES) return false
    this.#lines.push(line)
    this.#waitingBytes += line.length
    if (!this.#writing) this.#writeNext()
    return true
  }

  #writeNext(): void {
    if (this.#lines.length === 0) return
    this.#writing = Buffer.concat(this.#lines)
    this.#lines = []
    this.#continueWriting()
  }

  #continueWriting(): void {
    const bytes = this.#writing as Buffer
    // At a place of its own, so that `dispose` can write the same bytes again if this write has not come back by then.
    write(this.#descriptor, bytes, 0, bytes.length, this.#position, (error, written) => {
      if (this.#isDisposed) return closeSync(this.#descriptor)
      if (error) return this.#fail(error)
      this.#position += written
      this.#waitingBytes -= written
      this.#writing = written < bytes.length ? bytes.subarray(written) : undefined
      if (this.#writing) this.#continueWriting()
      else this.#writeNext()
    })
  }

  #fail(error: Error): void {
    this.#hasFailed = true
    this.#writing = undefined
    this.#lines = []
    this.#waitingBytes = 0
    this.#onError(error)
  }

  /** Writes what is left before it returns. */
  [Symbol.dispose](): void {
    if (this.#isDisposed) return
    this.#isDisposed = true
    try {
      const rest = Buffer.concat([...(this.#writing ? [this.#writing] : []), ...this.#lines])
      for (let at = 0; at < rest.length; ) {
        at += writeSync(this.#descriptor, rest, at, rest.length - at, this.#position + at)
      }
    } catch {
      // The disk is full or gone, and nobody listens any more.
    }
    // A write that is under way still uses the descriptor, and closes it.
    if (!this.#writing) closeSync(this.#descriptor)
  }
}
