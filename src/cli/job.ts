/** `muster job …`: the queue of jobs, kept on this machine's disk and worked on the hosts of hosts.yaml. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { CliContext, Outcome } from './command-line/context.ts'
import { addExamples } from './command-line/help-examples.ts'
import type { ChangeOptions } from './job/change.ts'
import type { CleanOptions } from './job/clean.ts'
import type { EditOptions } from './job/edit.ts'
import type { LogOptions } from './job/logs.ts'
import type { JobOptions } from './job/open-queue.ts'
import type { ResultsOptions } from './job/results.ts'
import type { ListOptions } from './job/show.ts'
import type { SubmitOptions } from './job/submit.ts'
import type { WorkOptions } from './job/work.ts'

const EXAMPLES = `
Examples:
  muster job submit --gpu 1 --estimate 3600 -- python train.py --seed 7
  muster job submit --gpu 0.5 --array 0-99 -- 'python eval.py $MUSTER_ARRAY_INDEX'
  muster job submit --bundles 4 --gpu 8 --strategy STRICT_SPREAD -- ./train.sh
  muster job submit --grid lr=0.1:0.3:0.1 --grid size=8,16 -- 'python train.py $lr $size'
  muster job submit --grid lr=0.1,0.2 --metric loss --metric max:acc -- 'python train.py $lr'
  muster job submit --from jobs.txt              a job a line
  muster job work                    drives the queue until Ctrl-C; jobs go on without it
  muster job work --until-empty      the same, until nothing waits and nothing runs
  muster job work --install          the same as a service of this machine, without a terminal
  muster job list --state running,failed
  muster job show 17                 all about it, and why it waits
  muster job results 17 --sort lr    what was submitted together with it
  muster job logs 17 -f              what it writes, until it ends
  muster job wait 17 --timeout 3600  until it has ended, an hour at most
  muster job cancel 17-19            ends three of them
  muster job hold 17                 keeps it from beginning
  muster job release 17              lets it begin
  muster job retry 17,19             queues them anew
  muster job requeue 17              ends it, and lets it wait again
  muster job edit 17 --priority 5    while it waits
  muster job clean --older-than 30 --dry-run     what ended jobs have left on the hosts

One word after -- is a line for sh; several are a program and its arguments. A job finds its devices in CUDA_VISIBLE_DEVICES
and ROCR_VISIBLE_DEVICES, and RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, MUSTER_JOB, MUSTER_RANK, MUSTER_HOSTS besides.
`

export function registerJob(program: Command, context: CliContext, outcome: Outcome): void {
  const job = program
    .command('job')
    .description('a queue of jobs: submitted, placed on devices, run without a connection, found again')
  registerSubmit(job, context, outcome)
  const list = job
    .command('list')
    .description('the latest jobs')
    .option(
      '--state <names>',
      'only these: held, queued, starting, running, ending, done, failed, timed-out, lost, cancelled',
    )
    .option('--limit <n>', 'so many', whole, 50)
    .action(async () => {
      const { listJobs } = await import('./job/show.ts')
      outcome.exitCode = await listJobs(list.optsWithGlobals<ListOptions>(), context)
    })
  const show = job
    .command('show <id>')
    .description('all about one job, and why it waits')
    .action(async (id: string) => {
      const { showJob } = await import('./job/show.ts')
      outcome.exitCode = await showJob(one(id), show.optsWithGlobals<JobOptions>(), context)
    })
  const results = job
    .command('results <id>')
    .description('what was submitted together with it: parameters and metrics as a table, the best first')
    .option('--sort <name>', 'by another metric, by a parameter, or by job')
    .option('--limit <n>', 'so many', whole, 100)
    .action(async (id: string) => {
      const { showResults } = await import('./job/results.ts')
      outcome.exitCode = await showResults(one(id), results.optsWithGlobals<ResultsOptions>(), context)
    })
  const logs = job
    .command('logs <id>')
    .description('what it wrote')
    .option('--rank <n>', 'of which bundle', whole, 0)
    .option('-f, --follow', 'and goes on until it ends')
    .action(async (id: string) => {
      const { showLogs } = await import('./job/logs.ts')
      outcome.exitCode = await showLogs(one(id), logs.optsWithGlobals<LogOptions>(), context)
    })
  const changes = [
    ['cancel', 'ends them, or takes them out of the queue'],
    ['hold', 'keeps them from beginning'],
    ['release', 'lets held ones begin'],
    ['retry', 'queues those that have ended anew'],
    ['requeue', 'ends those that run, and lets them wait again'],
    ['wait', 'until all of them have ended; 1 if one was not done'],
  ] as const
  for (const [name, description] of changes) {
    const command = job.command(`${name} <ids...>`).description(description)
    if (name === 'cancel')
      command.option('--forget', 'do not wait for hosts that are down; what runs there is left alone')
    command.action(async (words: readonly string[]) => {
      const { changeJobs, waitForJobs } = await import('./job/change.ts')
      const options = command.optsWithGlobals<ChangeOptions>()
      const ids = words.flatMap(parseIds)
      outcome.exitCode =
        name === 'wait' ? await waitForJobs(ids, options, context) : await changeJobs(name, ids, options, context)
    })
  }
  registerUpkeep(job, context, outcome)
  const work = job
    .command('work')
    .description('drives the queue: begins jobs, looks after them; a second one stands by and takes over')
    .option('--until-empty', 'ends when nothing waits and nothing runs')
    .option('--preempt', 'jobs that allow it are ended for those of higher priority')
    .option(
      '--keep <days>',
      'removes from hosts what jobs left there that ended so long ago (else nothing)',
      atLeastOne,
    )
    .option('--on-end <command>', 'run here by sh when a job has ended, with MUSTER_JOB, MUSTER_JOB_STATE and others')
    .option('--on-fail <command>', 'the same, when it was not done')
    .option('--install', 'run it as a service of this machine, with these options, without a terminal; asks first')
    .option('--uninstall', 'remove the service; jobs that run continue')
    .option('--dry-run', 'with --install or --uninstall: show the plan, without doing it')
    .action(async () => {
      const options = work.optsWithGlobals<WorkOptions>()
      outcome.exitCode = await workOrInstall(options, context)
    })
  addExamples(job, EXAMPLES)
}

async function workOrInstall(options: WorkOptions, context: CliContext): Promise<number> {
  const { install = false, uninstall = false, dryRun = false } = options
  if (install && uninstall) throw new InvalidArgumentError('--install and --uninstall cannot be used together')
  if (install || uninstall) {
    const { changeService } = await import('./job/service/install.ts')
    return await changeService(install ? 'up' : 'down', options, context)
  }
  if (dryRun) throw new InvalidArgumentError('--dry-run needs --install or --uninstall: nothing was done')
  const { workQueue } = await import('./job/work.ts')
  return await workQueue(options, context)
}

function registerUpkeep(job: Command, context: CliContext, outcome: Outcome): void {
  const edit = job
    .command('edit <ids...>')
    .description('changes those that wait or are held')
    .option('--name <name>', 'for people')
    .option('--priority <n>', 'the higher goes first', integer)
    .option('--estimate <s>', 'how long it will run', atLeastOne)
    .option('--limit <s>', 'it is ended when it has run for so long', atLeastOne)
    .option('--retries <n>', 'tried again so often when it fails', whole)
    .option('--cpu <cores>', 'of each bundle', number)
    .option('--memory <size>', 'of each bundle, as 16GiB')
    .option('--gpu <n>', 'of each bundle: whole ones, or a share of one as 0.5', number)
    .option('--on <target>', 'only on these hosts')
    .option('--dir <path>', 'on the host, where it runs')
    .option('--command <line>', 'for sh')
    .action(async (words: readonly string[]) => {
      const { editJobs } = await import('./job/edit.ts')
      outcome.exitCode = await editJobs(words.flatMap(parseIds), edit.optsWithGlobals<EditOptions>(), context)
    })
  const clean = job
    .command('clean')
    .description('removes from all hosts what ended jobs left there: output, and what was run')
    .option('--older-than <days>', 'only of those that ended so long ago', number, 7)
    .option('--records', 'also delete their records from the queue, for good (default: keep them for ever)')
    .option('--dry-run', 'counts only')
    .action(async () => {
      const { cleanHosts } = await import('./job/clean.ts')
      outcome.exitCode = await cleanHosts(clean.optsWithGlobals<CleanOptions>(), context)
    })
}

function registerSubmit(job: Command, context: CliContext, outcome: Outcome): void {
  const submit = job
    .command('submit [command...]')
    .description('puts a job into the queue; its number is on disk when it is printed')
    .option('--from <file>', 'a job for each line of it, a line for sh; -: of stdin, as they come')
    .option('--name <name>', 'for people')
    .option('--cpu <cores>', 'of each bundle', number, 1)
    .option('--memory <size>', 'of each bundle, as 16GiB')
    .option('--no-limits', 'what it asks for with --memory is a promise: it is not ended when it takes more')
    .option('--gpu <n>', 'of each bundle: whole ones, or a share of one as 0.5', number, 0)
    .option('--bundles <n>', 'placed together or not at all; each runs the command', atLeastOne, 1)
    .option('--strategy <name>', 'PACK, SPREAD, STRICT_PACK or STRICT_SPREAD', 'PACK')
    .option('--per-host <n>', 'bundles on one host at most', atLeastOne)
    .option('--on <target>', 'only on these hosts')
    .option('--array <from-to>', 'one job for each number, in MUSTER_ARRAY_INDEX')
    .addOption(repeated('--grid <name=values>', 'one job for each combination: a,b,c or from:to:step'))
    .addOption(
      repeated(
        '--metric <name[=pattern]>',
        'a number that it prints as NAME=0.1 or NAME: 0.1, or as the pattern (of sed -E) says; max:NAME where the most is best',
      ),
    )
    .addOption(repeated('--env <name=value>', 'for the command'))
    .option('--dir <path>', 'on the host, where it runs (else the home directory)')
    .option('--copy-dir <path>', 'a directory of this machine, brought to the hosts now; it runs there')
    .option('--from-env <what>', 'inside declared (the environment of hosts.yaml), venv:PATH, conda:NAME or image:NAME')
    .option('--priority <n>', 'the higher goes first', integer, 0)
    .option('--user <name>', 'on whose account: of equal priority, those who have had less go first')
    .option('--estimate <s>', 'how long it will run', atLeastOne)
    .option('--limit <s>', 'it is ended when it has run for so long', atLeastOne)
    .option('--retries <n>', 'tried again so often when it fails', whole, 0)
    .addOption(new Option('--after <ids>', 'begins when these are done').argParser(parseIds).default([], 'none'))
    .option('--preemptible', 'may be ended for one of higher priority, and begins anew')
    .option(
      '--engine <name>',
      'embedded: placed by Muster; ray: placed and run by the Ray cluster of hosts.yaml',
      'embedded',
    )
    .option('--hold', 'does not begin before it is released')
    .option('--dry-run', 'says where it would go now, or why not; submits nothing')
    .option('--strict', 'refuse a job that no host can ever hold (default: accept it with a warning)')
    .action(async (words: readonly string[]) => {
      const { submitJob } = await import('./job/submit.ts')
      outcome.exitCode = await submitJob(words, submit.optsWithGlobals<SubmitOptions>(), context)
    })
}

function number(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value) || value < 0)
    throw new InvalidArgumentError('It has to be a number from 0 on.')
  return value
}

function integer(text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isSafeInteger(value)) throw new InvalidArgumentError('It has to be a whole number.')
  return value
}

function whole(text: string): number {
  const value = integer(text)
  if (value < 0) throw new InvalidArgumentError('It has to be a whole number from 0 on.')
  return value
}

function atLeastOne(text: string): number {
  const value = integer(text)
  if (value < 1) throw new InvalidArgumentError('It has to be 1 at least.')
  return value
}

function one(text: string): number {
  const [id, ...others] = parseIds(text)
  if (id === undefined || others.length > 0) throw new InvalidArgumentError('It has to be the number of one job.')
  return id
}

const MOST_IDS = 1_000_000

/** `17`, `17-19`, `3,17-19` */
function parseIds(text: string): readonly number[] {
  return text.split(',').flatMap((part) => {
    const [, from, to] = /^(\d{1,15})(?:-(\d{1,15}))?$/.exec(part) ?? []
    const first = Number(from)
    const last = to === undefined ? first : Number(to)
    if (from === undefined || last < first || last - first >= MOST_IDS)
      throw new InvalidArgumentError(`'${part}' is no number of a job, nor a range as 17-19.`)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index)
  })
}

function repeated(flags: string, description: string): Option {
  return new Option(flags, `${description} (may be repeated)`).argParser(collect).default([], 'none')
}

function collect(text: string, before: readonly string[]): readonly string[] {
  return [...before, text]
}
