/** `muster simulate swf`: how long the jobs of a log wait that queue for one machine. */
import { MusterError } from '../../base/errors.ts'
import { DEFAULT_QUEUE_POLICY, QUEUE_POLICIES, type QueuePolicyName } from '../../scheduler/queue/queue-policies.ts'
import { parseWorkloadLog, runLog, type SwfResult, scaleSubmitTimes } from '../../scheduler/simulate/swf.ts'
import { numberAbove0, wholeNumber } from '../command-line/options.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { jsonLine } from '../output/json-lines.ts'
import { formatCurve, formatTable } from '../output/table.ts'
import { policyOption, readTrace, rounded } from './input.ts'

type Options = GlobalOptions & {
  readonly policy: readonly QueuePolicyName[]
  readonly processors?: number
  readonly submitScale: number
}

type Row = { readonly name: QueuePolicyName; readonly result: SwfResult }

const NAMES = Object.keys(QUEUE_POLICIES) as readonly QueuePolicyName[]

export const verb: VerbCode = {
  define: (command) =>
    command
      .argument('<file>', 'job log, plain or gzip')
      .addOption(policyOption(NAMES, DEFAULT_QUEUE_POLICY))
      .option('--processors <n>', 'assume N processors (default: as in the log)', wholeNumber(1))
      .option('--submit-scale <factor>', 'multiply submit times by this: 0.5 is twice the load', numberAbove0, 1),
  help: `
Examples:
  muster simulate swf NASA-iPSC-1993-3.1-cln.swf.gz --policy fcfs,easy,conservative,default
  muster simulate swf NASA-iPSC-1993-3.1-cln.swf.gz --submit-scale 0.5 --policy easy --json
`,
  async run(file: string, options: Options, context: CliContext) {
    const log = parseWorkloadLog(await readTrace(file, context.workingDirectory))
    const processors = options.processors || log.processors
    if (processors === undefined)
      throw new MusterError('usage', `${file} does not say how many processors the machine has`, {
        hint: 'Add --processors N.',
      })
    const jobs = scaleSubmitTimes(log.jobs, options.submitScale)
    const rows = options.policy.map((name) => {
      const result = runLog(jobs, processors, QUEUE_POLICIES[name]())
      if (options.json) context.stdout.write(jsonLine(rowJson(name, options.submitScale, result)))
      return { name, result }
    })
    if (!options.json) context.stdout.write(formatRows(rows))
    return EXIT.ok
  },
}

function rowJson(policy: QueuePolicyName, submitScale: number, result: SwfResult): object {
  return {
    type: 'simulation',
    policy,
    submitScale,
    jobs: result.jobs,
    tooWide: result.tooWide,
    averageWaitS: rounded(result.averageWaitS, 1),
    averageBoundedSlowdown: rounded(result.averageBoundedSlowdown, 3),
    maximumWaitS: result.maximumWaitS,
    utilisationPercent: rounded(result.utilisationPercent, 2),
  }
}

function formatRows(rows: readonly Row[]): string {
  const table = formatTable(
    ['POLICY', 'JOBS', 'WAIT, MEAN s', 'LONGEST WAIT s', 'BOUNDED SLOWDOWN', 'IN USE %'],
    rows.map(({ name, result }) => [
      name,
      String(result.jobs),
      result.averageWaitS.toFixed(1),
      String(result.maximumWaitS),
      result.averageBoundedSlowdown.toFixed(2),
      result.utilisationPercent.toFixed(2),
    ]),
  )
  const longest = Math.max(1, ...rows.flatMap(({ result }) => result.queueLengths))
  const width = Math.max(...rows.map(({ name }) => name.length))
  const curves = rows.map(
    ({ name, result }) => `${name.padEnd(width)}  ${formatCurve(halve(result.queueLengths), 0, longest)}\n`,
  )
  return `${table}\nWaiting jobs over time (a full cell: ${longest}):\n${curves.join('')}`
}

/** The greater of every two values: 60 cells and the name fit into 80 columns. */
function halve(values: readonly number[]): readonly number[] {
  return Array.from({ length: values.length / 2 }, (_, cell) =>
    Math.max(values[2 * cell] ?? 0, values[2 * cell + 1] ?? 0),
  )
}
