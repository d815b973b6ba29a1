/**
 * Shells, commands and forwards as channels of one ssh2 client. Bytes pass unchanged and unbuffered but for the window
 * of the channel; after `close` no handler is called. It does not know who uses them.
 */
import type { Duplex, Readable } from 'node:stream'
import type { ClientChannel, Client as Ssh2Client } from 'ssh2'
import { messageOf } from '../../base/errors.ts'
import type { ChannelEnd, ExecHandlers, RemoteProcess, Shell, ShellHandlers } from '../transport.ts'
import { remoteText } from './failures.ts'
import { consumeWith, signalChannel } from './library.ts'

/** Bytes that may wait on this side before `write` says that the channel is full. */
const WRITE_LIMIT = 64 * 1024

export type ChannelHost = {
  readonly client: Ssh2Client
  /** The stream under the client: what it holds back counts as queued, too. */
  readonly stream: Duplex
  /** Why the connection is gone; undefined while it stands. */
  lostReason(): string | undefined
  /** The connection was closed by ourselves: no handler is called any more. */
  isHungUp(): boolean
}

export function asShell(
  host: ChannelHost,
  channel: ClientChannel,
  windowBytes: number | undefined,
  handlers: ShellHandlers,
): Shell {
  const consumed = windowBytes === undefined ? () => {} : consumeWith(host.client, channel, windowBytes)
  const life = new ChannelLife(host, channel, handlers.onEnd)
  const flow = new Flow([channel])
  channel.on('data', (bytes: Buffer) => {
    consumed(bytes.length)
    if (!life.isClosed) handlers.onData(bytes)
  })
  channel.stderr.resume()
  const writer = new ChannelWriter(host, channel, () => {
    if (!life.isClosed) handlers.onDrain()
  })
  return {
    write: (bytes) => !life.isClosed && writer.write(bytes),
    resize: ({ columns, rows }) => life.attempt(() => channel.setWindow(rows, columns, 0, 0)),
    pause: () => flow.pause(),
    resume: () => flow.resume(),
    close: () => life.close(),
  }
}

export function asRemoteProcess(
  host: ChannelHost,
  channel: ClientChannel,
  windowBytes: number | undefined,
  handlers: ExecHandlers,
): RemoteProcess {
  const consumed = windowBytes === undefined ? () => {} : consumeWith(host.client, channel, windowBytes)
  const life = new ChannelLife(host, channel, handlers.onEnd)
  const flow = new Flow([channel, channel.stderr])
  channel.on('data', (bytes: Buffer) => {
    consumed(bytes.length)
    if (!life.isClosed) handlers.onStdout(bytes)
  })
  channel.stderr.on('data', (bytes: Buffer) => {
    consumed(bytes.length)
    if (!life.isClosed) handlers.onStderr(bytes)
  })
  const writer = new ChannelWriter(host, channel, () => {
    if (!life.isClosed) handlers.onDrain?.()
  })
  return {
    writeStdin: (bytes) => !life.isClosed && writer.write(bytes),
    endStdin: () => life.attempt(() => channel.end()),
    signal: (name) => life.attempt(() => signalChannel(host.client, channel, name)),
    pause: () => flow.pause(),
    resume: () => flow.resume(),
    close: () => life.close(),
  }
}

/**
 * Streams that stand still until whoever opened the channel has it: output may come in one packet with the answer that the
 * channel is open, and then its handler would be called before there is anything to answer it with.
 */
class Flow {
  readonly #streams: readonly Readable[]
  #isHeld = true
  #isPaused = false

  constructor(streams: readonly Readable[]) {
    this.#streams = streams
    for (const stream of streams) stream.pause()
    // After all promises that this one keeps.
    setImmediate(() => {
      this.#isHeld = false
      if (!this.#isPaused) this.resume()
    })
  }

  pause(): void {
    this.#isPaused = true
    for (const stream of this.#streams) stream.pause()
  }

  resume(): void {
    this.#isPaused = false
    if (this.#isHeld) return
    for (const stream of this.#streams) stream.resume()
  }
}

/** When a channel is over: once both its streams were read to the end, or at once by our own `close`. */
class ChannelLife {
  readonly #host: ChannelHost
  readonly #channel: ClientChannel
  #isClosed = false

  constructor(host: ChannelHost, channel: ClientChannel, onEnd: (end: ChannelEnd) => void) {
    this.#host = host
    this.#channel = channel
    let exit: ChannelEnd | undefined
    let openStreams = 2
    channel.on('exit', (code: number | null, signal?: string) => {
      exit = code === null ? { kind: 'signal', signal: remoteText(signal ?? 'SIGKILL') } : { kind: 'exit', code }
    })
    const ended = () => {
      openStreams -= 1
      if (openStreams > 0 || this.isClosed) return
      this.#isClosed = true
      const reason = host.lostReason() ?? 'the channel was closed without an exit status'
      onEnd(exit ?? { kind: 'lost', reason })
    }
    channel.once('close', ended)
    channel.stderr.once('close', ended)
    channel.on('error', () => {})
    channel.stderr.on('error', () => {})
  }

  get isClosed(): boolean {
    return this.#isClosed || this.#host.isHungUp()
  }

  /** ssh2 throws when its connection is gone; what that means is told by `onEnd`. */
  attempt(action: () => void): void {
    if (this.isClosed) return
    try {
      action()
    } catch {
      // Its end comes as an event.
    }
  }

  close(): void {
    this.attempt(() => this.#channel.close())
    this.#isClosed = true
    // What still arrives is thrown away, so that the channel can end.
    this.#channel.resume()
    this.#channel.stderr.resume()
  }
}

class ChannelWriter {
  readonly #host: ChannelHost
  readonly #channel: ClientChannel
  readonly #onDrain: () => void
  #isFull = false
  #isAwaitingDrain = false

  constructor(host: ChannelHost, channel: ClientChannel, onDrain: () => void) {
    this.#host = host
    this.#channel = channel
    this.#onDrain = onDrain
  }

  write(bytes: Uint8Array): boolean {
    if (!this.#channel.writable) return false
    try {
      this.#channel.write(bytes, () => this.#check())
    } catch {
      return false
    }
    if (this.#queued() <= WRITE_LIMIT) return true
    if (this.#isFull) return false
    this.#isFull = true
    this.#awaitDrain()
    return false
  }

  /** The channel may have room again before the stream under it drains: one listener, however often it fills up. */
  #awaitDrain(): void {
    if (this.#isAwaitingDrain) return
    this.#isAwaitingDrain = true
    this.#host.stream.once('drain', () => {
      this.#isAwaitingDrain = false
      this.#check()
    })
  }

  #queued(): number {
    return this.#channel.writableLength + this.#host.stream.writableLength
  }

  #check(): void {
    // The callbacks of what waits in the channel come back here; for what waits under it there is only `drain`, which comes
    // when that stream has said that it needs it, and not otherwise.
    if (!this.#isFull || this.#channel.writableLength > WRITE_LIMIT / 2) return
    if (this.#host.stream.writableNeedDrain) return this.#awaitDrain()
    this.#isFull = false
    this.#onDrain()
  }
}

/** A message of ssh2 about a channel that could not be opened, without its prefix. */
export function openFailure(error: unknown): string {
  return messageOf(error).replace(/^\(SSH\) Channel open failure: /, '')
}
