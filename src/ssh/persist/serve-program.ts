/** One program's socket in the keeper: it proves itself, borrows connections and opens channels. All it had ends with it. */
import type { Socket } from 'node:net'
import { onAbort } from '../../base/abort.ts'
import type { Clock } from '../../base/clock.ts'
import { openFiles } from '../../base/open-files.ts'
import {
  type Channel,
  type ChannelEnd,
  type Connection,
  failureOf,
  type RemoteProcess,
  type Shell,
  type Transport,
} from '../transport.ts'
import { isProof, newNonce, proofOf } from './keeper-directory.ts'
import { FRAME_KINDS, IncomingWindow, KeeperLink, OutgoingWindow, type StreamKind, UNBOUNDED } from './link.ts'
import {
  carriedQuestions,
  type FromKeeper,
  fromWireError,
  type OpenRequest,
  PROTOCOL,
  type Question,
  type ToKeeper,
} from './messages.ts'
import { type DoWork, ServedWork } from './served-work.ts'
import type { Hold, WarmConnections } from './warm-connections.ts'

export type ServeOptions = {
  readonly token: Buffer
  readonly warm: WarmConnections
  /** A transport of this program's own, so that keys that it unlocked serve no other program. */
  readonly transport: Transport
  readonly clock: Clock
  /** Undefined: programs do their work themselves. */
  readonly doWork?: DoWork | undefined
  onGone(): void
}

/** A program on the same machine proves itself in no time. */
const GREETING_LIMIT_MS = 10_000

type Use = { readonly abort: AbortController; hold: Hold | undefined; readonly channels: Set<number> }

export class ServedProgram {
  readonly #options: ServeOptions
  readonly #link: KeeperLink<ToKeeper, FromKeeper>
  readonly #nonce = newNonce()
  #expectedProof: string | undefined
  #isTrusted = false
  readonly #greetingLimit: Disposable
  #lastQuestion = 0
  readonly #questions = new Map<number, PromiseWithResolvers<unknown>>()
  readonly #uses = new Map<number, Use>()
  readonly #channels = new Map<number, KeptChannel>()
  #work: ServedWork | undefined

