/** The jobs of a queue: every call is on disk when it returns (queue-file.ts). */

import { ownEntries } from '../../base/collections.ts'
import { MusterError } from '../../base/errors.ts'
import type { HostCapacity } from '../model/resources.ts'
import type { Study, Trial } from '../study/study.ts'
import { studyDirectory } from './checkpoint.ts'
import type { DamagedRow } from './damage.ts'
import type { DriverHost } from './driver-host.ts'
import type { EngineRoom, EngineWait } from './engine.ts'
import {
  type BundlePlace,
  CHANGED_KINDS,
  FAILED_KINDS,
  type FinalKind,
  hasBegun,
  isActive,
  isFinal,
  type Job,
  type JobEvent,
  type JobSpec,
  type JobState,
  missedWords,
  transition,
  UNFINISHED_KINDS,
} from './job.ts'
import type { JobExtent, JobGroup } from './job-group.ts'
import { JobRows, KeptActive } from './job-rows.ts'
import { bundleKey } from './orders.ts'
import { DriverLease, type LeaseToken, QueueFile } from './queue-file.ts'
import { Accounting, JobResults, type Reading } from './results.ts'
import { isReport } from './stored-shapes.ts'
import { type NewTrial, StudyRows, specFamilies } from './study-rows.ts'
import { alikeOf, type StoredLine, WaitingLines } from './waiting-lines.ts'

export type Submission = {
  readonly spec: JobSpec
  readonly user: string
  readonly priority: number
  readonly isHeld: boolean
  readonly after: readonly number[]
  /** One job each, with these additional variables. */
  readonly variants: readonly Readonly<Record<string, string>>[]
}

/** What the driver saw last, for those who watch. */
export type SchedulerReport = {
  readonly atMs: number
  readonly hosts: readonly HostCapacity[]
  /** As hosts.yaml declared them when the scheduler started. */
  readonly declared?: readonly DriverHost[]
  /** Why a host, or the place of an engine, cannot be used, by name. */
  readonly down: Readonly<Record<string, string>>
  /** By job, in seconds since the epoch; null: never, as things are. */
  readonly expectedS: Readonly<Record<string, number | null>>
  readonly isPreempting?: boolean
  /** What engines have, by name; while a job waits for it. */
  readonly rooms?: Readonly<Record<string, EngineRoom>>
  /** By job that waits in its engine. */
  readonly waits?: Readonly<Record<string, EngineWait>>
}

/** The first one that waits of a submission, and between which numbers how many of it wait. */
export type WaitingGroup = {
  readonly job: Job
  readonly first: number
  readonly last: number
  readonly count: number
}

const MOST_EXTENT_HOSTS = 1_000

/** Where the job of a trial differs from those of its study. */
export type OwnJob = {
  readonly spec?: JobSpec | undefined
  readonly environment?: Readonly<Record<string, string>>
}

export class JobStore implements Disposable {
  readonly file: QueueFile
  readonly lease: DriverLease
  readonly results: JobResults
  readonly accounting: Accounting
  readonly studies: StudyRows
  readonly id: string
  readonly #rows: JobRows
  readonly #active = new KeptActive()
  readonly #waiting: WaitingLines

