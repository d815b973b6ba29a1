/** What is wrong with a damaged queue, and what to do: with the whole file, or with one row of it. */
import type { SQLInputValue, SQLOutputValue } from 'node:sqlite'
import { MusterError, messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import type { FileDamage } from './file-check.ts'

export const DAMAGED_HINT =
  'Move it and its -wal and -shm files away to start with an empty queue; running jobs continue. `sqlite3 FILE .recover` may recover data.'

const NO_DATABASE_HINT =
  'Nothing was changed. If the database was moved, move it back beside its log. To start with an empty queue instead, move the log and its -shm file away; running jobs continue.'

/** `what`: the file, for people. */
export function damaged(what: string, cause?: unknown): MusterError {
  const reason = cause === undefined ? 'it is damaged' : `it is damaged: ${messageOf(cause)}`
  return new MusterError('configuration', `${what} cannot be used: ${reason}`, { hint: DAMAGED_HINT, cause })
}

export function damagedFile(what: string, { kind, reason }: FileDamage): MusterError {
  if (kind === 'cut') return damaged(what, new Error(reason))
  return new MusterError('configuration', `${what} cannot be used: ${reason}`, { hint: NO_DATABASE_HINT })
}

/** A text of one row is damaged; other rows can be read. */
export class DamagedRow extends MusterError {}

/** The whole file cannot be used. */
export const isDamagedFile = (error: unknown): boolean =>
  error instanceof MusterError && error.code === 'configuration' && !(error instanceof DamagedRow)

/** `key`: as `KEYS`. A trial: its study and its number. */
export type RowName = { readonly table: keyof typeof KEYS; readonly key: readonly [number, (number | undefined)?] }

const KEYS = { jobs: 'id', specs: 'id', results: 'job', study: 'id', trial: 'study, number' } as const

/** What a job printed. */
export const nameOfMetrics = (job: number): RowName => ({ table: 'results', key: [job] })

type ReadOne = (
  sql: string,
  ...values: readonly SQLInputValue[]
) => Readonly<Record<string, SQLOutputValue>> | undefined

/** `reason`: what is wrong with its text. `one`: reads the queue, to name the row as people know it. */
export function damagedRow(what: string, path: string, row: RowName, reason: string, one: ReadOne): DamagedRow {
  const { title, remedy } = describe(row, one)
  return new DamagedRow('configuration', `${title} in ${what} is damaged: ${reason}`, {
    hint: `To go on without it, copy the file and its -wal, then run: sqlite3 ${printable(shellQuote(path))} "${remedy}"`,
  })
}

function describe({ table, key: [id, number] }: RowName, one: ReadOne): { title: string; remedy: string } {
  const studyTitle = (study: number) => `study ${printable(String(one(STUDY_NAME, study)?.name ?? study))}`
  switch (table) {
    case 'jobs':
      return { title: `job ${id}`, remedy: `${LOSE} WHERE id = ${id}` }
    case 'results':
      return { title: `the metrics of job ${id}`, remedy: `DELETE FROM results WHERE job = ${id}` }
    case 'study':
      return { title: studyTitle(id), remedy: forgetStudy(id) }
    case 'trial':
      return {
        title: `trial ${number} of ${studyTitle(id)}`,
        remedy: `DELETE FROM trial WHERE study = ${id} AND number = ${number}`,
      }
    case 'specs': {
      const study = one(STUDY_OF_SPEC, id)?.id
      const jobs = one(JOBS_OF_SPEC, id)
      const range = jobs?.first === jobs?.last ? `job ${jobs?.first}` : `jobs ${jobs?.first} to ${jobs?.last}`
      const owner = study === undefined ? range : studyTitle(Number(study))
      return {
        title: `the specification of ${owner}`,
        remedy: [
          ...(study === undefined ? [] : [forgetStudy(Number(study))]),
          `DELETE FROM jobs WHERE spec = ${id}`,
          // Its number is not reused.
          `UPDATE specs SET spec = '{}' WHERE id = ${id}`,
        ].join('; '),
      }
    }
  }
}

/** As a lost job, it keeps its number, and jobs that wait for it do not start. */
const LOSE = `UPDATE jobs SET kind = 'lost', state = json_object('kind', 'lost', 'endedMs', submitted_ms), ended_ms = submitted_ms, environment = NULL, after = NULL`
const forgetStudy = (id: number): string => `DELETE FROM trial WHERE study = ${id}; DELETE FROM study WHERE id = ${id}`

const STUDY_NAME = 'SELECT name FROM study WHERE id = ?'
const STUDY_OF_SPEC = 'SELECT id FROM study WHERE job_spec = ?'
const JOBS_OF_SPEC = 'SELECT min(id) AS first, max(id) AS last FROM jobs WHERE spec = ?'

/** Texts that statements of the queue look into. */
const READ_BY_SQL = [
  ['jobs', 'state'],
  ['jobs', 'after'],
  ['study', 'state'],
  ['study', 'spec'],
  ['trial', 'more'],
  ['specs', 'spec'],
] as const

export type BrokenRow = { readonly row: RowName; readonly column: string }

/** Where a statement of SQLite found no JSON; undefined: nowhere. Reads all rows. */
export function brokenRow(one: ReadOne): BrokenRow | undefined {
  for (const [table, column] of READ_BY_SQL) {
    const row = one(`SELECT ${KEYS[table]} FROM ${table} WHERE NOT json_valid(${column}) LIMIT 1`)
    if (row !== undefined) {
      const [id, number] = Object.values(row).map(Number)
      return { row: { table, key: [id ?? 0, number] }, column }
    }
  }
  return undefined
}

/** What `read` makes of each row, without those that are damaged, and what is wrong with the first of these. */
export function readWhole<Row, T>(rows: readonly Row[], read: (row: Row) => T) {
  let damage: DamagedRow | undefined
  const found: T[] = []
  for (const row of rows) {
    try {
      found.push(read(row))
    } catch (error) {
      if (!(error instanceof DamagedRow)) throw error
      damage ??= error
    }
  }
  return { found, damage }
}
