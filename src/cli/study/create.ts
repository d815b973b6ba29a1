/** `muster study create`: a study from words to a row of the queue. */
import { randomInt } from 'node:crypto'
import { InvalidArgumentError, Option } from 'commander'
import { accountName } from '../../base/account.ts'
import { defined } from '../../base/defined.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { CHECKPOINT } from '../../scheduler/jobs/checkpoint.ts'
import type { JobSpec } from '../../scheduler/jobs/job.ts'
import { METHODS } from '../../scheduler/study/ask.ts'
import { samplerOf } from '../../scheduler/study/optuna.ts'
import { type Space, sizeOf } from '../../scheduler/study/space.ts'
import { type PruneSpec, type StudySpec, spaceOf, stepMetricOf } from '../../scheduler/study/study.ts'
import { numberFrom, repeatable, wholeNumber } from '../command-line/options.ts'
import { type CliContext, EXIT, type VerbCode } from '../command-line/verb.ts'
import { type OpenQueue, openQueue } from '../job/open-queue.ts'
import { COMMAND_WORDS, checkRoom, metricsOf, prepareJob, withJobOptions } from '../job/submit.ts'
import { ABSENT } from '../launch/launch.ts'
import { jsonLine } from '../output/json-lines.ts'
import { type SamplerOptions, samplerPlaceOf, withSamplerOptions } from './optuna.ts'
import { checkMemberJob, PBT, type PbtOptions, pbtParts, withPbtOptions } from './pbt-options.ts'

type CreateOptions = SamplerOptions &
  PbtOptions & {
    readonly param: readonly string[]
    readonly if: readonly string[]
    readonly record: readonly string[]
    readonly trials?: number
    readonly atOnce?: number
    readonly repeat: number
    readonly seed?: number
    readonly digits?: number
    readonly time?: number
    readonly failures: number
    readonly prune?: Pick<PruneSpec, 'rule' | 'factor'>
    readonly stepMetric: string
    readonly pruneFrom: number
    readonly ask?: boolean
  }

export const create: VerbCode = {
  define: (command) =>
    withPbtOptions(withSamplerOptions(withJobOptions(command)))
      .argument('<study>', 'name of the study')
      .argument('[command...]', `what a trial runs: ${COMMAND_WORDS}; parameters are variables, such as $lr`)
      .addOption(
        repeatable(
          '--param <name=values>',
          'a parameter: int:10:200:10, float:0:1, float:0.1:0.3:0.1, log:1e-5:1e-1 (even in its logarithm), or adam,sgd',
        ),
      )
      .addOption(
        repeatable(
          '--if <condition param>',
          'a parameter that only exists while another one has a value: "opt=sgd momentum=float:0:0.9"',
        ),
      )
      .addOption(repeatable('--record <name[=pattern]>', 'also show this metric, without optimising it'))
      .option('--method <name>', methodHelp(), 'random')
      .option('--trials <n>', 'run at most N trials (default: until all points are tried)', wholeNumber(1))
      .option('--at-once <n>', 'run at most N trials at the same time (default: as many as fit)', wholeNumber(1))
      .option('--repeat <n>', 'try each point N times', wholeNumber(1, 1000), 1)
      .option('--seed <n>', 'choose the same points again (default: a random seed)', wholeNumber(0, 2 ** 31))
      .option('--digits <n>', 'round numbers that may be any to N significant digits', wholeNumber(1, 15), 6)
      .option('--time <s>', 'start no trial later than S seconds after the first', numberFrom(1))
      .addOption(
        new Option(
          '--prune <rule>',
          'stop a trial early: median (it is worse than the median of the others at that step) or halving:3 (at each third, ninth … step only the best third goes on)',
        ).argParser(pruneOf),
      )
      .option('--step-metric <name>', 'with --prune: the number that counts steps, printed as NAME=12', 'step')
      .option('--prune-from <step>', 'with --prune: stop no trial before this step', numberFrom(0), 1)
      .option('--ask', 'let programs ask for points and tell their values, instead of running a command')
      .option('--failures <n>', 'start no more trials when the last N have failed', wholeNumber(1), 10),
  help: `
Examples:
  muster study create wf --param size=int:10:200:10 --param lr=log:1e-5:1e-1 --metric max:acc --trials 50 -- 'python train.py $size $lr'

No point is tried twice, and none is lost, however often the scheduler is stopped. A trial whose job fails is tried again as the
same trial, as often as --retries says.

--method pbt trains a population. Each member is a job that loads its checkpoint from the directory $MUSTER_CHECKPOINT when it
starts, saves there from time to time and when it gets TERM, and prints --metric and --time-attr. Save to another name and rename it,
so that a checkpoint is whole at any moment:
  muster study create p --method pbt --population 4 --time-attr step --metric max:acc \\
    --mutate lr=loguniform:1e-4:1e-1 -- 'python train.py --lr $lr --checkpoint $MUSTER_CHECKPOINT'
`,
  async run(name: string, words: readonly string[], options: CreateOptions, context: CliContext) {
    using queue = await openQueue(options, context)
    const spec = studySpecOf(options, queue.inventory)
    const space = spaceOf(spec)
    checkNames(space)
    const trials = options.trials
    if (trials === undefined && spec.pbt === undefined && !Number.isFinite(sizeOf(space)))
      throw new MusterError('usage', '--trials is missing: some parameters may have any number', {
        hint: 'Say how many trials to run, such as --trials 50.',
      })
    const user = options.user ?? accountName()
    const row = { name, user, priority: options.priority, spec, ...defined({ trials }) }
    if (options.ask && spec.pbt !== undefined)
      throw new MusterError('usage', '--ask and --method pbt cannot be used together')
    if (options.ask && words.length > 0)
      throw new MusterError('usage', 'with --ask a study runs no command: programs ask for its points')
    const job = options.ask ? undefined : await jobOf(name, words, options, spec, queue, context)
    queue.store.together(() => queue.store.studies.create({ ...row, ...defined({ job }) }, context.now()))
    const size = sizeOf(space) * spec.repeat
    if (options.json)
      context.stdout.write(jsonLine({ type: 'study', study: name, points: Number.isFinite(size) ? size : null }))
    if (queue.store.lease.owner(context.now()) === undefined)
      context.stderr.write('muster: no scheduler running. Run: muster job work\n')
    return EXIT.ok
  },
}

