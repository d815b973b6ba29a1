/** `muster ray submit`, `jobs`, `logs`, `stop` and `restart`: the cluster that hosts.yaml declares, through its head. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { defined } from '../../base/defined.ts'
import { MusterError } from '../../base/errors.ts'
import { printable, printableLines } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { formatDuration, timeText } from '../../base/time-text.ts'
import { askForJobs, type RayJob, type RayJobEvent, type RayJobOrder } from '../../ops/ray/jobs.ts'
import { nodesOf, wantedRay } from '../../ops/ray/wanted.ts'
import { type BringUpOptions, prepareBringUp } from '../bring-up/prepare.ts'
import { numberFrom, variable } from '../command-line/options.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { writeEvent } from '../output/json-lines.ts'
import { type NoticeContext, notice } from '../output/notices.ts'
import { formatTable, type TableOutput } from '../output/table.ts'

/** Ray's client alone takes seconds to load on a busy host. */
const ANSWER_TIMEOUT_MS = 120_000
const ENDED: readonly string[] = ['STOPPED', 'SUCCEEDED', 'FAILED']

type SubmitOptions = GlobalOptions & {
  readonly workingDir?: string
  readonly env?: Readonly<Record<string, string>>
  readonly cpus?: number
  readonly gpus?: number
  readonly resources?: Readonly<Record<string, number>>
  readonly id?: string
  readonly wait: boolean
}

export const submit: VerbCode = {
  define: (command) =>
    command
      .argument('<command...>', 'the command and its arguments')
      .option('--working-dir <dir>', 'package this local directory, and start the command in it')
      .addOption(
        new Option('--env <k=v>', 'set a variable for the job; can be given several times').argParser(variable),
      )
      .option('--cpus <n>', 'reserve N CPUs for the command itself', numberFrom(0))
      .option('--gpus <n>', 'reserve N GPUs for the command itself', numberFrom(0))
      .addOption(
        new Option('--resources <k=n>', 'reserve other resources for it; can be given several times').argParser(
          resource,
        ),
      )
      .option('--id <name>', 'set the ID of the job (default: Ray generates one)', jobName)
      .option('--no-wait', 'return as soon as Ray has accepted the job'),
  help: `
Examples:
  muster ray submit --working-dir . --cpus 2 -- python train.py

Exit code: that of the job.
`,
  async run(words: readonly string[], options: SubmitOptions, context: CliContext) {
    const { workingDir, env = {}, cpus, gpus, resources, id, wait } = options
    const job = {
      entrypoint: words.length === 1 ? (words[0] ?? '') : words.map(shellQuote).join(' '),
      environment: env,
      ...defined({ id, cpus, gpus, resources }),
      ...(workingDir === undefined ? {} : { archive: await packDirectory(workingDir, context) }),
    }
    return await ask({ do: 'submit', job, follow: wait }, options, context)
  },
}

export const jobs: VerbCode = {
  help: `
Examples:
  muster ray jobs                   the jobs of the cluster, newest last
`,
  run: (options: GlobalOptions, context: CliContext) => ask({ do: 'list' }, options, context),
}

const defineJob = (command: Command) =>
  command.argument('<submission-id>', 'the job, as `muster ray jobs` lists it', jobName)

export const logs: VerbCode = {
  define: (command) => defineJob(command).option('-f, --follow', 'keep printing until the job ends'),
  help: `
Examples:
  muster ray logs -f ID             what a job prints, until it ends

Exit code with -f: that of the job.
`,
  run: (id: string, options: GlobalOptions & { readonly follow?: boolean }, context: CliContext) =>
    ask({ do: 'logs', id, follow: options.follow === true }, options, context),
}

export const stop: VerbCode = {
  define: defineJob,
  help: `
Examples:
  muster ray stop ID
`,
  run: (id: string, options: GlobalOptions, context: CliContext) => ask({ do: 'stop', id }, options, context),
}

function resource(text: string, before: Readonly<Record<string, number>> = {}): Readonly<Record<string, number>> {
  const match = /^([^=]+)=(.+)$/.exec(text)
  if (match === null) throw new InvalidArgumentError('It must be NAME=AMOUNT.')
  return { ...before, [match[1] ?? '']: numberFrom(0)(match[2] ?? '') }
}

function jobName(text: string): string {
  if (!/^[\w.-]{1,200}$/.test(text)) throw new InvalidArgumentError('It may have letters, digits, _ . and - only.')
  return text
}

/** The declared cluster, with the names of its hosts by the addresses of their nodes. */
export async function prepareRay(options: GlobalOptions, context: CliContext) {
  const prepared = await prepareBringUp(['ray'], options, context)
  const wanted = wantedRay(prepared.declared)
  if (wanted === undefined) throw new MusterError('internal', 'the area is prepared and nothing is declared')
  return { ...prepared, wanted, names: new Map(nodesOf(wanted).map(({ address, host }) => [address, host])) }
}

