/** `muster study export`: a study for Optuna and its dashboard, for spreadsheets, or as JSON lines. */

import type { Writable } from 'node:stream'
import { counted } from '../../base/counted.ts'
import { csvCell } from '../../base/csv-cell.ts'
import { defined } from '../../base/defined.ts'
import { MusterError } from '../../base/errors.ts'
import { record } from '../../base/json-lines.ts'
import { printable } from '../../base/printable.ts'
import { EXPORT_OPTUNA_PROGRAM } from '../../ops/optuna/export-program.ts'
import { type Metric, metricNumber } from '../../scheduler/jobs/metric.ts'
import { samplerParameters } from '../../scheduler/study/optuna.ts'
import { shownUrl, sourceSentence, sourceTrouble } from '../../scheduler/study/source.ts'
import { type Study, spaceOf, type Trial, type TrialStep } from '../../scheduler/study/study.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { type OpenQueue, readQueue } from '../job/open-queue.ts'
import { jsonLine } from '../output/json-lines.ts'
import { notice } from '../output/notices.ts'
import { studyOr } from './change.ts'
import { openPython, type PlaceOptions, sourceOf, withPlace } from './import.ts'
import { trialJson } from './report.ts'

type ExportOptions = GlobalOptions &
  PlaceOptions & { readonly optuna?: string; readonly csv?: boolean; readonly replace?: boolean }

export const verb: VerbCode = {
  define: (command) =>
    withPlace(
      command
        .argument('<study>', 'name of the study')
        .option('--optuna <url>', 'write it to an Optuna storage: sqlite:///FILE, journal:///FILE, postgresql://…')
        .option('--csv', 'print a table for spreadsheets'),
      'with --optuna: run Optuna',
    ).option('--replace', 'with --optuna: delete the study of that name there first'),
  help: `
Examples:
  muster study export wf --optuna sqlite:///wf.db     then: optuna-dashboard sqlite:///wf.db
  muster study export wf --csv > wf.csv
  muster study export wf --json                       one object a trial, with its steps

Trials that run are written as running. In a CSV file, text that a spreadsheet would take for a formula begins with an apostrophe.
`,
  async run(name: string, options: ExportOptions, context: CliContext) {
    using queue = await readQueue(options, context)
    const study = studyOr(queue, name)
    const ways = [options.optuna !== undefined, options.csv, options.json].filter((way) => way === true)
    if (ways.length === 0) throw new MusterError('usage', 'the format is missing: --optuna URL, --csv or --json')
    if (options.csv && ways.length > 1)
      throw new MusterError('usage', `--csv and --${options.json ? 'json' : 'optuna'} cannot be used together`)
    if (options.optuna === undefined && [options.on, options.fromEnv, options.studyName, options.replace].some(Boolean))
      throw new MusterError('usage', '--on, --from-env, --study-name and --replace need --optuna')
    if (options.optuna !== undefined) return await toOptuna(study, options.optuna, queue, options, context)
    const trials = queue.store.studies.trials(study.id)
    const steps = options.json ? queue.store.studies.steps(study.id, true) : undefined
    const lines = options.csv ? csvLines(study, trials) : jsonLines(study, trials, steps ?? new Map(), context)
    await writeAll(lines, context.stdout)
    return EXIT.ok
  },
}

async function writeAll(lines: Iterable<string>, stdout: Writable): Promise<void> {
  for (const line of lines)
    if (!stdout.write(line) && stdout.writableNeedDrain) await new Promise((resolve) => stdout.once('drain', resolve))
}

function* jsonLines(
  study: Study,
  trials: readonly Trial[],
  steps: ReadonlyMap<number, readonly TrialStep[]>,
  context: CliContext,
) {
  for (const trial of trials) {
    const own = steps
      .get(trial.number)
      ?.map(({ step, value }) => [step, Number.isFinite(value) ? value : String(value)])
    yield jsonLine(
      {
        ...trialJson(study, { trial, state: trial.end?.kind ?? 'open', values: trial.end?.values ?? {} }),
        ...defined({ steps: own }),
      },
      context,
    )
  }
}

const FIXED = ['trial', 'state', 'repetition', 'job', 'host', 'devices', 'started', 'seconds', 'reason'] as const

/** RFC 4180. A column of a parameter or metric that has the name of another one gets another name. */
export function* csvLines({ spec }: Pick<Study, 'spec'>, trials: readonly Trial[]): Generator<string> {
  const parameters = spaceOf(spec).parameters.map((one) => one.name)
  const metrics = spec.metrics.map((metric) => metric.name)
  const used = new Set<string>(FIXED)
  const column = (prefix: string) => (name: string) => {
    const title = used.has(name) ? `${prefix}_${name}` : name
    used.add(title)
    return title
  }
  const [first, ...rest] = FIXED
  yield csvLine([
    first,
    'state',
    ...parameters.map(column('param')),
    ...metrics.map(column('metric')),
    ...rest.slice(1),
  ])
  for (const { number, point, repetition, job, end } of trials) {
    const { startedMs, endedMs } = end ?? {}
    yield csvLine([
      String(number),
      end?.kind ?? 'open',
      ...parameters.map((name) => point[name] ?? ''),
      ...metrics.map((name) => end?.values[name] ?? ''),
      String(repetition),
      job === undefined ? '' : String(job),
      end?.host ?? '',
      (end?.devices ?? []).join(' '),
      startedMs === undefined ? '' : new Date(startedMs).toISOString(),
      startedMs === undefined || endedMs === undefined ? '' : String((endedMs - startedMs) / 1000),
      end?.reason ?? '',
    ])
  }
}

