/** A shell or command as a channel of one ssh2 client. Bytes pass unchanged and unbuffered but for the channel's window. */
import type { Duplex } from 'node:stream'
import type { ClientChannel, Client as Ssh2Client } from 'ssh2'
import { messageOf } from '../../base/errors.ts'
import type { ChannelEnd, ExecHandlers, RemoteProcess, Shell, ShellSize } from '../transport.ts'
import { remoteText } from './failures.ts'
import { consumeWith, signalChannel } from './library.ts'

/** Bytes that may wait on this side before `write` says that the channel is full. */
const WRITE_LIMIT = 64 * 1024

export type ChannelHost = {
  readonly client: Ssh2Client
  /** The stream under the client: what it holds back counts as queued, too. */
  readonly stream: Duplex
  /** Why the connection is gone; undefined while it is there. */
  lostReason(): string | undefined
  /** We closed the connection ourselves: no handler is called any more. */
  isHungUp(): boolean
}

/** Without `onStderr`: a shell, whose server sends nothing there. */
export type Ssh2ChannelHandlers = Omit<ExecHandlers, 'onStderr'> & Partial<Pick<ExecHandlers, 'onStderr'>>

export class Ssh2Channel implements Shell, RemoteProcess {
  readonly #host: ChannelHost
  readonly #channel: ClientChannel
  readonly #handlers: Ssh2ChannelHandlers
  /** Until the opener has the channel: output may come in one packet with the answer that it is open. */
  #isHeld = true
  #isPaused = false
  #hasEnded = false
  #isFull = false
  #isAwaitingDrain = false

  /** `windowBytes`: the window that the channel was opened with. */
  constructor(host: ChannelHost, channel: ClientChannel, windowBytes: number, handlers: Ssh2ChannelHandlers) {
    this.#host = host
    this.#channel = channel
    this.#handlers = handlers
    const consumed = consumeWith(host.client, channel, windowBytes)
    channel.on('data', (bytes: Buffer) => {
      consumed(bytes.length)
      if (!this.#isOver) handlers.onStdout(bytes)
    })
    channel.stderr.on('data', (bytes: Buffer) => {
      consumed(bytes.length)
      if (!this.#isOver) handlers.onStderr?.(bytes)
    })
    this.#watchEnd()
    for (const stream of this.#streams) stream.pause()
    // After all promises that this one keeps.
    setImmediate(() => {
      this.#isHeld = false
      if (!this.#isPaused) this.resume()
    })
  }

  write(bytes: Uint8Array): boolean {
    if (this.#isOver || !this.#channel.writable) return false
    try {
      this.#channel.write(bytes, () => this.#checkRoom())
    } catch {
      return false
    }
    if (this.#channel.writableLength + this.#host.stream.writableLength <= WRITE_LIMIT) return true
    if (this.#isFull) return false
    this.#isFull = true
    this.#awaitDrain()
    return false
  }

  endInput(): void {
    this.#attempt(() => this.#channel.end())
  }

  resize({ columns, rows }: ShellSize): void {
    this.#attempt(() => this.#channel.setWindow(rows, columns, 0, 0))
  }

  signal(name: string): void {
    this.#attempt(() => signalChannel(this.#host.client, this.#channel, name))
  }

  pause(): void {
    this.#isPaused = true
    for (const stream of this.#streams) stream.pause()
  }

  resume(): void {
    this.#isPaused = false
    if (!this.#isHeld) for (const stream of this.#streams) stream.resume()
  }

  close(): void {
    this.#attempt(() => this.#channel.close())
    this.#hasEnded = true
    // What still arrives is thrown away, so that the channel can end.
    for (const stream of this.#streams) stream.resume()
  }

  get #streams() {
    return [this.#channel, this.#channel.stderr]
  }

  get #isOver(): boolean {
    return this.#hasEnded || this.#host.isHungUp()
  }

  /** It has ended once both its streams were read to the end. */
  #watchEnd(): void {
    let exit: ChannelEnd | undefined
    let openStreams = 2
    this.#channel.on('exit', (code: number | null, signal?: string) => {
      exit = code === null ? { kind: 'signal', signal: remoteText(signal ?? 'SIGKILL') } : { kind: 'exit', code }
    })
    for (const stream of this.#streams) {
      stream.on('error', () => {})
      stream.once('close', () => {
        openStreams -= 1
        if (openStreams > 0 || this.#isOver) return
        this.#hasEnded = true
        const reason = this.#host.lostReason() ?? 'the channel was closed without an exit status'
        this.#handlers.onEnd(exit ?? { kind: 'lost', reason })
      })
    }
  }

  /** ssh2 throws when its connection is gone; `onEnd` tells what that means. */
  #attempt(action: () => void): void {
    if (this.#isOver) return
    try {
      action()
    } catch {
      // Its end comes as an event.
    }
  }

  /** The channel may have room again before the stream under it drains: one listener, however often it fills up. */
  #awaitDrain(): void {
    if (this.#isAwaitingDrain) return
    this.#isAwaitingDrain = true
    this.#host.stream.once('drain', () => {
      this.#isAwaitingDrain = false
      this.#checkRoom()
    })
  }

  #checkRoom(): void {
    // What waits in the channel calls back here; what waits under it has only `drain`, and that only where it is needed.
    if (!this.#isFull || this.#channel.writableLength > WRITE_LIMIT / 2) return
    if (this.#host.stream.writableNeedDrain) return this.#awaitDrain()
    this.#isFull = false
    if (!this.#isOver) this.#handlers.onDrain?.()
  }
}

/** A message of ssh2 about a channel that could not be opened, without its prefix. */
export function openFailure(error: unknown): string {
  return messageOf(error).replace(/^\(SSH\) Channel open failure: /, '')
}
