/** Watches hosts: runs the script on each over its session, restarts it when it ends, and keeps its samples. */
import { type Clock, hasPassed } from '../../../base/clock.ts'
import { messageOf } from '../../../base/errors.ts'
import { formatBytes } from '../../../base/format-bytes.ts'
import { printable } from '../../../base/printable.ts'
import { type Sample, SampleReader, WATCH_SCRIPT } from './sample.ts'

export const HISTORY_MS = 15 * 60_000
/** The delay between attempts, doubled up to the second value. */
const AGAIN_MS = 2_000
const AGAIN_MOST_MS = 60_000
/** A sample a second has no more than a few KB. */
const FLOOD_MS = 10_000
const FLOOD_BYTES = 16 * 1024 * 1024
/** One sample a second, and some for clocks that are set. */
const MOST_SAMPLES = 2_000

export interface WatchPort {
  /** Runs a script of POSIX sh until it is stopped or ends; never throws, and calls `onEnd` once, with why. */
  start(host: string, script: string, handlers: WatchHandlers): { stop(): void }
}

/** `isFinal`: another attempt would not help, and may ask for a password. */
export type WatchHandlers = { onText(text: string): void; onEnd(reason: string, isFinal?: boolean): void }

export type WatchedHost = {
  readonly host: string
  /** Oldest first, of the last 15 minutes. */
  readonly samples: readonly Sample[]
  /** Why there are no samples now. */
  readonly trouble?: string
  /** The machine that the console runs on, not one of the hosts. */
  readonly isOwn?: boolean
}

export type WatchOptions = {
  readonly port: WatchPort
  readonly clock: Clock
  onSample(host: string, sample: Sample): void
  /** The host has changed, but not by a sample. */
  onTrouble(host: string, reason: string): void
}

/** Disposing stops the scripts. */
export class HostWatch implements Disposable {
  readonly #options: WatchOptions
  readonly #hosts = new Map<string, Watched>()

  constructor(hosts: readonly string[], options: WatchOptions) {
    this.#options = options
    for (const host of hosts) this.#hosts.set(host, new Watched(host, options))
  }

  get hosts(): readonly WatchedHost[] {
    return [...this.#hosts.values()].map((each) => each.view)
  }

  /** Watches exactly these hosts from now on. */
  follow(names: readonly string[]): void {
    for (const [name, watched] of this.#hosts) {
      if (names.includes(name)) continue
      watched[Symbol.dispose]()
      this.#hosts.delete(name)
    }
    for (const name of names) if (!this.#hosts.has(name)) this.#hosts.set(name, new Watched(name, this.#options))
  }

  [Symbol.dispose](): void {
    for (const watched of this.#hosts.values()) watched[Symbol.dispose]()
  }
}

/** At most the last 15 minutes, and one entry a second. */
export function keepSample(samples: Sample[], sample: Sample): void {
  samples.push(sample)
  const first = samples.findIndex(({ atMs }) => atMs > sample.atMs - HISTORY_MS)
  const extra = Math.max(first, samples.length - MOST_SAMPLES)
  if (extra > 0) samples.splice(0, extra)
}

class Watched implements Disposable {
  readonly #host: string
  readonly #options: WatchOptions
  readonly #samples: Sample[] = []
  #trouble: string | undefined
  #running: { stop(): void } | undefined
  #timer: Disposable | undefined
  #waitMs = AGAIN_MS
  #isDisposed = false

  constructor(host: string, options: WatchOptions) {
    this.#host = host
    this.#options = options
    this.#start()
  }

  get view(): WatchedHost {
    const base = { host: this.#host, samples: this.#samples }
    return this.#trouble === undefined ? base : { ...base, trouble: this.#trouble }
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    this.#timer?.[Symbol.dispose]()
    this.#running?.stop()
  }

  #start(): void {
    const { port, clock, onSample, onTrouble } = this.#options
    const reader = new SampleReader()
    let [sinceMs, length, isCut] = [clock.now(), 0, false]
    const end = (reason: string, isFinal: boolean) => {
      if (this.#isDisposed) return
      this.#trouble = reader.isUnsupported ? 'it has no /proc: only Linux can be watched' : reason
      onTrouble(this.#host, this.#trouble)
      if (reader.isUnsupported || isFinal) return
      this.#timer = clock.after(this.#waitMs, () => this.#start())
      this.#waitMs = Math.min(AGAIN_MOST_MS, this.#waitMs * 2)
    }
    const isFlood = (text: string): boolean => {
      if (hasPassed(sinceMs, FLOOD_MS, clock.now())) [sinceMs, length] = [clock.now(), 0]
      length += text.length
      return length > FLOOD_BYTES
    }
    this.#running = port.start(this.#host, WATCH_SCRIPT, {
      onText: (text) => {
        if (isCut || this.#isDisposed) return
        if (isFlood(text)) {
          isCut = true
          this.#running?.stop()
          const words = `more than ${formatBytes(FLOOD_BYTES)} in ${FLOOD_MS / 1000} s where a few lines are expected`
          return end(`it printed ${words}, and was cut off`, false)
        }
        for (const sample of reader.push(text, clock.now())) {
          this.#trouble = undefined
          this.#waitMs = AGAIN_MS
          keepSample(this.#samples, sample)
          onSample(this.#host, sample)
        }
      },
      onEnd: (reason, isFinal = false) => {
        if (!isCut) end(reason, isFinal)
      },
    })
  }
}

/** No host can have this name. */
export const OWN_MACHINE = '(here)'
const POLL_EVERY_MS = 1000

export interface OwnMachinePort {
  /** What is known now; undefined the first time, as rates need two polls. */
  poll(): Promise<Omit<Sample, 'atMs'> | undefined>
}

export type OwnMachineOptions = {
  readonly port: OwnMachinePort
  readonly clock: Clock
  onChange(): void
}

/** Disposing stops polling. */
export class OwnMachine implements Disposable {
  readonly #options: OwnMachineOptions
  readonly #samples: Sample[] = []
  #trouble: string | undefined
  #timer: Disposable | undefined
  #isDisposed = false

  constructor(options: OwnMachineOptions) {
    this.#options = options
    this.#poll()
  }

  get view(): WatchedHost {
    const base = { host: OWN_MACHINE, samples: this.#samples, isOwn: true }
    return this.#trouble === undefined ? base : { ...base, trouble: this.#trouble }
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    this.#timer?.[Symbol.dispose]()
  }

  #poll(): void {
    const { port, clock, onChange } = this.#options
    port.poll().then(
      (seen) => {
        if (this.#isDisposed) return
        this.#timer = clock.after(POLL_EVERY_MS, () => this.#poll())
        if (seen === undefined) return
        keepSample(this.#samples, { ...seen, atMs: clock.now() })
        onChange()
      },
      (error: unknown) => {
        if (this.#isDisposed) return
        this.#trouble = printable(messageOf(error))
        onChange()
      },
    )
  }
}
