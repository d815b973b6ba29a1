/**
 * Which metrics are to be read on which host now: of jobs that run from time to time, of those that have ended once more. It
 * rides on the looks at hosts that the driver takes anyway. What it keeps is also in the store: another driver carries on.
 */
import { hasPassed } from '../../base/clock.ts'
import { isActive, isFinal, type Job } from './job.ts'
import { formatMetricProgram, type MetricOrder, parseMetricLines } from './metric.ts'
import { bundleKey } from './orders.ts'
import type { Reading } from './results.ts'

/** Between two looks at what a running job wrote. */
const AGAIN_MS = 10_000
/** A look takes a few processes on the host each. */
const MOST_AT_ONCE = 16

type Wanted = { readonly job: Job; readonly isFinal: boolean }

export class MetricReader {
  readonly #storeId: string
  /** By host, by key. */
  readonly #ended = new Map<string, Map<string, Wanted>>()
  /** By job. */
  readonly #readMs = new Map<number, number>()
  readonly #asked = new Map<string, ReadonlyMap<string, Wanted>>()

  constructor(storeId: string, unread: readonly Job[]) {
    this.#storeId = storeId
    for (const job of unread) this.noteEnd(job)
  }

  /** The host on which there is something to be read of it; undefined: nothing. */
  noteEnd(job: Job): string | undefined {
    const host = hostOf(job)
    if (host === undefined || !isFinal(job.state)) return undefined
    const own = this.#ended.get(host) ?? new Map<string, Wanted>()
    this.#ended.set(host, own)
    own.set(bundleKey(this.#storeId, job, 0), { job, isFinal: true })
    this.#readMs.delete(job.id)
    return host
  }

  hasEnded(host: string): boolean {
    return (this.#ended.get(host)?.size ?? 0) > 0
  }

  /** For the round that now goes to the host; empty: nothing is to be read. */
  programFor(host: string, active: readonly Job[], nowMs: number): string {
    const wanted = new Map([...(this.#ended.get(host) ?? [])].slice(0, MOST_AT_ONCE))
    for (const job of active) {
      if (wanted.size >= MOST_AT_ONCE) break
      if (hostOf(job) !== host || !isActive(job.state) || !this.#isDue(job, nowMs)) continue
      wanted.set(bundleKey(this.#storeId, job, 0), { job, isFinal: false })
    }
    this.#asked.set(host, wanted)
    return formatMetricProgram(
      [...wanted].map(([key, { job }]): MetricOrder => ({ key, metrics: job.spec.metrics ?? [] })),
    )
  }

  /** What came of that round. */
  take(host: string, text: string): readonly Reading[] {
    const asked = this.#asked.get(host)
    this.#asked.delete(host)
    if (asked === undefined || asked.size === 0) return []
    return [...parseMetricLines(text)].flatMap(([key, found]): Reading[] => {
      const { job, isFinal } = asked.get(key) ?? {}
      if (job === undefined) return []
      if (isFinal) this.#ended.get(host)?.delete(key)
      const values = [...found].flatMap(([index, value]) => {
        const name = job.spec.metrics?.[index]?.name
        return name === undefined ? [] : [[name, value] as const]
      })
      return [{ job: job.id, attempt: job.attempt, values: Object.fromEntries(values), isFinal: isFinal ?? false }]
    })
  }

  #isDue({ id }: Job, nowMs: number): boolean {
    if (!hasPassed(this.#readMs.get(id) ?? 0, AGAIN_MS, nowMs)) return false
    this.#readMs.set(id, nowMs)
    return true
  }
}

/** Where its first bundle is or was. */
function hostOf({ spec, state }: Job): string | undefined {
  return spec.metrics !== undefined && 'places' in state ? state.places?.[0]?.host : undefined
}
