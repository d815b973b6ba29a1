/** From options to a study, for `muster study create` and `muster sweep`: its space, what a trial runs, and what would be tried first. */

import { randomInt } from 'node:crypto'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { accountName } from '../../base/account.ts'
import { counted } from '../../base/counted.ts'
import { defined } from '../../base/defined.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { didYouMean } from '../../inventory/nearest-word.ts'
import { CHECKPOINT } from '../../scheduler/jobs/checkpoint.ts'
import { placeTitle } from '../../scheduler/jobs/engine.ts'
import type { JobSpec } from '../../scheduler/jobs/job.ts'
import { isOwnVariable } from '../../scheduler/jobs/orders.ts'
import type { NewStudy } from '../../scheduler/jobs/study-rows.ts'
import { askNext, METHODS } from '../../scheduler/study/ask.ts'
import { samplerOf } from '../../scheduler/study/optuna.ts'
import { DEFAULT_DIGITS, type Point, pointKey, type Space, sizeOf } from '../../scheduler/study/space.ts'
import { type PruneSpec, type StudySpec, spaceOf, stepMetricOf } from '../../scheduler/study/study.ts'
import { handLine, mostTrials, pointText } from '../../scheduler/study/study-text.ts'
import { numberFrom, offering, repeatable, wholeNumber } from '../command-line/options.ts'
import { type CliContext, EXIT } from '../command-line/verb.ts'
import { parseJobEnvironment, withStdinIn } from '../job/environment.ts'
import { noticeScheduler, type OpenQueue } from '../job/open-queue.ts'
import {
  checkRoom,
  metricsOf,
  placeNow,
  prepareJob,
  type SubmitOptions,
  withJobOptions,
  withStartOptions,
} from '../job/submit.ts'
import { ABSENT, LAUNCHERS_OF_ONE } from '../launch/launch.ts'
import { jsonLine } from '../output/json-lines.ts'
import { type SamplerOptions, samplerPlaceOf, withSamplerOptions } from './optuna.ts'
import { checkMemberJob, PBT, type PbtOptions, pbtParts, withPbtOptions } from './pbt-options.ts'
import { formatParts, searchesPart } from './report.ts'

export type SpaceOptions = SubmitOptions & {
  readonly param: readonly string[]
  readonly if: readonly string[]
  readonly record: readonly string[]
  readonly atOnce?: number
  readonly repeat: number
}

export type StudyOptions = SpaceOptions &
  SamplerOptions &
  PbtOptions & {
    readonly trials?: number
    readonly seed?: number
    readonly digits?: number
    readonly time?: number
    readonly failures: number
    readonly prune?: Pick<PruneSpec, 'rule' | 'factor'>
    readonly stepMetric?: string
    readonly pruneFrom?: number
    readonly ask?: boolean
  }

/** Numbers between colons. */
const NO_KIND = /^[^=]*=(-?[\d.]+(?:e[-+]?\d+)?(?::-?[\d.]+(?:e[-+]?\d+)?){1,2})$/i

const POPULATION = {
  name: PBT,
  summary: 'population-based training: the worst members continue from checkpoints of the best',
}

const KNOWN = [
  ...METHODS,
  POPULATION,
  { name: 'tpe', summary: 'Optuna models which points are good' },
  { name: 'optuna:SAMPLER', summary: 'another sampler of Optuna, such as optuna:CmaEsSampler' },
] as const

export function withParameters(command: Command): Command {
  return command
    .optionsGroup('Parameters:')
    .addOption(
      repeatable(
        '--param <name=values>',
        'a parameter: int:10:200:10, float:0:1, float:0.1:0.3:0.1, log:1e-5:1e-1 (on a log scale), or a list: adam,sgd',
      ),
    )
    .addOption(
      repeatable(
        '--if <condition param>',
        'a parameter that only exists while an earlier one has a value: "opt=sgd momentum=float:0:0.9"',
      ),
    )
    .optionsGroup('Metrics:')
    .addOption(repeatable('--record <name[=pattern]>', 'also collect this metric, without optimising it'))
}