const POPULATION = {
  name: PBT,
  summary: 'members train side by side, and bad ones go on from checkpoints of good ones',
}

/** What a trial runs. */
async function jobOf(
  name: string,
  words: readonly string[],
  options: CreateOptions,
  spec: StudySpec,
  queue: OpenQueue,
  context: CliContext,
): Promise<JobSpec> {
  const variables = [...spaceOf(spec).parameters.map((one) => one.name), 'MUSTER_STUDY', 'MUSTER_TRIAL', CHECKPOINT]
  const stepMetric = stepMetricOf(spec)
  const steps = stepMetric === undefined ? [] : [stepMetric]
  const metric = [...new Set([...options.metric, ...options.record, ...steps])]
  const given = { ...options, ...ABSENT, metric, name: options.name ?? name }
  const prepared = await prepareJob(words, given, queue, context, variables)
  const job = stepMetric === undefined ? prepared : { ...prepared, metricsEveryS: READ_EVERY_S }
  if (spec.pbt !== undefined) checkMemberJob(job, spec.pbt)
  checkRoom(job, queue, given, context)
  return job
}

const DEFAULT_FACTOR = 3
/** A median of fewer says little. */
const FROM_TRIALS = 5
/** While trials may be stopped early, their output is read this often. */
const READ_EVERY_S = 2

function pruneOf(text: string): Pick<PruneSpec, 'rule' | 'factor'> {
  if (text === 'median') return { rule: 'median' }
  const [, factor] = /^halving(?::(\d{1,2}))?$/.exec(text) ?? []
  if (!text.startsWith('halving') || Number(factor ?? DEFAULT_FACTOR) < 2)
    throw new InvalidArgumentError('It must be median, halving, or halving:N with N of 2 or more.')
  return { rule: 'halving', factor: Number(factor ?? DEFAULT_FACTOR) }
}

const KNOWN = [
  ...METHODS,
  POPULATION,
  { name: 'tpe', summary: 'Optuna models which points are good' },
  { name: 'optuna:SAMPLER', summary: 'another sampler of Optuna, such as optuna:CmaEsSampler' },
] as const

function methodHelp(): string {
  return `how points are chosen: ${KNOWN.map(({ name, summary }) => `${name} (${summary})`).join(', ')}`
}

function studySpecOf(options: CreateOptions, inventory: Inventory): StudySpec {
  const {
    method,
    repeat,
    digits,
    failures,
    time,
    atOnce,
    prune,
    stepMetric,
    pruneFrom,
    seed = randomInt(2 ** 31),
  } = options
  if (options.param.length + options.mutate.length === 0)
    throw new MusterError('usage', 'a study needs a parameter: --param lr=log:1e-5:1e-1')
  if (!KNOWN.some(({ name }) => name === method) && samplerOf(method) === undefined)
    throw new MusterError('usage', `unknown method: ${printable(method)}`, {
      hint: `Methods: ${KNOWN.map(({ name }) => name).join(', ')}.`,
    })
  const metrics = metricsOf(options.metric)
  if (metrics.length === 0 && !['grid', 'random', 'brute', 'quasi-random'].includes(method))
    throw new MusterError('usage', '--metric is missing: what should the study optimise?')
  if (prune !== undefined && metrics.length !== 1) throw new MusterError('usage', '--prune needs exactly one --metric')
  if (prune !== undefined && method === PBT)
    throw new MusterError('usage', '--prune cannot be used with --method pbt, which replaces bad members itself')
  const parameters = [...options.param, ...options.if.map((text) => `if ${text}`)]
  return {
    ...pbtParts(method, options, { parameters, metrics, repeat, ...defined({ digits }) }),
    method,
    seed,
    metrics,
    repeat,
    failures,
    ...defined({
      digits,
      isAsked: options.ask,
      atOnce,
      limitS: time,
      sampler: samplerPlaceOf(options, inventory),
      prune: prune && { ...prune, stepMetric, fromStep: pruneFrom, fromTrials: FROM_TRIALS },
    }),
  }
}

/** They would change how the command itself is found and run. */
const RESERVED =
  /^(MUSTER_.*|LD_.*|PATH|HOME|SHELL|USER|LOGNAME|PWD|IFS|ENV|BASH_ENV|TMPDIR|RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)$/

function checkNames({ parameters }: Space): void {
  const wrong = parameters.find(({ name }) => RESERVED.test(name))
  if (wrong !== undefined)
    throw new MusterError('usage', `--param ${wrong.name}: this name is a variable that the job needs itself`, {
      hint: 'Choose another name.',
    })
}
