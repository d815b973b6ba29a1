/** One program's socket in the keeper: it proves itself, borrows connections and opens channels. All it had ends with it. */

import type { Socket } from 'node:net'
import { onAbort } from '../../base/abort.ts'
import type { Clock } from '../../base/clock.ts'
import { openFiles } from '../../base/open-files.ts'
import { failureOf, type Transport } from '../transport.ts'
import { isProof, newNonce, proofOf } from './keeper-directory.ts'
import { KeptChannel } from './kept-channel.ts'
import { KeeperLink } from './link.ts'
import { carriedQuestions, type FromKeeper, fromWireError, PROTOCOL, type Question, type ToKeeper } from './messages.ts'
import type { Hold, WarmConnections } from './warm-connections.ts'

export type ServeOptions = {
  readonly token: Buffer
  readonly warm: WarmConnections
  /** A transport of this program's own, so that keys that it unlocked serve no other program. */
  readonly transport: Transport
  readonly clock: Clock
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

  constructor(socket: Socket, options: ServeOptions) {
    this.#options = options
    this.#link = new KeeperLink<ToKeeper, FromKeeper>(socket, {
      onMessage: (message) => {
        if (this.#isTrusted) this.#handle(message)
        else this.#greet(message)
      },
      onBytes: (_kind, channel, bytes) => this.#channels.get(channel)?.handleBytes(bytes),
      onCredit: (channel, sizeBytes) => this.#channels.get(channel)?.handleCredit(sizeBytes),
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
        connect: (onLost) =>
          this.#options.transport.connect(endpoint, {
            ...questions,
            signal,
            onPhase: (phase) => this.#link.send({ type: 'phase', id, phase }),
            onLost,
          }),
        onCrowded: () => this.#link.send({ type: 'crowded', limit: openFiles()?.limit ?? 0 }),
        onLost: lose,
      })
      // Released, or gone with its program, in the meantime.
      if (signal.aborted) return hold.release()
      use.hold = hold
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
