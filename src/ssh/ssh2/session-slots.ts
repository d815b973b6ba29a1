/** How many sessions a connection may carry (MaxSessions) is learned from the first refusal; then commands wait for an end. */
import { onAbort } from '../../base/abort.ts'
import { getOrMake } from '../../base/collections.ts'

/** sshd tells the end of a session a moment before it counts it: so soon after an end, a refusal is asked about again. */
const ASK_AGAIN_MS = [20, 40, 80, 160, 320]

/** `extra`: a command that waits for no other, as others may wait for it. `lasting`: the same, and no other waits for its end. */
export type SessionKind = 'shell' | 'command' | 'extra' | 'lasting'

/** A session that was refused because the server allows no more of them on this connection. */
export class TooManySessions extends Error {
  override readonly name = 'TooManySessions'
  readonly limit: number

  constructor(limit: number, cause: unknown) {
    super(`the server allows no more than ${limit} sessions on one connection`, { cause })
    this.limit = limit
  }
}

export class SessionSlots {
  readonly #wait: (ms: number) => Promise<void>
  #limit = Number.POSITIVE_INFINITY
  #open = 0
  #commands = 0
  #ended = 0
  readonly #waiting: (() => void)[] = []

  constructor(wait: (ms: number) => Promise<void>) {
    this.#wait = wait
  }

  /** Opens by `open` when there is room, or once there is. The session counts until `release` is called. */
  async acquire<T>(
    kind: SessionKind,
    open: () => Promise<T>,
    isRefusedForLimit: (error: unknown) => boolean,
  ): Promise<{ readonly value: T; release(): void }> {
    const waits = kind === 'shell' || kind === 'command'
    for (let refusals = 0; ; ) {
      while (this.#open >= this.#limit && this.#commands > 0) {
        if (!waits) throw new TooManySessions(this.#open, undefined)
        await new Promise<void>((go) => this.#waiting.push(go))
      }
      this.#count(kind, 1)
      const endedBefore = this.#ended
      try {
        const value = await open()
        return { value, release: this.#releaser(kind) }
      } catch (error) {
        this.#count(kind, -1)
        // What waited for these, which never ran, would wait for ever.
        if (this.#commands === 0) this.#wakeAll()
        if (!isRefusedForLimit(error)) {
          this.#wake()
          throw error
        }
        this.#limit = Math.max(1, this.#open)
        // What ended since the question was asked has made room.
        if ((this.#commands > 0 && waits) || this.#ended > endedBefore) continue
        const waitMs = this.#ended === 0 ? undefined : ASK_AGAIN_MS[refusals]
        if (waitMs === undefined) throw new TooManySessions(this.#open, error)
        refusals += 1
        await this.#wait(waitMs)
      }
    }
  }

  /** The connection is gone: what waits tries, and fails. */
  abandon(): void {
    this.#limit = Number.POSITIVE_INFINITY
    this.#wakeAll()
  }

  #releaser(kind: SessionKind): () => void {
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#ended += 1
      this.#count(kind, -1)
      this.#wake()
    }
  }

  #wake(): void {
    this.#waiting.shift()?.()
  }

  #wakeAll(): void {
    for (const go of this.#waiting.splice(0)) go()
  }

  #count(kind: SessionKind, by: number): void {
    this.#open += by
    if (kind === 'command' || kind === 'extra') this.#commands += by
  }
}

export const HANDSHAKES_PER_SERVER = 8

/** How many handshakes one server sees at once: sshd drops bursts of callers that are not logged in (MaxStartups 10:30:100). */
export class Throttle {
  readonly #limit: number
  readonly #servers = new Map<string, { running: number; readonly queue: (() => void)[] }>()

  constructor(limit: number) {
    this.#limit = Math.max(1, limit)
  }

  /** Waits for a place with this server; the returned function gives it back, once. Rejects when aborted. */
  async enter(server: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted()
    const state = getOrMake(this.#servers, server, () => ({ running: 0, queue: [] }))
    if (state.running < this.#limit) state.running += 1
    else await waitInLine(state.queue, signal)
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      const next = state.queue.shift()
      if (next !== undefined) return next()
      state.running -= 1
      if (state.running === 0) this.#servers.delete(server)
    }
  }
}

/** The place of the one that leaves goes to the first in line. */
function waitInLine(queue: (() => void)[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const enter = () => {
      aborting[Symbol.dispose]()
      resolve()
    }
    queue.push(enter)
    const aborting = onAbort(signal, () => {
      const index = queue.indexOf(enter)
      if (index >= 0) queue.splice(index, 1)
      reject(signal.reason)
    })
  })
}
