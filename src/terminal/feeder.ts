/**
 * Feeds output to screens: a bounded queue a host, small slices round-robin, a few milliseconds a turn, so that neither keys
 * nor other hosts wait for one that floods. It owns the queues; it must never reorder or lose a byte of a host, except for
 * the stale output of a flood that the user interrupted (`dropBacklog`).
 *
 * In a turn the hosts with little output come first (an echo, a prompt), those of `setUrgent` before the others; what is
 * left of the turn goes to the floods, one slice each. Between turns the event loop serves stdin and the sockets.
 */
import { type Clock, systemClock } from '../base/clock.ts'
import { FloodDrop, type FloodDropOptions } from './flood-drop.ts'
import { OutputQueue } from './output-queue.ts'
import type { Screen } from './screen.ts'

export type FeederOptions = {
  /** So many bytes of the host have been parsed: called before the floods get their share, and once a turn for each host. */
  onParsed(host: string, bytes: number): void
  /** More than `pauseBytes` wait: stop reading the host. */
  onPause(host: string): void
  /** Fewer than `resumeBytes` wait: read on. */
  onResume(host: string): void
  readonly clock?: Clock
  /** Milliseconds with fractions, for the length of a turn. */
  readonly now?: () => number
  /** Runs a turn after input and output were served. */
  readonly schedule?: (turn: () => void) => void
  readonly turnMs?: number
  readonly sliceBytes?: number
  readonly pauseBytes?: number
  readonly resumeBytes?: number
  readonly flood?: Partial<FloodDropOptions>
}

export interface Feeder extends Disposable {
  /** The screen into which the host's output goes. A host that is there already gets the new screen. */
  add(host: string, screen: Screen): void
  /** Forgets the host and what waits for it. */
  remove(host: string): void
  /** Output of a host, in order. The bytes are kept until parsed; unknown hosts are ignored. */
  push(host: string, bytes: Uint8Array): void
  /** Hosts that come first among their kind: the focused one, the receivers of typed keys. */
  setUrgent(hosts: Iterable<string>): void
  /**
   * The user interrupted the host with this control byte (3 Ctrl-C, 26 Ctrl-Z, 28 Ctrl-\). If the host floods, what waits
   * and what still arrives of the old output is dropped, until the terminal's own echo of the interrupt, a quiet moment, or
   * a bound; a host that does not flood loses nothing. Returns whether it drops.
   */
  dropBacklog(host: string, interruptByte?: number): boolean
  /** Bytes that wait. */
  queuedBytes(host: string): number
  /** Nothing waits and nothing is being dropped. */
  readonly isIdle: boolean
}

type Lane = {
  readonly host: string
  screen: Screen
  readonly queue: OutputQueue
  readonly drop: FloodDrop
  isPaused: boolean
  /** Bytes that were parsed in this turn, and nobody was told yet. */
  parsedBytes: number
}

export function createFeeder(options: FeederOptions): Feeder {
  return new TurnFeeder(options)
}

class TurnFeeder implements Feeder {
  readonly #options: FeederOptions
  readonly #clock: Clock
  readonly #now: () => number
  readonly #schedule: (turn: () => void) => void
  readonly #turnMs: number
  readonly #sliceBytes: number
  readonly #pauseBytes: number
  readonly #resumeBytes: number
  readonly #lanes = new Map<string, Lane>()
  #urgent = new Set<string>()
  /** Lanes with bytes, in the order in which they get their next slice. */
  readonly #active = new Set<Lane>()
  #isScheduled = false
  #isDisposed = false

  constructor(options: FeederOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#now = options.now ?? (() => performance.now())
    this.#schedule = options.schedule ?? ((turn) => setImmediate(turn))
    this.#turnMs = options.turnMs ?? 1
    this.#sliceBytes = options.sliceBytes ?? 4 * 1024
    this.#pauseBytes = options.pauseBytes ?? 64 * 1024
    this.#resumeBytes = options.resumeBytes ?? 16 * 1024
  }

  add(host: string, screen: Screen): void {
    const known = this.#lanes.get(host)
    if (known) {
      known.screen = screen
      return
    }
    const drop = new FloodDrop(this.#clock, (bytes) => this.#handleDropEnd(host, bytes), this.#options.flood)
    const lane = { host, screen, queue: new OutputQueue(), drop, isPaused: false, parsedBytes: 0 }
    this.#lanes.set(host, lane)
  }

  remove(host: string): void {
    const lane = this.#lanes.get(host)
    if (!lane) return
    this.#lanes.delete(host)
    lane.drop[Symbol.dispose]()
    lane.queue.clear()
    this.#active.delete(lane)
    if (lane.isPaused) this.#options.onResume(host)
  }

  push(host: string, bytes: Uint8Array): void {
    const lane = this.#lanes.get(host)
    if (!lane || bytes.length === 0) return
    lane.drop.noteArrival(bytes.length)
    const rest = lane.drop.isDropping ? lane.drop.filter(bytes) : bytes
    this.#enqueue(lane, rest)
  }

  #enqueue(lane: Lane, bytes: Uint8Array): void {
    if (bytes.length === 0) return
    lane.queue.push(bytes)
    if (!lane.isPaused && lane.queue.bytes > this.#pauseBytes) {
      lane.isPaused = true
      this.#options.onPause(lane.host)
    }
    this.#active.add(lane)
    this.#scheduleTurn()
  }

