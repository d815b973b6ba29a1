/** Watches hosts: runs the script on each over its session, and keeps its samples. */
import type { Clock } from '../../../base/clock.ts'
import { messageOf } from '../../../base/errors.ts'
import { printable } from '../../../base/printable.ts'
import { ageText } from '../../../base/time-text.ts'
import { RepeatedScript, type WatchPort } from './repeated-script.ts'
import { type Sample, SampleReader, WATCH_SCRIPT } from './sample.ts'

export const HISTORY_MS = 15 * 60_000
/** One sample a second, and some for clocks that are set. */
const MOST_SAMPLES = 1_000
/** A host reports once a second: what is older than this is not shown as its state of now. */
const SILENT_MS = 10_000

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
    // In the given order, also where a host comes back.
    for (const name of names) {
      const watched = this.#hosts.get(name) ?? new Watched(name, this.#options)
      this.#hosts.delete(name)
      this.#hosts.set(name, watched)
    }
  }

  /** The host can be reached again. */
  resume(host: string): void {
    this.#hosts.get(host)?.resume()
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
  readonly #clock: Clock
  readonly #samples: Sample[] = []
  readonly #script: RepeatedScript
  readonly #sinceMs: number
  #trouble: string | undefined

  constructor(host: string, { port, clock, onSample, onTrouble }: WatchOptions) {
    this.#host = host
    this.#clock = clock
    this.#sinceMs = clock.now()
    this.#script = new RepeatedScript({
      host,
      script: WATCH_SCRIPT,
      port,
      clock,
      reader: () => {
        const reader = new SampleReader()
        return {
          push: (text) => {
            const samples = reader.push(text, clock.now())
            for (const sample of samples) {
              this.#trouble = undefined
              keepSample(this.#samples, sample)
              onSample(host, sample)
            }
            return samples.length > 0
          },
          get refusal() {
            return reader.isUnsupported ? 'it has no /proc: only Linux can be watched' : undefined
          },
        }
      },
      onTrouble: (reason) => {
        this.#trouble = reason
        onTrouble(host, reason)
      },
    })
  }

  get view(): WatchedHost {
    const base = { host: this.#host, samples: this.#samples }
    const trouble = this.#trouble ?? this.#silence
    return trouble === undefined ? base : { ...base, trouble }
  }

  get #silence(): string | undefined {
    const silentMs = this.#clock.now() - (this.#samples.at(-1)?.atMs ?? this.#sinceMs)
    return silentMs > SILENT_MS ? `no data for ${ageText(silentMs)}` : undefined
  }

  resume(): void {
    this.#script.startNow()
  }

  [Symbol.dispose](): void {
    this.#script[Symbol.dispose]()
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
