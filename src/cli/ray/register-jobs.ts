/** The command lines of `muster ray submit`, `jobs`, `logs`, `stop` and `watch`: what concerns a cluster that runs. */
import type { Command } from 'commander'
import { InvalidArgumentError, Option } from 'commander'
import type { CliContext, GlobalOptions, Outcome } from '../command-line/context.ts'
import type { WatchOptions } from './watch.ts'

export type SubmitOptions = GlobalOptions & {
  readonly workingDir?: string
  readonly env?: Readonly<Record<string, string>>
  readonly cpus?: number
  readonly gpus?: number
  readonly resources?: Readonly<Record<string, number>>
  readonly id?: string
  readonly wait: boolean
}

function amount(text: string): number {
  const value = Number(text)
  if (!Number.isFinite(value) || value < 0) throw new InvalidArgumentError('It has to be a number, 0 or more.')
  return value
}

function interval(text: string): number {
  const value = amount(text)
  if (value < 0.5) throw new InvalidArgumentError('It has to be half a second or more.')
  return value
}

function variable(text: string, before: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  const match = /^([A-Za-z_]\w*)=([\s\S]*)$/.exec(text)
  if (match === null) throw new InvalidArgumentError('It has to be NAME=VALUE.')
  return { ...before, [match[1] ?? '']: match[2] ?? '' }
}

function resource(text: string, before: Readonly<Record<string, number>> = {}): Readonly<Record<string, number>> {
  const match = /^([^=]+)=(.+)$/.exec(text)
  if (match === null) throw new InvalidArgumentError('It has to be NAME=AMOUNT.')
  return { ...before, [match[1] ?? '']: amount(match[2] ?? '') }
}

function jobName(text: string): string {
  if (!/^[\w.-]{1,200}$/.test(text)) throw new InvalidArgumentError('It has letters, digits, _ . and - only.')
  return text
}

export function registerJobs(ray: Command, context: CliContext, outcome: Outcome): void {
  const submit = ray
    .command('submit')
    .description('runs a command on the cluster, and shows what it prints until it has ended')
    .argument('<command...>', 'the command and its words')
    .option('--working-dir <dir>', 'a local directory that the command starts in, packaged as Ray does it')
    .addOption(new Option('--env <k=v>', 'a variable for the job (may be repeated)').argParser(variable))
    .option('--cpus <n>', 'processors that the command itself takes', amount)
    .option('--gpus <n>', 'GPUs that it takes', amount)
    .addOption(new Option('--resources <k=n>', 'other resources that it takes (may be repeated)').argParser(resource))
    .option('--id <id>', 'the name of the job (default: Ray makes one)', jobName)
    .option('--no-wait', 'returns as soon as Ray has the job')
  submit.action(async (words: readonly string[]) => {
    const { submitJob } = await import('./jobs.ts')
    outcome.exitCode = await submitJob(words, submit.optsWithGlobals<SubmitOptions>(), context)
  })

  const jobs = ray.command('jobs').description('the jobs of the cluster, the newest last')
  jobs.action(async () => {
    const { listJobs } = await import('./jobs.ts')
    outcome.exitCode = await listJobs(jobs.optsWithGlobals<GlobalOptions>(), context)
  })

  const logs = ray
    .command('logs')
    .description('what a job has printed')
    .argument('<id>', 'the job', jobName)
    .option('-f, --follow', 'and what it prints until it has ended')
  logs.action(async (id: string) => {
    const { showLogs } = await import('./jobs.ts')
    outcome.exitCode = await showLogs(id, logs.optsWithGlobals<GlobalOptions & { follow?: boolean }>(), context)
  })

  const stop = ray.command('stop').description('ends a job').argument('<id>', 'the job', jobName)
  stop.action(async (id: string) => {
    const { stopJob } = await import('./jobs.ts')
    outcome.exitCode = await stopJob(id, stop.optsWithGlobals<GlobalOptions>(), context)
  })

  const watch = ray
    .command('watch')
    .description('what the nodes do, what waits and why, until Ctrl-C')
    .addOption(new Option('--interval <s>', 'seconds between two looks').argParser(interval).default(2))
    .option('--once', 'one look')
  watch.action(async () => {
    const { watchRay } = await import('./watch.ts')
    outcome.exitCode = await watchRay(watch.optsWithGlobals<WatchOptions>(), context)
  })
}
