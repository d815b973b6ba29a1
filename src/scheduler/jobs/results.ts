/** What is kept of jobs that ran: metrics, run times, and what users consumed, which decides whose turn it is. */

import { nameOfMetrics } from './damage.ts'
import { FINAL_KINDS, isActive, type Job, type JobSpec, type JobState } from './job.ts'
import { StorePart } from './job-rows.ts'
import type { Metric, MetricValues } from './metric.ts'
import type { SqlRow } from './queue-file.ts'
import { isMetricValues } from './stored-shapes.ts'
import { specFamilies } from './study-rows.ts'

export type Reading = {
  readonly job: number
  readonly attempt: number
  readonly values: MetricValues
  /** The job has ended: there will be no other reading. */
  readonly isFinal: boolean
}

/** One of the jobs that were submitted together. */
export type SweepRow = {
  readonly id: number
  readonly state: JobState
  readonly attempt: number
  readonly parameters: Readonly<Record<string, string>>
  /** Of the last attempt that printed any. */
  readonly values: MetricValues
}

export type Sweep = {
  readonly metrics: readonly Metric[]
  /** In the order in which they were declared. */
  readonly parameters: readonly string[]
  readonly rows: readonly SweepRow[]
  /** How many there are; `rows` may have fewer. */
  readonly count: number
}

const MOST_ROWS = 10_000

export class JobResults extends StorePart {
  /** With the job that is made. */
  expect(job: number): void {
    this.file.run("INSERT INTO results VALUES (?, 0, 0, '{}')", job)
  }

  /** A metric that this attempt has not printed keeps the value of an earlier one. */
  note({ job, attempt, values, isFinal }: Reading): void {
    const [row] = this.file.all('SELECT attempt, is_final, metrics FROM results WHERE job = ?', job)
    const [before, after] = [Number(row?.attempt ?? 0), { ...values }]
    if (before > attempt) return
    const merged =
      before === attempt || Object.keys(after).length === 0 ? { ...this.#valuesOf(job, row), ...after } : after
    const [text, ends] = [JSON.stringify(merged), Number(isFinal)]
    if (before === attempt && row?.metrics === text && Number(row.is_final) === ends) return
    this.file.run('INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?)', job, attempt, ends, text)
  }

  of(job: number): MetricValues {
    return this.#valuesOf(job, this.file.one('SELECT metrics FROM results WHERE job = ?', job))
  }

  /** Ended jobs whose final metrics were not read yet. */
  unread(): readonly Job[] {
    return this.rows.read(
      `WHERE jobs.id IN (SELECT job FROM results JOIN jobs AS own ON own.id = job
        WHERE own.kind IN (${FINAL_KINDS.map((kind) => `'${kind}'`).join()})
          AND (is_final = 0 OR results.attempt < own.attempt))`,
    )
  }

  /** Those that were submitted together. */
  sweep(group: number, spec: JobSpec): Sweep {
    const specs = JSON.stringify(specFamilies(this.file).get(group) ?? [group])
    const rows = this.file
      .all(
        `SELECT id, kind, state, jobs.attempt AS attempt, environment, metrics FROM jobs LEFT JOIN results ON results.job = jobs.id
          WHERE spec IN (SELECT value FROM json_each(?)) ORDER BY id LIMIT ?`,
        specs,
        MOST_ROWS,
      )
      .map(
        (row): SweepRow => ({
          id: Number(row.id),
          state: this.rows.stateOf(row),
          attempt: Number(row.attempt),
          parameters: this.rows.environmentOf(row),
          values: this.#valuesOf(Number(row.id), row),
        }),
      )
    const [{ count } = { count: 0 }] = this.file.all(
      'SELECT count(*) AS count FROM jobs WHERE spec IN (SELECT value FROM json_each(?))',
      specs,
    )
    const parameters = [...new Set(rows.flatMap((row) => Object.keys(row.parameters)))]
    return { metrics: spec.metrics ?? [], parameters, rows, count: Number(count) }
  }

  #valuesOf(job: number, row: SqlRow | undefined): MetricValues {
    const text = row?.metrics ?? null
    return text === null ? {} : this.file.json(text, 'metrics', isMetricValues, nameOfMetrics, job)
  }
}

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
    const secondsOf = ({ ran_ms }: SqlRow) => Math.max(1, Math.round(Number(ran_ms) / 1000))
    return new Map([...byUser].map(([user, own]) => [user, own.map(secondsOf)]))
  }

  /** What users consumed lately, in milli × seconds of GPUs (of cores where there are none); it halves every day. */
  usage(active: readonly Job[], nowMs: number): ReadonlyMap<string, number> {
    const had = new Map<string, number>()
    const add = (user: string, { request, bundles }: JobSpec, ranMs: number, agoMs: number) => {
      const size = bundles * (request.gpuCount * request.gpuMilli || request.cpuMilli)
      had.set(user, (had.get(user) ?? 0) + ((size * ranMs) / 1000) * 0.5 ** (agoMs / HALF_LIFE_MS))
    }
    for (const { user, spec, state } of active)
      if (isActive(state) && state.kind !== 'pending') add(user, spec, Math.max(0, nowMs - state.startedMs), 0)
    const rows = this.file.all(
      'SELECT user, ran_ms, ended_ms, spec FROM jobs WHERE ran_ms IS NOT NULL ORDER BY ended_ms DESC LIMIT ?',
      USAGE_JOBS,
    )
    for (const { user, ran_ms, ended_ms, spec } of rows)
      add(String(user), this.rows.specOf(Number(spec)), Number(ran_ms), Math.max(0, nowMs - Number(ended_ms)))
    return had
  }
}
