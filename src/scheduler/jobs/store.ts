/**
 * The queue on disk: an SQLite database in a directory that only the user may read. What a call has returned from is on disk
 * (write-ahead log, synced at each commit); a cut at any moment leaves the calls before it. Several programs may use it at
 * once; one of them drives (`lease`), and whoever lost the lease can write nothing more as the driver.
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type SQLInputValue, type SQLOutputValue, type StatementSync } from 'node:sqlite'
import { MusterError } from '../../base/errors.ts'
import type { HostSpec } from '../model/resources.ts'
import {
  FINAL_KINDS,
  isActive,
  isFinal,
  type Job,
  type JobEvent,
  type JobSpec,
  type JobState,
  transition,
} from './job.ts'
import { JobRows, parse, type Row, SELECT } from './job-rows.ts'
import { KeptActive, KeptList } from './kept-list.ts'
import { bundleKey } from './orders.ts'
import { isSqlite, unusable } from './queue-errors.ts'
import { JobResults, RESULTS_SCHEMA, type Reading } from './results.ts'
import { SCHEMA } from './schema.ts'

const VERSION = 1
const BUSY_MS = 10_000
/** Of what users had: so many of the last are counted. */
const USAGE_JOBS = 2_000
const HALF_LIFE_MS = 86_400_000

export type Submission = {
  readonly spec: JobSpec
  readonly user: string
  readonly priority: number
  readonly isHeld: boolean
  readonly after: readonly number[]
  /** One job each, with these variables besides; one without any: one job. */
  readonly variants: readonly Readonly<Record<string, string>>[]
}

export type QueueView = {
  readonly atMs: number
  readonly hosts: readonly HostSpec[]
  /** By name of a host that does not answer: why. */
  readonly down: Readonly<Record<string, string>>
  /** By job, in seconds since the epoch; null: never, as things are. */
  readonly expectedS: Readonly<Record<string, number | null>>
}

/** Jobs that were submitted together: an array, a grid, or one alone. */
export type JobGroup = {
  readonly spec: number
  readonly first: number
  readonly count: number
  readonly counts: ReadonlyMap<string, number>
}

export type ApplyOptions = {
  /** As the driver. */
  readonly lease?: Lease | undefined
  /** With each as it is now, before it is on disk. */
  onChange?(job: Job): void
}

export type Lease = { readonly token: number }

export class JobStore implements Disposable {
  readonly #database: DatabaseSync
  readonly #name: string
  readonly #statements = new Map<string, StatementSync>()
  readonly #rows = new JobRows()
  readonly #active = new KeptActive()
  readonly #ready = new KeptList()
  #isInside = false
  readonly results = new JobResults({
    all: (sql, ...values) => this.#all(sql, ...values),
    run: (sql, ...values) => void this.#run(sql, ...values),
    jobs: (where, ...values) => this.#jobs(`${SELECT} ${where}`, ...values),
  })
  /** Tells this queue from all others, on hosts that serve several. */
  readonly id: string

  /**
   * `busyMs`: how long a call waits for another program that writes.
   * @throws MusterError 'configuration' when the file is none of ours, is damaged, or was written by a later version.
   */
  constructor(path: string, busyMs = BUSY_MS) {
    this.#name = `the queue ${path}`
    try {
      if (path !== ':memory:') mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      this.#database = new DatabaseSync(path)
      this.#database.exec(
        `PRAGMA busy_timeout = ${busyMs}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON`,
      )
      this.id = this.#migrate()
    } catch (error) {
      throw unusable(error, this.#name)
    }
  }

  [Symbol.dispose](): void {
    this.#database.close()
  }

  submit(submission: Submission, nowMs: number): readonly number[] {
    return this.submitAll([submission], nowMs)[0] ?? []
  }

  /** All of them or none; on disk with one wait for the disk, however many they are. */
  submitAll(submissions: readonly Submission[], nowMs: number): readonly (readonly number[])[] {
    return this.#inTransaction(() => submissions.map((submission) => this.#insert(submission, nowMs)))
  }

