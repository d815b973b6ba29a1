/** The program's socket to the keeper: proves both sides to each other, borrows connections, answers questions, feeds channels. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { onAbort } from '../../base/abort.ts'
import { ByteQueue } from '../../base/byte-queue.ts'
import type { Clock } from '../../base/clock.ts'
import { MusterError } from '../../base/errors.ts'
import type { Endpoint } from '../../inventory/host.ts'
import {
  type ChannelEnd,
  type ConnectContext,
  ConnectError,
  type ConnectFailure,
  type Connection,
  type RemoteProcess,
  type Shell,
  type ShellSize,
} from '../transport.ts'
import { isProof, newNonce, proofOf } from './keeper-directory.ts'
import {
  FRAME_KINDS,
  IncomingWindow,
  KeeperLink,
  OutgoingWindow,
  type StreamKind,
  UNBOUNDED,
  WINDOW_BYTES,
} from './link.ts'
import {
  answerQuestion,
  type FromKeeper,
  type KeeperWork,
  type OpenRequest,
  PROTOCOL,
  type ToKeeper,
  type WarmConnection,
  type WarmName,
  WORK_CHANNELS,
  wireError,
} from './messages.ts'

/** For a keeper to prove itself: one that was stopped still accepts. */
const GREETING_LIMIT_MS = 3_000
const GONE = 'the keeper of warm connections has gone'
const CUT_OFF = 'the keeper of warm connections was cut off'
/** Questions of one login at once: a host key, a passphrase for each of a few keys. */
const MOST_QUESTIONS = 16

/** The keeper went away before it had an answer. */
export class KeeperGone extends Error {
  /** The reason, where it was cut off for what it sent. */
  readonly cutFor: string | undefined

  constructor(cutFor?: string) {
    super(cutFor ?? GONE)
    this.cutFor = cutFor
  }
}

type Borrow = {
  readonly context: ConnectContext
  readonly made: PromiseWithResolvers<Connection>
  readonly channels: Set<BorrowedChannel>
  questions: number
  isMade: boolean
}

/** A program that lets the keeper do its work. */
export type WorkHandlers = {
  onAccepted(): void
  /** Calls back when the bytes have been taken: until then, little more comes. */
  onBytes(stream: 'stdout' | 'stderr', bytes: Uint8Array, taken: () => void): void
}

/** `onCrowded`: the keeper may open only so many files and keeps fewer connections than it was asked to. */
type OnCrowded = (limit: number) => void

/** Rejects with the socket's error (ENOENT, ECONNREFUSED: none listens), KeeperGone, or a MusterError: it is not our keeper. */
export async function openKeeper(
  address: string,
  token: Buffer,
  clock: Clock,
  onCrowded: OnCrowded = () => {},
): Promise<KeeperClient> {
  const socket = connect(address)
  await once(socket, 'connect')
  const client = new KeeperClient(socket, token, onCrowded)
  using _limit = clock.after(GREETING_LIMIT_MS, () => client.giveUp())
  await client.greeted
  return client
}

export class KeeperClient implements Disposable {
  readonly #link: KeeperLink<FromKeeper, ToKeeper>
  readonly #greeting = Promise.withResolvers<void>()
  readonly #token: Buffer
  readonly #onCrowded: OnCrowded
  readonly #nonce = newNonce()
  readonly #borrows = new Map<number, Borrow>()
  readonly #channels = new Map<number, BorrowedChannel>()
  readonly #answering = new Map<number, AbortController>()
  readonly #lists = new Map<number, PromiseWithResolvers<readonly WarmConnection[]>>()
  #work: (WorkHandlers & { readonly exitCode: PromiseWithResolvers<number | undefined> }) | undefined
  #isTrusted = false
  #isGone = false
  #lastId = 0

  constructor(socket: Socket, token: Buffer, onCrowded: OnCrowded) {
    this.#token = token
    this.#onCrowded = onCrowded
    this.#link = new KeeperLink<FromKeeper, ToKeeper>(socket, {
      onMessage: (message) => {
        if (this.#isTrusted) this.#handle(message)
        else this.#greet(message)
      },
      onBytes: (kind, channel, bytes) => {
        if (this.#work === undefined) this.#channels.get(channel)?.handleBytes(kind, bytes)
        else this.#handleOutput(this.#work, kind, bytes)
      },
      onCredit: (channel, sizeBytes) => this.#channels.get(channel)?.handleCredit(sizeBytes),
      onClose: (reason) => this.#lose(reason === undefined ? undefined : `${CUT_OFF}: ${reason}`),
    })
    this.#link.send({ type: 'hello', protocol: PROTOCOL, nonce: this.#nonce })
  }

  get greeted(): Promise<void> {
    return this.#greeting.promise
  }

  get isGone(): boolean {
    return this.#isGone
  }

