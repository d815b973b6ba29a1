/** Studies and their trials, in the queue's own file: a trial and the job that runs it are stored together or not at all. */
import { isDeepStrictEqual } from 'node:util'
import { defined } from '../../base/defined.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { type Point, pointKey } from '../study/space.ts'
import {
  type Study,
  type StudySpec,
  type StudyState,
  spaceOf,
  type Trial,
  type TrialAsker,
  type TrialEnd,
  type TrialKind,
  type TrialStep,
} from '../study/study.ts'
import { type DamagedRow, nameOfMetrics, readWhole } from './damage.ts'
import { FINAL_KINDS, type Job, type JobSpec } from './job.ts'
import { StorePart } from './job-rows.ts'
import { type Metric, type MetricValues, metricNumber } from './metric.ts'
import type { QueueFile, SqlRow } from './queue-file.ts'
import { isMetricValues, isPairs, isStudySpec, isStudyState, isTrialMore } from './stored-shapes.ts'

export type NewStudy = {
  readonly name: string
  readonly user: string
  readonly priority: number
  readonly spec: StudySpec
  readonly trials?: number
  /** What each trial runs; undefined: programs ask for its points, or it runs elsewhere. */
  readonly job?: JobSpec
}

/** An open trial and the job that runs it. */
export type OpenTrial = {
  readonly trial: Trial
  readonly job: Job | undefined
  /** Nothing more will be read of its output. */
  readonly isRead: boolean
  /** What its job has printed until now. */
  readonly values: MetricValues
}

/** What is kept of a trial that only people read. */
type More = Partial<Pick<Trial, 'isReplaced' | 'stopping' | 'member' | 'parent' | 'parentStep' | 'asker'>> & {
  readonly end?: Omit<TrialEnd, 'kind'>
}

export type NewTrial = Omit<Trial, 'number' | 'job' | 'end'>

const MOST_NAME = 64
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/
const FINAL = FINAL_KINDS.map((kind) => `'${kind}'`).join()

export class StudyRows extends StorePart {
  /** @throws MusterError 'usage' when the name is taken or unusable. */
  create({ name, user, priority, spec, trials, job }: NewStudy, nowMs: number): number {
    this.checkName(name)
    const state: StudyState = { kind: 'running', ...defined({ trials }), repeated: 0, replaced: 0 }
    const jobSpec = job === undefined ? null : this.file.run('INSERT INTO specs (spec) VALUES (?)', JSON.stringify(job))
    return this.file.run(
      INSERT_STUDY,
      name,
      user,
      priority,
      nowMs,
      JSON.stringify(spec),
      JSON.stringify(state),
      jobSpec,
    )
  }

  /** @throws MusterError 'usage' when it is taken or unusable. */
  checkName(name: string): void {
    if (!NAME.test(name) || name.length > MOST_NAME)
      throw new MusterError('usage', `not a valid study name: ${printable(name.slice(0, MOST_NAME))}`, {
        hint: `Use at most ${MOST_NAME} letters, digits, "_", "." and "-"; begin with a letter or a digit.`,
      })
    if (this.find(name) !== undefined)
      throw new MusterError('usage', `a study named ${name} already exists`, {
        hint: `Choose another name. To continue that one: muster study more ${name}`,
      })
  }