  #insert({ spec, user, priority, isHeld, after, variants }: Submission, nowMs: number): readonly number[] {
    const missing = after.find((id) => this.get(id) === undefined)
    if (missing !== undefined) throw new MusterError('usage', `there is no job ${missing}`)
    const kind = isHeld ? 'held' : 'queued'
    const state = JSON.stringify({ kind } satisfies JobState)
    const previous = after.length === 0 ? null : JSON.stringify(after)
    const group = this.#run('INSERT INTO specs (spec) VALUES (?)', JSON.stringify(spec))
    this.#ready.forget()
    return variants.map((variant) => {
      const environment = Object.keys(variant).length === 0 ? null : JSON.stringify(variant)
      const id = this.#run(INSERT_JOB, group, environment, user, nowMs, priority, kind, state, previous)
      if (spec.metrics !== undefined) this.results.expect(id)
      return id
    })
  }

  get(id: number): Job | undefined {
    const kept = this.#active.find(this.version(), id)
    if (kept !== undefined) return kept
    const row = this.#one(`${SELECT} WHERE jobs.id = ?`, id)
    return row && this.#rows.jobOf(row)
  }

  /** The latest first; of all kinds unless some are named. */
  list(kinds: readonly string[], limit: number): readonly Job[] {
    const where = kinds.length === 0 ? '' : `WHERE kind IN (${kinds.map(() => '?').join()})`
    return this.#jobs(`${SELECT} ${where} ORDER BY jobs.id DESC LIMIT ?`, ...kinds, limit)
  }

  counts(): ReadonlyMap<string, number> {
    const rows = this.#all('SELECT kind, count(*) AS count FROM jobs GROUP BY kind')
    return new Map(rows.map(({ kind, count }) => [String(kind), Number(count)]))
  }

  /** The latest first. */
  groups(limit: number): readonly JobGroup[] {
    const rows = this.#all(
      `SELECT spec, kind, min(id) AS first, count(*) AS count FROM jobs
        WHERE spec > (SELECT max(id) FROM specs) - ? GROUP BY spec, kind ORDER BY spec DESC`,
      limit,
    )
    return [...Map.groupBy(rows, ({ spec }) => Number(spec))].map(([spec, own]) => ({
      spec,
      first: Math.min(...own.map(({ first }) => Number(first))),
      count: own.reduce((sum, { count }) => sum + Number(count), 0),
      counts: new Map(own.map(({ kind, count }) => [String(kind), Number(count)])),
    }))
  }

  /** Numbers of those that were submitted together, of these kinds (all unless named). */
  idsOf(spec: number, kinds: readonly string[]): readonly number[] {
    const where = kinds.length === 0 ? '' : `AND kind IN (${kinds.map(() => '?').join()})`
    return this.#all(`SELECT id FROM jobs WHERE spec = ? ${where} ORDER BY id`, spec, ...kinds).map(({ id }) =>
      Number(id),
    )
  }

  active(): readonly Job[] {
    return this.#active.read(this.version(), () =>
      this.#jobs(`${SELECT} WHERE kind IN ('starting', 'running', 'ending') ORDER BY jobs.id`),
    )
  }

  /** The most important and oldest of those that wait. */
  queued(limit: number): readonly Job[] {
    return this.#jobs(`${SELECT} WHERE kind = 'queued' ORDER BY priority DESC, jobs.id LIMIT ?`, limit)
  }

  /**
   * Of these, those that wait for no other one, however many do before them; at times fewer than there are, but never less than
   * half of `limit`.
   */
  ready(limit: number): readonly Job[] {
    return this.#ready.read(this.version(), limit, () =>
      this.#jobs(
        `${SELECT} WHERE kind = 'queued' AND (after IS NULL OR NOT EXISTS
          (SELECT 1 FROM json_each(jobs.after) AS each JOIN jobs AS other ON other.id = each.value WHERE other.kind <> 'done'))
          ORDER BY priority DESC, jobs.id LIMIT ?`,
        limit,
      ),
    )
  }

  /** Of the last that ended by themselves: by user, in seconds, the latest last. */
  runTimes(): ReadonlyMap<string, readonly number[]> {
    const rows = this.#all(
      "SELECT user, ran_ms FROM jobs WHERE ended_ms IS NOT NULL AND kind = 'done' ORDER BY ended_ms DESC LIMIT 100",
    )
    const times = new Map<string, number[]>()
    for (const { user, ran_ms } of rows.toReversed()) {
      const own = times.get(String(user)) ?? []
      times.set(String(user), own)
      own.push(Math.max(1, Math.round(Number(ran_ms) / 1000)))
    }
    return times
  }

  /** Whether it changed anything; undefined: there is no such job. `lease`: as the driver. */
  apply(id: number, event: JobEvent, nowMs: number, lease?: Lease): boolean | undefined {
    return this.applyAll([{ id, event }], nowMs, { lease })[0]
  }

  /**
   * All of them or none.
   * @throws MusterError 'interrupted' when the lease is another one's by now.
   */
  applyAll(
    events: readonly { readonly id: number; readonly event: JobEvent }[],
    nowMs: number,
    { lease, onChange }: ApplyOptions = {},
  ): readonly (boolean | undefined)[] {
    if (events.length === 0) return []
    return this.#inTransaction(() => {
      if (lease !== undefined) this.#check(lease)
      const left = new Set<number>()
      let hasDone = false
      const results = events.map(({ id, event }) => {
        const job = this.get(id)
        if (job === undefined) return undefined
        const { attempt, failures, state } = transition(job, event, nowMs)
        if (state === job.state) return false
        const endedMs = isFinal(state) ? state.endedMs : null
        const ranMs = isFinal(state) && state.startedMs !== undefined ? state.endedMs - state.startedMs : null
        this.#run(UPDATE_JOB, attempt, failures, state.kind, JSON.stringify(state), endedMs, ranMs, id)
        const next = { ...job, attempt, failures, state }
        this.#active.note(next)
        onChange?.(next)
        if (state.kind === 'queued') this.#ready.forget()
        else left.add(id)
        hasDone ||= state.kind === 'done'
        return true
      })
      this.#ready.remove(left)
      if (hasDone && this.#one(DEPENDENT) !== undefined) this.#ready.forget()
      return results
    })
  }

  /** Another specification and priority for those that wait or are held; as `applyAll`. */
  editAll(
    ids: readonly number[],
    change: (job: Job) => Pick<Job, 'spec' | 'priority'>,
  ): readonly (boolean | undefined)[] {
    return this.#inTransaction(() => {
      const rows = new Map<string, number>()
      this.#ready.forget()
      return ids.map((id) => {
        const job = this.get(id)
        if (job === undefined) return undefined
        if (job.state.kind !== 'queued' && job.state.kind !== 'held') return false
        const { spec, priority } = change(job)
        const text = JSON.stringify(spec)
        const row = rows.get(text) ?? this.#run('INSERT INTO specs (spec) VALUES (?)', text)
        rows.set(text, row)
        // The variables of its own are part of the new text.
        this.#run('UPDATE jobs SET spec = ?, environment = NULL, priority = ? WHERE id = ?', row, priority, id)
        return true
      })
    })
  }

  /** As the driver; all of them or none. */
  noteResults(readings: readonly Reading[], lease: Lease): void {
    if (readings.length === 0) return
    this.#inTransaction(() => {
      this.#check(lease)
      for (const reading of readings) this.results.note(reading)
    })
  }

  /** What a job was submitted with; undefined: there is no such job. */
  groupOf(id: number): number | undefined {
    const row = this.#one('SELECT spec FROM jobs WHERE id = ?', id)
    return row && Number(row.spec)
  }

  /** Directories on hosts, by name, that jobs that have not ended have or will run in. */
  keptDirectories(): readonly string[] {
    const own = this.active().flatMap((job) =>
      isActive(job.state) ? job.state.places.map((_, rank) => bundleKey(this.id, job, rank)) : [],
    )
    const rows = this.#all(
      `SELECT DISTINCT jobs.spec AS spec_id, specs.spec AS spec FROM jobs JOIN specs ON specs.id = jobs.spec
        WHERE kind IN ('held', 'queued', 'starting', 'running', 'ending')`,
    )
    const copied = rows.flatMap(({ spec_id, spec }) => {
      const { directory } = this.#rows.specOf(Number(spec_id), spec)
      return directory?.startsWith(`../${this.id}-`) ? [directory.slice(3)] : []
    })
    return [...own, ...new Set(copied)]
  }

  /** What users had lately, halved for each day since: GPUs, or cores where there are none, in milli × seconds. */
  usage(nowMs: number): ReadonlyMap<string, number> {
    const had = new Map<string, number>()
    const add = (user: string, { request, bundles }: JobSpec, ranMs: number, agoMs: number) => {
      const size = bundles * (request.gpuCount * request.gpuMilli || request.cpuMilli)
      had.set(user, (had.get(user) ?? 0) + ((size * ranMs) / 1000) * 0.5 ** (agoMs / HALF_LIFE_MS))
    }
    for (const { user, spec, state } of this.active())
      if (isActive(state)) add(user, spec, Math.max(0, nowMs - state.startedMs), 0)
    const rows = this.#all(
      `SELECT user, ran_ms, ended_ms, jobs.spec AS spec_id, specs.spec AS spec FROM jobs JOIN specs ON specs.id = jobs.spec
        WHERE ended_ms IS NOT NULL AND ran_ms IS NOT NULL ORDER BY ended_ms DESC LIMIT ?`,
      USAGE_JOBS,
    )
    for (const { user, ran_ms, ended_ms, spec_id, spec } of rows)
      add(String(user), this.#rows.specOf(Number(spec_id), spec), Number(ran_ms), Math.max(0, nowMs - Number(ended_ms)))
    return had
  }

  /** Cancels those that wait for what will never be done. */
  cancelOrphans(nowMs: number, lease: Lease): number {
    const orphans = this.#all(
      `SELECT id FROM jobs WHERE kind IN ('queued', 'held') AND after IS NOT NULL AND EXISTS
        (SELECT 1 FROM json_each(jobs.after) AS each JOIN jobs AS other ON other.id = each.value WHERE other.kind IN (${NEVER_DONE}))`,
    )
    const event = { kind: 'stop', reason: 'cancelled' } as const
    return this.applyAll(
      orphans.map(({ id }) => ({ id: Number(id), event })),
      nowMs,
      { lease },
    ).length
  }

  /** Undefined while another one drives. `isGone`: whether that owner is known to have ended without giving it back. */
  takeLease(owner: string, nowMs: number, forMs: number, isGone = (_: string) => false): Lease | undefined {
    return this.#inTransaction(() => {
      const { token, until_ms, owner: before } = this.#lease()
      if (Number(until_ms) > nowMs && !isGone(String(before))) return undefined
      const next = Number(token) + 1
      this.#run('UPDATE lease SET token = ?, owner = ?, until_ms = ?', next, owner, nowMs + forMs)
      return { token: next }
    })
  }

  /** @throws MusterError 'interrupted' when it is another one's by now. */
  renewLease(lease: Lease, nowMs: number, forMs: number): void {
    this.#inTransaction(() => {
      this.#check(lease)
      this.#run('UPDATE lease SET until_ms = ?', nowMs + forMs)
    })
  }

  giveLease(lease: Lease): void {
    this.#inTransaction(() => this.#run('UPDATE lease SET until_ms = 0 WHERE token = ?', lease.token))
  }

  /** Changes whenever another program has written. */
  version(): number {
    return Number(this.#one('PRAGMA data_version')?.data_version)
  }

  /** What the driver saw last, for those who watch. */
  writeView(view: QueueView, lease: Lease): void {
    this.#inTransaction(() => {
      this.#check(lease)
      this.#run("INSERT OR REPLACE INTO meta VALUES ('view', ?)", JSON.stringify(view))
    })
  }

  view(): QueueView | undefined {
    const row = this.#one("SELECT value FROM meta WHERE name = 'view'")
    return row && parse<QueueView>(row.value)
  }

  /** Who drives; undefined: nobody. */
  driver(nowMs: number): string | undefined {
    const { owner, until_ms } = this.#lease()
    return Number(until_ms) > nowMs ? String(owner) : undefined
  }

  #lease(): Record<string, SQLOutputValue> {
    return this.#one('SELECT token, owner, until_ms FROM lease') ?? {}
  }

  #check({ token }: Lease): void {
    if (Number(this.#lease().token) === token) return
    throw new MusterError('interrupted', 'another Muster drives this queue now')
  }

  #migrate(): string {
    // What is as it should be is opened without waiting for whoever writes.
    const isUpToDate = this.#fileVersion() === VERSION && this.#one(HAS_LATER_PARTS) !== undefined
    return isUpToDate ? this.#readId() : this.#makeUpToDate()
  }

  #fileVersion(): number {
    return Number(this.#one('PRAGMA user_version')?.user_version)
  }

  #readId(): string {
    return String(this.#one("SELECT value FROM meta WHERE name = 'id'")?.value)
  }

  #makeUpToDate(): string {
    return this.#inTransaction(() => {
      const version = this.#fileVersion()
      if (version > VERSION)
        throw new MusterError('configuration', 'the queue was written by a later version of Muster')
      if (version === 0) {
        if (this.#one('SELECT 1 FROM sqlite_master') !== undefined)
          throw new MusterError(
            'configuration',
            `${this.#name} cannot be used: it is the database of another program`,
            {
              hint: 'Move it away, or name another cluster in hosts.yaml.',
            },
          )
        this.#database.exec(SCHEMA)
        this.#run("INSERT INTO meta VALUES ('id', ?)", randomBytes(6).toString('hex'))
        this.#database.exec(`PRAGMA user_version = ${VERSION}`)
      }
      // Of no consequence to a version that does not know it.
      this.#database.exec('CREATE INDEX IF NOT EXISTS jobs_by_spec ON jobs (spec, kind)')
      this.#database.exec(RESULTS_SCHEMA)
      return this.#readId()
    })
  }

  /**
   * Reads the whole file, which takes a while where it is large.
   * @throws MusterError 'configuration' when it is damaged anywhere.
   */
  checkWhole(): void {
    if (this.#one('PRAGMA quick_check(1)')?.quick_check !== 'ok') throw unusable(new Error('it is damaged'), this.#name)
  }

  /** A commit that failed may have done it already. */
  #rollBack(): void {
    try {
      this.#database.exec('ROLLBACK')
    } catch {}
  }

  /** Whatever `work` writes is on disk with one wait for the disk, or not at all. */
  together<T>(work: () => T): T {
    return this.#inTransaction(work)
  }

  #inTransaction<T>(work: () => T): T {
    if (this.#isInside) return work()
    try {
      this.#database.exec('BEGIN IMMEDIATE')
      this.#isInside = true
      const result = work()
      this.#database.exec('COMMIT')
      return result
    } catch (error) {
      this.#rollBack()
      this.#active.forget()
      this.#ready.forget()
      throw isSqlite(error) ? unusable(error, this.#name) : error
    } finally {
      this.#isInside = false
    }
  }

  #statement(sql: string): StatementSync {
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    const statement = this.#database.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }

  /** @throws MusterError when the file cannot be read. */
  #all(sql: string, ...values: readonly SQLInputValue[]): readonly Row[] {
    try {
      return this.#statement(sql).all(...values)
    } catch (error) {
      throw unusable(error, this.#name)
    }
  }

  #one(sql: string, ...values: readonly SQLInputValue[]): Row | undefined {
    return this.#all(sql, ...values)[0]
  }

  /** The number of the row that it made. */
  #run(sql: string, ...values: readonly SQLInputValue[]): number {
    return Number(this.#statement(sql).run(...values).lastInsertRowid)
  }

  #jobs(sql: string, ...values: readonly SQLInputValue[]): readonly Job[] {
    return this.#all(sql, ...values).map((row) => this.#rows.jobOf(row))
  }
}

const NEVER_DONE = FINAL_KINDS.filter((kind) => kind !== 'done')
  .map((kind) => `'${kind}'`)
  .join()
const HAS_LATER_PARTS =
  "SELECT 1 WHERE (SELECT count(*) FROM sqlite_master WHERE name IN ('jobs_by_spec', 'results')) = 2"
const DEPENDENT = "SELECT 1 FROM jobs WHERE kind = 'queued' AND after IS NOT NULL LIMIT 1"
const INSERT_JOB = `INSERT INTO jobs (spec, environment, user, submitted_ms, priority, attempt, failures, kind, state, after)
  VALUES (?, ?, ?, ?, ?, 1, 0, ?, ?, ?)`
const UPDATE_JOB =
  'UPDATE jobs SET attempt = ?, failures = ?, kind = ?, state = ?, ended_ms = ?, ran_ms = ? WHERE id = ?'
