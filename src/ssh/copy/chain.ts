/** Large files along a chain of hosts: this machine sends to one host, the hosts relay, and each verifies the checksum itself. */
import type { Clock } from '../../base/clock.ts'
import { getOrMake } from '../../base/collections.ts'
import { messageOf } from '../../base/errors.ts'
import type { PathEvent } from './events.ts'
import { type Link, type LinkHelper, Links, type Peer } from './links.ts'
import type { HelperMessage } from './remote-helper.ts'
import type { CopySource } from './source.ts'

export const CHAIN_BYTES = 4 * 1024 * 1024

type ChainOptions = Pick<Chain, 'via' | 'clock' | 'hosts'> & { onPath(event: PathEvent): void }

export class Chain implements Disposable {
  /** In the order in which they should pass files on. */
  readonly hosts: readonly string[]
  readonly via: 'chain' | 'auto'
  readonly clock: Clock
  readonly links: Links
  /** A chain was found to be faster. */
  isProven = false
  /** A chain was found not to be faster. */
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

  /** Enough hosts may still join. */
  get isPossible(): boolean {
    return this.#candidates.size >= FEWEST[this.via]
  }

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

/** One host's part in the relay of one file. */
export type Hop = {
  readonly have: number
  /** The host from which it takes the file; undefined: this machine. */
  readonly source: Hop | undefined
  /** It can pass the file on. */
  readonly isUsable: boolean
  /** A link to it or from it is slow: other hosts are preferred as sources. */
  readonly isSlow: boolean
  /** Hosts from which it could not take the file, or not fast enough. */
  readonly refused: ReadonlySet<Hop>
}

/** The order of a chain: as given, but hosts at less than half the median rate come last, the slowest at the end. */
export function orderChain<T>(hops: readonly T[], rateOf: (hop: T) => number): readonly T[] {
  const rates = hops.map(rateOf).sort((one, other) => one - other)
  const usual = rates[Math.floor(rates.length / 2)] ?? 0
  const isSlow = (hop: T) => rateOf(hop) < usual / 2
  const slow = hops.filter(isSlow).sort((one, other) => rateOf(other) - rateOf(one))
  return [...hops.filter((hop) => !isSlow(hop)), ...slow]
}

/** The source of the present one, else the host that serves fewest and has most of the file. Undefined: this machine. */
export function pickSource<T extends Hop>(hop: T, hops: readonly T[]): T | undefined {
  const children = (candidate: T) => hops.filter(({ source }) => source === candidate).length
  const usable = hops.filter(
    (candidate) => candidate !== hop && candidate.isUsable && !hop.refused.has(candidate) && !isBelow(candidate, hop),
  )
  const above = usable.find((candidate) => candidate === hop.source?.source && !candidate.isSlow)
  const others = usable.toSorted((one, other) => children(one) - children(other) || other.have - one.have)
  return above ?? others.find(({ isSlow }) => !isSlow) ?? others[0]
}

/** The last of the other hosts in the chain, as the source of a slow one. */
export function pickEnd<T extends Hop>(hop: T, hops: readonly T[]): T | undefined {
  const depth = (each: Hop): number => (each.source === undefined ? 0 : 1 + depth(each.source))
  const usable = hops.filter((each) => each !== hop && each.isUsable && !each.isSlow && !isBelow(each, hop))
  return usable.toSorted((one, other) => depth(other) - depth(one))[0]
}

export function isBelow(hop: Hop, above: Hop): boolean {
  for (let each = hop.source; each !== undefined; each = each.source) if (each === above) return true
  return false
}

export const FEWEST = { chain: 2, auto: 3 } as const
const OBSERVE_MS = 400
/** A file that takes less time than this goes from this machine. */
const WORTH_MS = 4_000
const GAIN = 1.3
const WATCH_MS = 1_000
const STALL_MS = 3_000
/** If a host's helper has reported no checksum by then, its shell reads the whole file. */
const VERIFY_MS = 5_000
/** A link counts as slow only if its receiver is further behind than this. */
const LAG_BYTES = 2 * 1024 * 1024
const CLOSE_BYTES = 4 * 1024 * 1024
const TRIES = 3
/** In flight to each host while it is measured, and while the orders that make links share the connection. */
const UNDECIDED_BYTES = 768 * 1024
const LINKING_BYTES = 64 * 1024
const SLOW_SHARE = 0.3
const SLOW_SECONDS = 5
/** A link is slow if it brings less than this part of what its source gets, for so long. */
const LINK_SHARE = 0.5
const SLOW_LINK_SECONDS = 2
/** A link is given the time that this much takes at its measured rate, beyond `STALL_MS`, before it counts as still. */
const SIGN_BYTES = 64 * 1024

class Relay {
  readonly chain: Chain
  readonly file: CopySource
  readonly number: number
  readonly #hops: RelayHop[] = []
  #startedAtMs = 0
  #state: 'waiting' | 'observing' | 'linking' | 'chain' | 'direct' = 'waiting'
  #hereBitsPerSecond = 0

