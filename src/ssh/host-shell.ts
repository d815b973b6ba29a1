/** One host's interactive shell in the fleet: its channel, its size, and the bytes that wait for it. A reconnect opens a new channel. */

import { ByteQueue } from '../base/byte-queue.ts'
import { messageOf } from '../base/errors.ts'
import type { SessionState } from './session-transition.ts'
import type { ChannelEnd, Connection, Shell, ShellOptions, ShellSize } from './transport.ts'

export type ShellState =
  | { readonly kind: 'none' }
  | { readonly kind: 'opening' }
  | { readonly kind: 'open' }
  | { readonly kind: 'ended'; readonly end: ChannelEnd }

export type FleetEvent =
  | { readonly type: 'added'; readonly host: string }
  | { readonly type: 'removed'; readonly host: string }
  | { readonly type: 'session'; readonly host: string; readonly state: SessionState }
  | { readonly type: 'shell'; readonly host: string; readonly state: ShellState }
  /** What its server printed at the last login, as it came and bounded; empty: nothing any more. */
  | { readonly type: 'banner'; readonly host: string; readonly text: string }
  /** Bytes of the host's shell. Every listener sees them in order; the buffer is not reused. */
  | { readonly type: 'data'; readonly host: string; readonly bytes: Uint8Array }
  /** Bytes typed to a host wait because its channel is full (0: it has caught up). */
  | { readonly type: 'lagging'; readonly host: string; readonly queuedBytes: number }

/** What became of typed bytes. `skipped` says why in a few words: `reconnecting`, `shell ended`, `queue full`. */
export type WriteReport = {
  readonly sent: readonly string[]
  readonly skipped: readonly { readonly host: string; readonly reason: string }[]
  /** Hosts where an interrupt (^C) found the queue full: these earlier bytes, reported as sent, were dropped for it. */
  readonly discarded?: readonly { readonly host: string; readonly bytes: number }[]
}

const LAGGING_FROM_BYTES = 4096
export const WRITE_QUEUE_LIMIT_BYTES = 1024 * 1024
const INTERRUPT = 0x03
const NONE: ShellState = { kind: 'none' }

export type ShellEnvironment = Omit<ShellOptions, 'size'>

export class HostShell {
  readonly #host: string
  readonly #emit: (event: FleetEvent) => void
  /** Typed bytes that wait for a full channel, each write whole or not at all, so that no keystroke is split. */
  readonly #queue = new ByteQueue(WRITE_QUEUE_LIMIT_BYTES)
  #state: ShellState = NONE
  #shell: Shell | undefined
  /** Counts channels, so that a late callback of an old one is recognised. */
  #generation = 0
  #size: ShellSize
  #sentSize: ShellSize
  #isPaused = false
  #isFull = false
  #reportedLagBytes = 0
  /** Waiting bytes that the last `write` threw away in favour of an interrupt. */
  discardedBytes = 0

  constructor(host: string, size: ShellSize, emit: (event: FleetEvent) => void) {
    this.#host = host
    this.#size = size
    this.#sentSize = size
    this.#emit = emit
  }

  get state(): ShellState {
    return this.#state
  }

  get isLive(): boolean {
    return this.#state.kind === 'open' || this.#state.kind === 'opening'
  }

  async open(connection: Connection, options: ShellEnvironment): Promise<void> {
    const generation = this.#renew()
    const isCurrent = () => generation === this.#generation
    this.#sentSize = this.#size
    this.#setState({ kind: 'opening' })
    const host = this.#host
    try {
      const shell = await connection.openShell(
        { size: this.#size, ...options },
        {
          onData: (bytes) => {
            if (isCurrent()) this.#emit({ type: 'data', host, bytes })
          },
          onDrain: () => {
            if (isCurrent()) this.#drain()
          },
          onEnd: (end) => {
            if (isCurrent()) this.end(end)
          },
        },
      )
      if (!isCurrent()) return shell.close()
      this.#shell = shell
      if (this.#isPaused) shell.pause()
      this.applySize()
      this.#setState({ kind: 'open' })
    } catch (error) {
      if (isCurrent()) this.end({ kind: 'lost', reason: messageOf(error) })
    }
  }

  /** The channel is gone, and with it what waited for it. */
  end(end: ChannelEnd): void {
    if (!this.isLive) return
    this.#renew()
    this.#setState({ kind: 'ended', end })
  }

  /** Hangs up; the state is as if there never was a shell. */
  close(): void {
    const shell = this.#shell
    this.#renew()
    shell?.close()
    this.#setState(NONE)
  }

  /**
   * Takes typed bytes whole, in order, or says why not. An interrupt (^C) that finds no room drops what waits, as a terminal's
   * INTR flushes its input queue (termios(3)): Ctrl-C must reach a host that stopped reading.
   */
  write(bytes: Uint8Array): string | undefined {
    this.discardedBytes = 0
    const shell = this.#shell
    if (shell === undefined) return this.#state.kind === 'opening' ? 'shell opening' : 'shell ended'
    if (!this.#isFull) {
      this.#send(shell, bytes)
      return undefined
    }
    if (!this.#queue.push(bytes)) {
      if (!bytes.includes(INTERRUPT)) return 'queue full'
      this.discardedBytes = this.#queue.takeAll().length
      if (!this.#queue.push(bytes)) return 'queue full'
    }
    this.#reportLag()
    return undefined
  }

  /** Remembers the size; true if the channel does not have it yet (`applySize` tells it). */
  resize(size: ShellSize): boolean {
    this.#size = size
    return this.#shell !== undefined && !this.#hasSize()
  }

  applySize(): void {
    if (this.#shell === undefined || this.#hasSize()) return
    this.#sentSize = this.#size
    this.#shell.resize(this.#size)
  }

  pause(): void {
    this.#isPaused = true
    this.#shell?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#shell?.resume()
  }

  #hasSize(): boolean {
    return this.#size.columns === this.#sentSize.columns && this.#size.rows === this.#sentSize.rows
  }

  #send(shell: Shell, bytes: Uint8Array): boolean {
    const takesMore = shell.write(bytes)
    if (!takesMore) this.#isFull = true
    return takesMore
  }

  #drain(): void {
    const shell = this.#shell
    if (shell === undefined) return
    this.#isFull = false
    for (let bytes = this.#queue.take(); bytes && this.#send(shell, bytes); ) bytes = this.#queue.take()
    this.#reportLag()
  }

  /** On the way up at the threshold and at each doubling, so that typing costs no event a key; then once when caught up. */
  #reportLag(): void {
    const queuedBytes = this.#queue.bytes
    if (queuedBytes === 0) {
      if (this.#reportedLagBytes === 0) return
    } else if (queuedBytes < LAGGING_FROM_BYTES || queuedBytes < 2 * this.#reportedLagBytes) return
    this.#reportedLagBytes = queuedBytes
    this.#emit({ type: 'lagging', host: this.#host, queuedBytes })
  }

  #renew(): number {
    this.#shell = undefined
    this.#isFull = false
    this.#queue.takeAll()
    this.#reportLag()
    return ++this.#generation
  }

  #setState(state: ShellState): void {
    if (this.#state.kind === 'none' && state.kind === 'none') return
    this.#state = state
    this.#emit({ type: 'shell', host: this.#host, state })
  }
}
