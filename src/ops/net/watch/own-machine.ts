/** The machine that the console runs on, polled once a second. */
import type { Clock } from '../../../base/clock.ts'
import { messageOf } from '../../../base/errors.ts'
import { printable } from '../../../base/printable.ts'
import type { Sample } from './sample.ts'
import { keepSample, type WatchedHost } from './watch-hosts.ts'

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