  constructor(chain: Chain, file: CopySource, number: number) {
    this.chain = chain
    this.file = file
    this.number = number
    if (chain.isProven) this.#state = 'chain'
  }

  get allowedBytes(): number {
    if (this.#state === 'linking') return LINKING_BYTES
    const isUndecided = this.#state === 'observing' || (this.#state === 'waiting' && this.chain.isPossible)
    return isUndecided ? UNDECIDED_BYTES : Number.POSITIVE_INFINITY
  }

  get isOver(): boolean {
    return this.#hops.every((hop) => hop.isGone || hop.hasLeft)
  }

  needs(host: string): boolean {
    return this.#active.some((hop) => hop.isRelayed && hop.source?.peer.host === host)
  }

  join(peer: Peer, path: string, have: number, onHave: (bytes: number) => void): RelayHop {
    const hop = new RelayHop(this, peer, have, onHave)
    const { sizeBytes: size, isSparse: sparse } = this.file
    peer.helper.send({ op: 'file', file: this.number, path, have, size, sparse })
    this.#hops.push(hop)
    if (this.#state === 'chain') void this.#detour(hop, undefined)
    else if (this.#state === 'waiting' && this.#active.length >= FEWEST[this.chain.via]) {
      this.#state = 'observing'
      this.#startedAtMs = this.chain.clock.now()
      for (const each of this.#hops) each.watchedBytes = each.have
      this.#observeLater()
    }
    return hop
  }

  forget(): void {
    for (const { peer } of this.#hops) peer.helper.send({ op: 'forget', file: this.number })
  }

  handleFile(peer: Peer, message: HelperMessage): void {
    const hop = this.#hops.find((each) => each.peer === peer)
    if (hop === undefined || message.file !== this.number) return
    if (message.error !== undefined) {
      // If this machine sends the file, it fails again with the host's own words.
      hop.refused.add(hop)
      hop.isGone = true
      hop.release()
      hop.handleVerified(undefined)
      this.handleGone(hop)
    } else if (message.sha256 !== undefined) hop.handleVerified(message.sha256)
    else if (typeof message.have === 'number') hop.handleHave(message.have)
  }

  handleLinkLost(link: Link, reason: string): void {
    for (const hop of this.#hops) if (hop.link === link && !hop.isDone) void this.#detour(hop, reason)
  }

  handlePeerLost(peer: Peer): void {
    const lost = this.#hops.find((hop) => hop.peer === peer)
    if (lost === undefined) return
    if (lost.isRelayed) lost.release()
    lost.handleVerified(undefined)
    this.handleGone(lost)
  }

  /** The hosts that take the file from this one need another source. */
  handleGone(gone: RelayHop): void {
    for (const hop of this.#hops) {
      if (hop.source === gone && hop.isRelayed) void this.#detour(hop, `${gone.peer.host} has gone`)
    }
  }

  /** Once a second: bypasses hosts that stall or are slow. */
  watch(): void {
    const nowMs = this.chain.clock.now()
    for (const hop of this.#hops) {
      hop.rate = ((hop.have - hop.watchedBytes) * 8_000) / WATCH_MS
      hop.bestRate = Math.max(hop.bestRate, hop.rate)
      if (this.#state !== 'observing') hop.watchedBytes = hop.have
    }
    if (this.#state !== 'chain') return
    const share = this.#hereBitsPerSecond / this.#active.filter((hop) => !hop.isRelayed).length
    for (const hop of this.#active) {
      const isSlow = !hop.isRelayed && hop.rate < SLOW_SHARE * share
      hop.slowSeconds = isSlow ? hop.slowSeconds + 1 : 0
      const bitsPerSecond = hop.isRelayed ? hop.link?.bitsPerSecond : share
      const patienceMs = STALL_MS + (8_000 * SIGN_BYTES) / Math.max(1, bitsPerSecond ?? Number.POSITIVE_INFINITY)
      const isStill = nowMs - hop.movedAtMs >= patienceMs
      const behind = this.#behind(hop).filter((each) => hop.have - each.have < CLOSE_BYTES)
      const { source } = hop
      if (source !== undefined && hop.waiting !== undefined) {
        const lag = source.have - hop.have
        if (isStill && lag > 0) void this.#detour(hop, `nothing comes from ${source.peer.host}`)
        else if (!hop.isSlow && this.#isSlowLink(source, hop)) void this.#moveToEnd(source, hop)
      } else if (source !== undefined) {
        // It is to take the rest from there, but has not acknowledged what this machine sent before.
        if (isStill) for (const each of behind) void this.#detour(each, `${hop.peer.host} accepts no data`)
      } else if (behind.length > 0 && (isStill || hop.slowSeconds >= SLOW_SECONDS)) {
        // This machine sends to it too slowly for the others.
        void this.#promote(behind, hop, isStill)
      }
    }
  }

  #behind(hop: RelayHop): readonly RelayHop[] {
    return this.#active.filter((each) => each.source === hop && each.waiting !== undefined)
  }

  /** It brings far less than its source gets, or than the other links if its source has the whole file. */
  #isSlowLink(source: RelayHop, hop: RelayHop): boolean {
    const rates = this.#hops.map(({ bestRate }) => bestRate).sort((one, other) => one - other)
    const supply = source.isDone ? (rates[Math.floor(rates.length / 2)] ?? 0) : source.rate
    const isBehind = source.have - hop.have > LAG_BYTES
    const isSlow = isBehind && hop.rate > 0 && hop.rate < LINK_SHARE * supply
    hop.slowLinkSeconds = isSlow ? hop.slowLinkSeconds + 1 : 0
    return hop.slowLinkSeconds >= SLOW_LINK_SECONDS
  }

  /**
   * The link is slow because of one of its ends. The first time it counts as the receiver's fault: the hosts behind it take the
   * file from the source, and it takes it from the end of the chain. If a second host is slow behind the same source, it is the source's.
   */
  async #moveToEnd(source: RelayHop, hop: RelayHop): Promise<void> {
    if (hop.isMoving || source.isSlow) return
    hop.slowLinkSeconds = 0
    const [first] = source.slowBehind
    if (first !== undefined && first !== hop) {
      first.isSlow = false
      source.isSlow = true
      for (const each of this.#behind(source)) void this.#detour(each, `${source.peer.host} is slow`)
      return
    }
    source.slowBehind.add(hop)
    const reason = `${hop.peer.host} is slow`
    hop.isSlow = true
    await Promise.all(this.#behind(hop).map((each) => this.#detour(each, reason)))
    await this.#takeFromEnd(hop, reason)
  }

  get #active(): RelayHop[] {
    return this.#hops.filter((hop) => !hop.isGone && !hop.isDone)
  }

  #observeLater(): void {
    this.chain.after(OBSERVE_MS, () => {
      if (this.#state === 'observing') void this.#decide()
    })
  }

  async #decide(): Promise<void> {
    const { chain } = this
    const placeOf = (hop: RelayHop) => chain.hosts.indexOf(hop.peer.host)
    const hops = this.#active.filter((hop) => hop.isUsable).sort((one, other) => placeOf(one) - placeOf(other))
    const elapsedMs = Math.max(1, chain.clock.now() - this.#startedAtMs)
    const sent = this.#hops.reduce((sum, hop) => sum + hop.have - hop.startBytes, 0)
    const left = this.#active.reduce((sum, hop) => sum + this.file.sizeBytes - hop.have, 0)
    this.#hereBitsPerSecond = (8_000 * sent) / elapsedMs
    if (sent === 0 && hops.length > 0) return this.#observeLater()
    if (hops.length < 2 || (chain.via === 'auto' && (hops.length < 3 || left * elapsedMs < WORTH_MS * sent))) {
      this.#state = 'direct'
      return
    }
    this.#state = 'linking'
    const order = orderChain(hops, (hop) => hop.have - hop.startBytes)
    const tried = await Promise.allSettled(
      order.slice(1).map((hop, index) => chain.links.between((order[index] ?? hop).peer, hop.peer)),
    )
    const links = tried.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    const rates = links.map(({ bitsPerSecond }) => bitsPerSecond).sort((one, other) => one - other)
    const between = rates[Math.floor(rates.length / 2)] ?? 0
    const reason = this.#reasonForDirect(tried, between, hops.length)
    if (reason !== undefined) {
      this.#state = 'direct'
      chain.isGivenUp = true
      for (const link of links) chain.links.drop(link)
      chain.report({ via: 'direct', reason })
      return
    }
    this.#state = 'chain'
    chain.isProven = true
    const hosts = order.map(({ peer }) => peer.host)
    chain.report({ via: 'chain', hosts, betweenBitsPerSecond: between, hereBitsPerSecond: this.#hereBitsPerSecond })
    const detours: (() => Promise<void>)[] = []
    for (const [index, each] of tried.entries()) {
      const [source, hop] = [order[index], order[index + 1]]
      if (hop === undefined || source === undefined || hop.isDone || hop.isGone) continue
      if (each.status === 'fulfilled' && source.isUsable) this.#attach(hop, source, each.value)
      else {
        hop.source = source
        const reason = each.status === 'rejected' ? messageOf(each.reason) : 'it has gone'
        detours.push(() => this.#detour(hop, reason))
      }
    }
    // Hosts that came while links were made.
    for (const hop of this.#active) if (!order.includes(hop)) detours.push(() => this.#detour(hop, undefined))
    // Attach all first, so that two hosts never feed each other.
    for (const detour of detours) void detour()
  }

  #reasonForDirect(tried: readonly PromiseSettledResult<Link>[], between: number, count: number): string | undefined {
    const failure = tried.find((each) => each.status === 'rejected')
    if (between === 0) return `the hosts cannot reach each other (${failure ? messageOf(failure.reason) : 'no answer'})`
    const share = this.#hereBitsPerSecond / count
    return this.chain.via === 'auto' && between < GAIN * share ? 'the links between the hosts are no faster' : undefined
  }

  #attach(hop: RelayHop, source: RelayHop, link: Link): void {
    hop.source = source
    hop.link = link
    hop.isRelayed = true
    hop.movedAtMs = this.chain.clock.now()
    hop.serve()
  }

  /** Finds another source. `reason`: undefined for a host that had none yet. */
  async #detour(hop: RelayHop, reason: string | undefined): Promise<void> {
    const { chain } = this
    if (hop.isGone || hop.isDone || hop.isMoving) return
    hop.isMoving = true
    if (hop.source !== undefined) hop.refused.add(hop.source)
    if (hop.link !== undefined) chain.links.drop(hop.link)
    hop.link = undefined
    // This machine sends nothing meanwhile: a link is made within seconds.
    hop.isRelayed = true
    try {
      await this.#findSource(hop, reason)
    } finally {
      hop.isMoving = false
    }
  }

  /** The present source is used until the link to the next one is up. */
  async #takeFromEnd(hop: RelayHop, reason: string): Promise<void> {
    const source = pickEnd(hop, this.#active)
    if (source === undefined || source === hop.source) return
    const link = await this.chain.links.between(source.peer, hop.peer).catch(() => undefined)
    const isStale = hop.isMoving || hop.isDone || hop.isGone || !source.isUsable || isBelow(source, hop)
    if (link === undefined || isStale) return
    if (hop.link !== undefined && hop.link !== link) this.chain.links.drop(hop.link)
    this.chain.report({ via: 'detour', host: hop.peer.host, from: source.peer.host, reason })
    this.#attach(hop, source, link)
  }

  async #findSource(hop: RelayHop, reason: string | undefined): Promise<void> {
    const { chain } = this
    const { host, helper } = hop.peer
    let why = reason
    while (hop.refused.size < TRIES && !helper.isLost) {
      const source = pickSource(hop, this.#hops)
      if (source === undefined) break
      hop.source = source
      try {
        const link = await chain.links.between(source.peer, hop.peer)
        if (hop.isGone || hop.isDone || hop.source !== source) return
        if (source.isUsable) {
          if (why !== undefined) chain.report({ via: 'detour', host, from: source.peer.host, reason: why })
          return this.#attach(hop, source, link)
        }
      } catch (error) {
        why ??= messageOf(error)
      }
      hop.refused.add(source)
    }
    if (why !== undefined) chain.report({ via: 'detour', host, reason: why })
    hop.release()
  }

  /** The first of the hosts behind a slow one takes the file from this machine, and the others from it. */
  async #promote(behind: readonly RelayHop[], slow: RelayHop, isStill: boolean): Promise<void> {
    const [first, ...others] = behind
    if (first === undefined) return
    const reason = `${slow.peer.host} ${isStill ? 'accepts no data' : 'is slow'}`
    for (const each of behind) each.refused.add(slow)
    if (first.link !== undefined) this.chain.links.drop(first.link)
    first.release()
    this.chain.report({ via: 'detour', host: first.peer.host, reason })
    slow.isSlow = true
    await Promise.all(others.map((each) => this.#detour(each, reason)))
    if (!isStill) await this.#takeFromEnd(slow, reason)
  }
}

/** One host's part in the relay of one file: what it has, from which host it takes the rest, and whether its sender waits for that. */
export class RelayHop implements Hop {
  readonly peer: Peer
  readonly refused = new Set<Hop>()
  readonly startBytes: number
  have: number
  source: RelayHop | undefined
  link: Link | undefined
  /** Another host brings it: this machine sends nothing more. */
  isRelayed = false
  isGone = false
  hasLeft = false
  /** Another source is being looked for. */
  isMoving = false
  waiting: PromiseWithResolvers<number> | undefined
  movedAtMs: number
  watchedBytes: number
  rate = 0
  /** The highest rate so far. */
  bestRate = 0
  isSlow = false
  /** Hosts that got the file from this one over a slow link. */
  readonly slowBehind = new Set<RelayHop>()
  slowLinkSeconds = 0
  /** For how many seconds in a row it has taken far less from this machine than its share. */
  slowSeconds = 0
  readonly #relay: Relay
  readonly #onHave: (bytes: number) => void
  readonly #verified = Promise.withResolvers<string | undefined>()

  constructor(relay: Relay, peer: Peer, have: number, onHave: (bytes: number) => void) {
    this.#relay = relay
    this.#onHave = onHave
    this.peer = peer
    this.startBytes = have
    this.have = have
    this.watchedBytes = have
    this.movedAtMs = relay.chain.clock.now()
  }

  get isDone(): boolean {
    return this.have >= this.#relay.file.sizeBytes
  }

  get isUsable(): boolean {
    return !this.isGone && !this.peer.helper.isLost
  }

  /** How much this machine may have in flight: little until the path is decided, least while links are made. */
  get allowedBytes(): number {
    return this.#relay.allowedBytes
  }

  /** The host has the file up to there, sent from this machine. */
  advance(haveBytes: number): void {
    this.#move(haveBytes)
    this.peer.helper.send({ op: 'have', file: this.#relay.number, have: this.have })
    if (this.isDone) this.#relay.chain.handleChange()
  }

  /** This machine has nothing in flight. Resolves with what the host has when no other host brings more. */
  relayed(haveBytes: number): Promise<number> {
    this.#move(haveBytes)
    if (!this.isRelayed) return Promise.resolve(this.have)
    this.waiting = Promise.withResolvers<number>()
    this.serve()
    return this.waiting.promise
  }

  handleHave(have: number): void {
    const bytes = Math.min(have, this.#relay.file.sizeBytes) - this.have
    if (bytes <= 0 || this.waiting === undefined) return
    this.#move(this.have + bytes)
    this.#onHave(bytes)
    if (this.isDone) this.release()
  }

  /** Once both ends are ready, the source sends from where this host is. */
  serve(): void {
    if (this.waiting === undefined || this.link === undefined || this.source === undefined) return
    const { number } = this.#relay
    this.peer.helper.send({ op: 'take', link: this.link.number, file: number })
    this.source.peer.helper.send({ op: 'serve', link: this.link.number, file: number, from: this.have })
  }

  /** No host brings it any more: it has everything, or takes the rest from this machine. */
  release(): void {
    this.isRelayed = false
    this.waiting?.resolve(this.have)
    this.waiting = undefined
    if (!this.isDone) {
      this.source = undefined
      this.link = undefined
    }
    this.#relay.chain.handleChange()
  }

  /** The checksum of what its helper has read back; undefined: the helper has reported none in time. */
  verified(): Promise<string | undefined> {
    this.#relay.chain.after(VERIFY_MS, () => this.#verified.resolve(undefined))
    return this.#verified.promise
  }

  handleVerified(sha256: string | undefined): void {
    this.#verified.resolve(sha256)
  }

  leave(): void {
    this.hasLeft = true
    if (!this.isDone) {
      this.isGone = true
      this.#relay.handleGone(this)
    }
    this.#relay.chain.handleChange()
  }

  #move(have: number): void {
    if (have <= this.have) return
    this.have = have
    this.movedAtMs = this.#relay.chain.clock.now()
  }
}