async function ask(order: RayJobOrder, options: GlobalOptions, context: CliContext): Promise<number> {
  using prepared = await prepareRay(options, context)
  const { wanted } = prepared
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
          `muster: job ${report.id} is still running: muster ray logs -f ${report.id}, muster ray stop ${report.id}\n`,
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
export type ReportContext = NoticeContext & {
  readonly stdout: { write(text: string): unknown } & TableOutput
  readonly now: () => number
}

export class JobReport {
  readonly #order: RayJobOrder
  readonly #isJson: boolean
  readonly #context: ReportContext
  readonly #jobs: RayJob[] = []
  #stop: Extract<RayJobEvent, { type: 'stopped' }> | undefined
  id: string | undefined

  constructor(order: RayJobOrder, isJson: boolean, context: ReportContext) {
    this.#order = order
    this.#isJson = isJson
    this.#context = context
  }

  event(event: RayJobEvent): void {
    const { stdout } = this.#context
    if (event.type === 'submitted') this.id = printable(event.id)
    if (event.type === 'job') this.#jobs.push(event.job)
    if (event.type === 'stopped') this.#stop = event
    if (this.#isJson) return writeEvent(event.type === 'job' ? { type: 'job', ...event.job } : event, this.#context)
    if (event.type === 'submitted') notice(this.#context, `muster: job ${this.id}\n`)
    if (event.type === 'log') stdout.write(printableLines(event.text))
  }

  /** The exit code. */
  finish(): number {
    const order = this.#order
    const { stdout, stderr, now } = this.#context
    const [job] = this.#jobs
    if (order.do === 'list') {
      if (!this.#isJson) stdout.write(formatJobs(this.#jobs, now(), stdout))
      return EXIT.ok
    }
    if (order.do === 'stop') {
      if (!this.#isJson) stdout.write(`${order.id}: ${stopWords(this.#stop)}\n`)
      return EXIT.ok
    }
    if (job === undefined || !order.follow) return EXIT.ok
    if (!ENDED.includes(job.status)) return EXIT.failed
    if (job.status !== 'SUCCEEDED')
      stderr.write(`muster: job ${printable(job.id)}: ${printable(job.message || job.status)}\n`)
    return job.status === 'SUCCEEDED' ? EXIT.ok : job.exitCode || EXIT.failed
  }
}

function stopWords(stop: Extract<RayJobEvent, { type: 'stopped' }> | undefined): string {
  if (stop?.isStopped !== true) return 'it had already ended'
  return stop.isPending === true ? 'still pending: Ray ends it once it has placed it' : 'stopped'
}

function formatJobs(jobs: readonly RayJob[], nowMs: number, out: TableOutput): string {
  if (jobs.length === 0) return 'no jobs\n'
  const rows = jobs
    .toSorted((left, right) => (left.startMs ?? 0) - (right.startMs ?? 0))
    .map(({ id, status, startMs, endMs, entrypoint }) => {
      const took = startMs === undefined ? '' : formatDuration(Math.max(0, (endMs ?? nowMs) - startMs))
      return [
        id,
        status,
        startMs === undefined ? '' : timeText(startMs, nowMs),
        took,
        entrypoint.split('\n', 1)[0] ?? '',
      ]
    })
  return formatTable(['JOB', 'STATE', 'BEGAN', 'TOOK', 'COMMAND'], rows, out)
}

/** Ray takes no larger package. */
const MAX_BYTES = 500 * 1024 * 1024
/** As Ray leaves them out. */
const EXCLUDED = ['.git', '.venv', 'venv', '__pycache__']

/** @throws MusterError `usage` */
export async function packDirectory(directory: string, { workingDirectory, signal }: CliContext): Promise<Uint8Array> {
  const path = resolve(workingDirectory, directory)
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
    throw new MusterError('usage', `${printable(directory)} is not a directory`)
  }
  const excludes = EXCLUDED.map((name) => `--exclude=${name}`)
  const tar = spawn('tar', ['-c', '-f', '-', ...excludes, '-C', path, '.'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    signal,
    // On macOS, tar would add files of its own.
    env: { ...process.env, COPYFILE_DISABLE: '1' },
  })
  const chunks: Buffer[] = []
  let sizeBytes = 0
  let said = ''
  tar.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  tar.stdout.on('data', (chunk: Buffer) => {
    sizeBytes += chunk.length
    if (sizeBytes > MAX_BYTES) tar.kill()
    else chunks.push(chunk)
  })
  const [code] = (await once(tar, 'close')) as [number | null]
  if (sizeBytes > MAX_BYTES) {
    throw new MusterError('usage', `${printable(directory)} is larger than 500 MB, the limit of Ray for a package`, {
      hint: 'Leave out data: put it into a directory that all nodes share.',
    })
  }
  if (code !== 0) throw new MusterError('usage', `${printable(directory)} cannot be packed: ${printable(said.trim())}`)
  return Buffer.concat(chunks)
}

export const restart: VerbCode = {
  define: (command) => command.argument('<target>', 'hosts of workers: m8, m[8-9]'),
  help: `
Examples:
  muster ray restart m8            restart one worker
`,
  async run(on: string, options: BringUpOptions, context: CliContext) {
    const { change } = await import('../bring-up/change.ts')
    const code = await change('down', ['ray'], { ...options, on }, context)
    return code === EXIT.ok ? await change('up', ['ray'], { ...options, on }, context) : code
  },
}
