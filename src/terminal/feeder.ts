/**
 * Feeds output to screens: a bounded queue for each host, small slices in turn, a few milliseconds at a time, so that neither keys
 * nor other hosts wait for a host that floods. It never reorders or loses a byte of a host, except for the old output of a flood
 * that the user interrupted (`dropBacklog`).
 *
 * In each turn hosts with little output go first (an echo, a prompt); floods share what is left of it, one slice each. Between
 * turns the event loop serves stdin and the sockets.
 */
import { ByteQueue } from '../base/byte-queue.ts'
import { type Clock, hasPassed, remainingMs, systemClock } from '../base/clock.ts'
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

/** Output that waits and makes a flood. */
const MOST_QUEUED_BYTES = 16 * 1024
/** Output within `RECENT_MS` that makes a flood. */
const MOST_RECENT_BYTES = 256 * 1024
const RECENT_MS = 500
/** Nothing arrived for so long: the old output is over. Longer than a round trip, for which a full window waits. */
const QUIET_MS = 250
/** After so much the program ignores the interrupt, and its output is shown again. */
const MOST_DROPPED_MS = 2000
const MOST_DROPPED_BYTES = 8 * 1024 * 1024

/** The last output that is kept while dropping: a prompt of several lines fits. */
const TAIL_BYTES = 4 * 1024
/** No mode sequence is longer; one that the tail's beginning would cut stays whole in the tail. */
const MAX_SEQUENCE_BYTES = 64

const ESC = 0x1b
const LF = 0x0a
const CARET = 0x5e

/** Cancels a sequence that was cut, then default attributes, ASCII, no shift. */
const RESYNC = Buffer.from('\x18\x1b[m\x1b(B\x0f')
const NEW_LINE = Buffer.from('\r\n')
const EMPTY = Buffer.alloc(0)

