/** One host's files: orders to the remote script and their answers, in order, over one channel; they wait while it is full. */
import { randomBytes } from 'node:crypto'
import { onAbort } from '../../base/abort.ts'
import type { Clock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { startMarked } from '../exec/filters.ts'
import { ConnectError, type Connection, type RemoteProcess } from '../transport.ts'
import { quoteWord } from './byte-path.ts'
import { bootCommand, COMPLAINTS_LIMIT, LISTING_LIMIT, SETUP } from './remote-script.ts'

/** A host refused one order (permission, disk space); the others continue. */
export class RemoteRefusal extends Error {
  override readonly name = 'RemoteRefusal'
}

/** The channel is lost, and with it the host. */
export class RemoteLost extends Error {
  override readonly name = 'RemoteLost'
}

type Waiting = {
  readonly resolve: (text: string) => void
  readonly reject: (error: Error) => void
  /** Takes the bytes of the answer as they arrive. */
  readonly sink?: ((bytes: Buffer) => void) | undefined
  /** The length of the answer unless it is a refusal; undefined: what `accept` takes, at most `limit`, or `ANSWER_LIMIT`. */
  readonly bytes?: number | undefined
  readonly limit?: number
  readonly accept?: (bytes: number) => boolean
}

const NOISE_LIMIT = 64 * 1024
const ANSWER_LIMIT = 1024 * 1024
/** What a host reads in a fraction of a second. */
const LONG_BYTES = 64 * 1024 * 1024
/** A fetch receives at most this much per round trip, and while this program is busy. */
const WINDOW_BYTES = 2 * 1024 * 1024

export type RemoteFilesOptions = {
  readonly clock: Clock
  readonly startLimitMs: number
  /** Gives up a shell that has not started or not answered yet; afterwards, use `close`. */
  readonly signal: AbortSignal
}

export class RemoteFiles {
  #process: RemoteProcess | undefined
  readonly #waiting: Waiting[] = []
  /** Each order begins with it. */
  readonly #token: string
  #pending = Buffer.alloc(0)
  #missing = -1
  #isOk = false
  #parts: Buffer[] = []
  #lost: RemoteLost | undefined
  readonly #losing = Promise.withResolvers<never>()
  /** While the channel is full. */
  #room: PromiseWithResolvers<void> | undefined
  /** Orders are written one at a time, whole. */
  #writing: Promise<unknown> = Promise.resolve()

  private constructor(token: string) {
    this.#token = token
    this.#losing.promise.catch(() => {})
  }

  /** @throws RemoteLost, RemoteRefusal (no program for checksums), ConnectError */
  static async start(connection: Connection, options: RemoteFilesOptions): Promise<RemoteFiles> {
    const { clock, startLimitMs: limitMs, signal } = options
    const token = `muster-${randomBytes(8).toString('hex')}`
    const files = new RemoteFiles(token)
    // A connection that is closed here tells its channels nothing.
    using _abort = onAbort(signal, () => files.close())
    files.#process = await startMarked(
      connection,
      { mark: token, command: bootCommand(token), options: { windowBytes: WINDOW_BYTES }, clock, limitMs, signal },
      {
        onBytes: (bytes) => files.#take(bytes),
        onDrain: () => files.#makeRoom(),
        onEnd: (reason) => files.#lose(reason),
      },
    ).catch((error: unknown) => {
      throw error instanceof ConnectError ? error : new RemoteLost(messageOf(error))
    })
    await files.#order(SETUP.map((line) => `${token}${line}\n`).join(''), undefined)
    return files
  }

  /** Runs a function of the remote script; resolves with its answer. @throws RemoteRefusal, RemoteLost */
  call(name: string, ...words: readonly (string | number)[]): Promise<string> {
    return this.#order(this.#lineOf(name, words), undefined)
  }

  /** Like `call`, for an order that reads so many bytes on the host: one that takes long ends with the channel. */
  callFor(sizeBytes: number, name: string, ...words: readonly (string | number)[]): Promise<string> {
    return sizeBytes < LONG_BYTES ? this.call(name, ...words) : this.call('watched', name, ...words)
  }

  /** Like `call`, but the answer must have this many bytes, which go to `sink` as they arrive. */
  pull(
    sink: (bytes: Buffer) => void,
    bytes: number,
    name: string,
    ...words: readonly (string | number)[]
  ): Promise<string> {
    return this.#order(this.#lineOf(name, words), undefined, { sink, bytes })
  }

  /** One order that may take long, and is answered with a listing and complaints. `accept`: has room for so many bytes. */
  async callTwice(
    accept: (bytes: number) => boolean,
    name: string,
    ...words: readonly (string | number)[]
  ): Promise<readonly [string, string]> {
    const first = this.#order(this.#lineOf('watched', [name, ...words]), undefined, { limit: LISTING_LIMIT, accept })
    const second = new Promise<string>((resolve, reject) =>
      this.#waiting.push({ resolve, reject, limit: COMPLAINTS_LIMIT, accept }),
    )
    second.catch(() => {})
    // A refusal is a single answer.
    const text = await first.catch((error: unknown) => {
      if (error instanceof RemoteRefusal) this.#waiting.shift()
      throw error
    })
    return [text, await second]
  }

  /** An order followed by bytes. `written`: they are in flight. `done`: the host has answered. */
  send(chunks: readonly Buffer[], name: string, ...words: readonly (string | number)[]) {
    const { promise: written, resolve } = Promise.withResolvers<void>()
    const done = this.#order(this.#lineOf(name, words), { chunks, written: resolve })
    done.catch(() => resolve())
    return { written, done }
  }

  /** Waits for something else; rejects with RemoteLost if the channel is lost first. */
  orLost<T>(promise: Promise<T>): Promise<T> {
    return Promise.race([promise, this.#losing.promise])
  }

  pause(): void {
    this.#process?.pause()
  }

  resume(): void {
    this.#process?.resume()
  }

  close(): void {
    this.#lose('cancelled')
    this.#process?.close()
  }

  #lineOf(name: string, words: readonly (string | number)[]): string {
    return `${this.#token}${[name, ...words.map((word) => quoteWord(String(word)))].join(' ')}\n`
  }

  #order(
    line: string,
    payload: { readonly chunks: readonly Buffer[]; written(): void } | undefined,
    answer: Omit<Waiting, 'resolve' | 'reject'> = {},
  ): Promise<string> {
    return new Promise((resolve, reject) => {
      if (this.#lost !== undefined) return reject(this.#lost)
      this.#waiting.push({ resolve, reject, ...answer })
      this.#writing = this.#writing.then(async () => {
        await this.#write(Buffer.from(line, 'latin1'))
        for (const chunk of payload?.chunks ?? []) await this.#write(chunk)
        payload?.written()
      })
    })
  }

  async #write(bytes: Buffer): Promise<void> {
    while (this.#room !== undefined && this.#lost === undefined) await this.#room.promise
    if (this.#lost !== undefined || this.#process === undefined || this.#process.write(bytes)) return
    this.#room ??= Promise.withResolvers()
  }

  #makeRoom(): void {
    this.#room?.resolve()
    this.#room = undefined
  }

  #take(bytes: Uint8Array): void {
    let rest = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes)
    while (rest.length > 0) {
      if (this.#missing < 0) {
        const end = rest.indexOf(10)
        if (end < 0) {
          this.#pending = Buffer.concat([this.#pending, rest])
          if (this.#pending.length > NOISE_LIMIT) this.#garbled()
          return
        }
        const header = Buffer.concat([this.#pending, rest.subarray(0, end)]).toString('latin1')
        this.#pending = Buffer.alloc(0)
        rest = rest.subarray(end + 1)
        if (header === 'busy') continue
        const match = /^(ok|err) (\d+)$/.exec(header)
        if (match === null) return this.#garbled()
        this.#isOk = match[1] === 'ok'
        this.#missing = Number(match[2])
        if (!this.#isExpected()) return
        if (this.#missing > 0) continue
      } else {
        const part = rest.subarray(0, this.#missing)
        rest = rest.subarray(part.length)
        this.#missing -= part.length
        const sink = this.#isOk ? this.#waiting[0]?.sink : undefined
        if (sink === undefined) this.#parts.push(part)
        else sink(part)
      }
      if (this.#missing === 0) this.#answer()
    }
  }

  /** An answer must not fill the memory or the disk of this machine. */
  #isExpected(): boolean {
    const { bytes, limit = ANSWER_LIMIT, accept } = this.#waiting[0] ?? {}
    if (this.#isOk && bytes !== undefined) {
      if (this.#missing !== bytes) this.#garbled()
      return this.#missing === bytes
    }
    const isShort = this.#missing <= limit && accept?.(this.#missing) !== false
    if (!isShort) this.#garbled('the answer of the host is too long')
    return isShort
  }

  #answer(): void {
    this.#missing = -1
    const text = Buffer.concat(this.#parts).toString('latin1')
    this.#parts = []
    const waiting = this.#waiting.shift()
    if (this.#isOk) waiting?.resolve(text)
    else waiting?.reject(new RemoteRefusal(text))
  }

  #garbled(reason = 'could not parse the answer of the host'): void {
    this.#lose(reason)
    this.#process?.close()
  }

  #lose(reason: string): void {
    this.#lost ??= new RemoteLost(reason)
    this.#losing.reject(this.#lost)
    this.#makeRoom()
    for (const each of this.#waiting.splice(0)) each.reject(this.#lost)
  }
}

/** `dd: error writing 'x': No space left on device` → `No space left on device`. */
export function reasonOf(refusal: RemoteRefusal): string {
  const text = Buffer.from(refusal.message, 'latin1').toString('utf8')
  const line = text.split('\n').find((each) => /: |^[A-Z]|^the /.test(each)) ?? text
  return printable(line.split(': ').at(-1)?.trim() || 'failed')
}
