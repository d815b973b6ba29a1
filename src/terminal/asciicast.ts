/** Records what a host draws as asciicast v2 (docs.asciinema.org). What is typed is not recorded, as passwords are typed. */

import { closeSync, constants, openSync, write, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { underFreeName } from '../base/free-name.ts'
import { HarmlessOutput } from './harmless-output.ts'

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

const MAX_WAITING_BYTES = 8 * 1024 * 1024
/** So many recordings of one host in one directory. */
const MAX_NUMBER = 1000

/** The file grows by whole lines, and never holds up the host: lines are gathered while a write is under way. */
export class AsciicastRecorder implements Disposable {
  readonly path: string
  readonly #descriptor: number
  readonly #clock: Clock
  readonly #onError: (error: Error) => void
  readonly #startedMs: number
  // Characters that are split between chunks are joined; what is no UTF-8 becomes U+FFFD, as JSON demands.
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  readonly #harmless = new HarmlessOutput()
  #lastSeconds = 0
  #lostBytes = 0
  #position = 0
  #lines: Buffer[] = []
  #waitingBytes = 0
  #writing: Buffer | undefined
  #hasFailed = false
  #isDisposed = false

  /** @throws what opening a file throws */
  constructor({ directory, host, columns, rows, term, clock, onError }: AsciicastOptions) {
    ;[this.path, this.#descriptor] = createExclusive(directory, fileStem(host))
    this.#onError = onError
    this.#clock = clock
    this.#startedMs = clock.now()
    const timestamp = Math.floor(this.#startedMs / 1000)
    const header = { version: 2, width: columns, height: rows, timestamp, title: host, env: { TERM: term } }
    this.#writeLine(JSON.stringify(header))
  }

  output(bytes: Uint8Array): void {
    if (!this.#isDisposed) this.#output(this.#decoder.decode(bytes, { stream: true }), bytes.length)
  }

  resize(columns: number, rows: number): void {
    if (!this.#isDisposed) this.#write('r', `${columns}x${rows}`)
  }

  [Symbol.dispose](): void {
    if (this.#isDisposed) return
    this.#output(this.#decoder.decode(), 0)
    if (this.#lostBytes > 0) this.#reportLoss(true)
    this.#isDisposed = true
    try {
      const rest = Buffer.concat([...(this.#writing ? [this.#writing] : []), ...this.#lines])
      for (let at = 0; at < rest.length; ) {
        at += writeSync(this.#descriptor, rest, at, rest.length - at, this.#position + at)
      }
    } catch {
      // The disk is full or gone. The recorder is being disposed, so there is nothing left to report the error to.
    }
    // A write that is under way still uses the descriptor, and closes it.
    if (!this.#writing) closeSync(this.#descriptor)
  }

  #output(printed: string, bytes: number): void {
    const text = this.#harmless.push(printed)
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
    return this.#writeLine(`[${this.#lastSeconds.toFixed(6)},"${kind}",${JSON.stringify(data)}]`, isLast)
  }

  /** False: the line was not taken, since too much waits for the disk already (a line that `isLast` always is). */
  #writeLine(text: string, isLast = false): boolean {
    if (this.#hasFailed) return true
    const line = Buffer.from(`${text}\n`)
    if (!isLast && this.#waitingBytes > 0 && this.#waitingBytes + line.length > MAX_WAITING_BYTES) return false
    this.#lines.push(line)
    this.#waitingBytes += line.length
    if (!this.#writing) this.#continueWriting()
    return true
  }

  #continueWriting(): void {
    if (!this.#writing) {
      if (this.#lines.length === 0) return
      this.#writing = Buffer.concat(this.#lines)
      this.#lines = []
    }
    const bytes = this.#writing
    // At a place of its own, so that `dispose` can write the same bytes again if this write has not come back by then.
    write(this.#descriptor, bytes, 0, bytes.length, this.#position, (error, written) => {
      if (this.#isDisposed) return closeSync(this.#descriptor)
      this.#writing = !error && written < bytes.length ? bytes.subarray(written) : undefined
      if (error) {
        this.#hasFailed = true
        this.#lines = []
        return this.#onError(error)
      }
      this.#position += written
      this.#waitingBytes -= written
      this.#continueWriting()
    })
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

/** A new file `stem.cast`, `stem-2.cast`, …, for the user alone, and its descriptor; an existing file or link is never opened. */
function createExclusive(directory: string, stem: string): [path: string, descriptor: number] {
  const create = (name: string): [string, number] => {
    const path = `${name}.cast`
    return [path, openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600)]
  }
  return underFreeName(join(directory, stem), create, MAX_NUMBER)
}