  /** Rejects with ConnectError, or KeeperGone. */
  async connect(endpoint: Endpoint, persistMs: number, context: ConnectContext): Promise<Connection> {
    if (this.#isGone) throw new KeeperGone()
    const id = this.#nextId()
    const { signal } = context
    const borrow: Borrow = { context, made: Promise.withResolvers(), channels: new Set(), questions: 0, isMade: false }
    const abort = () => {
      this.#release(id)
      borrow.made.reject(new ConnectError({ kind: 'declined', phase: 'tcp', reason: 'connecting was stopped' }))
    }
    this.#borrows.set(id, borrow)
    this.#link.keepsProgram(true)
    this.#link.send({ type: 'connect', id, endpoint, persistMs })
    using _abort = onAbort(signal, abort)
    return await borrow.made.promise
  }

  list(): Promise<readonly WarmConnection[]> {
    return this.#askList((id) => ({ type: 'list', id }))
  }

  /** Those that it ended. Undefined: all. */
  stop(names?: readonly WarmName[]): Promise<readonly WarmConnection[]> {
    return this.#askList((id) => ({ type: 'stop', id, ...(names === undefined ? {} : { names }) }))
  }

  /**
   * Resolves to the exit code; undefined: the keeper declined, and has done nothing. Rejects with KeeperGone when it went away
   * while it worked. This client does nothing else.
   */
  async work(request: KeeperWork, handlers: WorkHandlers): Promise<number | undefined> {
    if (this.#isGone) return undefined
    const exitCode = Promise.withResolvers<number | undefined>()
    this.#work = { ...handlers, exitCode }
    this.#link.keepsProgram(true)
    this.#link.send({ type: 'work', request })
    return await exitCode.promise
  }

  /** To work that was accepted. */
  tell(message: ToKeeper & { type: 'interrupt' | 'enter' | 'terminal-size' | 'continued' | 'unwritable' }): void {
    this.#link.send(message)
  }

  /** It accepts and says nothing. */
  giveUp(): void {
    this.#greeting.reject(notOurs('does not answer'))
    this.#link.close()
  }

  [Symbol.dispose](): void {
    this.#link.close()
  }

  #greet(message: FromKeeper): void {
    const token = this.#token
    const isOurs =
      message.type === 'hello' &&
      message.protocol === PROTOCOL &&
      typeof message.nonce === 'string' &&
      isProof(message.proof, proofOf('keeper', token, this.#nonce, message.nonce))
    if (!isOurs) {
      this.#greeting.reject(notOurs('is not a keeper of this version'))
      return this.#link.close()
    }
    this.#isTrusted = true
    this.#link.trust()
    this.#link.send({ type: 'proof', proof: proofOf('program', token, this.#nonce, message.nonce) })
    this.#link.keepsProgram(false)
    this.#greeting.resolve()
  }

  #handle(message: FromKeeper): void {
    switch (message.type) {
      case 'phase':
        return this.#borrows.get(message.id)?.context.onPhase(message.phase)
      case 'words':
        return this.#borrows.get(message.id)?.context.onWords?.(message.text)
      case 'banner':
        return this.#borrows.get(message.id)?.context.onBanner?.(message.text)
      case 'ask':
        void this.#answer(message)
        return
      case 'withdraw':
        this.#answering.get(message.question)?.abort()
        return
      case 'connected': {
        const borrow = this.#borrows.get(message.id)
        if (borrow === undefined) return
        borrow.isMade = true
        return borrow.made.resolve(this.#connectionOf(message.id, borrow))
      }
      case 'failed':
        this.#borrows.get(message.id)?.made.reject(new ConnectError(message.failure))
        return this.#forget(message.id)
      case 'crowded':
        return this.#onCrowded(message.limit)
      case 'lost': {
        const borrow = this.#borrows.get(message.id)
        this.#forget(message.id)
        return borrow?.context.onLost(message.reason)
      }
      case 'opened':
        return this.#channels.get(message.channel)?.handleOpened()
      case 'not-opened':
        return this.#channels.get(message.channel)?.handleNotOpened(message.failure)
      case 'end':
        return this.#channels.get(message.channel)?.handleEnd(message.end)
      case 'warm':
        this.#lists.get(message.id)?.resolve(message.connections)
        this.#lists.delete(message.id)
        return this.#rest()
      case 'accepted':
        return this.#work?.onAccepted()
      case 'declined':
        return this.#work?.exitCode.resolve(undefined)
      case 'done':
        return this.#work?.exitCode.resolve(message.exitCode)
      case 'hello':
        return this.#link.close()
    }
  }

  #handleOutput({ onBytes }: WorkHandlers, kind: StreamKind, bytes: Buffer): void {
    const stream = kind === FRAME_KINDS.stderr ? 'stderr' : 'stdout'
    onBytes(stream, bytes, () => this.#link.sendCredit(WORK_CHANNELS[stream], bytes.length))
  }

  #connectionOf(id: number, borrow: Borrow): Connection {
    const open = async (what: OpenRequest, handlers: ChannelHandlers) => {
      if (this.#isGone || this.#borrows.get(id) !== borrow)
        throw new ConnectError({ kind: 'unreachable', phase: 'shell', reason: 'the connection is gone' })
      const channel = new BorrowedChannel(this.#nextId(), this.#link, handlers, () => {
        this.#channels.delete(channel.id)
        borrow.channels.delete(channel)
      })
      this.#channels.set(channel.id, channel)
      borrow.channels.add(channel)
      this.#link.send({ type: 'open', id, channel: channel.id, what })
      await channel.opened.promise
      return channel
    }
    return {
      openShell: (options, handlers) =>
        open(
          { kind: 'shell', ...options },
          {
            onBytes: (_kind, bytes) => handlers.onData(bytes),
            onDrain: () => handlers.onDrain(),
            onEnd: (end) => handlers.onEnd(end),
          },
        ),
      exec: (command, { onStdout, onStderr, onDrain = () => {}, onEnd }, options) =>
        open(
          { kind: 'exec', command, ...(options && { options }) },
          { onBytes: (kind, bytes) => (kind === FRAME_KINDS.stderr ? onStderr : onStdout)(bytes), onDrain, onEnd },
        ),
      // `createPersistTransport` makes a connection of its own for them.
      connectSocket: noStreams,
      connectTcp: noStreams,
      listenTcp: noStreams,
      // Closing it gives it back; it stays warm.
      close: () => {
        for (const channel of [...borrow.channels]) channel.drop()
        this.#release(id)
      },
    }
  }

  async #answer({ id, question, what }: FromKeeper & { type: 'ask' }): Promise<void> {
    const borrow = this.#borrows.get(id)
    if (borrow === undefined) return this.#link.send({ type: 'answer', question })
    borrow.questions += 1
    if (borrow.questions > MOST_QUESTIONS)
      return this.#link.cutOff(`it asked more than ${MOST_QUESTIONS} questions at once`)
    const abort = new AbortController()
    this.#answering.set(question, abort)
    const signal = AbortSignal.any([abort.signal, borrow.context.signal])
    try {
      const answer = await answerQuestion(what, borrow.context, signal)
      this.#link.send({ type: 'answer', question, answer })
    } catch (error) {
      this.#link.send({ type: 'answer', question, error: wireError(error) })
    } finally {
      borrow.questions -= 1
      this.#answering.delete(question)
    }
  }

  #askList(message: (id: number) => ToKeeper): Promise<readonly WarmConnection[]> {
    if (this.#isGone) return Promise.resolve([])
    const id = this.#nextId()
    const answer = Promise.withResolvers<readonly WarmConnection[]>()
    this.#lists.set(id, answer)
    this.#link.keepsProgram(true)
    this.#link.send(message(id))
    return answer.promise
  }

  #release(id: number): void {
    if (!this.#borrows.has(id)) return
    this.#link.send({ type: 'release', id })
    this.#forget(id)
  }

  #forget(id: number): void {
    this.#borrows.delete(id)
    this.#rest()
  }

