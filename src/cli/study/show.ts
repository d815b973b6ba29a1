/** `muster study list`, `show` and `results`. */
import { Option } from 'commander'
import { defined } from '../../base/defined.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { didYouMean } from '../../inventory/nearest-word.ts'
import { readWhole } from '../../scheduler/jobs/damage.ts'
import { placeTitle } from '../../scheduler/jobs/engine.ts'
import { isActive } from '../../scheduler/jobs/job.ts'
import { type Metric, metricNumber, rankBy } from '../../scheduler/jobs/metric.ts'
import type { OpenTrial } from '../../scheduler/jobs/study-rows.ts'
import { bestTrials, rankTrials } from '../../scheduler/study/front.ts'
import { type Study, spaceOf, type Trial } from '../../scheduler/study/study.ts'
import { progressText, valuesTextOf } from '../../scheduler/study/study-text.ts'
import { offering, repeatable, wholeNumber } from '../command-line/options.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { type OpenQueue, readQueue, undrivenWords } from '../job/open-queue.ts'
import { jsonLine } from '../output/json-lines.ts'
import { formatTable } from '../output/table.ts'
import { studyOr } from './change.ts'
import { followStudy } from './follow.ts'
import { ageOf, bestJson, endedOf, studyJson, studyLines, type TrialRow, trialJson, wholeJson } from './report.ts'

const MOST_STUDIES = 200

export const list: VerbCode = {
  help: `
Examples:
  muster study list                  studies with their progress and best value, newest last
`,
  async run(options: GlobalOptions, context: CliContext) {
    using queue = await readQueue(options, context)
    const { studies, lease } = queue.store
    const nowMs = context.now()
    const listed = studies.listWhole(MOST_STUDIES)
    const whole = readWhole(listed.found, (study) => {
      const { id, spec } = study
      const [best] = spec.metrics.length === 0 ? [] : bestTrials(studies.trials(id), spec.metrics)
      return { study, counts: studies.counts(id), best }
    })
    const rows = whole.found
    const damage = listed.damage ?? whole.damage
    if (options.json) {
      for (const { study, counts, best } of rows)
        context.stdout.write(
          jsonLine({ ...studyJson(study, counts), ...(best && { best: bestJson(best, study) }) }, context),
        )
      if (damage !== undefined) throw damage
      return EXIT.ok
    }
    const cells = rows
      .toReversed()
      .map(({ study, counts, best }) => [
        study.name,
        study.state.kind,
        study.spec.method,
        progressText(study, endedOf(counts)),
        best?.end === undefined ? '-' : valuesTextOf(best.end.values, study.spec.metrics),
        ...['failed', 'cancelled', 'pruned', 'open'].map((kind) => String(counts.get(kind) ?? '')),
        ageOf(study.createdMs, nowMs),
        study.state.trouble ?? study.state.reason ?? '',
      ])
    const header = ['STUDY', 'STATE', 'METHOD', 'TRIALS', 'BEST', 'FAILED', 'CANCELLED', 'PRUNED', 'OPEN', 'AGE', 'WHY']
    context.stdout.write(formatTable(header, cells, context.stdout))
    if (damage !== undefined) throw damage
    if (rows.length === 0) context.stdout.write('no studies. Create one with muster study create, or muster sweep.\n')
    else if (lease.owner(nowMs) === undefined && rows.some(({ study }) => study.state.kind === 'running'))
      context.stdout.write(`\n${undrivenWords(queue)}\n`)
    return EXIT.ok
  },
}

type ResultsOptions = GlobalOptions & {
  readonly sort?: string
  readonly state?: string
  readonly where: readonly string[]
  readonly limit: number
}

const STATES = ['done', 'running', 'queued', 'open', 'failed', 'cancelled', 'pruned'] as const

