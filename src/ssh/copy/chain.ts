/** Large files along a chain of hosts: this machine sends to one host, the hosts relay, and each verifies the checksum itself. */

import type { Clock } from '../../base/clock.ts'
import { getOrMake } from '../../base/collections.ts'
import type { PathEvent } from './events.ts'
import { type LinkHelper, Links, type Peer } from './links.ts'
import { type ChainState, FEWEST, Relay, type RelayHop, WATCH_MS } from './relay.ts'
import type { HelperMessage } from './remote-helper.ts'
import type { CopySource } from './source.ts'

/** Smaller files are not worth a link. */
export const CHAIN_BYTES = 4 * 1024 * 1024

export type ChainOptions = Pick<ChainState, 'via' | 'clock' | 'hosts'> & { onPath(event: PathEvent): void }

export class Chain implements ChainState, Disposable {
  readonly hosts: readonly string[]
  readonly via: 'chain' | 'auto'
  readonly clock: Clock
  readonly links: Links
  /** False: not tried yet. */
  isProven = false
  isGivenUp = false
  readonly report: (event: PathEvent) => void
  readonly #candidates: Set<string>
  readonly #peers = new Map<string, Peer>()
  readonly #relays = new Map<CopySource, Relay>()
  readonly #settled = new Set<() => void>()
  readonly #timers = new Set<Disposable>()
  #lastFile = 0

  constructor({ via, clock, hosts, onPath }: ChainOptions) {
    this.hosts = hosts
    this.via = via
    this.clock = clock
    this.report = onPath
    this.#candidates = new Set(hosts)
    this.links = new Links(clock, (link, reason) => {
      for (const relay of this.#relays.values()) relay.handleLinkLost(link, reason)
    })
    this.#watch()
  }

  get isPossible(): boolean {
    return this.#candidates.size >= FEWEST[this.via]
  }

  /** The host takes nothing, or has ended. */
  exclude(host: string): void {
    this.#candidates.delete(host)
  }

  add(host: string, address: string, helper: LinkHelper): void {
    const peer = { host, address, helper }
    this.#peers.set(host, peer)
    helper.onMessage((message) => this.#handle(peer, message))
  }

  /** Undefined: this host takes this file from this machine. `path`: of the partial file on the host. */
  join(
    host: string,
    file: CopySource,
    path: string,
    have: number,
    onHave: (bytes: number) => void,
  ): RelayHop | undefined {
    const peer = this.#peers.get(host)
    if (peer === undefined || peer.helper.isLost || file.sizeBytes < CHAIN_BYTES || this.isGivenUp) return undefined
    const relay = getOrMake(this.#relays, file, () => new Relay(this, file, ++this.#lastFile))
    return relay.join(peer, path, have, onHave)
  }

  /** Resolves when no host takes anything from this one any more. */
  async released(host: string): Promise<void> {
    while ([...this.#relays.values()].some((relay) => relay.needs(host))) {
      await new Promise<void>((resolve) => this.#settled.add(resolve))
    }
  }

  handleChange(): void {
    for (const [file, relay] of this.#relays) {
      if (relay.isOver) {
        relay.forget()
        this.#relays.delete(file)
      }
    }
    const waiting = [...this.#settled]
    this.#settled.clear()
    for (const resolve of waiting) resolve()
  }

  /** Until the chain is disposed. */
  after(delayMs: number, callback: () => void): void {
    const timer = this.clock.after(delayMs, () => {
      this.#timers.delete(timer)
      callback()
    })
    this.#timers.add(timer)
  }

  [Symbol.dispose](): void {
    for (const timer of this.#timers) timer[Symbol.dispose]()
    this.#timers.clear()
    this.links[Symbol.dispose]()
  }

  #watch(): void {
    this.after(WATCH_MS, () => {
      for (const relay of this.#relays.values()) relay.watch()
      this.#watch()
    })
  }

  #handle(peer: Peer, message: HelperMessage | undefined): void {
    if (message === undefined) {
      this.#peers.delete(peer.host)
      for (const relay of this.#relays.values()) relay.handlePeerLost(peer)
      return
    }
    if (message.link !== undefined) this.links.handle(peer, message)
    if (message.file !== undefined) for (const relay of this.#relays.values()) relay.handleFile(peer, message)
  }
}
