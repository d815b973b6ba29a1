/**
 * What both tabs know of the queue: read once a second at most, only while one of them is shown, and drawn anew only when
 * it has changed.
 */
import { messageOf } from '../../base/errors.ts'
import type { PageContext } from '../tabs/page-context.ts'
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

  get isReading(): boolean {
    return this.#isReading
  }

  /** After each time that it was looked at, also when nothing has changed. */
  onRead(listener: () => void): void {
    this.#listeners.push(listener)
  }

  /** Begins to follow the queue; ends by itself when no tab of it is shown. */
  open(): void {
    if (this.#timer === undefined && !this.#isReading) void this.read()
  }

  async read(): Promise<void> {
    if (this.#isReading || this.#isDisposed) return
    this.#isReading = true
    this.#timer?.[Symbol.dispose]()
    this.#timer = undefined
    try {
      const sight = await this.#jobs.read()
      if (sight !== undefined) this.#show({ sight, trouble: undefined })
      else if (this.#context.state.queue.trouble !== undefined) this.#show({ trouble: undefined })
    } catch (error) {
      this.#show({ trouble: messageOf(error) })
    }
    this.#isReading = false
    if (this.#isDisposed) return
    for (const listener of this.#listeners) listener()
    const { tab } = this.#context.state
    if (tab !== 'packing' && tab !== 'jobs') return
    this.#timer = this.#context.clock.after(READ_EVERY_MS, () => {
      this.#timer = undefined
      if (['packing', 'jobs'].includes(this.#context.state.tab)) void this.read()
    })
  }

  redraw(): void {
    this.#show({ revision: this.#context.state.queue.revision + 1 })
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    this.#timer?.[Symbol.dispose]()
  }

  #show(view: Partial<QueueView>): void {
    if (!this.#isDisposed) this.#context.change(({ queue }) => ({ queue: { ...queue, ...view } }))
  }
}