export const results: VerbCode = {
  define: (command) =>
    command
      .argument('<study>', 'name of the study')
      .option('--sort <name>', 'sort by this metric or parameter, by trial or by seconds (default: the best first)')
      .addOption(
        offering(new Option('--state <names>', `show only trials in these states: ${STATES.join(', ')}`), STATES),
      )
      .addOption(
        repeatable(
          '--where <condition>',
          'show only trials for which this holds: a parameter, a metric, trial, seconds or host, then =, !=, <, <=, > or >=, then a value, such as "lr<0.01"',
        ),
      )
      .option('--limit <n>', 'show at most N trials', wholeNumber(0), 100),
  help: `
Examples:
  muster study results wf            trials with parameters and metrics, best first
  muster study results wf --where 'lr<0.01' --where opt=adam --sort seconds
  muster study results wf --state failed

SECONDS counts from the start of the trial's job; HOST names the GPUs behind a colon.
`,
  async run(name: string, options: ResultsOptions, context: CliContext) {
    using queue = await readQueue(options, context)
    const { studies } = queue.store
    const study = studyOr(queue, name)
    const { id, spec } = study
    const states = statesOf(options.state)
    const metrics = metricsIn(study, queue)
    const parameters = spaceOf(spec).parameters.map((one) => one.name)
    const conditions = options.where.map((text) => conditionOf(text, parameters, metrics))
    const open = new Map(studies.open(id).map((one) => [one.trial.number, one]))
    const all = rankTrials(studies.trials(id), spec.metrics).map((trial) =>
      rowOf(trial, open.get(trial.number), context.now()),
    )
    const kept = all.filter(
      (row) =>
        (states.length === 0 || states.includes(row.state) || (states.includes('open') && !row.trial.end)) &&
        conditions.every((holds) => holds(row)),
    )
    const rows = sortRows(kept, options.sort, parameters, metrics).slice(0, options.limit)
    if (options.json) {
      for (const row of rows) context.stdout.write(jsonLine(trialJson(study, row), context))
      return EXIT.ok
    }
    const cells = rows.map(({ trial, state, values, seconds, where }) => [
      String(trial.number),
      state,
      ...parameters.map((parameter) => trial.point[parameter] ?? ''),
      ...metrics.map((metric) => values[metric.name] ?? '-'),
      seconds === undefined ? '' : seconds.toFixed(1),
      where,
      trial.job === undefined ? '' : String(trial.job),
      trial.end?.reason ?? trial.stopping ?? '',
    ])
    const header = ['TRIAL', 'STATE', ...parameters, ...metrics.map((one) => one.name)]
    context.stdout.write(formatTable([...header, 'SECONDS', 'HOST', 'JOB', 'WHY'], cells, context.stdout))
    if (all.length === 0) context.stdout.write(`${name} has no trials yet\n`)
    else if (kept.length === 0) context.stdout.write('no such trials\n')
    else if (rows.length < kept.length) context.stdout.write(`\n${rows.length} of ${kept.length}: --limit shows more\n`)
    return EXIT.ok
  },
}

/** Those that it optimises, then those that it only records. */
function metricsIn(study: Study, { store }: OpenQueue): readonly Metric[] {
  const own = study.spec.metrics.map((metric) => metric.name)
  const recorded = store.studies.jobOf(study)?.metrics ?? []
  return [...study.spec.metrics, ...recorded.filter(({ name }) => !own.includes(name))]
}

function rowOf(trial: Trial, open: OpenTrial | undefined, nowMs: number): TrialRow {
  const { end } = trial
  if (end !== undefined) {
    const { kind, values, host, devices = [], startedMs, endedMs } = end
    const seconds = startedMs === undefined ? undefined : (endedMs - startedMs) / 1000
    return { trial, state: kind, values, where: hostText(host, devices), ...defined({ seconds }) }
  }
  const { job, values = {} } = open ?? {}
  if (job === undefined) return { trial, state: 'open', values, where: '' }
  const { state } = job
  const place = 'places' in state ? state.places?.[0] : undefined
  const seconds = isActive(state) && state.startedMs !== undefined ? (nowMs - state.startedMs) / 1000 : undefined
  const where = hostText(place?.host, place?.devices ?? [])
  return { trial, state: state.kind, values, where, ...defined({ seconds }) }
}

const hostText = (host: string | undefined, devices: readonly number[]): string =>
  host === undefined ? '' : `${placeTitle(host)}${devices.length > 0 ? `:${devices.join(',')}` : ''}`

/** @throws MusterError 'usage' for a misspelt state. */
function statesOf(names: string | undefined): readonly string[] {
  const states = names?.split(',') ?? []
  const wrong = states.find((name) => !STATES.some((known) => known === name))
  if (wrong === undefined) return states
  throw new MusterError('usage', `--state ${printable(wrong)}: no such state${didYouMean(wrong, STATES)}`, {
    hint: `States: ${STATES.join(', ')}.`,
  })
}