const csvLine = (cells: readonly string[]): string => `${cells.map(csvCell).join(',')}\r\n`

async function toOptuna(
  study: Study,
  url: string,
  queue: OpenQueue,
  options: ExportOptions,
  context: CliContext,
): Promise<number> {
  const { on, fromEnv } = options
  const source = sourceOf(url, defined({ on, fromEnv }), queue.inventory, context)
  const { studies } = queue.store
  const { name, spec, id } = study
  if (source.kind !== 'optuna') throw new MusterError('usage', `--optuna ${printable(url)}: write it as sqlite:///FILE`)
  if (spec.metrics.length === 0)
    throw new MusterError('usage', `${name} has no metric, which an Optuna study needs`, {
      hint: 'Use --csv or --json.',
    })
  const there = options.studyName ?? name
  const space = spaceOf(spec)
  // A study that was imported gets its own names back.
  const nameThere = (parameter: string): string => spec.source?.names?.[parameter] ?? parameter
  const header = {
    url: source.url,
    name: there,
    study: name,
    replace: options.replace ?? false,
    directions: spec.metrics.map(({ isMost }) => (isMost ? 'maximize' : 'minimize')),
    metrics: spec.metrics.map((metric) => metric.name),
    parameters: samplerParameters({
      ...space,
      parameters: space.parameters.map((one) => ({ ...one, name: nameThere(one.name) })),
    }),
  }
  const steps = studies.steps(id, true)
  const trials = studies.trials(id)
  const lines = [
    header,
    ...trials.map((trial) => optunaTrial(trial, spec.metrics, steps.get(trial.number) ?? [], nameThere)),
  ]
  using python = await openPython(on, queue, options, context)
  const answer = await python.call({
    program: EXPORT_OPTUNA_PROGRAM,
    host: on,
    setUp: source.setUp,
    stdin: lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
    timeoutMs: Number.POSITIVE_INFINITY,
    signal: context.signal,
  })
  const shown = shownUrl(source.url)
  if ('trouble' in answer) throw new MusterError('unreachable', `cannot write ${shown}: ${printable(answer.trouble)}`)
  const end = record(answer.lines.at(-1)) ?? {}
  if (end.op === 'end') {
    notice(context, `muster: ${counted(trials.length, 'trial')} written to ${shown}\n`)
    return EXIT.ok
  }
  if (end.kind === 'exists')
    throw new MusterError('usage', `${shown} already has a study ${printable(there)}`, {
      hint: 'Replace it with --replace, or choose another name with --study-name.',
    })
  const trouble = sourceTrouble({ ...end, ...(end.op === 'error' ? {} : { message: 'its answer is incomplete' }) })
  if (trouble.kind !== 'trouble') throw new MusterError('internal', 'no answer')
  const { reason, hint } = sourceSentence(source, trouble)
  throw new MusterError('unreachable', reason.replace(/^cannot read/, 'cannot write'), defined({ hint }))
}

/** As Optuna keeps it. What it has no place for are attributes of its user. */
function optunaTrial(
  { point, end, job }: Trial,
  metrics: readonly Metric[],
  steps: readonly TrialStep[],
  nameThere: (parameter: string) => string,
): object {
  const numbers = metrics.map(({ name }) => metricNumber(end?.values[name]))
  const isWhole = numbers.every((value) => value !== undefined)
  const state =
    end === undefined
      ? 'RUNNING'
      : end.kind === 'pruned'
        ? 'PRUNED'
        : end.kind === 'done' && isWhole
          ? 'COMPLETE'
          : 'FAIL'
  const attributes = {
    'muster:job': job,
    'muster:host': end?.host,
    'muster:devices': end?.devices,
    'muster:reason': end?.reason,
    'muster:state': end?.kind === 'done' && !isWhole ? 'done' : undefined,
  }
  return {
    state,
    point: Object.fromEntries(Object.entries(point).map(([name, value]) => [nameThere(name), value])),
    // Python reads infinity from a word.
    values: isWhole && (state === 'COMPLETE' || state === 'PRUNED') ? numbers.map(String) : null,
    steps: steps.map(({ step, value }) => [Math.round(step), String(value)]),
    started: end?.startedMs ?? null,
    ended: end?.endedMs ?? null,
    attributes: defined(attributes),
  }
}
