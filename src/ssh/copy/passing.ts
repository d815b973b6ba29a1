/**
 * One large file on its way to all hosts that want it: first from here to everybody, then, if that was measured to pay, from
 * host to host. Whoever fails, stalls or is slow is gone round; whoever finds nobody to take it from is served from here.
 */
import type { Clock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import { orderChain, pickSource } from './chain-plan.ts'
import type { Link, Links, Member } from './links.ts'
import { PassingSeat, type Seat, type Way } from './passing-seat.ts'
import type { HelperMessage } from './remote-helper.ts'
import type { SourceFile } from './source.ts'

export type CopyVia = 'direct' | 'chain' | 'auto'

/** Which way files go, once it is known, and each time a host is gone round. */
export type PathEvent =
  | {
      readonly via: 'chain'
      /** In the order in which they pass files on. */
      readonly hosts: readonly string[]
      readonly betweenBitsPerSecond: number
      /** To all hosts together. */
      readonly hereBitsPerSecond: number
    }
  | { readonly via: 'direct'; readonly reason: string }
  | {
      readonly via: 'detour'
      readonly host: string /** Undefined: this machine. */
      readonly from?: string
      readonly reason: string
    }

/** What all files of one copy share. */
export interface ChainState {
  readonly via: 'chain' | 'auto'
  readonly clock: Clock
  readonly links: Links
  /** In the order in which they pass files on, where nothing speaks against it. */
  readonly hosts: readonly string[]
  /** A chain was found to pay. */
  isProven: boolean
  /** It was found not to. */
  isGivenUp: boolean
  tell(event: PathEvent): void
  /** Until the copy is over. */
  after(delayMs: number, callback: () => void): void
  handleChange(): void
}

const OBSERVE_MS = 700
/** What takes less than that from here goes from here. */
const WORTH_MS = 4_000
const GAIN = 1.3
export const WATCH_MS = 1_000
const STALL_MS = 3_000
const LAG_BYTES = 16 * 1024 * 1024
const CLOSE_BYTES = 4 * 1024 * 1024
const TRIES = 3
/** Under way to each host while it is measured, and while the orders that make links go the same way. */
const UNDECIDED_BYTES = 768 * 1024
const LINKING_BYTES = 64 * 1024
/** Of its share of what is sent from here. */
const SLOW_SHARE = 0.3
const SLOW_SECONDS = 5

/** One file on its way to all hosts that want it. */
export class Passing implements Way {
  readonly chain: ChainState
  readonly file: SourceFile
  readonly number: number
  readonly #seats: PassingSeat[] = []
  #startedAtMs = 0
  #state: 'waiting' | 'observing' | 'linking' | 'chain' | 'direct' = 'waiting'
  #hereBitsPerSecond = 0

  constructor(chain: ChainState, file: SourceFile, number: number) {
    this.chain = chain
    this.file = file
    this.number = number
    if (chain.isProven) this.#state = 'chain'
  }

  get sizeBytes(): number {
    return this.file.sizeBytes
  }

  get clock(): Clock {
    return this.chain.clock
  }

  get allowedBytes(): number {
    if (this.#state === 'linking') return LINKING_BYTES
    return this.#state === 'direct' || this.#state === 'chain' ? Number.POSITIVE_INFINITY : UNDECIDED_BYTES
  }

  get isOver(): boolean {
    return this.#seats.every((seat) => seat.isGone || seat.isDone)
  }

  needs(host: string): boolean {
    return this.#seats.some(
      (seat) => !seat.isDone && !seat.isGone && seat.isCarried && seat.source?.member.host === host,
    )
  }

  enter(member: Member, path: string, have: number, onHave: (bytes: number) => void): Seat {
    const seat = new PassingSeat(this, member, have, onHave)
    const { sizeBytes: size, isSparse: sparse } = this.file
    member.helper.tell({ op: 'file', file: this.number, path, have, size, sparse })
    this.#seats.push(seat)
    if (this.#state === 'chain') void this.#detour(seat, undefined)
    else if (this.#state === 'waiting' && this.#active.length >= (this.chain.via === 'chain' ? 2 : 3)) {
      this.#state = 'observing'
      this.#startedAtMs = this.chain.clock.now()
      for (const each of this.#seats) each.watchedBytes = each.have
      this.#observeLater()
    }
    return seat
  }

  forget(): void {
    for (const { member } of this.#seats) member.helper.tell({ op: 'forget', file: this.number })
  }

  handleFile(member: Member, message: HelperMessage): void {
    const seat = this.#seats.find((each) => each.member === member)
    if (seat === undefined || message.file !== this.number) return
    if (message.error !== undefined) {
      // Sent from here, the same thing fails with the host's own words.
      seat.refused.add(seat)
      seat.isGone = true
      seat.release()
      this.handleGone(seat)
    } else if (typeof message.have === 'number') seat.handleHave(message.have)
  }

  handleLinkLost(link: Link, reason: string): void {
    for (const seat of this.#seats) if (seat.link === link && !seat.isDone) void this.#detour(seat, reason)
  }

  handleMemberLost(member: Member): void {
    const lost = this.#seats.find((seat) => seat.member === member)
    if (lost === undefined) return
    if (lost.isCarried) lost.release()
    this.handleGone(lost)
  }

  handleChange(): void {
    this.chain.handleChange()
  }

  /** Who takes the file from it needs another source. */
  handleGone(gone: PassingSeat): void {
    for (const seat of this.#seats) {
      if (seat.source === gone && seat.isCarried) void this.#detour(seat, `${gone.member.host} has gone`)
    }
  }

  /** Once a second: whoever stalls or is slow is gone round. */
  watch(): void {
    const nowMs = this.chain.clock.now()
    for (const seat of this.#seats) {
      seat.rate = ((seat.have - seat.watchedBytes) * 8_000) / WATCH_MS
      if (this.#state !== 'observing') seat.watchedBytes = seat.have
    }
    if (this.#state !== 'chain') return
    const share = this.#hereBitsPerSecond / this.#active.filter((seat) => !seat.isCarried).length
    for (const seat of this.#active) {
      const isSlow = !seat.isCarried && seat.rate < SLOW_SHARE * share
      seat.slowSeconds = isSlow ? seat.slowSeconds + 1 : 0
      const isStill = nowMs - seat.movedAtMs >= STALL_MS
      const behind = this.#active.filter(
        (each) => each.source === seat && each.waiting !== undefined && seat.have - each.have < CLOSE_BYTES,
      )
      const { source } = seat
      if (source !== undefined && seat.waiting !== undefined) {
        const lag = source.have - seat.have
        if (isStill && lag > 0) void this.#detour(seat, `nothing comes from ${source.member.host}`)
        if (lag > LAG_BYTES) for (const each of behind) void this.#detour(each, `${seat.member.host} is slow`)
      } else if (source !== undefined) {
        // It was to take the rest from there, but what was sent from here before is not acknowledged.
        if (isStill) for (const each of behind) void this.#detour(each, `${seat.member.host} does not take anything`)
      } else if (behind.length > 0) {
        // What is sent from here to this one holds up the others.
        if (isStill || seat.slowSeconds >= SLOW_SECONDS) void this.#promote(behind, seat, isStill)
      }
    }
  }

  get #active(): PassingSeat[] {
    return this.#seats.filter((seat) => !seat.isGone && !seat.isDone)
  }

  #observeLater(): void {
    this.chain.after(OBSERVE_MS, () => {
      if (this.#state === 'observing') void this.#decide()
    })
  }

  async #decide(): Promise<void> {
    const { chain } = this
    const placeOf = (seat: PassingSeat) => chain.hosts.indexOf(seat.member.host)
    const seats = this.#active.filter((seat) => seat.isUsable).sort((one, other) => placeOf(one) - placeOf(other))
    const elapsedMs = Math.max(1, chain.clock.now() - this.#startedAtMs)
    const sent = this.#seats.reduce((sum, seat) => sum + seat.have - seat.startBytes, 0)
    const left = this.#active.reduce((sum, seat) => sum + this.file.sizeBytes - seat.have, 0)
    this.#hereBitsPerSecond = (8_000 * sent) / elapsedMs
    if (sent === 0 && seats.length > 0) return this.#observeLater()
    if (seats.length < 2 || (chain.via === 'auto' && (seats.length < 3 || left * elapsedMs < WORTH_MS * sent))) {
      this.#state = 'direct'
      return
    }
    this.#state = 'linking'
    const order = orderChain(seats, (seat) => seat.have - seat.startBytes)
    const tried = await Promise.allSettled(
      order.slice(1).map((seat, index) => chain.links.between((order[index] ?? seat).member, seat.member)),
    )
    const links = tried.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    const rates = links.map(({ bitsPerSecond }) => bitsPerSecond).sort((one, other) => one - other)
    const between = rates[Math.floor(rates.length / 2)] ?? 0
    const reason = this.#reasonForDirect(tried, between, seats.length)
    if (reason !== undefined) {
      this.#state = 'direct'
      chain.isGivenUp = true
      for (const link of links) chain.links.drop(link)
      chain.tell({ via: 'direct', reason })
      return
    }
    this.#state = 'chain'
    chain.isProven = true
    const hosts = order.map(({ member }) => member.host)
    chain.tell({ via: 'chain', hosts, betweenBitsPerSecond: between, hereBitsPerSecond: this.#hereBitsPerSecond })
    const detours: (() => Promise<void>)[] = []
    for (const [index, each] of tried.entries()) {
      const [source, seat] = [order[index], order[index + 1]]
      if (seat === undefined || source === undefined || seat.isDone || seat.isGone) continue
      if (each.status === 'fulfilled' && source.isUsable) this.#attach(seat, source, each.value)
      else {
        seat.source = source
        const reason = each.status === 'rejected' ? messageOf(each.reason) : 'it has gone'
        detours.push(() => this.#detour(seat, reason))
      }
    }
    // Who came while links were made.
    for (const seat of this.#active) if (!order.includes(seat)) detours.push(() => this.#detour(seat, undefined))
    // Once all have their place: nobody may take the file from one who takes it from him.
    for (const detour of detours) void detour()
  }

  #reasonForDirect(tried: readonly PromiseSettledResult<Link>[], between: number, count: number): string | undefined {
    const failure = tried.find((each) => each.status === 'rejected')
    if (between === 0) return `the hosts cannot reach each other (${failure ? messageOf(failure.reason) : 'no answer'})`
    const share = this.#hereBitsPerSecond / count
    return this.chain.via === 'auto' && between < GAIN * share ? 'the hosts are no faster among themselves' : undefined
  }

  #attach(seat: PassingSeat, source: PassingSeat, link: Link): void {
    seat.source = source
    seat.link = link
    seat.isCarried = true
    seat.movedAtMs = this.chain.clock.now()
    seat.serve()
  }

  /** Another source for a seat. `reason`: undefined for one that had none yet. */
  async #detour(seat: PassingSeat, reason: string | undefined): Promise<void> {
    const { chain } = this
    if (seat.isGone || seat.isDone || seat.isMoving) return
    seat.isMoving = true
    if (seat.source !== undefined) seat.refused.add(seat.source)
    if (seat.link !== undefined) chain.links.drop(seat.link)
    seat.link = undefined
    // Until it is known from whom, nothing comes from here either: a link is made within seconds.
    seat.isCarried = true
    try {
      await this.#findSource(seat, reason)
    } finally {
      seat.isMoving = false
    }
  }

  async #findSource(seat: PassingSeat, reason: string | undefined): Promise<void> {
    const { chain } = this
    let why = reason
    while (seat.refused.size < TRIES && !seat.member.helper.isLost) {
      const source = pickSource(seat, this.#seats)
      if (source === undefined) break
      seat.source = source
      try {
        const link = await chain.links.between(source.member, seat.member)
        if (seat.isGone || seat.isDone || seat.source !== source) return
        if (source.isUsable) {
          if (why !== undefined)
            chain.tell({ via: 'detour', host: seat.member.host, from: source.member.host, reason: why })
          return this.#attach(seat, source, link)
        }
      } catch (error) {
        why ??= messageOf(error)
      }
      seat.refused.add(source)
    }
    if (why !== undefined) chain.tell({ via: 'detour', host: seat.member.host, reason: why })
    seat.release()
  }

  /** The first of those behind takes the file from here, and the others from it. */
  async #promote(behind: readonly PassingSeat[], slow: PassingSeat, isStill: boolean): Promise<void> {
    const [first, ...others] = behind
    if (first === undefined) return
    const reason = `${slow.member.host} ${isStill ? 'does not take anything' : 'is slow'}`
    for (const each of behind) each.refused.add(slow)
    if (first.link !== undefined) this.chain.links.drop(first.link)
    first.release()
    this.chain.tell({ via: 'detour', host: first.member.host, reason })
    await Promise.all(others.map((each) => this.#detour(each, reason)))
  }
}