/** All options that say how it chooses and when it ends. */
export function withMethod(command: Command): Command {
  command
    .optionsGroup('Search method:')
    .addOption(
      offering(
        new Option(
          '--method <name>',
          `how points are chosen: ${KNOWN.map(({ name, summary }) => `${name} (${summary})`).join(', ')}`,
        ).default('random'),
        KNOWN.map(({ name }) => name),
      ),
    )
    .option('--repeat <n>', 'try each point N times', wholeNumber(1, MOST_REPEATS), 1)
    .option('--seed <n>', 'seed of all random choices (default: a random one)', wholeNumber(0, 2 ** 31))
    .option(
      '--digits <n>',
      `round numbers of a range without steps to N significant digits (default: ${DEFAULT_DIGITS})`,
      wholeNumber(1, 15),
    )
  withSamplerOptions(command)
  command
    .optionsGroup('Budget:')
    .option('--trials <n>', 'run at most N trials (default: until all points are tried)', wholeNumber(1))
    .option('--at-once <n>', AT_ONCE, wholeNumber(1))
    .option('--time <s>', 'start no trial more than S seconds after the first one', numberFrom(1))
    .option('--failures <n>', 'start no more trials after N failures in a row', wholeNumber(1), 10)
    .optionsGroup('Early stopping:')
    .addOption(
      new Option(
        '--prune <rule>',
        'stop bad trials early: median (those worse than the median of the others at the same step) or halving:3 (successive halving: at steps 1, 3, 9 … only the best third continue). The command prints the step with the metric: step=3 loss=0.5',
      ).argParser(pruneOf),
    )
    .option('--step-metric <name>', `the number that counts steps, printed as NAME=12 (default: ${STEP})`)
    .option('--prune-from <step>', 'stop no trial before this step (default: 1)', numberFrom(0))
  return withPbtOptions(command.optionsGroup('Population-based training, with --method pbt:'))
}

export const MOST_REPEATS = 1000
export const AT_ONCE = 'run at most N trials at the same time (default: as many as fit)'
const STEP = 'step'

/** What a trial runs and needs, as for `muster job submit`. */
export function withTrialOptions(
  command: Command,
  nameHelp = 'name of the jobs in lists (default: the name of the study)',
): Command {
  withJobOptions(command.optionsGroup('Each trial, as for muster job submit:'))
  withStartOptions(command, LAUNCHERS_OF_ONE)
  const described = (long: string) => command.options.find((option) => option.long === long)
  const metric = described('--metric')
  metric?.helpGroup('Metrics:')
  const [options, record] = [command.options as Option[], described('--record')]
  // The objective is shown before what is only recorded.
  if (metric !== undefined && record !== undefined) {
    options.splice(options.indexOf(metric), 1)
    options.splice(options.indexOf(record), 0, metric)
  }
  const name = described('--name')
  if (name !== undefined) name.description = nameHelp
  const dryRun = described('--dry-run')
  if (dryRun !== undefined) dryRun.description = DRY_RUN
  return command
}

const DRY_RUN = 'show the space, the first points and where a trial would run now; store nothing'

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

/** These optimise nothing. */
const WITHOUT_METRIC = METHODS.map(({ name }) => name)
/** These try all points, one after the other. */
const FINITE = ['grid', 'brute']

