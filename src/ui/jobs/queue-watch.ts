/**
 * What both tabs know of the queue: read once a second at most, only while one of them is shown, and drawn anew only when
 * it has changed.
 */
import { messageOf } from '../../base/errors.ts'
import type { Console } from '../console/console.ts'
import type { QueueSight } from './jobs-port.ts'

const READ_EVERY_MS = 1000

export class QueueWatch implements Disposable {
  readonly #console: Console
  readonly #listeners: (() => void)[] = []
  #sight: QueueSight | undefined
  #trouble: string | undefined
  #timer: Disposable | undefined
  #isReading = false
  #isDisposed = false

  constructor(console: Console) {
    this.#console = console
  }

  /** Undefined: not read yet. */
  get sight(): QueueSight | undefined {
    return this.#sight
  }

  get trouble(): string | undefined {
    return this.#trouble
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
      const sight = await this.#console.ports.jobs.read()
      if (sight !== undefined) this.#sight = sight
      if (sight !== undefined || this.#trouble !== undefined) this.#show(undefined)
    } catch (error) {
      this.#show(messageOf(error))
    }
    this.#isReading = false
    if (this.#isDisposed) return
    for (const listener of this.#listeners) listener()
    const { tab } = this.#console.state
    if (tab !== 'packing' && tab !== 'jobs') return
    this.#timer = this.#console.ports.clock.after(READ_EVERY_MS, () => {
      this.#timer = undefined
      if (['packing', 'jobs'].includes(this.#console.state.tab)) void this.read()
    })
  }

  redraw(): void {
    if (!this.#isDisposed) this.#console.change(({ queue }) => ({ queue: { ...queue, revision: queue.revision + 1 } }))
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    this.#timer?.[Symbol.dispose]()
  }

  #show(trouble: string | undefined): void {
    this.#trouble = trouble
    this.redraw()
  }
}