type Column = (row: TrialRow) => string | undefined

/** @throws MusterError 'usage' for an unknown name. */
function columnOf(option: string, name: string, parameters: readonly string[], metrics: readonly Metric[]): Column {
  if (parameters.includes(name)) return ({ trial }) => trial.point[name]
  if (metrics.some((metric) => metric.name === name)) return ({ values }) => values[name]
  const fixed: Readonly<Record<string, Column>> = {
    trial: ({ trial }) => String(trial.number),
    seconds: ({ seconds }) => (seconds === undefined ? undefined : String(seconds)),
    host: ({ where }) => where.replace(/:[\d,]*$/, ''),
  }
  if (Object.hasOwn(fixed, name)) return fixed[name] as Column
  const names = [...parameters, ...metrics.map((metric) => metric.name), ...Object.keys(fixed)]
  throw new MusterError('usage', `${option}: there is no ${printable(name)}${didYouMean(name, names)}`, {
    hint: `Names: ${names.join(', ')}.`,
  })
}

const CONDITION = /^\s*([A-Za-z_][A-Za-z0-9_./-]*?)\s*(<=|>=|!=|=|<|>)\s*(.*?)\s*$/s

/** @throws MusterError 'usage' */
function conditionOf(
  text: string,
  parameters: readonly string[],
  metrics: readonly Metric[],
): (row: TrialRow) => boolean {
  const [, name, sign = '', wanted = ''] = CONDITION.exec(text) ?? []
  const option = `--where ${printable(text)}`
  if (name === undefined) throw new MusterError('usage', `${option}: write it as "lr<0.01" or opt=adam`)
  const column = columnOf(option, name, parameters, metrics)
  const number = metricNumber(wanted)
  if (number === undefined && sign !== '=' && sign !== '!=')
    throw new MusterError('usage', `${option}: ${sign} needs a number`)
  return (row) => {
    const text = column(row)
    if (text === undefined) return false
    const value = metricNumber(text)
    const isEqual = value !== undefined && number !== undefined ? value === number : text === wanted
    if (sign === '=' || sign === '!=') return isEqual === (sign === '=')
    if (value === undefined || number === undefined) return false
    return (isEqual && sign.endsWith('=')) || (sign.startsWith('<') ? value < number : value > number)
  }
}

/** @throws MusterError 'usage' for an unknown name. */
function sortRows(
  rows: readonly TrialRow[],
  by: string | undefined,
  parameters: readonly string[],
  metrics: readonly Metric[],
): readonly TrialRow[] {
  if (by === undefined) return rows
  const column = columnOf(`--sort ${printable(by)}`, by, parameters, metrics)
  const metric = parameters.includes(by) ? undefined : metrics.find(({ name }) => name === by)
  const texts = new Map(rows.map((row) => [row, column(row) ?? '']))
  // Texts in their order, then numbers in theirs.
  const byText = rows.toSorted((one, other) => ((texts.get(one) ?? '') < (texts.get(other) ?? '') ? -1 : 1))
  return rankBy(byText, { ...metric, name: by }, (row) => ({ [by]: texts.get(row) ?? '' }))
}

export const show: VerbCode = {
  define: (command) =>
    command
      .argument('<study>', 'name of the study')
      .option('--follow', 'stay, print each trial when it ends, and return when the study has ended'),
  help: `
Examples:
  muster study show wf               what it searches, how far it is, its best trial, what is running and where
  muster study show wf --follow      the same, live, until it ends
`,
  async run(name: string, options: GlobalOptions & { readonly follow?: boolean }, context: CliContext) {
    using queue = await readQueue(options, context)
    const study = studyOr(queue, name)
    if (options.follow) {
      await followStudy(study.id, queue, options, context)
      return EXIT.ok
    }
    if (options.json) {
      context.stdout.write(jsonLine(wholeJson(study, queue), context))
      return EXIT.ok
    }
    const lines = studyLines(study, queue, context.now())
    context.stdout.write(lines.map((line) => `${printable(line)}\n`).join(''))
    return EXIT.ok
  },
}
