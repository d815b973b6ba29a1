/** A copy to many hosts, from start to end. */
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { type CopyView, failedCopies, isCopying, reduceCopy, restartCopy, startCopy } from './copy-document.ts'
import type { WorkPort } from './work-port.ts'

export type CopyWorkOptions = {
  readonly sources: readonly string[]
  readonly destination: string
  readonly hosts: readonly string[]
  readonly port: WorkPort
  /** Something new can be shown. */
  onDirty(): void
}

const PROBLEMS_SHOWN = 20

export class CopyWork implements Disposable {
  readonly #options: CopyWorkOptions
  #abort = new AbortController()
  /** The copy has not resolved: its last events may still come. */
  #isRunning = false
  #isDisposed = false
  view: CopyView

  constructor(options: CopyWorkOptions) {
    this.#options = options
    this.view = startCopy(options.sources, options.destination, options.hosts)
    void this.#start(options.hosts, false)
  }

  get isBusy(): boolean {
    return this.#isRunning || isCopying(this.view)
  }

  readonly isIdle = true

  get retryable(): string[] {
    return failedCopies(this.view)
  }

  refresh(): void {
    // Copies have no groups to fold.
  }

  stop(): void {
    if (!this.isBusy) return
    this.view = { ...this.view, isStopping: true }
    this.#abort.abort()
  }

  restart(hosts: readonly string[]): void {
    this.view = restartCopy(this.view, hosts)
    void this.#start(hosts, true)
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    this.#abort.abort()
  }

  /** Never rejects: an error becomes the result of each host. */
  async #start(hosts: readonly string[], isRetry: boolean): Promise<void> {
    const { port, sources, destination } = this.#options
    const onDirty = (): void => {
      if (!this.#isDisposed) this.#options.onDirty()
    }
    this.#abort = new AbortController()
    const { signal } = this.#abort
    this.#isRunning = true
    onDirty()
    try {
      await port.copy({
        hosts,
        sources,
        destination,
        isRetry,
        signal,
        onEvent: (event) => {
          this.view = reduceCopy(this.view, event)
          onDirty()
        },
        onProblems: (problems) => {
          const more = problems.length - PROBLEMS_SHOWN
          this.view = {
            ...this.view,
            problems: [...problems.slice(0, PROBLEMS_SHOWN), ...(more > 0 ? [`and ${more} more`] : [])],
          }
          onDirty()
        },
      })
    } catch (error) {
      this.#failAll(hosts, printable(messageOf(error)))
    }
    this.#isRunning = false
    onDirty()
  }

  #failAll(hosts: readonly string[], reason: string): void {
    const none = { copied: 0, identical: 0, failed: 0, sentBytes: 0, durationMs: 0 }
    for (const host of hosts) {
      if (this.view.hosts.get(host)?.result !== undefined) continue
      this.view = reduceCopy(this.view, { type: 'result', host, result: { outcome: 'failed', reason, ...none } })
    }
  }
}