  find(name: string): Study | undefined {
    return this.file.all(`${SELECT_STUDY} WHERE name = ?`, name).map((row) => this.#studyOf(row))[0]
  }

  get(id: number): Study | undefined {
    return this.file.all(`${SELECT_STUDY} WHERE id = ?`, id).map((row) => this.#studyOf(row))[0]
  }

  /** What its trials run; undefined: it has no jobs. */
  jobOf({ jobSpec }: Pick<Study, 'jobSpec'>): JobSpec | undefined {
    return jobSpec === undefined ? undefined : this.rows.specOf(jobSpec)
  }

  /** The latest first. */
  list(limit: number): readonly Study[] {
    return this.file.all(`${SELECT_STUDY} ORDER BY id DESC LIMIT ?`, limit).map((row) => this.#studyOf(row))
  }

  /** As `list`, without those that are damaged. */
  listWhole(limit: number): { readonly found: readonly Study[]; readonly damage: DamagedRow | undefined } {
    return readWhole(this.file.all(`${SELECT_STUDY} ORDER BY id DESC LIMIT ?`, limit), (row) => this.#studyOf(row))
  }

  /** Those with a trial that waits or runs, or whose next point is to be chosen. */
  unfinished(): readonly Study[] {
    return this.file.all(`${SELECT_STUDY} WHERE ${UNFINISHED} ORDER BY id`).map((row) => this.#studyOf(row))
  }

  hasUnfinished(): boolean {
    return this.file.one(`SELECT 1 FROM study WHERE ${UNFINISHED} LIMIT 1`) !== undefined
  }

  /** What its trials run; undefined: it has no jobs. */
  specOf({ jobSpec }: Study): JobSpec | undefined {
    return jobSpec === undefined ? undefined : this.rows.specOf(jobSpec)
  }

  setState(id: number, state: StudyState): void {
    this.file.run('UPDATE study SET state = ? WHERE id = ?', JSON.stringify(state), id)
  }

  /** In their order. `limit`: the last ones. */
  trials(study: number, limit = MOST_TRIALS): readonly Trial[] {
    return this.file
      .all(`${SELECT_TRIAL} WHERE study = ? ORDER BY number DESC LIMIT ?`, study, limit)
      .map((row) => this.#trialOf(row))
      .toReversed()
  }

  /**
   * As `trials`, the same array if nothing has changed: of those that had ended, only the ones that run again are read again. If
   * that does not add up, all are.
   */
  trialsAgain(study: number, known: readonly Trial[]): readonly Trial[] {
    const last = known.at(-1)
    if (last === undefined) return this.trials(study)
    const open = known.filter(({ end }) => end === undefined)
    const changed = new Map(
      this.file
        .all(
          `${SELECT_TRIAL} WHERE study = ? AND (kind = 'open' OR number > ? OR number IN (SELECT value FROM json_each(?)))`,
          study,
          last.number,
          JSON.stringify(open.map(({ number }) => number)),
        )
        .map((row) => [Number(row.number), this.#trialOf(row)]),
    )
    const kept = known.map((trial) => {
      const again = changed.get(trial.number)
      changed.delete(trial.number)
      return again === undefined || isDeepStrictEqual(again, trial) ? trial : again
    })
    const added = [...changed.values()].sort((one, other) => one.number - other.number)
    const trials = [...kept, ...added]
    const counts = this.counts(study)
    const own = Map.groupBy(trials, ({ end }) => end?.kind ?? 'open')
    if ([...counts].some(([kind, count]) => own.get(kind as TrialKind)?.length !== count) || counts.size !== own.size)
      return this.trials(study)
    return added.length === 0 && kept.every((trial, at) => trial === known[at]) ? known : trials
  }

  /** By study, those of these jobs that run its trials. */
  ofJobs(jobs: readonly number[]): ReadonlyMap<number, readonly number[]> {
    const rows = this.file.all(
      'SELECT study, job FROM trial WHERE job IN (SELECT value FROM json_each(?)) AND study IN (SELECT id FROM study)',
      JSON.stringify(jobs),
    )
    const own = Map.groupBy(rows, ({ study }) => Number(study))
    return new Map([...own].map(([study, trials]) => [study, trials.map(({ job }) => Number(job))]))
  }

  trial(study: number, number: number): Trial | undefined {
    return this.file
      .all(`${SELECT_TRIAL} WHERE study = ? AND number = ?`, study, number)
      .map((row) => this.#trialOf(row))[0]
  }

  /** How many of each kind. */
  counts(study: number): ReadonlyMap<string, number> {
    const rows = this.file.all('SELECT kind, count(*) AS count FROM trial WHERE study = ? GROUP BY kind', study)
    return new Map(rows.map(({ kind, count }) => [String(kind), Number(count)]))
  }

  /** How many cancelled jobs of the queue were those of pruned trials. */
  prunedJobs(): number {
    const row = this.file.one(
      `SELECT count(*) AS count FROM trial JOIN jobs ON jobs.id = trial.job
        WHERE trial.study IN (SELECT id FROM study) AND trial.kind = 'pruned' AND jobs.kind = 'cancelled'`,
    )
    return Number(row?.count ?? 0)
  }

  /** How many at the end, by number, have failed without one that gave a result; cancelled ones do not count. `from`: earlier ones do not count. */
  failuresInARow(study: number, from = 0): number {
    const last = this.file.one(
      "SELECT max(number) AS last FROM trial WHERE study = ? AND kind IN ('done', 'pruned')",
      study,
    )?.last
    const after = Math.max(last === null || last === undefined ? -1 : Number(last), from - 1)
    return Number(
      this.file.one(
        "SELECT count(*) AS count FROM trial WHERE study = ? AND kind = 'failed' AND number > ?",
        study,
        after,
      )?.count,
    )
  }

  /** Keys of points, also of trials that failed. */
  tried(study: number): ReadonlySet<string> {
    return new Set(this.file.all('SELECT point FROM trial WHERE study = ?', study).map(({ point }) => String(point)))
  }

  last(study: number): Trial | undefined {
    return this.file
      .all(`${SELECT_TRIAL} WHERE study = ? ORDER BY number DESC LIMIT 1`, study)
      .map((row) => this.#trialOf(row))[0]
  }

  /** Of the trials that are done; undefined: none, or none with numbers. */
  means(study: number, metrics: readonly Metric[]): readonly number[] | undefined {
    const rows = this.file.all(
      "SELECT study, number, json_extract(more, '$.end.values') AS held FROM trial WHERE study = ? AND kind = 'done'",
      study,
    )
    const ends = rows.map((row) => this.file.json(row.held, 'more', isMetricValues, nameOf, row))
    const means = metrics.map(({ name }) => {
      const numbers = ends.map((values) => metricNumber(values[name])).filter((value) => value !== undefined)
      return numbers.reduce((sum, value) => sum + value, 0) / numbers.length
    })
    return means.every(Number.isFinite) ? means : undefined
  }

  ofPoint(study: number, point: Point): Trial | undefined {
    return this.file
      .all(`${SELECT_TRIAL} WHERE study = ? AND point = ? ORDER BY repetition DESC LIMIT 1`, study, pointKey(point))
      .map((row) => this.#trialOf(row))[0]
  }

  /**
   * With a job that is stored already, or none. Returns its number.
   * @throws MusterError 'internal' when the point was tried: the caller asks first, and the file refuses in any case.
   */
  add(study: number, { point, repetition, ...more }: NewTrial, job: number | undefined): number {
    const number = this.nextNumber(study)
    this.file.run(
      'INSERT INTO trial (study, number, point, repetition, job, kind, more) VALUES (?, ?, ?, ?, ?, ?, ?)',
      study,
      number,
      pointKey(point),
      repetition,
      job ?? null,
      'open',
      JSON.stringify(more satisfies More),
    )
    return number
  }

  /** Also how many there are. */
  nextNumber(study: number): number {
    return Number(
      this.file.one('SELECT coalesce(max(number) + 1, 0) AS next FROM trial WHERE study = ?', study)?.next ?? 0,
    )
  }

  settle(study: number, trial: Trial, { kind, ...end }: TrialEnd): void {
    const more: More = { ...moreOf(trial), end }
    this.file.run(
      'UPDATE trial SET kind = ?, more = ? WHERE study = ? AND number = ?',
      kind,
      JSON.stringify(more),
      study,
      trial.number,
    )
  }

  /** It is being stopped, for this reason. */
  noteStopping(study: number, trial: Trial, stopping: string): void {
    this.#setMore(study, trial, { ...moreOf(trial), stopping })
  }

  /** Another program has it now. */
  noteAsker(study: number, trial: Trial, asker: TrialAsker): void {
    this.#setMore(study, trial, { ...moreOf(trial), asker })
  }

  #setMore(study: number, { number }: Trial, more: More): void {
    this.file.run('UPDATE trial SET more = ? WHERE study = ? AND number = ?', JSON.stringify(more), study, number)
  }

  open(study: number): readonly OpenTrial[] {
    const rows = this.file.all(SELECT_OPEN, study)
    const ids = rows.flatMap(({ job }) => (job === null ? [] : [Number(job)]))
    const jobs = new Map(
      this.rows
        .read('WHERE jobs.id IN (SELECT value FROM json_each(?))', JSON.stringify(ids))
        .map((job) => [job.id, job]),
    )
    return rows.map((row) => ({
      trial: this.#trialOf(row),
      job: row.job === null ? undefined : jobs.get(Number(row.job)),
      isRead: row.is_read === 1,
      values:
        typeof row.metrics === 'string'
          ? this.file.json(row.metrics, 'metrics', isMetricValues, nameOfMetrics, Number(row.job))
          : {},
    }))
  }

  /** A later value of the same step replaces an earlier one. */
  noteStep(study: number, number: number, { step, value }: TrialStep): void {
    this.file.run('INSERT OR REPLACE INTO trial_step VALUES (?, ?, ?, ?)', study, number, step, value)
  }

  /** Of trials that neither failed nor were cancelled, or `isWhole` of all, by their numbers, in the order of steps. */
  steps(study: number, isWhole = false): ReadonlyMap<number, readonly TrialStep[]> {
    const rows = this.file.all(
      `SELECT number, step, value FROM trial_step JOIN trial USING (study, number)
        WHERE study = ? AND (kind NOT IN ('failed', 'cancelled') OR ?) ORDER BY number, step LIMIT ?`,
      study,
      isWhole ? 1 : 0,
      MOST_STEPS,
    )
    const byTrial = Map.groupBy(rows, ({ number }) => Number(number))
    return new Map(
      [...byTrial].map(([number, own]) => [
        number,
        own.map(({ step, value }) => ({ step: Number(step), value: Number(value) })),
      ]),
    )
  }

  #studyOf({ id, name, user, priority, created_ms, spec, state, job_spec }: SqlRow): Study {
    return {
      id: Number(id),
      name: String(name),
      user: String(user),
      priority: Number(priority),
      createdMs: Number(created_ms),
      stamp: this.file.stampOf(Number(created_ms)),
      spec: this.#specOf(String(spec), Number(id)),
      state: this.file.json(state, 'state', isStudyState, nameOfStudy, Number(id)),
      jobSpec: job_spec === null ? undefined : Number(job_spec),
    }
  }

  /** The same text is the same object, so that what others cached about it stays valid. */
  #specOf(text: string, id: number): StudySpec {
    const known = specs.get(text)
    if (known !== undefined) return known
    const spec = this.file.json(text, 'spec', isUsableSpec, nameOfStudy, id)
    if (specs.size >= MOST_SPECS) specs.clear()
    specs.set(text, spec)
    return spec
  }

  #trialOf(row: SqlRow): Trial {
    const { number, point, repetition, job, kind, more } = row
    const { end, ...own }: More = this.file.json(more, 'more', isTrialMore, nameOf, row)
    return {
      number: Number(number),
      point: Object.fromEntries(this.file.json(point, 'point', isPairs, nameOf, row)),
      repetition: Number(repetition),
      job: job === null ? undefined : Number(job),
      end: kind === 'open' || end === undefined ? undefined : { kind: kind as TrialEnd['kind'], ...end },
      ...own,
    }
  }
}

const MOST_TRIALS = 100_000
const MOST_STEPS = 1_000_000
const SELECT_STUDY = 'SELECT id, name, user, priority, created_ms, spec, state, job_spec FROM study'
const INSERT_STUDY =
  'INSERT INTO study (name, user, priority, created_ms, spec, state, job_spec) VALUES (?, ?, ?, ?, ?, ?, ?)'
const UNFINISHED = `(json_extract(state, '$.kind') = 'running'
  OR EXISTS (SELECT 1 FROM trial WHERE trial.study = study.id AND trial.kind = 'open'))`
const SELECT_TRIAL = 'SELECT study, number, point, repetition, job, kind, more FROM trial'
const SELECT_OPEN = `SELECT study, number, point, repetition, trial.job AS job, trial.kind AS kind, more, results.metrics AS metrics,
    jobs.kind IN (${FINAL}) AND coalesce(results.is_final = 1 AND results.attempt >= jobs.attempt, 1) AS is_read
  FROM trial LEFT JOIN jobs ON jobs.id = trial.job LEFT JOIN results ON results.job = trial.job
  WHERE study = ? AND trial.kind = 'open' ORDER BY number`

const moreOf = ({ isReplaced, stopping, member, parent, parentStep, asker }: Trial): More =>
  defined({ isReplaced, stopping, member, parent, parentStep, asker })

const specs = new Map<string, StudySpec>()
const MOST_SPECS = 1_000

/** Its parameters can be read as well; those of a study that runs elsewhere are what another tool wrote. */
function isUsableSpec(value: unknown): value is StudySpec {
  if (!isStudySpec(value)) return false
  if (value.source !== undefined) return true
  try {
    spaceOf(value)
    return true
  } catch {
    return false
  }
}

const nameOfStudy = (id: number) => ({ table: 'study', key: [id] }) as const
const nameOf = ({ study, number }: SqlRow) => ({ table: 'trial', key: [Number(study), Number(number)] }) as const

/**
 * Submissions whose jobs have several specifications, as those of a population that are bound to hosts, or those of which some were
 * edited: all of them by each one, the submission's own first.
 */
export function specFamilies(file: QueueFile): ReadonlyMap<number, readonly number[]> {
  const rows = file.all(SELECT_FAMILIES)
  const families = Map.groupBy(rows, ({ main }) => Number(main))
  return new Map(
    [...families].flatMap(([main, own]) => {
      const all = [main, ...own.map(({ spec }) => Number(spec))]
      return all.map((spec) => [spec, all] as const)
    }),
  )
}

const SELECT_FAMILIES = `SELECT DISTINCT study.job_spec AS main, jobs.spec AS spec
  FROM study CROSS JOIN trial ON trial.study = study.id CROSS JOIN jobs ON jobs.id = trial.job
  WHERE json_type(study.spec, '$.pbt') IS NOT NULL AND jobs.spec <> study.job_spec
  UNION SELECT main, spec FROM spec_family ORDER BY spec`
