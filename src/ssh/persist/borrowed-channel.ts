/** The program's end of a channel that the keeper holds. A window of output waits here while paused, and input waits for the window. */
import { ByteQueue } from '../../base/byte-queue.ts'
import {
  type ChannelEnd,
  ConnectError,
  type ConnectFailure,
  type RemoteProcess,
  type Shell,
  type ShellSize,
} from '../transport.ts'
import {
  FRAME_KINDS,
  IncomingWindow,
  type KeeperLink,
  OutgoingWindow,
  type StreamKind,
  UNBOUNDED,
  WINDOW_BYTES,
} from './link.ts'
import type { FromKeeper, ToKeeper } from './messages.ts'

export interface ChannelHandlers {
  onBytes(kind: StreamKind, bytes: Uint8Array): void
  onDrain(): void
  onEnd(end: ChannelEnd): void
}

export class BorrowedChannel implements Shell, RemoteProcess {
  readonly id: number
  readonly opened = Promise.withResolvers<void>()
  readonly #link: KeeperLink<FromKeeper, ToKeeper>
  readonly #handlers: ChannelHandlers
  readonly #onOver: () => void
  readonly #incoming: IncomingWindow
  readonly #outgoing = new OutgoingWindow()
  /** Arrived while paused, in order. */
  readonly #arrived: { readonly kind: StreamKind; readonly bytes: Uint8Array }[] = []
  /** Written while the window was full, in order. */
  readonly #unsent = new ByteQueue()
  #pendingEnd: ChannelEnd | undefined
  #isPaused = false
  /** `answered`: open, but what came in one piece with that answer waits until the opener has the channel. */
  #opening: 'asked' | 'answered' | 'done' = 'asked'
  #isDelivering = false
  #isFull = false
  #endsInput = false
  #hasSentEnd = false
  #isOver = false

  constructor(id: number, link: KeeperLink<FromKeeper, ToKeeper>, handlers: ChannelHandlers, onOver: () => void) {
    this.id = id
    this.#link = link
    this.#handlers = handlers
    this.#onOver = onOver
    this.#incoming = new IncomingWindow((sizeBytes) => {
      if (!this.#isOver) link.sendCredit(id, sizeBytes)
    })
    // The opener awaits this promise, unless the channel is closed before.
    this.opened.promise.catch(() => {})
  }

  /** False: it waits for `onDrain`; these bytes are kept. */
  write(bytes: Uint8Array): boolean {
    if (this.#isOver || this.#endsInput) return false
    if (bytes.length > 0) this.#unsent.push(bytes)
    this.#send()
    this.#isFull = this.#unsent.bytes > 0 || this.#outgoing.roomBytes <= WINDOW_BYTES / 2
    return !this.#isFull
  }

  endInput(): void {
    if (this.#isOver || this.#endsInput) return
    this.#endsInput = true
    this.#send()
  }

  resize(size: ShellSize): void {
    if (!this.#isOver) this.#link.send({ type: 'resize', channel: this.id, size })
  }

  signal(name: string): void {
    if (!this.#isOver) this.#link.send({ type: 'signal', channel: this.id, name })
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#deliver()
  }

  close(): void {
    if (this.#isOver) return
    this.#link.send({ type: 'close', channel: this.id })
    this.#finish()
  }

  handleOpened(): void {
    this.#opening = 'answered'
    this.opened.resolve()
    // After all promises that this one keeps.
    setImmediate(() => {
      this.#opening = 'done'
      this.#deliver()
    })
  }

  handleNotOpened(failure: ConnectFailure): void {
    this.opened.reject(new ConnectError(failure))
    this.#finish()
  }

  handleBytes(kind: StreamKind, bytes: Uint8Array): void {
    if (this.#isOver) return
    if (!this.#incoming.received(bytes.length)) return this.#link.cutOff(UNBOUNDED)
    this.#arrived.push({ kind, bytes })
    this.#deliver()
  }

  handleCredit(sizeBytes: number): void {
    if (this.#isOver) return
    this.#outgoing.give(sizeBytes)
    this.#send()
    if (!this.#isFull || this.#unsent.bytes > 0 || this.#outgoing.roomBytes <= WINDOW_BYTES / 2) return
    this.#isFull = false
    this.#handlers.onDrain()
  }

  handleEnd(end: ChannelEnd): void {
    if (this.#isOver) return
    this.#pendingEnd = end
    this.#deliver()
  }

  /** The connection or the keeper went away. */
  handleLoss(reason: string): void {
    if (this.#isOver) return
    if (this.#opening === 'asked') {
      this.opened.reject(new ConnectError({ kind: 'unreachable', phase: 'shell', reason }))
      return this.#finish()
    }
    this.#pendingEnd ??= { kind: 'lost', reason }
    this.#deliver()
  }

  /** Our own `Connection.close`: no handler is called. */
  drop(): void {
    if (!this.#isOver) this.#finish()
  }

  #send(): void {
    while (this.#outgoing.roomBytes > 0) {
      const piece = this.#unsent.take(this.#outgoing.roomBytes)
      if (piece === undefined) break
      this.#outgoing.take(piece.length)
      this.#link.sendBytes(FRAME_KINDS.stdin, this.id, piece)
    }
    if (!this.#endsInput || this.#hasSentEnd || this.#unsent.bytes > 0) return
    this.#hasSentEnd = true
    this.#link.send({ type: 'end-stdin', channel: this.id })
  }

  /** A handler may pause, resume or close in the middle of it. */
  #deliver(): void {
    if (this.#isDelivering) return
    this.#isDelivering = true
    while (!this.#isHeld && !this.#isOver) {
      const next = this.#arrived.shift()
      if (next === undefined) break
      this.#incoming.consumed(next.bytes.length)
      this.#handlers.onBytes(next.kind, next.bytes)
    }
    this.#isDelivering = false
    if (this.#isHeld || this.#isOver || this.#pendingEnd === undefined) return
    this.#finish()
    this.#handlers.onEnd(this.#pendingEnd)
  }

  get #isHeld(): boolean {
    return this.#isPaused || this.#opening !== 'done'
  }

  #finish(): void {
    this.#isOver = true
    this.#arrived.length = 0
    this.#unsent.takeAll()
    this.opened.reject(new ConnectError({ kind: 'declined', phase: 'shell', reason: 'the channel was closed' }))
    this.#onOver()
  }
}
