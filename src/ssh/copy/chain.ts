/**
 * Large files along a chain of hosts: this machine sends each to one host, and the hosts pass it on over their own links while
 * they receive it. What each host wrote is verified by its checksum over its own connection, whoever brought it.
 */
import type { Clock } from '../../base/clock.ts'
import { type LinkHelper, Links, type Member } from './links.ts'
import { type ChainState, Passing, type PathEvent, WATCH_MS } from './passing.ts'
import type { Seat } from './passing-seat.ts'
import type { HelperMessage } from './remote-helper.ts'
import type { SourceFile } from './source.ts'

/** Smaller files are not worth a link. */
export const CHAIN_BYTES = 4 * 1024 * 1024

export type ChainOptions = {
  readonly via: 'chain' | 'auto'
  readonly clock: Clock
  /** In the order in which they pass files on, where nothing speaks against it. */
  readonly hosts: readonly string[]
  onPath(event: PathEvent): void
}

export class Chain implements ChainState, Disposable {
  readonly hosts: readonly string[]
  readonly via: 'chain' | 'auto'
  readonly clock: Clock
  readonly links: Links
  /** False: not tried yet. */
  isProven = false
  isGivenUp = false
  readonly #members = new Map<string, Member>()
  readonly #passings = new Map<SourceFile, Passing>()
  readonly #onPath: (event: PathEvent) => void
  readonly #settled = new Set<() => void>()
  readonly #timers = new Set<Disposable>()
  #lastFile = 0

  constructor({ via, clock, hosts, onPath }: ChainOptions) {
    this.hosts = hosts
    this.via = via
    this.clock = clock
    this.#onPath = onPath
    this.links = new Links(clock, (link, reason) => {
      for (const passing of this.#passings.values()) passing.handleLinkLost(link, reason)
    })
    this.#watch()
  }

  add(host: string, address: string, helper: LinkHelper): void {
    const member = { host, address, helper }
    this.#members.set(host, member)
    helper.onMessage((message) => this.#handle(member, message))
  }

  /** Undefined: this host takes this file from here. `path`: of the temporary file on the host. */
  enter(host: string, file: SourceFile, path: string, have: number, onHave: (bytes: number) => void): Seat | undefined {
    const member = this.#members.get(host)
    if (member === undefined || member.helper.isLost || file.sizeBytes < CHAIN_BYTES || this.isGivenUp) return undefined
    let passing = this.#passings.get(file)
    if (passing === undefined) {
      this.#lastFile += 1
      passing = new Passing(this, file, this.#lastFile)
      this.#passings.set(file, passing)
    }
    return passing.enter(member, path, have, onHave)
  }

  tell(event: PathEvent): void {
    this.#onPath(event)
  }

  /** Resolves when no host takes anything from this one any more. */
  async released(host: string): Promise<void> {
    while ([...this.#passings.values()].some((passing) => passing.needs(host))) {
      await new Promise<void>((resolve) => this.#settled.add(resolve))
    }
  }

  handleChange(): void {
    for (const [file, passing] of this.#passings) {
      if (passing.isOver) {
        passing.forget()
        this.#passings.delete(file)
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
      for (const passing of this.#passings.values()) passing.watch()
      this.#watch()
    })
  }

  #handle(member: Member, message: HelperMessage | undefined): void {
    if (message === undefined) {
      this.#members.delete(member.host)
      for (const passing of this.#passings.values()) passing.handleMemberLost(member)
      return
    }
    if (message.link !== undefined) this.links.handle(member, message)
    if (message.file !== undefined) for (const passing of this.#passings.values()) passing.handleFile(member, message)
  }
}
