/** `muster ray submit`, `jobs`, `logs` and `stop`: jobs of the cluster that hosts.yaml declares, through its head. */

import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { formatDuration } from '../../ops/kernel/finding.ts'
import { askForJobs, type RayJob, type RayJobEvent, type RayJobOrder } from '../../ops/ray/jobs.ts'
import { wantedRay } from '../../ops/ray/wanted.ts'
import { prepareBringUp } from '../bring-up/prepare.ts'
import { type CliContext, EXIT, type GlobalOptions } from '../command-line/context.ts'
import { formatTable } from '../output/table.ts'
import { packDirectory } from './pack-directory.ts'
import type { SubmitOptions } from './register-jobs.ts'

/** Ray's client alone takes seconds to load on a busy host. */
const ANSWER_TIMEOUT_MS = 120_000
const ENDED: readonly string[] = ['STOPPED', 'SUCCEEDED', 'FAILED']

export async function submitJob(
  words: readonly string[],
  options: SubmitOptions,
  context: CliContext,
): Promise<number> {
  const { workingDir, env = {}, cpus, gpus, resources, id, wait } = options
  const job = {
    entrypoint: words.length === 1 ? (words[0] ?? '') : words.map(shellQuote).join(' '),
    environment: env,
    ...(id === undefined ? {} : { id }),
    ...(cpus === undefined ? {} : { cpus }),
    ...(gpus === undefined ? {} : { gpus }),
    ...(resources === undefined ? {} : { resources }),
    ...(workingDir === undefined ? {} : { archive: await packDirectory(workingDir, context) }),
  }
  return await ask({ do: 'submit', job, follow: wait }, options, context)
}

export async function showLogs(
  id: string,
  options: GlobalOptions & { readonly follow?: boolean },
  context: CliContext,
): Promise<number> {
  return await ask({ do: 'logs', id, follow: options.follow === true }, options, context)
}

export async function stopJob(id: string, options: GlobalOptions, context: CliContext): Promise<number> {
  return await ask({ do: 'stop', id }, options, context)
}

export async function listJobs(options: GlobalOptions, context: CliContext): Promise<number> {
  return await ask({ do: 'list' }, options, context)
}

async function ask(order: RayJobOrder, options: GlobalOptions, context: CliContext): Promise<number> {
  using prepared = await prepareBringUp(['ray'], options, context)
  const wanted = wantedRay(prepared.declared)
  if (wanted === undefined) throw new MusterError('internal', 'the area is prepared and nothing is declared')
  const report = new JobReport(order, options.json === true, context)
  const end = await askForJobs(wanted, order, {
    hosts: prepared.hosts,
    signal: context.signal,
    timeoutMs: answerTimeoutMs(order),
    onEvent: (event) => report.event(event),
  })
  const { stderr } = context
  switch (end.kind) {
    case 'done':
      return report.finish()
    case 'cancelled':
      if (report.id !== undefined) {
        stderr.write(
          `muster: job ${report.id} goes on: muster ray logs -f ${report.id}, muster ray stop ${report.id}\n`,
        )
      }
      return EXIT.interrupted
    case 'away':
      stderr.write(`muster: ${wanted.head.host}: ${printable(end.reason)}\n`)
      return EXIT.unreachable
    case 'refused':
      stderr.write(`muster: ${wanted.head.host}: ${end.reason}\n`)
      return EXIT.failed
  }
}

export function answerTimeoutMs(order: RayJobOrder): number {
  return 'follow' in order && order.follow ? Number.POSITIVE_INFINITY : ANSWER_TIMEOUT_MS
}

/** Where a report goes. */
export type ReportContext = {
  readonly stdout: { write(text: string): unknown }
  readonly stderr: { write(text: string): unknown }
  readonly now: () => number
}

export class JobReport {
  readonly #order: RayJobOrder
  readonly #isJson: boolean
  readonly #context: ReportContext
  readonly #jobs: RayJob[] = []
  #isStopped: boolean | undefined
  id: string | undefined

  constructor(order: RayJobOrder, isJson: boolean, context: ReportContext) {
    this.#order = order
    this.#isJson = isJson
    this.#context = context
  }

  event(event: RayJobEvent): void {
    const { stdout, stderr, now } = this.#context
    if (event.type === 'submitted') this.id = printable(event.id)
    if (event.type === 'job') this.#jobs.push(event.job)
    if (event.type === 'stopped') this.#isStopped = event.isStopped
    if (this.#isJson) {
      const whole = {
        ...(event.type === 'job' ? { type: 'job', ...event.job } : event),
        time: new Date(now()).toISOString(),
      }
      stdout.write(
        `${JSON.stringify(whole, (_, value) => (typeof value === 'string' ? printableLines(value) : value))}\n`,
      )
      return
    }
    if (event.type === 'submitted') stderr.write(`muster: job ${this.id}\n`)
    if (event.type === 'log') stdout.write(printableLines(event.text))
  }

  /** The exit code. */
  finish(): number {
    const order = this.#order
    const { stdout, stderr, now } = this.#context
    const [job] = this.#jobs
    if (order.do === 'list') {
      if (!this.#isJson) stdout.write(formatJobs(this.#jobs, now()))
      return EXIT.ok
    }
    if (order.do === 'stop') {
      if (!this.#isJson)
        stdout.write(this.#isStopped ? `${order.id}: stopped\n` : `${order.id}: it had ended already\n`)
      return EXIT.ok
    }
    if (job === undefined || !order.follow) return EXIT.ok
    if (!ENDED.includes(job.status)) return EXIT.failed
    if (job.status !== 'SUCCEEDED')
      stderr.write(`muster: job ${printable(job.id)}: ${printable(job.message || job.status)}\n`)
    return job.status === 'SUCCEEDED' ? EXIT.ok : job.exitCode || EXIT.failed
  }
}

function printableLines(text: string): string {
  return text.replace(/[^\n\t]+/g, printable)
}

function formatJobs(jobs: readonly RayJob[], nowMs: number): string {
  if (jobs.length === 0) return 'no jobs\n'
  const rows = jobs
    .toSorted((left, right) => (left.startMs ?? 0) - (right.startMs ?? 0))
    .map(({ id, status, startMs, endMs, entrypoint }) => {
      const took = startMs === undefined ? '' : formatDuration(Math.max(0, (endMs ?? nowMs) - startMs))
      return [
        id,
        status,
        startMs === undefined ? '' : new Date(startMs).toISOString(),
        took,
        entrypoint.split('\n', 1)[0] ?? '',
      ]
    })
  return formatTable(['JOB', 'STATE', 'BEGAN', 'TOOK', 'COMMAND'], rows)
}
