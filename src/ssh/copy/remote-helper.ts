/** The helper (helper-script.ts) on one host. A host without Python, or with one session, has none: the shell does everything. */

import { randomBytes } from 'node:crypto'
import { ByteStore } from '../../base/byte-store.ts'
import type { Clock } from '../../base/clock.ts'
import { parseJson, record } from '../../base/json-lines.ts'
import { printable } from '../../base/printable.ts'
import { startMarked } from '../exec/filters.ts'
import type { Connection, RemoteProcess } from '../transport.ts'
import { helperCommand, helperScript } from './helper-script.ts'

/** A message of the helper; each kind has some of these. */
export type HelperMessage = {
  readonly id?: number
  /** For an offer: `same`, `need`, or `!` and the reason of a refusal; for directories: nothing, or the reason. */
  readonly answers?: readonly string[]
  readonly failures?: readonly (readonly [index: number, reason: string])[]
  readonly link?: number
  readonly at?: readonly [address: string, port: number]
  readonly up?: true
  readonly probe?: readonly [number, number]
  readonly file?: number
  readonly have?: number
  /** Of the whole file, as it was read back. */
  readonly sha256?: string
  readonly error?: string
}

export type HelperOptions = {
  readonly clock: Clock
  readonly startLimitMs: number
  /** Gives up a helper that has not started; afterwards, use `close`. */
  readonly signal: AbortSignal
}

const LINE_BYTES = 4 * 1024 * 1024
const LINE_FEED = 10
const PING_MS = 15_000

export class RemoteHelper {
  readonly #clock: Clock
  readonly #waiting = new Map<number, PromiseWithResolvers<HelperMessage>>()
  readonly #listeners = new Set<(message: HelperMessage | undefined) => void>()
  #process: RemoteProcess | undefined
  readonly #pending = new ByteStore()
  #isLost = false
  /** While the channel is full. */
  #room: PromiseWithResolvers<void> | undefined
  #lastId = 0
  #ping: Disposable | undefined

  private constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Undefined: the host has no helper. Never rejects. */
  static async start(
    connection: Connection,
    { clock, startLimitMs, signal }: HelperOptions,
  ): Promise<RemoteHelper | undefined> {
    const helper = new RemoteHelper(clock)
    const token = `muster-${randomBytes(8).toString('hex')}`
    const script = helperScript(token)
    try {
      helper.#process = await startMarked(
        connection,
        {
          mark: token,
          command: helperCommand(script.length),
          input: script,
          // The shell of this copy holds a session until the helper answers, so do not wait for a free one.
          options: { waitsForRoom: false },
          clock,
          limitMs: startLimitMs,
          signal,
        },
        {
          onBytes: (bytes) => helper.#take(bytes),
          onDrain: () => helper.#makeRoom(),
          onEnd: () => helper.#lose(),
        },
      )
    } catch {
      return undefined
    }
    if (helper.#isLost) helper.close()
    else helper.#keepAlive()
    return helper.#isLost ? undefined : helper
  }

  get isLost(): boolean {
    return this.#isLost
  }

  /** Messages that do not answer an `ask`; undefined: the helper has ended. */
  onMessage(listener: (message: HelperMessage | undefined) => void): void {
    this.#listeners.add(listener)
  }

  send(order: object): void {
    this.#write(Buffer.from(`${JSON.stringify(order)}\n`))
  }

  /** An order and its bytes. Rejects if the helper ends or has ended. */
  async ask(order: object, payload: readonly Buffer[] = []): Promise<HelperMessage> {
    if (this.#isLost) throw new HelperLost()
    this.#lastId += 1
    const id = this.#lastId
    const answer = Promise.withResolvers<HelperMessage>()
    this.#waiting.set(id, answer)
    answer.promise.catch(() => {})
    while (this.#room !== undefined && !this.#isLost) await this.#room.promise
    // In one write, so that no other order comes between.
    this.#write(Buffer.concat([Buffer.from(`${JSON.stringify({ ...order, id })}\n`), ...payload]))
    return await answer.promise
  }

  close(): void {
    this.#lose()
    this.#process?.close()
  }

  #write(bytes: Buffer): void {
    if (this.#isLost || this.#process === undefined || this.#process.write(bytes)) return
    this.#room ??= Promise.withResolvers()
  }

  #makeRoom(): void {
    this.#room?.resolve()
    this.#room = undefined
  }

  #keepAlive(): void {
    this.#ping = this.#clock.after(PING_MS, () => {
      this.send({ op: 'ping' })
      this.#keepAlive()
    })
  }

  #take(bytes: Uint8Array): void {
    if (this.#isLost) return
    this.#pending.append(bytes)
    if (bytes.includes(LINE_FEED)) {
      let rest = this.#pending.take()
      for (let end = rest.indexOf(LINE_FEED); end >= 0; end = rest.indexOf(LINE_FEED)) {
        const message = parse(rest.subarray(0, end).toString('utf8'))
        rest = rest.subarray(end + 1)
        if (message === undefined) return this.close()
        this.#handle(message)
      }
      this.#pending.append(rest)
    }
    if (this.#pending.length > LINE_BYTES) this.close()
  }

  #handle(message: HelperMessage): void {
    const waiting = message.id === undefined ? undefined : this.#waiting.get(message.id)
    if (waiting === undefined) {
      for (const listener of this.#listeners) listener(message)
      return
    }
    this.#waiting.delete(message.id ?? 0)
    waiting.resolve(message)
  }

  #lose(): void {
    if (this.#isLost) return
    this.#isLost = true
    this.#ping?.[Symbol.dispose]()
    this.#makeRoom()
    for (const { reject } of this.#waiting.values()) reject(new HelperLost())
    this.#waiting.clear()
    for (const listener of this.#listeners) listener(undefined)
  }
}

export class HelperLost extends Error {
  override readonly name = 'HelperLost'
  constructor() {
    super('the helper on the host has ended')
  }
}

/** Undefined: the helper ended, or there is none. */
export async function unlessLost<T>(work: Promise<T> | undefined): Promise<T | undefined> {
  return await work?.catch((error: unknown) => {
    if (error instanceof HelperLost) return undefined
    throw error
  })
}

const isText = (value: unknown) => typeof value === 'string'
const isCount = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0
const isAmount = (value: unknown) => typeof value === 'number' && value > 0
const isList = (value: unknown, isItem: (item: unknown) => boolean) => Array.isArray(value) && value.every(isItem)

const SHAPES: Readonly<Record<keyof HelperMessage, (value: unknown) => boolean>> = {
  id: isCount,
  answers: (value) => isList(value, isText),
  failures: (value) => isList(value, (pair) => Array.isArray(pair) && isCount(pair[0]) && isText(pair[1])),
  link: isCount,
  at: (value) => Array.isArray(value) && value.length === 2 && isText(value[0]) && isCount(value[1]),
  up: (value) => value === true,
  probe: (value) => Array.isArray(value) && value.length === 2 && isCount(value[0]) && isAmount(value[1]),
  file: isCount,
  have: isCount,
  sha256: isText,
  error: isText,
}

/** The line comes from a host. Undefined: it is not a valid message. */
function parse(line: string): HelperMessage | undefined {
  const message: HelperMessage | undefined = record(parseJson(line))
  if (message === undefined) return undefined
  for (const [name, isShaped] of Object.entries(SHAPES)) {
    const own = message[name as keyof HelperMessage]
    if (own !== undefined && !isShaped(own)) return undefined
  }
  return message.error === undefined ? message : { ...message, error: printable(message.error) }
}
