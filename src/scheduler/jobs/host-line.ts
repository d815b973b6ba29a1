/**
 * One shell on a host that carries out round after round, opened again when it is lost. What bundles report within and between
 * rounds is passed on at once. Lines without the shell's mark come from something else on the host and are ignored; a host that
 * prints too much is disconnected.
 */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import { LineReader } from '../../base/line-reader.ts'
import { endLine, formatPrelude, formatRound, NOTICE, parseUp, type Round, type RoundResult } from './host-program.ts'

/** A shell of POSIX sh that reads its program from stdin. Disposing ends it. */
export interface JobShell extends Disposable {
  write(text: string): void
}

export type JobShellHandlers = {
  onText(text: string): void
  /** Once, last; not after it was disposed of. */
  onEnd(reason: string): void
}

export interface JobHosts {
  /** Text written before the shell is open is kept. Calls back asynchronously. */
  open(host: string, handlers: JobShellHandlers): JobShell
}

export type HostLineOptions = {
  readonly host: string
  readonly port: JobHosts
  readonly clock: Clock
  readonly hostClock: HostClock
  /** Lines that bundles reported, several at once. */
  onNotice(text: string): void
  /** The shell was lost between two rounds. */
  onLost(): void
}

const ROUND_MS = 60_000
/** Of a line without an end. */
const MOST_HELD = 64 * 1024
/** What a host may print, and what each round and each order adds to that: many times what is needed. */
const MOST_BYTES = 4 * 1024 * 1024
const ROUND_BYTES = 64 * 1024
const ORDER_BYTES = 1024
const MARK_BYTES = 8

export class HostLine implements Disposable {
  readonly #options: HostLineOptions
  #shell: JobShell | undefined
  #round:
    | { readonly last: string; readonly sentMs: number; lines: string[]; readonly end: (result: RoundResult) => void }
    | undefined
  #number = 0
  readonly #held = new LineReader(MOST_HELD)
  #mark = ''
  #leftBytes = 0
  /** Why it was disconnected between two rounds. */
  #cutOff: string | undefined

  constructor(options: HostLineOptions) {
    this.#options = options
  }

  /** Whether the next round opens a new shell, which knows nothing of earlier ones. */
  get isNew(): boolean {
    return this.#shell === undefined
  }

  /** Only one at a time. Never rejects. */
  async round(round: Omit<Round, 'number'>): Promise<RoundResult> {
    const cutOff = this.#cutOff
    this.#cutOff = undefined
    if (cutOff !== undefined) return { kind: 'trouble', reason: cutOff }
    const number = ++this.#number
    const { promise, resolve } = Promise.withResolvers<RoundResult>()
    this.#round = { last: endLine(number), sentMs: this.#options.clock.now(), lines: [], end: resolve }
    const isNew = this.#shell === undefined
    const leftBytes = isNew ? MOST_BYTES : Math.min(MOST_BYTES, this.#leftBytes + ROUND_BYTES)
    this.#leftBytes = leftBytes + round.orders.length * ORDER_BYTES
    const shell = this.#shell ?? this.#open()
    this.#shell = shell
    const text = formatRound({ ...round, number, wantsFacts: round.wantsFacts || isNew })
    shell.write(`${isNew ? formatPrelude(this.#mark, randomBytes(MARK_BYTES).toString('hex')) : ''}${text}`)
    using _ = this.#options.clock.after(ROUND_MS, () => this.#lose(`no answer within ${ROUND_MS / 1000} s`))
    return await promise
  }

  [Symbol.dispose](): void {
    this.#shell?.[Symbol.dispose]()
    this.#shell = undefined
    this.#end({ kind: 'trouble', reason: 'cancelled' })
  }

  #open(): JobShell {
    this.#held.clear()
    this.#mark = randomBytes(MARK_BYTES).toString('hex')
    const { host, port } = this.#options
    const shell: JobShell = port.open(host, {
      onText: (text) => {
        if (this.#shell === shell) this.#take(text)
      },
      onEnd: (reason) => {
        if (this.#shell === shell) this.#lose(reason)
      },
    })
    return shell
  }

  #take(text: string): void {
    this.#leftBytes -= text.length
    if (this.#leftBytes < 0) return this.#cut()
    const all = this.#held.push(text)
    // Something else may have printed before the mark on the same line.
    const lines = all.flatMap((line) => {
      const at = line.indexOf(this.#mark)
      return at < 0 ? [] : [line.slice(at + this.#mark.length)]
    })
    this.#noteTime(lines)
    const told = lines.filter((line) => line.startsWith(NOTICE)).map((line) => line.slice(NOTICE.length))
    if (told.length > 0) this.#options.onNotice(told.join('\n'))
    for (const line of lines) {
      if (line.startsWith(NOTICE)) continue
      if (line === this.#round?.last) this.#end({ kind: 'answer', text: this.#round.lines.join('\n') })
      else this.#round?.lines.push(line)
    }
  }

  /** Reports that arrive with it belong to that time. */
  #noteTime(lines: readonly string[]): void {
    if (this.#round === undefined) return
    const upS = lines.map(parseUp).find((seconds) => seconds !== undefined)
    const { hostClock, clock } = this.#options
    if (upS !== undefined) hostClock.note(upS, this.#round.sentMs, clock.now())
  }

  #cut(): void {
    const reason = `disconnected: it printed more than ${formatBytes(MOST_BYTES)}`
    if (this.#round === undefined) this.#cutOff = reason
    else this.#round.lines = []
    this.#lose(reason)
  }

  /** A shell that ends by itself may have said why. */
  #lose(reason: string): void {
    this.#shell?.[Symbol.dispose]()
    this.#shell = undefined
    if (this.#round === undefined) return this.#options.onLost()
    const said = this.#round.lines.find((line) => line.startsWith('trouble '))
    this.#end(said === undefined ? { kind: 'trouble', reason } : { kind: 'answer', text: said })
  }

  #end(result: RoundResult): void {
    const round = this.#round
    this.#round = undefined
    round?.end(result)
  }
}

/** Hosts round to hundredths. */
const SLACK_MS = 20

export class HostClock {
  /** When the host booted, by this machine's clock: at the latest, and at the earliest. Undefined: not known yet. */
  #startMs: number | undefined
  #earliestMs = 0

  /** Between `sentMs` and `heardMs` the host said that it had been up for `upS`. */
  note(upS: number, sentMs: number, heardMs: number): void {
    if (!Number.isFinite(upS)) return
    const [earliest, latest] = [sentMs - upS * 1000 - SLACK_MS, heardMs - upS * 1000]
    const known = this.#startMs
    // The fastest answer is the most exact. An estimate that is no longer possible is from before the host rebooted or the clock
    // here was set.
    const isPossible = known !== undefined && known >= earliest
    this.#startMs = isPossible ? Math.min(known, latest) : latest
    this.#earliestMs = isPossible ? Math.max(this.#earliestMs, earliest) : earliest
  }

  /** By how much `toMs` may be wrong; undefined where nothing is known. */
  get errorMs(): number | undefined {
    return this.#startMs === undefined ? undefined : Math.max(0, Math.round(this.#startMs - this.#earliestMs))
  }

  /** Undefined where it is not known. */
  toMs(upS: number): number | undefined {
    return this.#startMs === undefined || !Number.isFinite(upS) ? undefined : Math.round(this.#startMs + upS * 1000)
  }
}
