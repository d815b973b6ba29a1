/** Rows of the queue's file as jobs. */
import type { SQLInputValue, SQLOutputValue } from 'node:sqlite'
import type { Job, JobSpec, JobState } from './job.ts'
import { damaged } from './queue-errors.ts'
import type { QueueFile, Row } from './queue-file.ts'

const SELECT = `SELECT jobs.id, jobs.spec AS spec_id, specs.spec AS spec, environment, user, submitted_ms, priority, attempt, failures, state, after
  FROM jobs JOIN specs ON specs.id = jobs.spec`

/** Read specifications that are kept. */
const MOST_SPECS = 10_000

/** Nearly all that wait. */
const QUEUED: JobState = { kind: 'queued' }
const QUEUED_TEXT = JSON.stringify(QUEUED)

function afterOf(value: SQLOutputValue | undefined): readonly number[] {
  return value === null || value === undefined ? [] : parse<number[]>(value)
}

/** @throws MusterError 'configuration' when the text is not what was written. */
export function parse<T>(value: SQLOutputValue | undefined): T {
  try {
    return JSON.parse(String(value)) as T
  } catch (error) {
    throw damaged('the queue', error)
  }
}

export class JobRows {
  readonly #file: QueueFile
  readonly #specs = new Map<number, { readonly text: SQLOutputValue | undefined; readonly spec: JobSpec }>()

  constructor(file: QueueFile) {
    this.#file = file
  }

  /** `rest`: of the statement, from WHERE on. @throws MusterError 'configuration' when a text in it is damaged. */
  read(rest: string, ...values: readonly SQLInputValue[]): readonly Job[] {
    return this.#file.all(`${SELECT} ${rest}`, ...values).map((row) => this.#jobOf(row))
  }

  #jobOf(row: Row): Job {
    const spec = this.specOf(Number(row.spec_id), row.spec)
    const { environment } = row
    return {
      id: Number(row.id),
      user: String(row.user),
      submittedMs: Number(row.submitted_ms),
      priority: Number(row.priority),
      attempt: Number(row.attempt),
      failures: Number(row.failures),
      spec:
        environment === null
          ? spec
          : { ...spec, environment: { ...spec.environment, ...parse<Record<string, string>>(environment) } },
      state: row.state === QUEUED_TEXT ? QUEUED : parse<JobState>(row.state),
      after: afterOf(row.after),
    }
  }

  /** What was submitted together shares it, and nobody changes it. */
  specOf(id: number, text: SQLOutputValue | undefined): JobSpec {
    const known = this.#specs.get(id)
    if (known?.text === text && known !== undefined) return known.spec
    if (this.#specs.size >= MOST_SPECS) this.#specs.clear()
    const spec = parse<JobSpec>(text)
    this.#specs.set(id, { text, spec })
    return spec
  }
}
