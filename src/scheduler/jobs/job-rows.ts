/** Rows of the queue's file as jobs. */
import type { SQLInputValue } from 'node:sqlite'
import { type DamagedRow, readWhole } from './damage.ts'
import { isActive, type Job, type JobSpec, type JobState } from './job.ts'
import type { QueueFile, SqlRow } from './queue-file.ts'
import { isJobSpec, isJobState, isNumbers, isTexts } from './stored-shapes.ts'

const SELECT =
  'SELECT id, spec, environment, user, submitted_ms, priority, attempt, failures, kind, state, after FROM jobs'

/** Specifications are cached in two generations of at most this many: when the newer one is full, the older one is dropped. */
const MOST_SPECS = 10_000

/** Nearly all that wait. */
const QUEUED: JobState = { kind: 'queued' }
export const QUEUED_TEXT = JSON.stringify(QUEUED)

export class JobRows {
  readonly #file: QueueFile
  #specs = new Map<number, JobSpec>()
  #olderSpecs = new Map<number, JobSpec>()
  readonly #texts = new WeakMap<Job, string>()

  constructor(file: QueueFile) {
    this.#file = file
  }

  /** `rest`: the statement from WHERE on. @throws DamagedRow */
  read(rest: string, ...values: readonly SQLInputValue[]): readonly Job[] {
    return this.#file.all(`${SELECT} ${rest}`, ...values).map((row) => this.#jobOf(row))
  }

  /** As `read`, without jobs that are damaged. */
  readWhole(
    rest: string,
    ...values: readonly SQLInputValue[]
  ): { readonly found: readonly Job[]; readonly damage: DamagedRow | undefined } {
    return readWhole(this.#file.all(`${SELECT} ${rest}`, ...values), (row) => this.#jobOf(row))
  }

  /** As `read`, but `known` jobs that have not changed stay the same objects, so that what others cached about them stays valid. */
  readAgain(known: ReadonlyMap<number, Job>, rest: string): readonly Job[] {
    return this.#file.all(`${SELECT} ${rest}`).map((row) => {
      const text = `${row.attempt} ${row.failures} ${row.priority} ${row.spec} ${row.state}`
      const before = known.get(Number(row.id))
      if (before !== undefined && this.#texts.get(before) === text) return before
      const job = this.#jobOf(row)
      this.#texts.set(job, text)
      return job
    })
  }

  #jobOf(row: SqlRow): Job {
    const spec = this.specOf(Number(row.spec))
    const { environment, after } = row
    return {
      id: Number(row.id),
      user: String(row.user),
      submittedMs: Number(row.submitted_ms),
      stamp: this.#file.stampOf(Number(row.submitted_ms)),
      priority: Number(row.priority),
      attempt: Number(row.attempt),
      failures: Number(row.failures),
      spec: environment === null ? spec : { ...spec, environment: { ...spec.environment, ...this.environmentOf(row) } },
      state: this.stateOf(row),
      after: after === null ? [] : this.#file.json(after, 'after', isNumbers, nameOf, row),
    }
  }

  /** Of a row with `id`, `kind` and `state`. @throws DamagedRow */
  stateOf(row: SqlRow): JobState {
    if (row.state === QUEUED_TEXT && row.kind === 'queued') return QUEUED
    return this.#file.json(row.state, 'state', isJobState, nameOf, row)
  }

  /** Of a row with `id` and `environment`. @throws DamagedRow */
  environmentOf(row: SqlRow): Readonly<Record<string, string>> {
    return row.environment === null ? {} : this.#file.json(row.environment, 'environment', isTexts, nameOf, row)
  }

  /** Jobs that were submitted together share it. It never changes on disk, and its number is never reused. */
  specOf(id: number): JobSpec {
    const known = this.#specs.get(id)
    if (known !== undefined) return known
    const spec = this.#olderSpecs.get(id) ?? this.#readSpec(id)
    if (this.#specs.size >= MOST_SPECS) {
      this.#olderSpecs = this.#specs
      this.#specs = new Map()
    }
    this.#specs.set(id, spec)
    return spec
  }

  /** A transaction that was rolled back may have read what never got on disk. */
  forget(): void {
    this.#specs.clear()
    this.#olderSpecs.clear()
  }

  #readSpec(id: number): JobSpec {
    const row = this.#file.one('SELECT spec FROM specs WHERE id = ?', id)
    return this.#file.json(row?.spec, 'spec', isJobSpec, nameOfSpec, id)
  }
}

const nameOf = ({ id }: SqlRow) => ({ table: 'jobs', key: [Number(id)] }) as const
const nameOfSpec = (id: number) => ({ table: 'specs', key: [id] }) as const

/** All jobs that are on hosts, cached until another program writes. */
export class KeptActive {
  #jobs: Map<number, Job> | undefined
  #list: readonly Job[] | undefined
  #version = -1

  /** By number. `version` changes with each write of others. */
  read(version: number, load: (known: ReadonlyMap<number, Job>) => readonly Job[]): readonly Job[] {
    const known = this.#jobs ?? new Map<number, Job>()
    if (this.#version !== version) this.forget()
    this.#jobs ??= new Map(load(known).map((job) => [job.id, job]))
    this.#version = version
    this.#list ??= [...this.#jobs.values()].toSorted((one, other) => one.id - other.id)
    return this.#list
  }

  find(version: number, id: number): Job | undefined {
    return this.#version === version ? this.#jobs?.get(id) : undefined
  }

  note(job: Job): void {
    this.#list = undefined
    if (isActive(job.state)) this.#jobs?.set(job.id, job)
    else this.#jobs?.delete(job.id)
  }

  forget(): void {
    this.#jobs = undefined
    this.#list = undefined
  }
}

/** A part of the store with tables of its own in the same file. */
export class StorePart {
  protected readonly file: QueueFile
  protected readonly rows: JobRows

  constructor(file: QueueFile, rows: JobRows) {
    this.file = file
    this.rows = rows
  }
}