  /** A program that borrows nothing does not wait for the keeper. */
  #rest(): void {
    if (this.#borrows.size === 0 && this.#lists.size === 0) this.#link.keepsProgram(false)
  }

  #nextId(): number {
    this.#lastId += 1
    return this.#lastId
  }

  #lose(cutFor: string | undefined): void {
    if (this.#isGone) return
    this.#isGone = true
    this.#greeting.reject(new KeeperGone(cutFor))
    for (const abort of this.#answering.values()) abort.abort()
    for (const list of this.#lists.values()) list.resolve([])
    this.#work?.exitCode.reject(new KeeperGone(cutFor))
    const borrows = [...this.#borrows.values()]
    this.#borrows.clear()
    for (const borrow of borrows) {
      if (!borrow.isMade) borrow.made.reject(new KeeperGone(cutFor))
    }
    for (const channel of [...this.#channels.values()]) channel.handleLoss(cutFor ?? GONE)
    for (const borrow of borrows) {
      if (borrow.isMade) borrow.context.onLost(cutFor ?? GONE)
    }
  }
}

function notOurs(what: string): MusterError {
  return new MusterError('configuration', `what listens at the socket for warm connections ${what}`)
}

interface ChannelHandlers {
  onBytes(kind: StreamKind, bytes: Uint8Array): void
  onDrain(): void
  onEnd(end: ChannelEnd): void
}

/** The program's end of a channel that the keeper holds. A window of output waits here while paused, and input waits for the window. */
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

const noStreams = (): Promise<never> => Promise.reject(new Error('a kept connection has no streams'))