/** DECSET/DECRST, DECSTR, DECKPAM/DECKPNM, RIS: ECMA-48 and the list of control sequences of xterm. */
const MODE_SEQUENCE = /\x1b(?:\[\?[\d;]{1,32}[hl]|\[!p|[=>c])/g
const ENTERS_ALTERNATE_SCREEN = /\x1b\[\?(?:[\d;]*;)?(?:47|1047|1049)(?:;[\d;]*)?h/g

/**
 * Drops what comes after a flood was interrupted: megabytes of old output are on their way still (the window of an SSH
 * channel), and the prompt comes after them. It keeps
 *   - what follows the terminal's own echo of the interrupt (`^C`, with the line that it stands on): the old output ends there;
 *   - else the last lines before a quiet moment or a bound, since the prompt is the last thing that a host prints;
 *   - sequences that switch modes (mouse, paste, cursor, screen): the pane would be left in the wrong one.
 * It must never drop output of a host that did not flood: the caller asks `isFlooding` first.
 */
class FloodDrop implements Disposable {
  readonly #clock: Clock
  readonly #onEnd: (bytes: Uint8Array) => void
  #windowStart = 0
  #windowBytes = 0
  #previousBytes = 0

  #isDropping = false
  #marker: Uint8Array = EMPTY
  #mustBreakLine = false
  #startedAt = 0
  #arrivedAt = 0
  #dropped = 0
  #hasEvicted = false
  #tail: Buffer = EMPTY
  #timer: Disposable | undefined

  /** `onEnd` gets what to show when a quiet moment ended the dropping. */
  constructor(clock: Clock, onEnd: (bytes: Uint8Array) => void) {
    this.#clock = clock
    this.#onEnd = onEnd
  }

  get isDropping(): boolean {
    return this.#isDropping
  }

  /** Counts output for the rate. */
  noteArrival(bytes: number): void {
    this.#turnWindow()
    this.#windowBytes += bytes
  }

  isFlooding(queuedBytes: number, isHeldBack: boolean): boolean {
    this.#turnWindow()
    return isHeldBack || queuedBytes > MOST_QUEUED_BYTES || this.#windowBytes + this.#previousBytes > MOST_RECENT_BYTES
  }

  /** Two half windows: the last full one and the current one. */
  #turnWindow(): void {
    const half = RECENT_MS / 2
    const age = this.#clock.now() - this.#windowStart
    if (age < half && age >= 0) return
    this.#previousBytes = age < 2 * half && age >= 0 ? this.#windowBytes : 0
    this.#windowBytes = 0
    this.#windowStart = this.#clock.now()
  }

  /** `mustBreakLine`: the screen's cursor stands behind text that will not be finished. */
  start(interruptByte: number, mustBreakLine: boolean): void {
    this.#isDropping = true
    // ECHOCTL, termios(3): a control character is echoed as ^ and the character with bit 6 set.
    this.#marker = Uint8Array.of(CARET, interruptByte ^ 0x40)
    this.#mustBreakLine = mustBreakLine
    this.#startedAt = this.#clock.now()
    this.#dropped = 0
    this.#hasEvicted = false
    this.#tail = EMPTY
    this.#waitForQuiet()
  }

  #waitForQuiet(): void {
    this.#arrivedAt = this.#clock.now()
    const wait = (forMs: number) => {
      this.#timer = this.#clock.after(forMs, () => {
        const leftMs = remainingMs(this.#arrivedAt, QUIET_MS, this.#clock.now())
        if (leftMs > 0) wait(leftMs)
        else this.#onEnd(this.#finishAtTail())
      })
    }
    wait(QUIET_MS)
  }

  /** What of newly arrived output to parse now. Ends the dropping when it finds the interrupt's echo or a bound. */
  filter(bytes: Uint8Array): Uint8Array {
    this.#arrivedAt = this.#clock.now()
    this.#dropped += bytes.length
    const all = this.#tail.length > 0 ? Buffer.concat([this.#tail, bytes]) : asBuffer(bytes)
    const echo = all.indexOf(this.#marker, Math.max(0, this.#tail.length - 1))
    if (echo >= 0) return this.#finishAt(all, startOfLine(all, echo))
    const program = this.#startOfFullScreen(all)
    if (program >= 0) return this.#finishAt(all, program)

    const evicted = this.#endOfEvicted(all)
    this.#hasEvicted ||= evicted > 0
    this.#tail = Buffer.from(all.subarray(evicted))
    const modes = modeSequences(all.subarray(0, evicted))
    const isOver = this.#dropped > MOST_DROPPED_BYTES || hasPassed(this.#startedAt, MOST_DROPPED_MS, this.#clock.now())
    return isOver ? Buffer.concat([modes, this.#finishAtTail()]) : modes
  }

  /** A full-screen program that starts now is new output: it needs every byte. */
  #startOfFullScreen(all: Buffer): number {
    const from = Math.max(0, this.#tail.length - MAX_SEQUENCE_BYTES)
    if (all.indexOf(ESC, from) < 0) return -1
    ENTERS_ALTERNATE_SCREEN.lastIndex = 0
    const found = ENTERS_ALTERNATE_SCREEN.exec(all.toString('latin1', from))
    return found ? from + found.index : -1
  }

  #endOfEvicted(all: Buffer): number {
    const end = all.length - TAIL_BYTES
    if (end <= 0) return 0
    const sequence = all.lastIndexOf(ESC, end)
    return sequence >= 0 && end - sequence < MAX_SEQUENCE_BYTES ? sequence : end
  }

  #finishAt(all: Buffer, start: number): Uint8Array {
    const isWhole = !this.#hasEvicted && start === 0
    const modes = modeSequences(all.subarray(0, start))
    return this.#finish(isWhole, all.subarray(start), modes)
  }

  #finishAtTail(): Uint8Array {
    const tail = this.#tail
    if (!this.#hasEvicted) return this.#finish(true, tail, EMPTY)
    const start = tail.indexOf(LF) + 1
    return this.#finish(false, tail.subarray(start), modeSequences(tail.subarray(0, start)))
  }

  /** `isWhole`: nothing was dropped, so that the text goes on where the screen is. */
  #finish(isWhole: boolean, text: Uint8Array, modes: Uint8Array): Uint8Array {
    this[Symbol.dispose]()
    this.#tail = EMPTY
    if (isWhole) return text
    return Buffer.concat([RESYNC, modes, this.#mustBreakLine ? NEW_LINE : EMPTY, withoutCutCharacter(text)])
  }

  [Symbol.dispose](): void {
    this.#isDropping = false
    this.#timer?.[Symbol.dispose]()
    this.#timer = undefined
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** Where the line begins on which `at` is, as far as it is kept and not too long to be worth showing. */
function startOfLine(all: Buffer, at: number): number {
  const lineFeed = at === 0 ? -1 : all.lastIndexOf(LF, at - 1)
  return lineFeed >= 0 && at - lineFeed < TAIL_BYTES ? lineFeed + 1 : at
}

function modeSequences(bytes: Buffer): Buffer {
  if (bytes.indexOf(ESC) < 0) return EMPTY
  return Buffer.from((bytes.toString('latin1').match(MODE_SEQUENCE) ?? []).join(''), 'latin1')
}

/** Without continuation bytes of a UTF-8 character whose beginning was dropped. */
function withoutCutCharacter(text: Uint8Array): Uint8Array {
  let start = 0
  while (start < 3 && start < text.length && ((text[start] as number) & 0xc0) === 0x80) start++
  return text.subarray(start)
}