  setUrgent(hosts: Iterable<string>): void {
    this.#urgent = new Set(hosts)
  }

  dropBacklog(host: string, interruptByte = 3): boolean {
    const lane = this.#lanes.get(host)
    if (!lane || lane.drop.isDropping) return lane !== undefined
    // A full-screen program paints places, not lines: without a part of it the rest makes no sense.
    if (lane.screen.modes.isAlternateScreen) return false
    if (!lane.drop.isFlooding(lane.queue.bytes, lane.isPaused)) return false
    const stale = lane.queue.takeAll()
    lane.drop.start(interruptByte, lane.screen.cursor.column > 0)
    this.#enqueue(lane, lane.drop.filter(stale))
    this.#resumeIfShort(lane)
    return true
  }

  #handleDropEnd(host: string, bytes: Uint8Array): void {
    const lane = this.#lanes.get(host)
    if (lane) this.#enqueue(lane, bytes)
  }

  queuedBytes(host: string): number {
    return this.#lanes.get(host)?.queue.bytes ?? 0
  }

  get isIdle(): boolean {
    if (this.#active.size > 0) return false
    for (const lane of this.#lanes.values()) if (lane.drop.isDropping) return false
    return true
  }

  #scheduleTurn(): void {
    if (this.#isScheduled || this.#isDisposed) return
    this.#isScheduled = true
    this.#schedule(() => {
      this.#isScheduled = false
      if (!this.#isDisposed) this.#turn()
    })
  }

  #turn(): void {
    const end = this.#now() + this.#turnMs
    const light: Lane[] = []
    const floods: Lane[] = []
    for (const lane of this.#active) (lane.queue.bytes <= this.#sliceBytes ? light : floods).push(lane)
    for (const lane of this.#urgentFirst(light)) {
      this.#parseSlice(lane)
      if (this.#now() >= end) break
    }
    this.#tellParsed(light)
    this.#parseFloods(floods, end)
    this.#tellParsed(floods)
    if (this.#active.size > 0) this.#scheduleTurn()
  }

  /** At least one slice, so that floods move on however many small outputs there are; then until the turn is over. */
  #parseFloods(floods: readonly Lane[], end: number): void {
    const urgent = floods.filter((lane) => this.#urgent.has(lane.host))
    const others = floods.filter((lane) => !this.#urgent.has(lane.host))
    let isUrgentNext = true
    do {
      const ring = others.length === 0 || (isUrgentNext && urgent.length > 0) ? urgent : others
      isUrgentNext = !isUrgentNext
      const lane = ring.shift()
      if (!lane) break
      this.#parseSlice(lane)
      if (this.#active.has(lane)) ring.push(lane)
    } while (this.#now() < end)
  }

  #urgentFirst(lanes: Lane[]): Lane[] {
    if (this.#urgent.size === 0) return lanes
    const rank = (lane: Lane) => (this.#urgent.has(lane.host) ? 0 : 1)
    return lanes.toSorted((a, b) => rank(a) - rank(b))
  }

  #parseSlice(lane: Lane): void {
    // To the end of the order: who has had a slice comes after those who have not.
    this.#active.delete(lane)
    for (let left = this.#sliceBytes; left > 0; ) {
      const bytes = lane.queue.take(left)
      if (!bytes) break
      left -= bytes.length
      lane.parsedBytes += bytes.length
      lane.screen.parse(bytes)
    }
    if (lane.queue.bytes > 0) this.#active.add(lane)
    this.#resumeIfShort(lane)
  }

  #resumeIfShort(lane: Lane): void {
    if (!lane.isPaused || lane.queue.bytes >= this.#resumeBytes) return
    lane.isPaused = false
    this.#options.onResume(lane.host)
  }

  #tellParsed(lanes: readonly Lane[]): void {
    for (const lane of lanes) {
      const { parsedBytes } = lane
      if (parsedBytes === 0) continue
      lane.parsedBytes = 0
      if (this.#lanes.get(lane.host) === lane) this.#options.onParsed(lane.host, parsedBytes)
    }
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    for (const lane of this.#lanes.values()) lane.drop[Symbol.dispose]()
    this.#lanes.clear()
    this.#active.clear()
  }
}
