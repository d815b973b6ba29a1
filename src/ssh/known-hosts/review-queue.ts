/** New host keys go to the user in batches, one review at a time; what arrives during a review makes up the next batch. */
import type { Clock } from '../../base/clock.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { fingerprintOf, keyTypeOf } from '../../inventory/known-hosts/key-blob.ts'
import { lookupNameOf } from '../../inventory/known-hosts/lookup-name.ts'
import type { HostKeyReviewer, NewHostKey } from '../host-keys.ts'

/** A review opens once no further key came for this long … */
const QUIET_MS = 250
/** … and not later than this after the first. */
const PATIENCE_MS = 1500

type Waiting = {
  readonly key: NewHostKey
  readonly signal: AbortSignal
  settle(isAccepted: boolean): void
  fail(error: unknown): void
}

export class ReviewQueue {
  readonly #reviewer: HostKeyReviewer
  readonly #clock: Clock
  #waiting: Waiting[] = []
  #firstAtMs = 0
  #timer: Disposable | undefined
  #isReviewing = false

  constructor(reviewer: HostKeyReviewer, clock: Clock) {
    this.#reviewer = reviewer
    this.#clock = clock
  }

  /** Resolves to whether the user accepts this key for this host; an abort counts as no. */
  ask(endpoint: Endpoint, blob: Uint8Array, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false)
    const key: NewHostKey = {
      host: endpoint.host,
      lookupName: lookupNameOf(endpoint),
      algorithm: keyTypeOf(blob) ?? 'unreadable',
      fingerprint: fingerprintOf(blob),
    }
    return new Promise<boolean>((resolve, reject) => {
      const onAbort = () => waiting.settle(false)
      const settled = () => signal.removeEventListener('abort', onAbort)
      const waiting: Waiting = {
        key,
        signal,
        settle: (isAccepted) => {
          settled()
          this.#waiting = this.#waiting.filter((other) => other !== waiting)
          resolve(isAccepted)
        },
        fail: (error) => {
          settled()
          reject(error)
        },
      }
      signal.addEventListener('abort', onAbort)
      if (this.#waiting.length === 0) this.#firstAtMs = this.#clock.now()
      this.#waiting.push(waiting)
      this.#schedule()
    })
  }

  #schedule(): void {
    this.#timer?.[Symbol.dispose]()
    this.#timer = undefined
    if (this.#isReviewing || this.#waiting.length === 0) return
    const patienceMs = Math.max(0, this.#firstAtMs + PATIENCE_MS - this.#clock.now())
    this.#timer = this.#clock.after(Math.min(QUIET_MS, patienceMs), () => void this.#review())
  }

  async #review(): Promise<void> {
    const batch = this.#waiting
    this.#waiting = []
    if (batch.length === 0) return
    this.#isReviewing = true
    // The dialog closes when no host waits for its answer any more.
    const abort = new AbortController()
    const onAbort = () => {
      if (batch.every(({ signal }) => signal.aborted)) abort.abort()
    }
    for (const { signal } of batch) signal.addEventListener('abort', onAbort)
    try {
      const accepted = await this.#reviewer.review(
        batch.map(({ key }) => key),
        abort.signal,
      )
      for (const waiting of batch) waiting.settle(accepted.has(waiting.key.host))
    } catch (error) {
      for (const waiting of batch) waiting.fail(error)
    } finally {
      for (const { signal } of batch) signal.removeEventListener('abort', onAbort)
      this.#isReviewing = false
      this.#firstAtMs = this.#clock.now()
      this.#schedule()
    }
  }
}
