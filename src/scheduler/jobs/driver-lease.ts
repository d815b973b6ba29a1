/** Which scheduler drives a queue: one at a time, and one that lost the lease can write nothing more. */
import { MusterError } from '../../base/errors.ts'
import type { QueueFile, SqlRow } from './queue-file.ts'

/** Longer than any lease: one that ends later is from before the clock was set back. */
const MOST_MS = 60_000

export type LeaseToken = { readonly token: number }

export class DriverLease {
  readonly #file: QueueFile

  constructor(file: QueueFile) {
    this.#file = file
  }

  /** Undefined while another scheduler holds it. `isGone`: whether that owner has ended without giving it back. */
  take(owner: string, nowMs: number, forMs: number, isGone = (_: string) => false): LeaseToken | undefined {
    return this.#file.transaction(() => {
      const { token, until_ms, owner: before } = this.#row()
      if (isHeld(until_ms, nowMs) && !isGone(String(before))) return undefined
      const next = Number(token) + 1
      this.#file.run('UPDATE lease SET token = ?, owner = ?, until_ms = ?', next, owner, nowMs + forMs)
      return { token: next }
    })
  }

  /** @throws MusterError 'interrupted' when another scheduler has taken it. */
  renew(lease: LeaseToken, nowMs: number, forMs: number): void {
    this.#file.transaction(() => {
      this.check(lease)
      this.#file.run('UPDATE lease SET until_ms = ?', nowMs + forMs)
    })
  }

  give({ token }: LeaseToken): void {
    this.#file.transaction(() => this.#file.run('UPDATE lease SET until_ms = 0 WHERE token = ?', token))
  }

  /** For people: `root@vm (pid 3533)`; undefined: no scheduler is running. */
  owner(nowMs: number): string | undefined {
    const { owner, until_ms } = this.#row()
    return isHeld(until_ms, nowMs) ? String(owner).replace(/, process (\d+)$/, ' (pid $1)') : undefined
  }

  /** @throws MusterError 'interrupted' when another scheduler has taken it. */
  check({ token }: LeaseToken): void {
    if (Number(this.#row().token) === token) return
    throw new MusterError('interrupted', 'another scheduler has taken over this queue')
  }

  #row(): SqlRow {
    return this.#file.one('SELECT token, owner, until_ms FROM lease') ?? {}
  }
}

function isHeld(untilMs: unknown, nowMs: number): boolean {
  return Number(untilMs) > nowMs && Number(untilMs) <= nowMs + MOST_MS
}
