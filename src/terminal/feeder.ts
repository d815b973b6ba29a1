/**
 * Feeds output to screens: a bounded queue for each host, small slices in turn, a few milliseconds at a time, so that neither keys
 * nor other hosts wait for a host that floods. It never reorders or loses a byte of a host, except for the old output of a flood
 * that the user interrupted (`dropBacklog`).
 *
 * In each turn hosts with little output go first (an echo, a prompt); floods share what is left of it, one slice each. Between
 * turns the event loop serves stdin and the sockets.
 */
import { ByteQueue } from '../base/byte-queue.ts'
import { type Clock, systemClock } from '../base/clock.ts'
import { FloodDrop } from './flood-drop.ts'
import type { Screen } from './headless-screen.ts'

export type FeederOptions = {
  /** Called for each host at most once a turn, and for hosts with little output before floods are parsed. */
  onParsed(host: string, bytes: number): void
  /** Too much output waits: stop reading the host. */
  onPause(host: string): void
  onResume(host: string): void
  readonly clock?: Clock
  /** Milliseconds with fractions, for the length of a turn. */
  readonly now?: () => number
  /** Runs a turn after input and output were served. */
  readonly schedule?: (turn: () => void) => void
  readonly turnMs?: number
}

const TURN_MS = 1
const SLICE_BYTES = 4 * 1024
const PAUSE_BYTES = 64 * 1024
const RESUME_BYTES = 16 * 1024

type Lane = {
  readonly host: string
  screen: Screen
  readonly queue: ByteQueue
  readonly drop: FloodDrop
  isPaused: boolean
  /** Parsed in this turn and not reported yet. */
  parsedBytes: number
}

export class Feeder implements Disposable {
  readonly #options: FeederOptions
  readonly #clock: Clock
  readonly #now: () => number
  readonly #schedule: (turn: () => void) => void
  readonly #lanes = new Map<string, Lane>()
  /** Lanes with bytes, in the order in which they get their next slice. */
  readonly #active = new Set<Lane>()
  #isScheduled = false
  #isDisposed = false

  constructor(options: FeederOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#now = options.now ?? (() => performance.now())
    this.#schedule = options.schedule ?? ((turn) => setImmediate(turn))
  }

  /** Nothing waits and nothing is being dropped. */
  get isIdle(): boolean {
    return this.#active.size === 0 && ![...this.#lanes.values()].some(({ drop }) => drop.isDropping)
  }

  /** A known host gets the new screen. */
  add(host: string, screen: Screen): void {
    const known = this.#lanes.get(host)
    if (known) {
      known.screen = screen
      return
    }
    const drop = new FloodDrop(this.#clock, (bytes) => this.#enqueue(lane, bytes))
    const lane: Lane = { host, screen, queue: new ByteQueue(), drop, isPaused: false, parsedBytes: 0 }
    this.#lanes.set(host, lane)
  }

  remove(host: string): void {
    const lane = this.#lanes.get(host)
    if (!lane) return
    this.#lanes.delete(host)
    lane.drop[Symbol.dispose]()
    lane.queue.takeAll()
    this.#active.delete(lane)
    if (lane.isPaused) this.#options.onResume(host)
  }

  /** The bytes are kept until they are parsed; unknown hosts are ignored. */
  push(host: string, bytes: Uint8Array): void {
    const lane = this.#lanes.get(host)
    if (!lane || bytes.length === 0) return
    lane.drop.noteArrival(bytes.length)
    this.#enqueue(lane, lane.drop.isDropping ? lane.drop.filter(bytes) : bytes)
  }

  /**
   * The user interrupted the host with this control byte (3 Ctrl-C, 26 Ctrl-Z, 28 Ctrl-\). If the host floods, its old output is
   * dropped, what waits and what still arrives, until the terminal echoes the interrupt, a quiet moment, or a limit. A host that
   * does not flood loses nothing. Returns whether output is dropped.
   */
  dropBacklog(host: string, interruptByte = 3): boolean {
    const lane = this.#lanes.get(host)
    if (!lane || lane.drop.isDropping) return lane !== undefined
    // A full-screen program paints places, not lines: without a part of its output the rest makes no sense.
    if (lane.screen.modes.isAlternateScreen) return false
    if (!lane.drop.isFlooding(lane.queue.bytes, lane.isPaused)) return false
    const stale = lane.queue.takeAll()
    lane.drop.start(interruptByte, lane.screen.cursor.column > 0)
    this.#enqueue(lane, lane.drop.filter(stale))
    this.#resumeIfShort(lane)
    return true
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    for (const { drop } of this.#lanes.values()) drop[Symbol.dispose]()
    this.#lanes.clear()
    this.#active.clear()
  }

  #enqueue(lane: Lane, bytes: Uint8Array): void {
    if (bytes.length === 0 || this.#lanes.get(lane.host) !== lane) return
    lane.queue.push(bytes)
    if (!lane.isPaused && lane.queue.bytes > PAUSE_BYTES) {
      lane.isPaused = true
      this.#options.onPause(lane.host)
    }
    this.#active.add(lane)
    this.#scheduleTurn()
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
    const end = this.#now() + (this.#options.turnMs ?? TURN_MS)
    const [light, floods]: [Lane[], Lane[]] = [[], []]
    for (const lane of this.#active) (lane.queue.bytes <= SLICE_BYTES ? light : floods).push(lane)
    for (const lane of light) {
      this.#parseSlice(lane)
      if (this.#now() >= end) break
    }
    this.#reportParsed(light)
    // At least one slice, so that floods move on however many small outputs there are.
    const ring = [...floods]
    do {
      const lane = ring.shift()
      if (!lane) break
      this.#parseSlice(lane)
      if (this.#active.has(lane)) ring.push(lane)
    } while (this.#now() < end)
    this.#reportParsed(floods)
    if (this.#active.size > 0) this.#scheduleTurn()
  }

  #parseSlice(lane: Lane): void {
    // To the end of the order, behind the hosts that have not had a slice.
    this.#active.delete(lane)
    for (let left = SLICE_BYTES; left > 0; ) {
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
    if (!lane.isPaused || lane.queue.bytes >= RESUME_BYTES) return
    lane.isPaused = false
    this.#options.onResume(lane.host)
  }

  #reportParsed(lanes: readonly Lane[]): void {
    for (const lane of lanes) {
      const { parsedBytes } = lane
      lane.parsedBytes = 0
      if (parsedBytes > 0 && this.#lanes.get(lane.host) === lane) this.#options.onParsed(lane.host, parsedBytes)
    }
  }
}
