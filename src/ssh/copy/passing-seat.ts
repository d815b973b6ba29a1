/** One host's place while a file is passed on: what it has, from whom it takes the rest, and who waits for that. */
import type { Clock } from '../../base/clock.ts'
import type { Place } from './chain-plan.ts'
import type { Link, Member } from './links.ts'

/** One host's part in the passing on of one file, for whoever sends it from here. */
export interface Seat {
  /** Others bring it: nothing more is to be sent from here. */
  readonly isCarried: boolean
  /** That may be under way from here: little while the way may change, and least while orders must come through. */
  readonly allowedBytes: number
  /** The host has the file up to there, sent from here. */
  advance(haveBytes: number): void
  /** Nothing is under way from here; resolves with what the host has when nobody else brings more. */
  carried(haveBytes: number): Promise<number>
  leave(): void
}

/** What a seat needs to know of the file's way. */
export interface Way {
  readonly number: number
  readonly sizeBytes: number
  readonly clock: Clock
  readonly allowedBytes: number
  handleGone(seat: PassingSeat): void
  /** Somebody has everything, or has left. */
  handleChange(): void
}

export class PassingSeat implements Seat, Place {
  readonly member: Member
  readonly refused = new Set<Place>()
  readonly #way: Way
  readonly #onHave: (bytes: number) => void
  readonly startBytes: number
  have: number
  source: PassingSeat | undefined
  link: Link | undefined
  isCarried = false
  isGone = false
  /** Somebody to take it from is being looked for. */
  isMoving = false
  waiting: PromiseWithResolvers<number> | undefined
  movedAtMs: number
  watchedBytes: number
  rate = 0
  /** For so many seconds on end it has taken far less from here than its share. */
  slowSeconds = 0

  constructor(way: Way, member: Member, have: number, onHave: (bytes: number) => void) {
    this.#way = way
    this.#onHave = onHave
    this.member = member
    this.startBytes = have
    this.have = have
    this.watchedBytes = have
    this.movedAtMs = way.clock.now()
  }

  get isDone(): boolean {
    return this.have >= this.#way.sizeBytes
  }

  get isUsable(): boolean {
    return !this.isGone && !this.member.helper.isLost
  }

  get allowedBytes(): number {
    return this.#way.allowedBytes
  }

  advance(haveBytes: number): void {
    this.#move(haveBytes)
    this.member.helper.tell({ op: 'have', file: this.#way.number, have: this.have })
    if (this.isDone) this.#way.handleChange()
  }

  carried(haveBytes: number): Promise<number> {
    this.#move(haveBytes)
    if (!this.isCarried) return Promise.resolve(this.have)
    this.waiting = Promise.withResolvers<number>()
    this.serve()
    return this.waiting.promise
  }

  /** What its source has told. */
  handleHave(have: number): void {
    const bytes = Math.min(have, this.#way.sizeBytes) - this.have
    if (bytes <= 0 || this.waiting === undefined) return
    this.#move(this.have + bytes)
    this.#onHave(bytes)
    if (this.isDone) this.release()
  }

  /** Both ends are ready: the source sends from where this one is. */
  serve(): void {
    if (this.waiting === undefined || this.link === undefined || this.source === undefined) return
    const { number } = this.#way
    this.member.helper.tell({ op: 'take', link: this.link.number, file: number })
    this.source.member.helper.tell({ op: 'serve', link: this.link.number, file: number, from: this.have })
  }

  /** Nobody brings it any more: it has everything, or takes the rest from here. */
  release(): void {
    this.isCarried = false
    this.waiting?.resolve(this.have)
    this.waiting = undefined
    if (!this.isDone) {
      this.source = undefined
      this.link = undefined
    }
    this.#way.handleChange()
  }

  leave(): void {
    if (this.isDone) return
    this.isGone = true
    this.#way.handleGone(this)
    this.#way.handleChange()
  }

  #move(have: number): void {
    if (have <= this.have) return
    this.have = have
    this.movedAtMs = this.#way.clock.now()
  }
}
