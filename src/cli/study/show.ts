/** `muster study list`: studies as a table. */
import { defined } from '../../base/defined.ts'
import { printable } from '../../base/printable.ts'
import { ancestorsOf, descentLines } from '../../scheduler/study/descent.ts'
import { explainStudy } from '../../scheduler/study/explain.ts'
import { bestTrials, countTrials, rankTrials } from '../../scheduler/study/front.ts'
import { importanceOf } from '../../scheduler/study/importance.ts'
import { type Study, spaceOf, type Trial } from '../../scheduler/study/study.ts'
import { wholeNumber } from '../command-line/options.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { readQueue } from '../job/open-queue.ts'
import { jsonLine } from '../output/json-lines.ts'
import { formatTable } from '../output/table.ts'
import { studyOr } from './change.ts'

const MOST = 200

export const list: VerbCode = {
  help: `
Examples:
  muster study list
`,
  async run(options: GlobalOptions, context: CliContext) {
    using queue = await readQueue(options, context)
    const { studies } = queue.store
    const rows = studies.list(MOST).map((study) => ({ study, counts: studies.counts(study.id) }))
    if (options.json) {
      for (const { study, counts } of rows) context.stdout.write(jsonLine(studyJson(study, counts)))
      return EXIT.ok
    }
    const cells = rows.map(({ study, counts }) => [
      study.name,
      study.state.kind,
      study.spec.method,
      ...['done', 'open', 'failed', 'pruned'].map((kind) => String(counts.get(kind) ?? 0)),
      printable(study.state.trouble ?? study.state.reason ?? ''),
    ])
    context.stdout.write(formatTable(['STUDY', 'STATE', 'METHOD', 'DONE', 'OPEN', 'FAILED', 'PRUNED', 'WHY'], cells))
    return EXIT.ok
  },
}

type ResultsOptions = GlobalOptions & { readonly limit: number }

export const results: VerbCode = {
  define: (command) =>
    command
      .argument('<study>', 'name of the study')
      .option('--limit <n>', 'show at most N trials', wholeNumber(0), 100),
  help: `
Examples:
  muster study results wf            trials with parameters and metrics, best first
`,
  async run(name: string, options: ResultsOptions, context: CliContext) {
    using queue = await readQueue(options, context)
    const { id, spec } = studyOr(queue, name)
    const trials = rankTrials(queue.store.studies.trials(id), spec.metrics).slice(0, options.limit)
    if (options.json) {
      for (const { number, point, repetition, job, member, parent, parentStep, end } of trials)
        context.stdout.write(
          jsonLine({
            ...{ type: 'trial', study: name, trial: number, parameters: point, state: end?.kind ?? 'open' },
            ...defined({
              job,
              repetition: spec.repeat > 1 ? repetition : undefined,
              member,
              parent,
              parentStep,
              ...end,
            }),
          }),
        )
      return EXIT.ok
    }
    const parameters = spaceOf(spec).parameters.map((one) => one.name)
    const metrics = spec.metrics.map((metric) => metric.name)
    const cells = trials.map(({ number, point, end, job }) => [
      String(number),
      end?.kind ?? 'open',
      ...parameters.map((parameter) => point[parameter] ?? ''),
      ...metrics.map((metric) => end?.values[metric] ?? '-'),
      job === undefined ? '-' : String(job),
      end?.host ?? '-',
      printable(end?.reason ?? ''),
    ])
    context.stdout.write(formatTable(['TRIAL', 'STATE', ...parameters, ...metrics, 'JOB', 'HOST', 'WHY'], cells))
    return EXIT.ok
  },
}

export const show: VerbCode = {
  define: (command) => command.argument('<study>', 'name of the study'),
  help: `
Examples:
  muster study show wf               how far it is, its best trial, and which parameters matter
`,
  async run(name: string, options: GlobalOptions, context: CliContext) {
    using queue = await readQueue(options, context)
    const { studies } = queue.store
    const study = studyOr(queue, name)
    const { id, spec, state } = study
    const trials = studies.trials(id)
    const best = bestTrials(trials, spec.metrics)
    const [objective] = spec.metrics
    const importance = objective && importanceOf(spaceOf(spec), trials, objective)
    if (options.json) {
      const found = best.map(({ number, point, end }) => ({ trial: number, parameters: point, values: end?.values }))
      context.stdout.write(
        jsonLine({ ...studyJson(study, studies.counts(id)), spec, best: found, ...defined({ importance }) }),
      )
      return EXIT.ok
    }
    const lines: (readonly [string, string])[] = [
      ['study', name],
      ['state', `${state.kind}${state.reason === undefined ? '' : `: ${state.reason}`}`],
      ...(state.trouble === undefined ? [] : [['trouble', state.trouble] as const]),
      ...spec.parameters.map((text) => ['parameter', text] as const),
      ['method', spec.method],
      ['trials', [...studies.counts(id)].map(([kind, count]) => `${count} ${kind}`).join(', ') || 'none yet'],
      ...best.map(({ number, point, end }) => {
        const values = spec.metrics.map((metric) => `${metric.name}=${end?.values[metric.name]}`)
        const from = Object.entries(point).map(([parameter, value]) => `${parameter}=${value}`)
        return ['best', `trial ${number}: ${values.join(' ')} with ${from.join(' ')}`] as const
      }),
      ...explainStudy(study, countTrials(trials)).map(
        (sentence, index) => [index === 0 ? 'now' : '', sentence] as const,
      ),
      ...(spec.pbt === undefined ? [] : descentWords(trials, best, spec.pbt.timeAttr)),
      ...(importance ?? []).map((one) => ['importance', `${one.name} ${Math.round(one.share * 100)} %`] as const),
    ]
    context.stdout.write(
      lines.map(([title, text]) => `${(title === '' ? '' : `${title}:`).padEnd(12)}${printable(text)}\n`).join(''),
    )
    return EXIT.ok
  },
}

/** Who went on from whose checkpoint. */
function descentWords(trials: readonly Trial[], best: readonly Trial[], timeAttr: string) {
  const lines = best.map(
    ({ number }) =>
      `the best: trial ${ancestorsOf(trials, number)
        .map((one) => one.number)
        .join(' → ')}`,
  )
  return [...lines, ...descentLines(trials, timeAttr)].map((line) => ['descent', line] as const)
}

const studyJson = ({ name, user, spec, state, createdMs }: Study, counts: ReadonlyMap<string, number>): object => ({
  type: 'study',
  study: name,
  user,
  method: spec.method,
  state: state.kind,
  created: new Date(createdMs).toISOString(),
  trials: Object.fromEntries(counts),
  ...(state.reason === undefined ? {} : { reason: state.reason }),
  ...(state.trouble === undefined ? {} : { trouble: state.trouble }),
})