  /** As QueueFile. */
  constructor(path: string, busyMs?: number, isFrozen?: boolean) {
    this.file = new QueueFile(path, busyMs, isFrozen)
    this.id = this.file.id
    this.#rows = new JobRows(this.file)
    this.lease = new DriverLease(this.file)
    this.results = new JobResults(this.file, this.#rows)
    this.accounting = new Accounting(this.file, this.#rows)
    this.studies = new StudyRows(this.file, this.#rows)
    this.#waiting = new WaitingLines(this.file, this.#rows)
  }

  [Symbol.dispose](): void {
    this.file[Symbol.dispose]()
  }

  submit(submission: Submission, nowMs: number): readonly number[] {
    return this.submitAll([submission], nowMs)[0] ?? []
  }

  /** All of them or none, with one wait for the disk. @throws MusterError 'configuration' where the file was moved away */
  submitAll(submissions: readonly Submission[], nowMs: number): readonly (readonly number[])[] {
    this.file.requireInPlace()
    return this.together(() => submissions.map((submission) => this.#insert(submission, nowMs)))
  }

  /** @throws MusterError 'usage' for the first one that is not there */
  requireJobs(ids: readonly number[]): void {
    const missing = ids.find((id) => this.get(id) === undefined)
    if (missing !== undefined) throw new MusterError('usage', `there is no job ${missing}`)
  }

  #insert({ spec, user, priority, isHeld, after, variants }: Submission, nowMs: number): readonly number[] {
    this.requireJobs(after)
    const group = this.file.run('INSERT INTO specs (spec) VALUES (?)', JSON.stringify(spec))
    return this.#insertInto(group, { spec, user, priority, isHeld, after, variants }, nowMs)
  }

  #insertInto(group: number, submission: Submission, nowMs: number): readonly number[] {
    const { spec, user, priority, isHeld, after, variants } = submission
    const kind = isHeld ? 'held' : 'queued'
    const state = JSON.stringify({ kind } satisfies JobState)
    const previous = after.length === 0 ? null : JSON.stringify(after)
    const alike = alikeOf(spec)
    this.#waiting.forget()
    return variants.map((variant) => {
      const environment = Object.keys(variant).length === 0 ? null : JSON.stringify(variant)
      const id = this.file.run(INSERT_JOB, group, environment, user, nowMs, priority, kind, state, previous, alike)
      if (spec.metrics !== undefined) this.results.expect(id)
      return id
    })
  }

  /** A trial and, if the study has jobs, the one that runs it. */
  addTrial(study: Study, trial: NewTrial, nowMs: number, { spec: own, environment }: OwnJob = {}): Trial {
    const { id, user, priority, jobSpec } = study
    return this.together(() => {
      const number = this.studies.nextNumber(id)
      const [job] =
        jobSpec === undefined
          ? []
          : this.#insertInto(
              own === undefined ? jobSpec : this.#specOfTrials(id, own),
              {
                spec: own ?? this.#rows.specOf(jobSpec),
                ...{ user, priority, isHeld: false, after: [] },
                variants: [{ ...trial.point, ...environment, MUSTER_STUDY: study.name, MUSTER_TRIAL: String(number) }],
              },
              nowMs,
            )
      this.studies.add(id, trial, job)
      return { ...trial, number, job, end: undefined }
    })
  }

  /** The job of a trial waits with this specification; its variables stay. */
  bindTrial({ id }: Study, job: number, spec: JobSpec): void {
    this.#waiting.forget()
    this.file.run(BIND_JOB, this.#specOfTrials(id, spec), alikeOf(spec), job)
  }

  /** Trials with the same specification share it. */
  #specOfTrials(study: number, spec: JobSpec): number {
    const text = JSON.stringify(spec)
    const rows = this.file.all(
      'SELECT DISTINCT jobs.spec AS spec FROM trial JOIN jobs ON jobs.id = trial.job WHERE trial.study = ?',
      study,
    )
    const known = rows.find((row) => JSON.stringify(this.#rows.specOf(Number(row.spec))) === text)
    return known === undefined ? this.file.run('INSERT INTO specs (spec) VALUES (?)', text) : Number(known.spec)
  }

  get(id: number): Job | undefined {
    return this.#active.find(this.file.version(), id) ?? this.#rows.read('WHERE jobs.id = ?', id)[0]
  }

  /** The latest first. `kinds`: empty for all. */
  list(kinds: readonly string[], limit: number): readonly Job[] {
    return this.#rows.read(`WHERE ${isOneOf(kinds)} ORDER BY jobs.id DESC LIMIT ?`, ...kinds, limit)
  }

  /** As `list`, but all that have not ended and at most so many of the last to end, without those that are damaged. */
  listWhole(
    kinds: readonly string[],
    mostEnded: number,
  ): { readonly found: readonly Job[]; readonly damage: DamagedRow | undefined } {
    const isMeant = isOneOf(kinds)
    // With `+` it reads the last to end until there are enough, and does not sort all of these kinds.
    return this.#rows.readWhole(
      `WHERE id IN (SELECT id FROM jobs WHERE kind IN (${UNFINISHED}) AND ${isMeant} UNION ALL SELECT id FROM
        (SELECT id FROM jobs WHERE ended_ms IS NOT NULL AND +${isMeant} ORDER BY ended_ms DESC, id DESC LIMIT ?))
        ORDER BY id DESC`,
      ...kinds,
      ...kinds,
      mostEnded,
    )
  }

  counts(): ReadonlyMap<string, number> {
    const rows = this.file.all('SELECT kind, count FROM tally WHERE count > 0')
    return new Map(rows.map(({ kind, count }) => [String(kind), Number(count)]))
  }

  /**
   * Submissions, the latest first: all that run, and about `limit` each of the latest, the last to end, the last to fail and the next to
   * start. `also`: a submission that is always included. `isCut`: older ones are left out.
   */
  groups(limit: number, also?: number): { readonly groups: readonly JobGroup[]; readonly isCut: boolean } {
    const families = specFamilies(this.file)
    const named = this.file
      .all(
        NAMED_SPECS,
        also ?? null,
        limit,
        ...[limit * ENDED_EACH, limit],
        ...[limit * ENDED_EACH, limit],
        limit,
        limit,
      )
      .map(({ spec }) => Number(spec))
    // Of a study all of its jobs count, however old its first ones are.
    const specs = JSON.stringify([...new Set(named.flatMap((spec) => families.get(spec) ?? [spec]))])
    const all = this.file.all(
      `SELECT spec, kind, min(id) AS first, count(*) AS count FROM jobs
        WHERE spec IN (SELECT value FROM json_each(?)) GROUP BY spec, kind ORDER BY spec DESC`,
      specs,
    )
    const rows = Map.groupBy(all, ({ spec }) => families.get(Number(spec))?.[0] ?? Number(spec))
    const groups = [...rows].map(([spec, own]) => ({
      spec,
      first: Math.min(...own.map(({ first }) => Number(first))),
      count: own.reduce((sum, { count }) => sum + Number(count), 0),
      ...(new Set(own.map(({ spec: each }) => each)).size > 1 ? { isMixed: true } : {}),
      counts: new Map(
        [...Map.groupBy(own, ({ kind }) => String(kind))].map(([kind, some]) => [
          kind,
          some.reduce((sum, { count }) => sum + Number(count), 0),
        ]),
      ),
    }))
    return { groups, isCut: this.file.one(OTHER_SPEC, limit, specs) !== undefined }
  }

  /** Of one submission. Running jobs are not counted among those that have started. */
  extentOf(spec: number): JobExtent {
    const specs = JSON.stringify(specFamilies(this.file).get(spec) ?? [spec])
    const [times] = this.file.all(
      `SELECT min(ended_ms - ran_ms) AS started, max(ended_ms) AS ended FROM jobs
        WHERE spec IN (SELECT value FROM json_each(?))`,
      specs,
    )
    const hosts = this.file.all(
      `SELECT DISTINCT json_extract(place.value, '$.host') AS host FROM jobs, json_each(jobs.state, '$.places') AS place
        WHERE spec IN (SELECT value FROM json_each(?)) AND ran_ms IS NOT NULL LIMIT ${MOST_EXTENT_HOSTS}`,
      specs,
    )
    const msOf = (value: unknown) => (typeof value === 'number' ? value : undefined)
    return {
      startedMs: msOf(times?.started),
      endedMs: msOf(times?.ended),
      hosts: hosts.map(({ host }) => String(host)),
    }
  }

  /** Jobs of one submission. `kinds`: empty for all. */
  idsOf(spec: number, kinds: readonly string[]): readonly number[] {
    const specs = JSON.stringify(specFamilies(this.file).get(spec) ?? [spec])
    const rows = this.file.all(
      `SELECT id FROM jobs WHERE spec IN (SELECT value FROM json_each(?)) AND ${isOneOf(kinds)} ORDER BY id`,
      specs,
      ...kinds,
    )
    return rows.map(({ id }) => Number(id))
  }

  active(): readonly Job[] {
    return this.#active.read(this.file.version(), (known) =>
      this.#rows.readAgain(known, `WHERE kind IN ('starting', 'pending', 'running', 'ending') ORDER BY jobs.id`),
    )
  }

  /** The last to end first. */
  endedSince(sinceMs: number, limit: number): readonly Job[] {
    return this.#rows.read('WHERE ended_ms >= ? ORDER BY ended_ms DESC LIMIT ?', sinceMs, limit)
  }

  /** By priority, then by number. */
  queued(limit: number): readonly Job[] {
    return this.#rows.read(`WHERE kind = 'queued' ORDER BY priority DESC, jobs.id LIMIT ?`, limit)
  }

  /** As `queued`, but of each submission only the first one. */
  queuedGroups(limit: number): readonly WaitingGroup[] {
    const found = new Map<number, WaitingGroup>()
    const next = (condition: string, ...values: number[]) =>
      this.#rows.read(`WHERE kind = 'queued' AND ${condition} ORDER BY priority DESC, jobs.id LIMIT 1`, ...values)[0]
    let [job] = this.queued(1)
    for (let step = 0; job !== undefined && step < limit * STEPS_EACH && found.size < limit; step += 1) {
      const { id, priority } = job
      const spec = Number(this.file.one('SELECT spec FROM jobs WHERE id = ?', id)?.spec)
      if (!found.has(spec)) {
        const row = this.file.one(
          "SELECT min(id) AS first, max(id) AS last, count(*) AS count FROM jobs WHERE spec = ? AND kind = 'queued'",
          spec,
        )
        found.set(spec, { job, first: Number(row?.first), last: Number(row?.last), count: Number(row?.count) })
      }
      job = next('priority = ? AND jobs.id > ?', priority, this.#lastOf(spec, id)) ?? next('priority < ?', priority)
    }
    return [...found.values()]
  }

  /** The last job that was submitted together with this one; `id` itself if jobs of others are between them. */
  #lastOf(spec: number, id: number): number {
    const row = this.file.one(
      'SELECT max(id) AS last, count(*) AS count FROM jobs WHERE spec = ? AND id >= ?',
      spec,
      id,
    )
    return Number(row?.last) - id + 1 === Number(row?.count) ? Number(row?.last) : id
  }

  /** Those that may begin now, as lines of at least one job. */
  waiting(nowMs: number): readonly StoredLine[] {
    return this.#waiting.read(this.file.version(), nowMs)
  }

  /**
   * All of them or none. Returns for each whether it changed anything; undefined: no such job. `lease`: as the scheduler;
   * `onChange`: called with each job after the change, before it is on disk.
   * @throws MusterError 'interrupted' when another scheduler has taken the lease.
   */
  applyAll(
    events: readonly { readonly id: number; readonly event: JobEvent }[],
    nowMs: number,
    { lease, onChange }: { readonly lease?: LeaseToken | undefined; onChange?(job: Job): void } = {},
  ): readonly (boolean | undefined)[] {
    if (events.length === 0) return []
    return this.together(() => {
      if (lease !== undefined) this.lease.check(lease)
      const left = new Set<number>()
      let hasDone = false
      const results = events.map(({ id, event }) => {
        const job = this.get(id)
        if (job === undefined) return undefined
        const next = transition(job, event, nowMs)
        const { attempt, failures, state } = next
        if (state === job.state) return false
        const endedMs = isFinal(state) ? state.endedMs : null
        const isOver = isFinal(state) && (job.spec.engine === undefined || hasBegun(state))
        const ranMs = isOver && state.startedMs !== undefined ? state.endedMs - state.startedMs : null
        this.file.run(UPDATE_JOB, attempt, failures, state.kind, JSON.stringify(state), endedMs, ranMs, id)
        this.#active.note(next)
        onChange?.(next)
        if (state.kind === 'queued') this.#waiting.forget()
        else left.add(id)
        hasDone ||= state.kind === 'done' || event.kind === 'ready'
        return true
      })
      this.#waiting.remove(left)
      if (hasDone && this.file.one(DEPENDENT) !== undefined) this.#waiting.forgetBound()
      return results
    })
  }

  /**
   * Changes specification and priority of jobs that wait or are held; each keeps its own variables, and its submission. `change` gets
   * the specification without its own variables. Returns as `applyAll`.
   */
  editAll(
    ids: readonly number[],
    change: (job: Job) => Pick<Job, 'spec' | 'priority'>,
  ): readonly (boolean | undefined)[] {
    return this.together(() => {
      const made = new Map<string, number>()
      const rowOf = (before: number, spec: JobSpec): number => {
        const text = JSON.stringify(spec)
        if (text === JSON.stringify(this.#rows.specOf(before))) return before
        const key = `${before} ${text}`
        const row = made.get(key) ?? this.file.run('INSERT INTO specs (spec) VALUES (?)', text)
        if (!made.has(key)) this.file.run(ADD_TO_FAMILY, row, before, before)
        made.set(key, row)
        return row
      }
      this.#waiting.forget()
      return ids.map((id) => {
        const job = this.get(id)
        if (job === undefined) return undefined
        if (job.state.kind !== 'queued' && job.state.kind !== 'held') return false
        const before = Number(this.file.one('SELECT spec FROM jobs WHERE id = ?', id)?.spec)
        const { spec, priority } = change({ ...job, spec: this.#rows.specOf(before) })
        this.file.run(UPDATE_SPEC, rowOf(before, spec), priority, alikeOf(spec), id)
        return true
      })
    })
  }

  /** As the scheduler; all of them or none. */
  noteResults(readings: readonly Reading[], lease: LeaseToken): void {
    if (readings.length === 0) return
    this.together(() => {
      this.lease.check(lease)
      for (const reading of readings) this.results.note(reading)
    })
  }

  /** The submission of a job; undefined: no such job. */
  groupOf(id: number): number | undefined {
    const row = this.file.one('SELECT spec FROM jobs WHERE id = ?', id)
    return row && (specFamilies(this.file).get(Number(row.spec))?.[0] ?? Number(row.spec))
  }

  /** Names of directories on hosts that unfinished jobs run in or will run in, and of checkpoints of unfinished studies. */
  keptDirectories(): readonly string[] {
    const running = this.active().flatMap((job) =>
      isActive(job.state) ? job.state.places.map((_, rank) => bundleKey(this.id, job, rank)) : [],
    )
    // Those that `--copy-dir` brought there.
    const start = `../${this.id}-`
    // Few specifications name one, so only those are parsed.
    const rows = this.file.all(
      `SELECT DISTINCT jobs.spec AS spec FROM jobs JOIN specs ON specs.id = jobs.spec
        WHERE kind IN (${UNFINISHED}) AND instr(specs.spec, ?1) > 0
        UNION SELECT job_spec FROM study JOIN specs ON specs.id = study.job_spec
        WHERE json_extract(study.state, '$.kind') <> 'done' AND instr(specs.spec, ?1) > 0`,
      JSON.stringify(start).slice(0, -1),
    )
    const copied = rows.flatMap(({ spec }) => {
      const { directory } = this.#rows.specOf(Number(spec))
      // The names appear between quotes in programs for hosts; no others are ever deleted.
      return directory?.startsWith(start) && SAFE_NAME.test(directory) ? [directory.slice('../'.length)] : []
    })
    const checkpoints = this.studies
      .unfinished()
      .flatMap((study) => (study.spec.pbt === undefined ? [] : [studyDirectory(this.id, study)]))
    return [...running, ...new Set(copied), ...checkpoints]
  }

  /** The latest directories of `--storage`. */
  storages(): readonly string[] {
    const rows = this.file.all(
      `SELECT json_extract(spec, '$.storage') AS path, max(id) AS last FROM specs
        WHERE instr(spec, '"storage"') > 0 GROUP BY path HAVING path IS NOT NULL ORDER BY last DESC LIMIT ?`,
      MOST_STORAGES,
    )
    return rows.map(({ path }) => String(path))
  }

  /** Cancels jobs that wait for a job that will never be done. */
  cancelOrphans(nowMs: number, lease: LeaseToken): number {
    const orphans = this.file.all(
      `SELECT jobs.id AS id, min(other.id) AS needed, other.kind AS kind
        FROM jobs, json_each(jobs.after) AS each JOIN jobs AS other ON other.id = each.value
        WHERE jobs.kind IN ('queued', 'held') AND jobs.after IS NOT NULL AND other.kind IN (${NEVER_DONE}) GROUP BY jobs.id`,
    )
    return this.applyAll(
      orphans.map(({ id, needed, kind }) => ({
        id: Number(id),
        event: { kind: 'stop', reason: 'cancelled', because: missedWords(Number(needed), kind as FinalKind) },
      })),
      nowMs,
      { lease },
    ).length
  }

  /** Deletes at most `most` jobs that ended earlier, except those that unfinished jobs or open trials need. Returns how many. */
  forgetEnded(beforeMs: number, most: number): number {
    return this.together(() => {
      const rows = this.file.all(`SELECT id, spec ${FORGETTABLE} LIMIT ?`, beforeMs, most)
      const [ids, specs] = [rows.map(({ id }) => id), rows.map(({ spec }) => spec)].map((list) => JSON.stringify(list))
      this.file.run('DELETE FROM results WHERE job IN (SELECT value FROM json_each(?))', ids ?? '[]')
      this.file.run('DELETE FROM jobs WHERE id IN (SELECT value FROM json_each(?))', ids ?? '[]')
      // The last one stays, so that its number is not reused.
      this.file.run(
        `DELETE FROM specs WHERE id IN (SELECT value FROM json_each(?)) AND id < (SELECT max(id) FROM specs)
          AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.spec = specs.id)
          AND NOT EXISTS (SELECT 1 FROM study WHERE study.job_spec = specs.id)`,
        specs ?? '[]',
      )
      return rows.length
    })
  }

  /** How many `forgetEnded` would delete in all. */
  countForgettable(beforeMs: number): number {
    return Number(this.file.one(`SELECT count(*) AS count ${FORGETTABLE}`, beforeMs)?.count)
  }

  /** The hosts.yaml whose jobs these are, for clusters without a name; undefined: none has said so. */
  hostsFile(): string | undefined {
    const row = this.file.one("SELECT value FROM meta WHERE name = 'hosts-file'")
    return row && String(row.value)
  }

  writeHostsFile(path: string): void {
    this.file.run("INSERT OR REPLACE INTO meta VALUES ('hosts-file', ?)", path)
  }

  writeReport(report: SchedulerReport, lease: LeaseToken): void {
    this.together(() => {
      this.lease.check(lease)
      this.file.run("INSERT OR REPLACE INTO meta VALUES ('view', ?)", JSON.stringify(report))
    })
  }

  report(): SchedulerReport | undefined {
    const row = this.file.one("SELECT value FROM meta WHERE name = 'view'")
    return row && reportOf(String(row.value))
  }

  /** All writes of `work` reach the disk together, or none. */
  together<T>(work: () => T): T {
    try {
      return this.file.transaction(work)
    } catch (error) {
      this.#active.forget()
      this.#waiting.forget()
      this.#rows.forget()
      throw error
    }
  }
}

/** Undefined where it is damaged: the next scheduler writes another one. */
function reportOf(text: string): SchedulerReport | undefined {
  try {
    const value: unknown = JSON.parse(text)
    if (!isReport(value)) return undefined
    const report = value as SchedulerReport
    return { ...report, down: ownEntries(report.down) }
  } catch {
    return undefined
  }
}

const MOST_STORAGES = 50
/** Jobs of a submission with others between them are passed one by one. */
const STEPS_EACH = 8
/** Of the last to end so many are read for each submission that is shown: many may be of one array. */
const ENDED_EACH = 50
const isOneOf = (kinds: readonly string[]): string =>
  kinds.length === 0 ? 'true' : `kind IN (${kinds.map(() => '?').join()})`
const SAFE_NAME = /^[0-9a-z./-]+$/
const quoted = (kinds: readonly string[]): string => kinds.map((kind) => `'${kind}'`).join(', ')
const UNFINISHED = quoted(UNFINISHED_KINDS)
const FORGETTABLE = `FROM jobs WHERE ended_ms IS NOT NULL AND ended_ms < ?
  AND NOT EXISTS (SELECT 1 FROM trial WHERE trial.job = jobs.id AND trial.kind = 'open') AND id NOT IN
  (SELECT each.value FROM jobs AS waiting JOIN json_each(waiting.after) AS each
    WHERE waiting.kind IN (${UNFINISHED}) AND waiting.after IS NOT NULL)`
const NEVER_DONE = quoted(CHANGED_KINDS.retry)
const DEPENDENT = "SELECT 1 FROM jobs WHERE kind = 'queued' AND after IS NOT NULL LIMIT 1"
const INSERT_JOB = `INSERT INTO jobs (spec, environment, user, submitted_ms, priority, attempt, failures, kind, state, after, alike)
  VALUES (?, ?, ?, ?, ?, 1, 0, ?, ?, ?, ?)`
const lastToEnd = (isMeant: string): string => `SELECT spec FROM (SELECT spec FROM
    (SELECT spec, ended_ms FROM jobs INDEXED BY jobs_ended WHERE ended_ms IS NOT NULL AND ${isMeant} ORDER BY ended_ms DESC LIMIT ?)
    GROUP BY spec ORDER BY max(ended_ms) DESC LIMIT ?)`
const NAMED_SPECS = `SELECT id AS spec FROM specs WHERE id = ?
  UNION SELECT spec FROM jobs WHERE spec > (SELECT max(id) FROM specs) - ?
  UNION ${lastToEnd('true')}
  UNION ${lastToEnd(`kind IN (${quoted(FAILED_KINDS)})`)}
  UNION SELECT spec FROM jobs WHERE kind IN ('starting', 'pending', 'running', 'ending')
  UNION SELECT spec FROM (SELECT spec FROM jobs WHERE kind = 'queued' ORDER BY priority DESC, id LIMIT ?)
  UNION SELECT spec FROM (SELECT spec FROM jobs WHERE kind = 'held' ORDER BY priority DESC, id LIMIT ?)`
const OTHER_SPEC = `SELECT id FROM specs WHERE id <= (SELECT max(id) FROM specs) - ?
  AND id NOT IN (SELECT value FROM json_each(?)) AND EXISTS (SELECT 1 FROM jobs WHERE jobs.spec = specs.id) LIMIT 1`
const UPDATE_SPEC = 'UPDATE jobs SET spec = ?, priority = ?, alike = ? WHERE id = ?'
const ADD_TO_FAMILY = 'INSERT INTO spec_family VALUES (?, coalesce((SELECT main FROM spec_family WHERE spec = ?), ?))'
const BIND_JOB = "UPDATE jobs SET spec = ?, alike = ? WHERE id = ? AND kind = 'queued'"
const UPDATE_JOB =
  'UPDATE jobs SET attempt = ?, failures = ?, kind = ?, state = ?, ended_ms = ?, ran_ms = ? WHERE id = ?'

/**
 * Which hosts not to wait for when these jobs are given up: those that were down at the last report or are unknown. A host
 * that answers is waited for: its bundles still hold devices.
 */
export function hostsToForget(jobs: readonly Job[], report: SchedulerReport | undefined): readonly string[] {
  if (report === undefined) return []
  const known = new Set(report.hosts.map(({ name }) => name))
  const addresses = new Map(report.declared?.map(({ name, address }) => [name, address]))
  const places = jobs.flatMap(({ state }) => (isActive(state) ? state.places : []))
  // What runs where a host was cannot be reached.
  const isElsewhere = ({ host, address }: BundlePlace) => address !== undefined && addresses.get(host) !== address
  const byHost = Map.groupBy(places, ({ host }) => host)
  return [...byHost].flatMap(([host, own]) =>
    Object.hasOwn(report.down, host) || !known.has(host) || own.every(isElsewhere) ? [host] : [],
  )
}
