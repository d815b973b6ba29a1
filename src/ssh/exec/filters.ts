/** Takes out of a command's output what the wrapper and sudo wrote. The command's own bytes pass unchanged and at once. */

import { onAbort } from '../../base/abort.ts'
import type { Clock } from '../../base/clock.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import { printable } from '../../base/printable.ts'
import type { ChannelEnd, Connection, ExecOptions, RemoteProcess } from '../transport.ts'

/** What a login shell may print before the command begins; of more, the beginning is dropped. */
const HELD_BYTES = 64 * 1024
/** Start-up files that print more than that before the command begins print without end. */
const MOST_BEFORE_BYTES = 16 * 1024 * 1024

/** Drops everything up to and including the mark. Without a mark, `flush` gives what was held: the shell's own complaint. */
export class MarkFilter {
  readonly #mark: Buffer
  readonly #pass: (bytes: Uint8Array) => void
  readonly #onMark: () => void
  readonly #onFlood: () => void
  #held: Buffer | undefined = Buffer.alloc(0)
  #bytes = 0

  /** `onFlood`: once, when so much has come without the mark that it will not come any more. */
  constructor(mark: string, pass: (bytes: Uint8Array) => void, onMark: () => void, onFlood: () => void) {
    this.#mark = Buffer.from(mark)
    this.#pass = pass
    this.#onMark = onMark
    this.#onFlood = onFlood
  }

  push(bytes: Uint8Array): void {
    if (this.#held === undefined) return this.#pass(bytes)
    const held = this.#held.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#held, bytes])
    const at = held.indexOf(this.#mark)
    if (at < 0) {
      this.#held = held.subarray(Math.max(0, held.length - HELD_BYTES))
      const before = this.#bytes
      this.#bytes += bytes.length
      if (before <= MOST_BEFORE_BYTES && this.#bytes > MOST_BEFORE_BYTES) this.#onFlood()
      return
    }
    this.#held = undefined
    this.#onMark()
    const rest = held.subarray(at + this.#mark.length)
    if (rest.length > 0) this.#pass(rest)
  }

  flush(): void {
    const held = this.#held
    this.#held = undefined
    if (held !== undefined && held.length > 0) this.#pass(held)
  }
}

/** Takes out each prompt and tells of it; holds back only what may be the beginning of one. */
export class PromptFilter {
  readonly #prompt: Buffer
  readonly #pass: (bytes: Uint8Array) => void
  readonly #onPrompt: () => void
  #held = Buffer.alloc(0)

  constructor(prompt: string, pass: (bytes: Uint8Array) => void, onPrompt: () => void) {
    this.#prompt = Buffer.from(prompt)
    this.#pass = pass
    this.#onPrompt = onPrompt
  }

  push(bytes: Uint8Array): void {
    let text = Buffer.concat([this.#held, bytes])
    for (let at = text.indexOf(this.#prompt); at >= 0; at = text.indexOf(this.#prompt)) {
      if (at > 0) this.#pass(text.subarray(0, at))
      text = text.subarray(at + this.#prompt.length)
      this.#onPrompt()
    }
    const keep = this.#possibleStart(text)
    this.#held = Buffer.from(text.subarray(text.length - keep))
    if (text.length > keep) this.#pass(text.subarray(0, text.length - keep))
  }

  flush(): void {
    if (this.#held.length > 0) this.#pass(this.#held)
    this.#held = Buffer.alloc(0)
  }

  #possibleStart(text: Buffer): number {
    for (let length = Math.min(text.length, this.#prompt.length - 1); length > 0; length -= 1) {
      if (text.subarray(text.length - length).equals(this.#prompt.subarray(0, length))) return length
    }
    return 0
  }
}

export type MarkedProgram = {
  readonly mark: string
  /** For the login shell; prints the mark on a line of its own before it reads. */
  readonly command: string
  /** What start-up files cannot take away, as they have ended when the program reads. */
  readonly input?: Uint8Array
  readonly options?: ExecOptions
  readonly clock: Clock
  readonly limitMs: number
  readonly signal?: AbortSignal
}

const KEPT_ERROR_BYTES = 1000

/** Starts a program and drops what its login shell prints before the mark. Rejects with ConnectError or the reason. */
export async function startMarked(
  connection: Connection,
  { mark, command, input, options, clock, limitMs, signal }: MarkedProgram,
  handlers: { onBytes(bytes: Uint8Array): void; onDrain?(): void; onEnd(reason: string): void },
): Promise<RemoteProcess> {
  const begun = Promise.withResolvers<void>()
  const fail = (reason: string) => begun.reject(new Error(reason))
  using _limit = clock.after(limitMs, () => fail(slowStart(limitMs)))
  using _abort = onAbort(signal, () => fail('cancelled'))
  let hasBegun = false
  let hasFailed = false
  let said = ''
  const begin = () => {
    hasBegun = true
    begun.resolve()
  }
  const filter = new MarkFilter(
    `${mark}\n`,
    (bytes) => handlers.onBytes(bytes),
    begin,
    () => fail(floodedStart()),
  )
  const opening = connection.exec(
    command,
    {
      onStdout: (bytes) => filter.push(bytes),
      onStderr: (bytes) => {
        said = (said + Buffer.from(bytes).toString()).slice(-KEPT_ERROR_BYTES)
      },
      onDrain: () => handlers.onDrain?.(),
      onEnd: (end) => {
        const reason = describeEnd(end, said)
        if (hasBegun) handlers.onEnd(reason)
        else fail(reason)
      },
    },
    options,
  )
  opening.then((process) => {
    if (input !== undefined && !hasFailed) process.write(input)
  }, begun.reject)
  try {
    await begun.promise
    return await opening
  } catch (error) {
    hasFailed = true
    opening.then(
      (process) => {
        // Where the server supports it, this ends what the start-up files run.
        process.signal('KILL')
        process.close()
      },
      () => {},
    )
    throw error
  }
}

function describeEnd(end: ChannelEnd, said: string): string {
  if (end.kind === 'lost') return printable(`lost: ${end.reason}`)
  const last = said.trim().split('\n').at(-1) ?? ''
  const how = end.kind === 'exit' ? `exit ${end.code}` : signalName(end.signal)
  return printable(last === '' ? `the remote shell ended (${how})` : `${last} (${how})`)
}

/** A server names signals with SIG or without. */
export const signalName = (signal: string) => `SIG${signal.replace(/^SIG/, '')}`

export function slowStart(limitMs: number): string {
  return `the login shell did not start the command within ${limitMs / 1000} s. Look for start-up files that wait or print endlessly.`
}

export function floodedStart(): string {
  return `the login shell printed more than ${formatBytes(MOST_BEFORE_BYTES)} before it started the command, and was cut off. Look for start-up files that print endlessly.`
}
