/** `muster study plot`: the plots of a study in the terminal, or as an SVG file. */
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { Metric } from '../../scheduler/jobs/metric.ts'
import { bestSoFar } from '../../scheduler/study/front.ts'
import { importanceOf } from '../../scheduler/study/importance.ts'
import { type Study, spaceOf, type Trial } from '../../scheduler/study/study.ts'
import { studySvg } from '../../scheduler/study/svg.ts'
import { studyText } from '../../scheduler/study/text-plot.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { readQueue } from '../job/open-queue.ts'
import { jsonLine } from '../output/json-lines.ts'
import { writeText } from '../output/written-file.ts'
import { studyOr } from './change.ts'

const DEFAULT_COLUMNS = 80
const MOST_COLUMNS = 120

type Options = GlobalOptions & { readonly svg?: string; readonly metric?: string }

export const plot: VerbCode = {
  define: (command) =>
    command
      .argument('<study>', 'name of the study')
      .option('--svg <file>', 'write an SVG file with all plots instead; - is stdout')
      .option('--metric <name>', 'plot this metric (default: the first one of the study)'),
  help: `
Examples:
  muster study plot wf               best value so far, each parameter, and which ones matter
  muster study plot wf --svg wf.svg  the same and all parameters side by side, for a browser
`,
  async run(name: string, options: Options, context: CliContext) {
    using queue = await readQueue(options, context)
    const study = studyOr(queue, name)
    const metric = metricOf(study, options.metric)
    const trials = queue.store.studies.trials(study.id)
    if (options.svg !== undefined) writeSvg(options.svg, studySvg(study, trials, metric), context)
    else if (options.json) context.stdout.write(jsonLines(study, trials, metric, context).join(''))
    else {
      const columns = Math.min(MOST_COLUMNS, context.stdout.columns ?? DEFAULT_COLUMNS)
      context.stdout.write(
        studyText(study, trials, { columns, metric })
          .map((line) => `${line}\n`)
          .join(''),
      )
    }
    return EXIT.ok
  },
}

/** @throws MusterError 'usage' */
function metricOf({ name: study, spec: { metrics } }: Study, name: string | undefined): Metric {
  const [first] = metrics
  if (first === undefined) throw new MusterError('usage', `study ${study} has no metric to plot`)
  if (name === undefined) return first
  const found = metrics.find((one) => one.name === name)
  if (found !== undefined) return found
  throw new MusterError('usage', `study ${study} has no metric ${printable(name)}`, {
    hint: `Metrics: ${metrics.map((one) => one.name).join(', ')}.`,
  })
}

/** @throws MusterError 'usage' when the file cannot be written. */
function writeSvg(file: string, svg: string, context: CliContext): void {
  if (file === '-') context.stdout.write(svg)
  else writeText(file, svg, context)
}

const jsonLines = (
  { name: study, spec }: Study,
  trials: readonly Trial[],
  metric: Metric,
  context: CliContext,
): readonly string[] => [
  ...bestSoFar(trials, metric).map(({ trial: { number, end }, value, best }) =>
    jsonLine(
      {
        ...{ type: 'best', study, trial: number, metric: metric.name, value: finite(value), best: finite(best) },
        ended: new Date(end?.endedMs ?? 0).toISOString(),
      },
      context,
    ),
  ),
  ...(importanceOf(spaceOf(spec), trials, metric) ?? []).map(({ name: parameter, share, trials: count }) =>
    jsonLine({ type: 'importance', study, metric: metric.name, parameter, share, trials: count }, context),
  ),
]

/** JSON has no infinity. */
const finite = (value: number): number | string => (Number.isFinite(value) ? value : String(value))