  constructor(socket: Socket, options: ServeOptions) {
    this.#options = options
    this.#link = new KeeperLink<ToKeeper, FromKeeper>(socket, {
      onMessage: (message) => {
        if (this.#isTrusted) this.#handle(message)
        else this.#greet(message)
      },
      onBytes: (_kind, channel, bytes) => this.#channels.get(channel)?.handleBytes(bytes),
      onCredit: (channel, sizeBytes) => {
        this.#work?.handleCredit(channel, sizeBytes)
        this.#channels.get(channel)?.handleCredit(sizeBytes)
      },
      onClose: () => this.#leave(),
    })
    this.#greetingLimit = options.clock.after(GREETING_LIMIT_MS, () => this.#link.close())
  }

  /** It has proved to be a program of this user. */
  get isTrusted(): boolean {
    return this.#isTrusted
  }

  /** What was said before still goes out. */
  close(): void {
    this.#link.finish()
  }

  #greet(message: ToKeeper): void {
    const { token } = this.#options
    if (message.type === 'hello' && typeof message.nonce === 'string' && this.#expectedProof === undefined) {
      this.#expectedProof = proofOf('program', token, message.nonce, this.#nonce)
      const proof = proofOf('keeper', token, message.nonce, this.#nonce)
      this.#link.send({ type: 'hello', protocol: PROTOCOL, nonce: this.#nonce, proof })
    } else if (message.type === 'proof' && this.#expectedProof !== undefined) {
      this.#isTrusted = isProof(message.proof, this.#expectedProof)
      if (!this.#isTrusted) return this.#link.close()
      this.#greetingLimit[Symbol.dispose]()
      this.#link.trust()
    } else this.#link.close()
  }

  #handle(message: ToKeeper): void {
    switch (message.type) {
      case 'connect':
        void this.#connect(message)
        return
      case 'release':
        return this.#release(message.id)
      case 'answer': {
        const question = this.#questions.get(message.question)
        this.#questions.delete(message.question)
        if (message.error === undefined) question?.resolve(message.answer)
        else question?.reject(fromWireError(message.error))
        return
      }
      case 'open':
        return this.#open(message)
      case 'resize':
      case 'signal':
      case 'end-stdin':
      case 'close':
        this.#channels.get(message.channel)?.handleMessage(message)
        return
      case 'list':
        return this.#link.send({ type: 'warm', id: message.id, connections: this.#options.warm.list() })
      case 'stop': {
        const connections = this.#options.warm.stop(message.names, 'it was stopped by muster hosts --stop')
        return this.#link.send({ type: 'warm', id: message.id, connections })
      }
      case 'work':
        if (this.#options.doWork === undefined) return this.#link.send({ type: 'declined' })
        this.#work ??= new ServedWork(this.#link, message.request, this.#options.doWork)
        return
      case 'interrupt':
      case 'enter':
      case 'terminal-size':
      case 'continued':
      case 'unwritable':
        return this.#work?.handleMessage(message)
      case 'hello':
      case 'proof':
        return this.#link.close()
    }
  }

  async #connect({ id, endpoint, persistMs }: ToKeeper & { type: 'connect' }): Promise<void> {
    const use: Use = { abort: new AbortController(), hold: undefined, channels: new Set() }
    this.#uses.set(id, use)
    const { signal } = use.abort
    const questions = carriedQuestions((what, until) => this.#ask(id, what, until))
    let lostEarly: string | undefined
    const lose = (reason: string, isClosed: boolean) => {
      lostEarly = reason
      if (use.hold === undefined) return
      this.#uses.delete(id)
      this.#link.send({ type: 'lost', id, reason })
      if (isClosed) for (const channel of [...use.channels]) this.#channels.get(channel)?.lose(reason)
    }
    try {
      const hold = await this.#options.warm.acquire({
        endpoint,
        persistMs,
        signal,
        connect: (onLost, onBanner) =>
          this.#options.transport.connect(endpoint, {
            ...questions,
            signal,
            onPhase: (phase) => this.#link.send({ type: 'phase', id, phase }),
            onWords: (text) => this.#link.send({ type: 'words', id, text }),
            onBanner: (text) => {
              onBanner(text)
              this.#link.send({ type: 'banner', id, text })
            },
            onLost,
          }),
        onCrowded: () => this.#link.send({ type: 'crowded', limit: openFiles()?.limit ?? 0 }),
        onLost: lose,
      })
      // Released, or gone with its program, in the meantime.
      if (signal.aborted) return hold.release()
      use.hold = hold
      if (hold.banner !== '') this.#link.send({ type: 'banner', id, text: hold.banner })
      this.#link.send({ type: 'connected', id })
      if (lostEarly !== undefined) lose(lostEarly, true)
    } catch (error) {
      this.#uses.delete(id)
      if (!signal.aborted)
        this.#link.send({ type: 'failed', id, failure: failureOf(error, 'configuration', 'authentication') })
    }
  }

  #open({ id, channel, what }: ToKeeper & { type: 'open' }): void {
    const use = this.#uses.get(id)
    if (use?.hold === undefined || this.#channels.has(channel)) {
      const failure = { kind: 'unreachable', phase: 'shell', reason: 'the connection is gone' } as const
      return this.#link.send({ type: 'not-opened', channel, failure })
    }
    const kept = new KeptChannel(channel, this.#link, () => {
      this.#channels.delete(channel)
      use.channels.delete(channel)
    })
    this.#channels.set(channel, kept)
    use.channels.add(channel)
    void kept.open(use.hold.connection, what)
  }

  #release(id: number): void {
    const use = this.#uses.get(id)
    if (use === undefined) return
    this.#uses.delete(id)
    for (const channel of [...use.channels]) this.#channels.get(channel)?.close()
    use.abort.abort()
    use.hold?.release()
  }

  #leave(): void {
    this.#greetingLimit[Symbol.dispose]()
    for (const id of [...this.#uses.keys()]) this.#release(id)
    for (const channel of [...this.#channels.values()]) channel.close()
    for (const question of this.#questions.values()) question.resolve(undefined)
    this.#questions.clear()
    this.#work?.leave()
    this.#options.onGone()
  }

  async #ask(id: number, what: Question, signal: AbortSignal | undefined): Promise<unknown> {
    if (!this.#uses.has(id)) return undefined
    this.#lastQuestion += 1
    const question = this.#lastQuestion
    const answer = Promise.withResolvers<unknown>()
    this.#questions.set(question, answer)
    const withdraw = () => {
      if (!this.#questions.delete(question)) return
      this.#link.send({ type: 'withdraw', question })
      answer.resolve(undefined)
    }
    this.#link.send({ type: 'ask', id, question, what })
    using _abort = onAbort(signal, withdraw)
    return await answer.promise
  }
}

/** A shell, whose input has no end, or a command. */
type Source = Channel & Partial<Pick<Shell, 'resize'> & Pick<RemoteProcess, 'signal' | 'endInput'>>

class KeptChannel {
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
