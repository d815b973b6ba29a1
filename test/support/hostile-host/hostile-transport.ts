/**
 * A transport whose host answers as a test says, byte by byte and without wires, in the time of a clock that the test moves:
 * for as many mutations as one likes. It keeps what transports promise: no callback before `exec` has resolved or after `close`.
 */
import { setImmediate } from 'node:timers/promises'
import type { ChannelEnd, Connection, ExecHandlers, RemoteProcess, Transport } from '../../../src/ssh/transport.ts'
import type { ManualClock } from '../../unit/ssh/manual-clock.ts'
import type { HostileAnswer, HostileEnd } from './mutate.ts'

export const ENDS: Readonly<Record<Exclude<HostileEnd, 'silent'>, ChannelEnd>> = {
  well: { kind: 'exit', code: 0 },
  badly: { kind: 'exit', code: 3 },
  killed: { kind: 'signal', signal: 'K\x1b]0;title\x07ILL' },
  lost: { kind: 'lost', reason: 'Connection reset by \x1b[2Jpeer' },
}
/** Of an answer without end: more than every bound. */
const MOST_ENDLESS_BYTES = 20 * 1024 * 1024

export class HostileChannel implements RemoteProcess {
  readonly command: string
  readonly #handlers: ExecHandlers
  readonly #onBytes: (channel: HostileChannel, bytes: Uint8Array) => void
  isClosed = false
  isPaused = false
  #waiting: (() => void)[] = []

  constructor(command: string, handlers: ExecHandlers, onBytes: (channel: HostileChannel, bytes: Uint8Array) => void) {
    this.command = command
    this.#handlers = handlers
    this.#onBytes = onBytes
  }

  write(bytes: Uint8Array): boolean {
    if (bytes.length > 0) this.#onBytes(this, bytes)
    return true
  }

  endInput(): void {}
  signal(): void {}

  pause(): void {
    this.isPaused = true
  }

  resume(): void {
    this.isPaused = false
    for (const go of this.#waiting.splice(0)) go()
  }

  close(): void {
    this.isClosed = true
    this.resume()
  }

  say(bytes: Uint8Array, stream: 'stdout' | 'stderr' = 'stdout'): void {
    if (this.isClosed) return
    if (stream === 'stdout') this.#handlers.onStdout(bytes)
    else this.#handlers.onStderr(bytes)
  }

  end(end: ChannelEnd): void {
    if (this.isClosed) return
    this.isClosed = true
    this.#handlers.onEnd(end)
  }

  /** False: nobody reads any more. */
  async play({ pieces, endless, end }: HostileAnswer, stream: 'stdout' | 'stderr' = 'stdout'): Promise<boolean> {
    for (const piece of pieces) {
      await this.#room()
      this.say(piece, stream)
    }
    if (endless !== undefined) {
      for (let bytes = 0; bytes < MOST_ENDLESS_BYTES && !this.isClosed; bytes += endless.length) {
        await this.#room()
        this.say(endless, stream)
      }
    }
    if (end !== 'silent') this.end(ENDS[end])
    return !this.isClosed
  }

  async #room(): Promise<void> {
    while (this.isPaused && !this.isClosed) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }
}

export type HostileHandlers = {
  /** Once a channel is there. */
  onExec(channel: HostileChannel): void
  /** What it reads. */
  onBytes?(channel: HostileChannel, bytes: Uint8Array): void
}

export function createHostileTransport({ onExec, onBytes = () => {} }: HostileHandlers): Transport {
  return {
    async connect() {
      const channels: HostileChannel[] = []
      const none = () => Promise.reject(new Error('there is nothing but commands'))
      const connection: Connection = {
        openShell: none,
        connectSocket: none,
        connectTcp: none,
        listenTcp: none,
        async exec(command, handlers) {
          const channel = new HostileChannel(command, handlers, onBytes)
          channels.push(channel)
          queueMicrotask(() => queueMicrotask(() => queueMicrotask(() => onExec(channel))))
          return channel
        },
        close() {
          for (const channel of channels) channel.close()
        },
      }
      return connection
    },
  }
}

/** Lets what is under way come to its end, and moves the clock when nothing else does. @throws when it does not end */
export async function untilEnded<T>(work: Promise<T>, clock: ManualClock, limitMs: number): Promise<T> {
  let isOver = false
  const over = () => {
    isOver = true
  }
  work.then(over, over)
  for (let turns = 0; !isOver && turns < 6; turns++) await setImmediate()
  for (let passedMs = 0; !isOver && passedMs <= limitMs; passedMs += 1000) {
    clock.advance(1000)
    await setImmediate()
  }
  for (let turns = 0; !isOver && turns < 2000; turns++) await setImmediate()
  if (!isOver) throw new Error(`it has not ended after ${limitMs / 1000} s`)
  return await work
}
