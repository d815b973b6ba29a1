/**
 * Records what a host prints as asciicast v2 (https://docs.asciinema.org/manual/asciicast/v2/): a header line, then one JSON
 * array a line. Each recording has a new file that only the user may read. What is typed is not recorded, as passwords are.
 */
import type { Clock } from '../base/clock.ts'
import { createExclusive, LineFile } from './line-file.ts'

export type AsciicastOptions = {
  /** An existing directory; the file is named after the host. */
  readonly directory: string
  readonly host: string
  readonly columns: number
  readonly rows: number
  readonly term: string
  readonly clock: Clock
  /** The file cannot be written, and recording stops. Not called after disposing. */
  onError(error: Error): void
}

export class AsciicastRecorder implements Disposable {
  readonly path: string
  readonly #file: LineFile
  readonly #clock: Clock
  readonly #startedMs: number
  // Characters that are split between chunks are joined; what is no UTF-8 becomes U+FFFD, as JSON demands.
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  #lastSeconds = 0
  #lostBytes = 0
  #isDisposed = false

  /** @throws what opening a file throws */
  constructor({ directory, host, columns, rows, term, clock, onError }: AsciicastOptions) {
    const { path, descriptor } = createExclusive(directory, fileStem(host), '.cast')
    this.path = path
    this.#file = new LineFile(descriptor, onError)
    this.#clock = clock
    this.#startedMs = clock.now()
    const timestamp = Math.floor(this.#startedMs / 1000)
    const header = { version: 2, width: columns, height: rows, timestamp, title: host, env: { TERM: term } }
    this.#file.writeLine(JSON.stringify(header))
  }

  output(bytes: Uint8Array): void {
    if (!this.#isDisposed) this.#output(this.#decoder.decode(bytes, { stream: true }), bytes.length)
  }

  resize(columns: number, rows: number): void {
    if (!this.#isDisposed) this.#write('r', `${columns}x${rows}`)
  }

  /** Writes what is left before it returns. */
  [Symbol.dispose](): void {
    if (this.#isDisposed) return
    this.#isDisposed = true
    this.#output(this.#decoder.decode(), 0)
    if (this.#lostBytes > 0) this.#reportLoss(true)
    this.#file[Symbol.dispose]()
  }

  #output(text: string, bytes: number): void {
    if (text === '') return
    if (this.#lostBytes > 0) this.#reportLoss()
    if (this.#lostBytes > 0 || !this.#write('o', text)) this.#lostBytes += bytes
  }

  #reportLoss(isLast = false): void {
    if (this.#write('m', `${this.#lostBytes} bytes were not recorded: the disk is too slow`, isLast))
      this.#lostBytes = 0
  }

  #write(kind: 'o' | 'r' | 'm', data: string, isLast = false): boolean {
    // A clock that is set back must not make the times of a recording go back.
    this.#lastSeconds = Math.max(this.#lastSeconds, (this.#clock.now() - this.#startedMs) / 1000)
    return this.#file.writeLine(`[${this.#lastSeconds.toFixed(6)},"${kind}",${JSON.stringify(data)}]`, isLast)
  }
}

/** The host's name as the beginning of a file's: no separators, no leading dot, not too long. */
export function fileStem(host: string): string {
  const stem = host
    .replace(/[^A-Za-z0-9._-]/g, '_')
    .replace(/^[.-]+/, '')
    .slice(0, 100)
  return stem === '' ? 'host' : stem
}