/** @throws MusterError 'usage' */
export function studySpecOf(options: StudyOptions, inventory: Inventory): StudySpec {
  const { method, repeat, digits, failures, time, atOnce, seed = randomInt(2 ** 31) } = options
  const { prune, stepMetric, pruneFrom, trials } = options
  const parameters = [...options.param, ...options.if.map((text) => `if ${text}`)]
  if (options.param.length + options.mutate.length === 0)
    throw new MusterError('usage', 'the study has no parameter', {
      hint: 'Add one, such as --param lr=log:1e-5:1e-1 or --param opt=adam,sgd.',
    })
  if (!KNOWN.some(({ name }) => name === method) && samplerOf(method) === undefined) {
    const names = KNOWN.map(({ name }) => name)
    throw new MusterError('usage', `unknown method: ${printable(method)}${didYouMean(method, names)}`, {
      hint: `Methods: ${names.join(', ')}.`,
    })
  }
  for (const text of options.param) {
    const [, range] = NO_KIND.exec(text) ?? []
    if (range !== undefined)
      throw new MusterError('usage', `--param ${printable(text)}: the kind of the range is missing`, {
        hint: `Write int:${range}, float:${range} or log:${range}.`,
      })
  }
  for (const text of parameters) checkKind(text)
  const metrics = metricsOf(options.metric)
  if (metrics.length === 0 && !WITHOUT_METRIC.includes(method))
    throw new MusterError('usage', `--method ${printable(method)} needs --metric: what should it optimise?`, {
      hint: 'Add --metric loss, or --metric max:acc if higher is better. The command prints it as acc=0.93.',
    })
  if (prune === undefined && (stepMetric !== undefined || pruneFrom !== undefined))
    throw new MusterError('usage', `${stepMetric === undefined ? '--prune-from' : '--step-metric'} needs --prune`)
  if (options.ask && method === PBT)
    throw new MusterError('usage', '--ask cannot be used with --method pbt, whose members are jobs')
  if (prune !== undefined && method === PBT)
    throw new MusterError('usage', '--prune cannot be used with --method pbt, which replaces bad members itself')
  if (prune !== undefined && metrics.length !== 1)
    throw new MusterError('usage', `--prune needs exactly one --metric, and there are ${metrics.length}`, {
      hint: 'Name the one by which trials are compared; others can be given with --record.',
    })
  const spec: StudySpec = {
    ...pbtParts(
      method,
      { ...options, ...defined({ explore: exploreIn(options, inventory) }) },
      { parameters, metrics, repeat, ...defined({ digits, atOnce }) },
    ),
    ...{ method, seed, metrics, repeat, failures },
    ...defined({
      digits,
      atOnce,
      limitS: time,
      isAsked: options.ask,
      sampler: samplerPlaceOf(options, inventory),
      prune: prune && { ...prune, stepMetric: stepMetric ?? STEP, fromStep: pruneFrom ?? 1, fromTrials: FROM_TRIALS },
    }),
  }
  const space = spaceOf(spec)
  checkNames(space, options)
  const endless = space.parameters.find(({ kind }) => kind === 'real')?.name
  if (endless !== undefined && FINITE.includes(method))
    throw new MusterError('usage', `--method ${method} tries all points, but ${endless} has infinitely many values`, {
      hint: `Give it steps, such as --param ${endless}=float:0:1:0.1, or use --method random.`,
    })
  if (endless !== undefined && trials === undefined && time === undefined && spec.pbt === undefined)
    throw new MusterError(
      'usage',
      `--trials is missing: ${endless} has infinitely many values, so the study would never end`,
      {
        hint: 'Say how many trials to run, such as --trials 50, or for how long to start trials, such as --time 3600.',
      },
    )
  return spec
}

/** Kinds of Ray Tune, Optuna and --mutate, and how --param writes them. */
const OTHER_KINDS: Readonly<Record<string, string>> = {
  uniform: 'float:0:1',
  loguniform: 'log:1e-5:1e-1',
  choice: 'adam,sgd',
  categorical: 'adam,sgd',
  grid: '8,16,32',
}
const KINDS = ['int', 'float', 'log']

/** A misspelt kind would become a text to try. @throws MusterError 'usage' */
function checkKind(text: string): void {
  const [, option = '', name = '', values = ''] = /^(if )?(?:\S+\s+)?([^=\s]*)=(.*)$/s.exec(text) ?? []
  const [, kind] = /^([A-Za-z][\w-]*):/.exec(values) ?? []
  if (kind === undefined || KINDS.includes(kind)) return
  const other = Object.hasOwn(OTHER_KINDS, kind) ? OTHER_KINDS[kind] : undefined
  if (other === undefined && values.includes(',')) return
  const shown = printable(option === '' ? text : text.slice(option.length))
  throw new MusterError(
    'usage',
    `--${option === '' ? 'param' : 'if'} ${shown}: unknown kind: ${printable(kind)}${didYouMean(kind, KINDS)}`,
    {
      hint:
        other === undefined
          ? `Kinds: ${KINDS.join(', ')}, such as int:1:10, float:0:1 or log:1e-5:1e-1. A text to try needs a second one: adam,sgd.`
          : `Write ${printable(name)}=${other}.`,
    },
  )
}

