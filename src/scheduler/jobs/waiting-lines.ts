/**
 * The jobs that may begin now, as lines of jobs of one user and priority that are placed alike (`alikeOf`), the longest
 * waiting first. Lines are read on demand and cached until something changes, so the length of one keeps no other out.
 */
import { createHash } from 'node:crypto'
import type { SQLInputValue } from 'node:sqlite'
import type { Job, JobSpec } from './job.ts'
import { QUEUED_TEXT, StorePart } from './job-rows.ts'

/** How many jobs of a line are read first; four times as many each further time. */
const FIRST = 4
const MOST = 1024

/** Only their turn keeps them waiting; the condition of the index jobs_in_line. */
const FREE = `kind = 'queued' AND after IS NULL AND state = '${QUEUED_TEXT}'`
/** The others wait for jobs or for a time, or have run before; the condition of jobs_bound. */
const BOUND = `kind = 'queued' AND (after IS NOT NULL OR state <> '${QUEUED_TEXT}')`

/** The first job after a line. Comparing all three columns at once would scan the whole line. */
const firstOf = (condition: string): string =>
  `(SELECT id FROM jobs INDEXED BY jobs_in_line WHERE ${FREE} AND ${condition} ORDER BY alike, user, priority LIMIT 1)`
const FREE_LINES = `WITH RECURSIVE line (alike, user, priority) AS (
  SELECT * FROM (SELECT alike, user, priority FROM jobs INDEXED BY jobs_in_line WHERE ${FREE} ORDER BY alike, user, priority LIMIT 1)
  UNION ALL
  SELECT next.alike, next.user, next.priority FROM line JOIN jobs AS next ON next.id = coalesce(
    ${firstOf('alike = line.alike AND user = line.user AND priority > line.priority')},
    ${firstOf('alike = line.alike AND user > line.user')},
    ${firstOf('alike > line.alike')})
) SELECT alike, user, priority FROM line`
const FREE_JOBS = `INDEXED BY jobs_in_line WHERE ${FREE} AND alike = ? AND user = ? AND priority = ? AND id > ? ORDER BY id LIMIT ?`

/** Many jobs wait for the same jobs with the same text, so each text is checked once. */
const DONE = `SELECT list FROM (SELECT DISTINCT after AS list FROM jobs INDEXED BY jobs_by_after WHERE kind = 'queued' AND after IS NOT NULL) WHERE NOT EXISTS
  (SELECT 1 FROM json_each(list) AS each JOIN jobs AS other ON other.id = each.value WHERE other.kind <> 'done' AND json_extract(other.state, '$.endpoint') IS NULL)`
const NOT_BEFORE = "coalesce(json_extract(state, '$.notBeforeMs'), 0)"
const IS_READY = `${BOUND} AND ${NOT_BEFORE} <= ? AND (after IS NULL OR after IN (${DONE}))`
const IN_ORDER = "ORDER BY coalesce(json_extract(state, '$.waitsFromMs'), submitted_ms), id"
const BOUND_HEADS = `SELECT id, alike, user, priority FROM
  (SELECT id, alike, user, priority, row_number() OVER (PARTITION BY alike, user, priority ${IN_ORDER}) AS place FROM jobs INDEXED BY jobs_bound WHERE ${IS_READY})
  WHERE place = 1`
const BOUND_JOBS = `INDEXED BY jobs_bound WHERE ${IS_READY} AND alike = ? AND user = ? AND priority = ? ${IN_ORDER} LIMIT ? OFFSET ?`
const NEXT_DUE = `SELECT min(${NOT_BEFORE}) AS due FROM jobs INDEXED BY jobs_bound WHERE ${BOUND} AND ${NOT_BEFORE} > ?`

type Load = (lastId: number, had: number, count: number) => readonly Job[]

export class StoredLine {
  readonly user: string
  readonly #load: Load
  #jobs: Job[] = []
  #lastId = 0
  #count = FIRST
  #isAll = false

  constructor(user: string, load: Load) {
    this.user = user
    this.#load = load
  }

