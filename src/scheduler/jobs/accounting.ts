/** What users consumed, which decides whose turn it is, and how long their jobs ran. */
import { isActive, type Job, type JobSpec } from './job.ts'
import { StorePart } from './job-rows.ts'

/** Only the last jobs count, which keeps this fast. */
const USAGE_JOBS = 2_000
const TIMED_JOBS = 100
const HALF_LIFE_MS = 86_400_000

export class Accounting extends StorePart {
  /** Of the last jobs that ended by themselves: run times in seconds by user, oldest first. */
  runTimes(): ReadonlyMap<string, readonly number[]> {
    const rows = this.file.all(
      `SELECT user, ran_ms FROM
        (SELECT user, ran_ms, kind FROM jobs WHERE ran_ms IS NOT NULL ORDER BY ended_ms DESC LIMIT ?)
        WHERE kind = 'done' LIMIT ?`,
      USAGE_JOBS,
      TIMED_JOBS,
    )
    const byUser = Map.groupBy(rows.toReversed(), ({ user }) => String(user))
    return new Map([...byUser].map(([user, own]) => [user, own.map(({ ran_ms }) => secondsOf(Number(ran_ms)))]))
  }

  /** What users consumed lately, in milli × seconds of GPUs (of cores where there are none); it halves every day. */
  usage(active: readonly Job[], nowMs: number): ReadonlyMap<string, number> {
    const had = new Map<string, number>()
    const add = (user: string, { request, bundles }: JobSpec, ranMs: number, agoMs: number) => {
      const size = bundles * (request.gpuCount * request.gpuMilli || request.cpuMilli)
      had.set(user, (had.get(user) ?? 0) + ((size * ranMs) / 1000) * 0.5 ** (agoMs / HALF_LIFE_MS))
    }
    for (const { user, spec, state } of active)
      if (isActive(state)) add(user, spec, Math.max(0, nowMs - state.startedMs), 0)
    const rows = this.file.all(
      'SELECT user, ran_ms, ended_ms, spec FROM jobs WHERE ran_ms IS NOT NULL ORDER BY ended_ms DESC LIMIT ?',
      USAGE_JOBS,
    )
    for (const { user, ran_ms, ended_ms, spec } of rows)
      add(String(user), this.rows.specOf(Number(spec)), Number(ran_ms), Math.max(0, nowMs - Number(ended_ms)))
    return had
  }
}

const secondsOf = (ms: number): number => Math.max(1, Math.round(ms / 1000))