/** They would change how the command itself is found and run. */
const RESERVED =
  /^(LD_.*|BASH.*|PATH|HOME|SHELL|SHELLOPTS|USER|LOGNAME|UID|EUID|PPID|PWD|OLDPWD|IFS|ENV|TMPDIR|(CUDA|ROCR|HIP)_VISIBLE_DEVICES)$/

function checkNames({ parameters }: Space, { env }: SubmitOptions): void {
  const wrong = parameters.find(({ name }) => isOwnVariable(name) || RESERVED.test(name))
  if (wrong !== undefined)
    throw new MusterError('usage', `--param ${wrong.name}: the job itself needs a variable of this name`, {
      hint: 'Choose another name.',
    })
  const twice = parameters.find(({ name }) => Object.hasOwn(env, name))
  if (twice !== undefined)
    throw new MusterError('usage', `${twice.name} is both a parameter and a variable of --env`, {
      hint: 'Rename one of them.',
    })
}

/** The command of --explore in the environment of the jobs; a launcher brings its own. */
function exploreIn({ explore, fromEnv, launch }: StudyOptions, inventory: Inventory): string | undefined {
  if (explore === undefined || fromEnv === undefined || launch !== undefined) return explore
  return withStdinIn(parseJobEnvironment(fromEnv, inventory), explore)
}

/** What a trial runs; its directory is copied to the hosts. */
export async function trialJobOf(
  name: string,
  words: readonly string[],
  options: SpaceOptions,
  spec: StudySpec,
  queue: OpenQueue,
  context: CliContext,
): Promise<JobSpec> {
  const names = spaceOf(spec).parameters.map((one) => one.name)
  const stepMetric = stepMetricOf(spec)
  const steps = stepMetric === undefined ? [] : [stepMetric]
  const metric = [...new Set([...options.metric, ...options.record, ...steps])]
  const given = { ...options, ...ABSENT, metric, name: options.name ?? name }
  const variables = [...names, 'MUSTER_STUDY', 'MUSTER_TRIAL', ...(spec.pbt === undefined ? [] : [CHECKPOINT])]
  const prepared = await prepareJob(words, given, queue, context, variables)
  const job = stepMetric === undefined ? prepared : { ...prepared, metricsEveryS: READ_EVERY_S }
  if (spec.pbt !== undefined) checkMemberJob(job, spec.pbt)
  for (const warning of [...singleValues(spec), ...unusedWords(words, names)])
    context.stderr.write(`muster: warning: ${printable(warning)}\n`)
  if (!options.dryRun) await checkRoom(job, queue, given, context)
  return job
}

/** Not of --if, whose condition may choose between constants. */
const singleValues = (spec: StudySpec): readonly string[] =>
  spaceOf(spec).parameters.flatMap((one) =>
    one.kind === 'choice' && one.values.length === 1 && one.when === undefined
      ? [`${one.name} has only one value: ${one.values[0]}. Commas separate several: ${one.name}=a,b`]
      : [],
  )

const SHELL = /(^|\/)(ba|da|k|z)?sh$/

/** Parameters that the command does not use, or that nothing will replace in it. */
export function unusedWords(words: readonly string[], names: readonly string[]): readonly string[] {
  const uses = (text: string, name: string) =>
    new RegExp(`\\$(\\{${name}\\b|${name}\\b|\\(\\([^;]*\\b${name}\\b)`).test(text)
  const list = (own: readonly string[]) => own.map((name) => `$${name}`).join(' or ')
  const all = words.join(' ')
  const [unused, used] = [names.filter((name) => !uses(all, name)), names.filter((name) => uses(all, name))]
  const isExpanded = words.length === 1 || SHELL.test(words[0] ?? '')
  return [
    ...(unused.length === 0
      ? []
      : [
          `${list(unused)} does not appear in the command: it is only in the environment of each trial. Write the command in single quotes, so that your own shell does not replace it: 'train.py ${list(unused).replaceAll(' or ', ' ')}'`,
        ]),
    ...(used.length === 0 || isExpanded
      ? []
      : [`no shell replaces ${list(used)}, because the command is several words. Quote the whole command: '${all}'`]),
  ]
}