  at(index: number): Job | undefined {
    while (index >= this.#jobs.length && !this.#isAll) {
      const more = this.#load(this.#lastId, this.#jobs.length, this.#count)
      this.#isAll = more.length < this.#count
      this.#count = Math.min(MOST, this.#count * 4)
      this.#lastId = more.at(-1)?.id ?? this.#lastId
      this.#jobs.push(...more)
    }
    return this.#jobs[index]
  }

  remove(ids: ReadonlySet<number>): void {
    if (this.#jobs.some(({ id }) => ids.has(id))) this.#jobs = this.#jobs.filter(({ id }) => !ids.has(id))
  }
}

export class WaitingLines extends StorePart {
  #free: readonly StoredLine[] | undefined
  #bound: readonly StoredLine[] | undefined
  #version = -1
  /** When more of those that wait for a time may begin. */
  #dueMs = Number.POSITIVE_INFINITY
  #readMs = 0

  /** `version` changes with each write of others. */
  read(version: number, nowMs: number): readonly StoredLine[] {
    if (this.#version !== version) this.forget()
    if (nowMs >= this.#dueMs || nowMs < this.#readMs) this.forgetBound()
    if (this.#free === undefined || this.#bound === undefined) this.#nameLines()
    this.#free ??= this.file.all(FREE_LINES).map(({ user, ...line }) => this.#freeLine(line.alike, user, line.priority))
    this.#bound ??= this.#readBound(nowMs)
    this.#version = version
    return [...this.#free, ...this.#bound].filter((line) => line.at(0) !== undefined)
  }

  /** These jobs no longer wait. */
  remove(ids: ReadonlySet<number>): void {
    if (ids.size === 0) return
    for (const line of [...(this.#free ?? []), ...(this.#bound ?? [])]) line.remove(ids)
  }

  forget(): void {
    this.#free = undefined
    this.forgetBound()
  }

  /** Something ended that others may have waited for. */
  forgetBound(): void {
    this.#bound = undefined
  }

  #freeLine(alike: unknown, user: unknown, priority: unknown): StoredLine {
    const key = [alike, user, priority] as SQLInputValue[]
    return new StoredLine(String(user), (lastId, _, count) => this.rows.read(FREE_JOBS, ...key, lastId, count))
  }

  #readBound(nowMs: number): readonly StoredLine[] {
    const due = this.file.one(NEXT_DUE, nowMs)?.due
    this.#dueMs = due === null || due === undefined ? Number.POSITIVE_INFINITY : Number(due)
    this.#readMs = nowMs
    return this.file.all(BOUND_HEADS, nowMs).map(({ alike = null, user = null, priority = null }) => {
      const load: Load = (_, had, count) => this.rows.read(BOUND_JOBS, nowMs, alike, user, priority, count, had)
      return new StoredLine(String(user), load)
    })
  }

  /** Jobs that another version of Muster submitted have no line yet. */
  #nameLines(): void {
    const unnamed = "FROM jobs INDEXED BY jobs_unnamed WHERE kind = 'queued' AND alike IS NULL"
    if (this.file.one(`SELECT 1 ${unnamed} LIMIT 1`) === undefined) return
    this.file.transaction(() => {
      for (const { spec } of this.file.all(`SELECT DISTINCT spec ${unnamed}`))
        this.file.run(
          "UPDATE jobs SET alike = ? WHERE spec = ? AND alike IS NULL AND kind = 'queued'",
          alikeOf(this.rows.specOf(Number(spec))),
          spec as SQLInputValue,
        )
    })
  }
}

const BYTES = 6

/** The same number for specifications that the plan treats alike; stored with each job. */
export function alikeOf(spec: JobSpec): number {
  const { engine, bundles, request, strategy, maxBundlesPerHost, estimateS, limitS, needs } = spec
  const placed = [engine, bundles, request, strategy, maxBundlesPerHost, estimateS, limitS]
  const text = JSON.stringify(needs === undefined ? placed : [...placed, needs])
  return createHash('sha256').update(text).digest().readUIntBE(0, BYTES)
}
