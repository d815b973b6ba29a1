/** The queue for the tabs Packing and Jobs: read once a second while one of them is shown. */
import { isDeepStrictEqual } from 'node:util'
import { messageOf } from '../../base/errors.ts'
import type { PageContext } from '../tabs/page.ts'
import type { JobsPort } from './jobs-port.ts'
import type { QueueView } from './queue-view.ts'

const READ_EVERY_MS = 1000

export class QueueWatch implements Disposable {
  readonly #context: PageContext
  readonly #jobs: JobsPort
  readonly #listeners: (() => void)[] = []
  #timer: Disposable | undefined
  #isReading = false
  #isDisposed = false

  constructor(context: PageContext, jobs: JobsPort) {
    this.#context = context
    this.#jobs = jobs
  }

  /** After each reading, also when the queue has not changed. */
  onRead(listener: () => void): void {
    this.#listeners.push(listener)
  }

  /** Starts reading; it ends by itself when neither tab is shown. */
  open(): void {
    if (this.#timer === undefined) void this.read()
  }

  async read(): Promise<void> {
    if (this.#isReading || this.#isDisposed) return
    this.#isReading = true
    this.#timer?.[Symbol.dispose]()
    this.#timer = undefined
    try {
      const status = await this.#jobs.read()
      this.set(status === undefined ? { trouble: undefined } : { status, trouble: undefined })
    } catch (error) {
      this.set({ trouble: messageOf(error) })
    }
    this.#isReading = false
    if (this.#isDisposed) return
    for (const listener of this.#listeners) listener()
    if (!this.#isShown) return
    this.#timer = this.#context.clock.after(READ_EVERY_MS, () => {
      this.#timer = undefined
      if (this.#isShown) void this.read()
    })
  }

  /** Changes the state of both tabs; values equal to the present ones change nothing. */
  set(patch: Partial<QueueView>): void {
    const { queue } = this.#context.state
    const keys = Object.keys(patch) as (keyof QueueView)[]
    // The status comes only when it has changed.
    const isNew = keys.some((key) => key === 'status' || !isDeepStrictEqual(patch[key], queue[key]))
    if (isNew && !this.#isDisposed) this.#context.change(() => ({ queue: { ...queue, ...patch } }))
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    this.#timer?.[Symbol.dispose]()
  }

  get #isShown(): boolean {
    const { tab } = this.#context.state
    return tab === 'packing' || tab === 'jobs'
  }
}