/** Stores it and says so in a line. `isDriven`: the caller runs the scheduler. */
export function storeStudy(
  study: NewStudy,
  queue: OpenQueue,
  { json }: SubmitOptions,
  context: CliContext,
  isDriven = false,
): number {
  const { store } = queue
  const { name, spec, trials } = study
  const id = store.together(() => store.studies.create(study, context.now()))
  const size = sizeOf(spaceOf(spec)) * spec.repeat
  const points = Number.isFinite(size) ? size : null
  if (json) context.stdout.write(jsonLine({ type: 'study', study: name, method: spec.method, points, trials }, context))
  else {
    const see = `See: muster study show ${name}`
    context.stdout.write(`${printable(`${name}: ${planText(study)}. ${see}`)}\n`)
  }
  if (!isDriven) noticeScheduler(queue, context)
  return id
}

/** `20 points, random, all of them`; `2 parameters, tpe, up to 50 trials` */
function planText({ spec, trials }: Pick<NewStudy, 'spec' | 'trials'>): string {
  const { parameters } = spaceOf(spec)
  const size = sizeOf(spaceOf(spec))
  const points = Number.isFinite(size) ? counted(size, 'point') : counted(parameters.length, 'parameter')
  const repeat = spec.repeat === 1 ? '' : `, each ${spec.repeat} times`
  const most = mostTrials({ spec, state: { kind: 'running', repeated: 0, replaced: 0, ...defined({ trials }) } })
  const far =
    spec.pbt !== undefined
      ? counted(spec.pbt.population, 'member')
      : most === undefined
        ? `for ${spec.limitS} s`
        : most === size * spec.repeat
          ? 'all of them'
          : `up to ${counted(most, 'trial')}`
  return `${points}${repeat}, ${spec.method}, ${far}`
}

const FIRST = 5

/** What would be tried first, and where. Stores nothing. */
export function tryStudy(
  study: Omit<NewStudy, 'user' | 'priority'>,
  queue: OpenQueue,
  { json }: SubmitOptions,
  context: CliContext,
): number {
  const { name, spec, job } = study
  const first = firstPoints(spec, Math.min(FIRST, study.trials ?? FIRST))
  const [point] = first
  const { places, why } = job === undefined ? { places: [], why: [] } : placeNow(job, queue, context)
  const command = point && handLine(job, { point })
  if (json) {
    const size = sizeOf(spaceOf(spec)) * spec.repeat
    const points = Number.isFinite(size) ? size : null
    const line = { type: 'study', study: name, method: spec.method, points, first, fits: places !== undefined }
    context.stdout.write(jsonLine({ ...line, places, why, command }, context))
  } else {
    const where = places?.map(
      ({ host, devices }, rank) =>
        `${places.length > 1 ? `bundle ${rank}: ` : ''}${placeTitle(host)}${devices.length > 0 ? `, GPU ${devices.join(',')}` : ''}`,
    )
    const lines = formatParts([
      ['study', [`${name}: ${planText(study)}`]],
      searchesPart(spec),
      ['first', first.length > 0 ? first.map((one, at) => `trial ${at}  ${pointText(one)}`) : [laterWords(spec)]],
      ['runs', command === undefined ? [] : [command]],
      ['now', job === undefined ? [] : (where ?? ['it does not fit right now', ...why])],
    ])
    context.stdout.write(lines.map((line) => `${printable(line)}\n`).join(''))
  }
  return places === undefined ? EXIT.failed : EXIT.ok
}

const laterWords = ({ pbt, sampler }: StudySpec): string =>
  pbt === undefined
    ? `Optuna chooses the points${sampler === undefined ? '' : ` on ${sampler.host}`} when the study runs`
    : `${pbt.population} members start at random points`

/** Those that its trials will have, if none fails to be stored; empty where another program chooses them. */
function firstPoints(spec: StudySpec, most: number): readonly Point[] {
  const method = METHODS.find(({ name }) => name === spec.method)
  if (method === undefined) return []
  const points: Point[] = []
  const tried = new Set<string>()
  while (points.length < most) {
    const next = askNext(spaceOf(spec), method, points.length, spec.seed, (key) => tried.has(key))
    if (next.kind !== 'point') break
    tried.add(pointKey(next.point))
    points.push(next.point)
  }
  return points.flatMap((point) => Array<Point>(spec.repeat).fill(point)).slice(0, most)
}

export const userOf = ({ user }: SubmitOptions): string => user ?? accountName()
