/**
 * Engines place and run jobs in Muster's stead: Ray, and others to come. A job of an engine has one bundle, on a place that is no
 * host and is named after the engine. The queue keeps its number, turn, retries, limit and dependencies; the engine does the rest.
 */
import { type BundleState, ENDED_SILENTLY, type JobSpec } from './job.ts'

export const enginePlace = (engine: string): string => `@${engine}`

/** A place as people read it: a host by its name, `@ray` as Ray. */
export const placeTitle = (place: string): string =>
  place.startsWith('@') ? place.slice(1, 2).toUpperCase() + place.slice(2) : place

/** `key` is made of queue, job and attempt: under it the engine finds a job again and starts it once, also for another scheduler. */
export type EngineOrder =
  | {
      readonly kind: 'start'
      readonly key: string
      readonly spec: JobSpec
      /** The variables of its specification and Muster's own. */
      readonly environment: Readonly<Record<string, string>>
    }
  | { readonly kind: 'check' | 'stop'; readonly key: string }

/**
 * What an engine knows of a job: its exit code, or a word. `waiting`: not started yet, or started again. `unable`: the engine gave
 * up on it before it began, so it returns to the queue. `barred`: stopped before the engine had it. `lost`: it ended without an
 * exit code. `forgotten`: it ran, and the engine does not know it any more. `cancelled`: stopped in the engine itself.
 */
export type EngineReport =
  | number
  | 'waiting'
  | 'running'
  | 'unable'
  | 'barred'
  | 'lost'
  | 'forgotten'
  | 'refused'
  | 'cancelled'

export interface JobEngine {
  /** As in `--engine` and in the queue's file. */
  readonly name: string
  /** How many of its jobs may wait inside it at once; the others wait in the queue, in its order. */
  readonly mostWaiting: number
  /** Between two rounds: `soon` after something changed, then longer and longer, up to `late`. */
  readonly pollMs: { readonly soon: number; readonly late: number }
  /**
   * Carries out orders, each of which may be given twice. Reports by key: nothing follows from a key that is missing, it is asked
   * about again. `trouble`: why the engine cannot be used now. Never rejects.
   */
  round(
    orders: readonly EngineOrder[],
    signal: AbortSignal,
  ): Promise<{ readonly trouble: string | undefined; readonly reports: ReadonlyMap<string, EngineReport> }>
}

export function engineBundle(report: EngineReport, engine: string): BundleState {
  const title = placeTitle(enginePlace(engine))
  const gone = (reason: string): BundleState => ({ kind: 'ended', end: { kind: 'gone', reason } })
  switch (report) {
    case 'waiting':
      return { kind: 'sent' }
    case 'running':
      return { kind: 'begun' }
    case 'unable':
    case 'barred':
      return { kind: 'ended', end: { kind: report } }
    case 'lost':
      return gone(ENDED_SILENTLY)
    case 'forgotten':
      return gone(`${title} no longer knows it`)
    case 'refused':
      return gone(`${title} refused it`)
    case 'cancelled':
      return { kind: 'ended', end: { kind: 'gone', reason: `cancelled in ${title}`, isCancelled: true } }
    default:
      return { kind: 'ended', end: { kind: 'exit', code: report } }
  }
}
