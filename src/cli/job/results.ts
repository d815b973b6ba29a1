/** `muster job results`: jobs that were submitted together, as a table of parameters and metrics, the best first. */
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { type Metric, metricJson, rankBy } from '../../scheduler/jobs/metric.ts'
import type { SweepRow } from '../../scheduler/jobs/results.ts'
import { wholeNumber } from '../command-line/options.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { jsonLine } from '../output/json-lines.ts'
import { formatTable } from '../output/table.ts'
import { withJob } from './arguments.ts'
import { readQueue } from './open-queue.ts'
import { jobOr } from './show.ts'

type ResultsOptions = GlobalOptions & { readonly sort?: string; readonly limit: number }

export const verb: VerbCode = {
  define: (command) =>
    withJob(command)
      .option('--sort <name>', 'sort by this metric or parameter, or by job (default: the first metric)')
      .option('--limit <n>', 'show at most N jobs', wholeNumber(0), 100),
  help: `
Examples:
  muster job results 17 --sort lr    all jobs that were submitted together with job 17
`,
  async run(id: number, options: ResultsOptions, context: CliContext) {
    using queue = await readQueue(options, context)
    const { spec } = jobOr(queue, id)
    const { metrics, parameters, rows, count } = queue.store.results.sweep(queue.store.groupOf(id) ?? 0, spec)
    const sorted = sortRows(rows, metrics, parameters, options.sort).slice(0, options.limit)
    if (options.json) {
      for (const { id: job, kind, attempt, parameters: own, values } of sorted) {
        const numbers = Object.entries(values).map(([name, value]) => [name, metricJson(value)])
        const line = {
          type: 'result',
          job,
          state: kind,
          attempt,
          parameters: own,
          metrics: Object.fromEntries(numbers),
        }
        context.stdout.write(jsonLine(line))
      }
      return EXIT.ok
    }
    const names = metrics.map(({ name }) => name)
    const cells = sorted.map(({ id: job, kind, parameters: own, values }) => [
      String(job),
      kind,
      ...parameters.map((name) => own[name] ?? ''),
      ...names.map((name) => values[name] ?? '-'),
    ])
    context.stdout.write(formatTable(['JOB', 'STATE', ...parameters, ...names], cells))
    if (sorted.length < count) context.stdout.write(`\n${sorted.length} of ${count}: --limit shows more\n`)
    return EXIT.ok
  },
}

/** @throws MusterError `usage` for an unknown name */
function sortRows(
  rows: readonly SweepRow[],
  metrics: readonly Metric[],
  parameters: readonly string[],
  by: string | undefined,
): readonly SweepRow[] {
  const metric = by === undefined ? metrics[0] : metrics.find(({ name }) => name === by)
  if (metric !== undefined) return rankBy(rows, metric, ({ values }) => values)
  if (by === undefined || by === 'job') return rows
  if (parameters.includes(by)) return rankBy(rows, { name: by }, ({ parameters: own }) => own)
  throw new MusterError('usage', `--sort ${printable(by)}: no such metric or parameter`, {
    hint: `Names: ${['job', ...parameters, ...metrics.map(({ name }) => name)].join(', ')}.`,
  })
}
