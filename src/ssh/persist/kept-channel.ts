import {
  type Channel,
  type ChannelEnd,
  type Connection,
  failureOf,
  type RemoteProcess,
  type Shell,
} from '../transport.ts'
import { FRAME_KINDS, IncomingWindow, type KeeperLink, OutgoingWindow, type StreamKind, UNBOUNDED } from './link.ts'
import type { FromKeeper, OpenRequest, ToKeeper } from './messages.ts'

/** A shell, whose input has no end, or a command. */
type Source = Channel & Partial<Pick<Shell, 'resize'> & Pick<RemoteProcess, 'signal' | 'endInput'>>

export class KeptChannel {
  readonly #id: number
  readonly #link: KeeperLink<ToKeeper, FromKeeper>
  readonly #onOver: () => void
  readonly #outgoing = new OutgoingWindow()
  readonly #incoming: IncomingWindow
  #source: Source | undefined
  #isPaused = false
  #isOver = false
  #hasEnded = false
  #ungranted = 0

  constructor(id: number, link: KeeperLink<ToKeeper, FromKeeper>, onOver: () => void) {
    this.#id = id
    this.#link = link
    this.#onOver = onOver
    this.#incoming = new IncomingWindow((sizeBytes) => link.sendCredit(id, sizeBytes))
  }

  async open(connection: Connection, what: OpenRequest): Promise<void> {
    try {
      const source = await this.#openSource(connection, what)
      if (this.#isOver && !this.#hasEnded) return source.close()
      this.#source = source
      if (this.#isPaused) source.pause()
    } catch (error) {
      if (this.#isOver) return
      this.#finish()
      this.#link.send({ type: 'not-opened', channel: this.#id, failure: failureOf(error, 'unreachable', 'shell') })
    }
  }

  /** Bytes of the program for the host. */
  handleBytes(bytes: Uint8Array): void {
    if (this.#isOver || this.#source === undefined) return
    if (!this.#incoming.received(bytes.length)) return this.#link.cutOff(UNBOUNDED)
    this.#ungranted += bytes.length
    if (this.#source.write(bytes)) this.#grant()
  }

  handleCredit(sizeBytes: number): void {
    if (!this.#outgoing.give(sizeBytes)) return
    this.#isPaused = false
    this.#source?.resume()
  }

  handleMessage(message: ToKeeper & { channel: number }): void {
    if (message.type === 'resize') this.#source?.resize?.(message.size)
    else if (message.type === 'signal') this.#source?.signal?.(message.name)
    else if (message.type === 'end-stdin') this.#source?.endInput?.()
    else if (message.type === 'close') this.close()
  }

  /** What runs there reads the end of its input, and the channel is closed. */
  close(): void {
    if (this.#isOver) return
    this.#finish()
    this.#source?.endInput?.()
    this.#source?.close()
  }

  /** The connection was closed under it, without a word to its channels. */
  lose(reason: string): void {
    this.#end({ kind: 'lost', reason })
  }

  async #openSource(connection: Connection, what: OpenRequest): Promise<Source> {
    // The answer goes out before the first byte, also where both come in one packet.
    let isReported = false
    const reportOpen = () => {
      if (!isReported && !this.#isOver) this.#link.send({ type: 'opened', channel: this.#id })
      isReported = true
    }
    const emit = (kind: StreamKind, bytes: Uint8Array) => {
      reportOpen()
      this.#emit(kind, bytes)
    }
    const onStdout = (bytes: Uint8Array) => emit(FRAME_KINDS.stdout, bytes)
    const onStderr = (bytes: Uint8Array) => emit(FRAME_KINDS.stderr, bytes)
    const onDrain = () => this.#grant()
    const onEnd = (end: ChannelEnd) => {
      reportOpen()
      this.#end(end)
    }
    const source =
      what.kind === 'exec'
        ? await connection.exec(what.command, { onStdout, onStderr, onDrain, onEnd }, what.options)
        : await connection.openShell(what, { onData: onStdout, onDrain, onEnd })
    reportOpen()
    return source
  }

  #emit(kind: StreamKind, bytes: Uint8Array): void {
    if (this.#isOver) return
    this.#link.sendBytes(kind, this.#id, bytes)
    if (this.#outgoing.take(bytes.length) || this.#isPaused) return
    this.#isPaused = true
    this.#source?.pause()
  }

  #end(end: ChannelEnd): void {
    if (this.#isOver) return
    this.#hasEnded = true
    this.#finish()
    this.#link.send({ type: 'end', channel: this.#id, end })
  }

  #grant(): void {
    if (this.#ungranted > 0) this.#incoming.consumed(this.#ungranted)
    this.#ungranted = 0
  }

  #finish(): void {
    this.#isOver = true
    this.#onOver()
  }
}
