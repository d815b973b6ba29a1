/** `--on-end` and `--on-fail`: commands that run here when a job has ended. Facts about it go into their environment, never into their text. */
import { spawn } from 'node:child_process'
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { isFinal, type Job } from '../../scheduler/jobs/job.ts'
import type { CliContext } from '../command-line/context.ts'

export type Hooks = { readonly onEnd?: string; readonly onFail?: string }

type NotifierContext = Pick<CliContext, 'stderr' | 'environment'>

const AT_ONCE = 4
const LIMIT_MS = 60_000

export class Notifier {
  readonly #hooks: Hooks
  readonly #context: NotifierContext
  readonly #waiting: (readonly [command: string, job: Job])[] = []
  #running = 0
  #idle = Promise.withResolvers<void>()

  constructor(hooks: Hooks, context: NotifierContext) {
    this.#hooks = hooks
    this.#context = context
  }

  notify(job: Job): void {
    if (!isFinal(job.state)) return
    const { onEnd, onFail } = this.#hooks
    if (onEnd !== undefined) this.#waiting.push([onEnd, job])
    if (onFail !== undefined && job.state.kind !== 'done') this.#waiting.push([onFail, job])
    this.#next()
  }

  /** Resolves when all commands have run. */
  async finish(): Promise<void> {
    while (this.#running > 0 || this.#waiting.length > 0) await this.#idle.promise
  }

  #next(): void {
    while (this.#running < AT_ONCE) {
      const next = this.#waiting.shift()
      if (next === undefined) return
      this.#running++
      void this.#run(...next).then(() => {
        this.#running--
        this.#next()
        if (this.#running > 0) return
        this.#idle.resolve()
        this.#idle = Promise.withResolvers()
      })
    }
  }

  /** Never rejects. */
  #run(command: string, job: Job): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const child = spawn('/bin/sh', ['-c', command], {
      env: { ...this.#context.environment, ...variablesOf(job) },
      stdio: 'ignore',
      timeout: LIMIT_MS,
    })
    const complain = (why: string) =>
      this.#context.stderr.write(`muster: the --on-end or --on-fail command of job ${job.id}: ${printable(why)}\n`)
    child.once('error', (error) => {
      complain(messageOf(error))
      resolve()
    })
    child.once('exit', (code, signal) => {
      if (code !== 0) complain(signal === null ? `exit ${code}` : `ended by ${signal}`)
      resolve()
    })
    return promise
  }
}

function variablesOf({ id, user, attempt, state, spec }: Job): Record<string, string> {
  return {
    MUSTER_JOB: String(id),
    MUSTER_JOB_STATE: state.kind,
    MUSTER_JOB_NAME: printable(spec.name),
    MUSTER_JOB_USER: printable(user),
    MUSTER_JOB_ATTEMPT: String(attempt),
    MUSTER_JOB_REASON: isFinal(state) ? printable(state.reason ?? '') : '',
  }
}
