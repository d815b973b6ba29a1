/** `muster simulate queue` and `swf`: how long jobs wait that queue for the devices of some hosts, or for one machine as in a log. */

import { calculate } from '../../base/calculation.ts'
import { MusterError } from '../../base/errors.ts'
import { DEFAULT_QUEUE_POLICY, QUEUE_POLICIES, type QueuePolicyName } from '../../scheduler/queue/queue-policies.ts'
import { parseQueueFile, type QueueRunResult, runQueue } from '../../scheduler/simulate/queue-run.ts'
import { parseWorkloadLog, runLog, type SwfResult, scaleSubmitTimes } from '../../scheduler/simulate/swf.ts'
import { numberAbove0, wholeNumber } from '../command-line/options.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { jsonLine } from '../output/json-lines.ts'
import { formatBar, formatCurves, formatTable, type TableOutput } from '../output/table.ts'
import { policyOption, readTrace, rounded } from './input.ts'

type QueueOptions = GlobalOptions & {
  readonly preempt?: boolean
  readonly fairShare?: boolean
  readonly estimates: boolean
}

export const queue: VerbCode = {
  define: (command) =>
    command
      .argument('<file>', 'JSON file of hosts, jobs and reservations')
      .option('--preempt', 'stop preemptible jobs for those of higher priority')
      .option('--fair-share', 'prefer users with less past use')
      .option('--no-estimates', 'ignore the estimated run times'),
  help: `
Examples:
  muster simulate queue jobs.json --fair-share --json

The file: {"hosts": [{"name", "cpu", "memoryGiB", "gpus"}], "jobs": [{"submitS", "runS", "estimateS", "user", "priority",
"isPreemptible", "strategy", "bundles", "cpu", "memoryGiB", "gpuMilli"}], "reservations": [{"hosts", "fromS", "untilS", "users"}]}
`,
  async run(file: string, options: QueueOptions, context: CliContext) {
    const { hosts, jobs, reservations } = parseQueueFile(await readTrace(file, context.workingDirectory))
    const simulation = runQueue({
      hosts,
      reservations,
      jobs: options.estimates ? jobs : jobs.map((job) => ({ ...job, estimateS: undefined })),
      isPreempting: options.preempt ?? false,
      isFairShare: options.fairShare ?? false,
    })
    const result = await calculate(simulation, context.signal)
    context.stdout.write(options.json ? jsonLine(resultJson(result), context) : formatResult(result, context.stdout))
    return EXIT.ok
  },
}

function resultJson({ averageWaitByUserS, ...result }: QueueRunResult): object {
  const numbers = Object.entries(result).map(([name, value]) => [name, rounded(value, 3)])
  const byUser = [...averageWaitByUserS].map(([user, waitS]) => [user, rounded(waitS, 3)])
  return { type: 'simulation', ...Object.fromEntries(numbers), averageWaitByUserS: Object.fromEntries(byUser) }
}

function formatResult(result: QueueRunResult, out: TableOutput): string {
  const { jobs, impossible, preempted, averageWaitS, maximumWaitS, averageBoundedSlowdown } = result
  const percent = (value: number) => `${formatBar([[value / 100, '█']], 20)} ${value.toFixed(1)} %`
  const table = formatTable(
    ['JOBS', 'IMPOSSIBLE', 'PREEMPTED', 'WAIT, MEAN s', 'LONGEST WAIT s', 'BOUNDED SLOWDOWN'],
    [
      [jobs, impossible, preempted, averageWaitS.toFixed(1), maximumWaitS, averageBoundedSlowdown.toFixed(2)].map(
        String,
      ),
    ],
    out,
  )
  const users = [...result.averageWaitByUserS].map(([user, waitS]) => [user === '' ? '-' : user, waitS.toFixed(1)])
  return [
    table,
    `\nCores in use  ${percent(result.cpuPercent)}\nGPUs in use   ${percent(result.gpuPercent)}\n`,
    users.length > 1 ? `\n${formatTable(['USER', 'WAIT, MEAN s'], users, out)}` : '',
  ].join('')
}

type LogOptions = GlobalOptions & {
  readonly policy: readonly QueuePolicyName[]
  readonly processors?: number
  readonly submitScale: number
}

const LOG_POLICY_NAMES = Object.keys(QUEUE_POLICIES) as readonly QueuePolicyName[]

export const swf: VerbCode = {
  define: (command) =>
    command
      .argument('<file>', 'job log, plain or gzip')
      .addOption(policyOption(LOG_POLICY_NAMES, DEFAULT_QUEUE_POLICY))
      .option('--processors <n>', 'assume N processors (default: as in the log)', wholeNumber(1))
      .option('--submit-scale <factor>', 'multiply submit times by this: 0.5 is twice the load', numberAbove0, 1),
  help: `
Examples:
  muster simulate swf NASA-iPSC-1993-3.1-cln.swf.gz --policy fcfs,easy,conservative,default
  muster simulate swf NASA-iPSC-1993-3.1-cln.swf.gz --submit-scale 0.5 --policy easy --json
`,
  async run(file: string, options: LogOptions, context: CliContext) {
    const log = parseWorkloadLog(await readTrace(file, context.workingDirectory))
    const processors = options.processors || log.processors
    if (processors === undefined)
      throw new MusterError('usage', `${file} does not say how many processors the machine has`, {
        hint: 'Add --processors N.',
      })
    const jobs = scaleSubmitTimes(log.jobs, options.submitScale)
    const rows = await Array.fromAsync(options.policy, async (name) => {
      const result = await calculate(runLog(jobs, processors, QUEUE_POLICIES[name]()), context.signal)
      if (options.json) context.stdout.write(jsonLine(rowJson(name, options.submitScale, result), context))
      return { name, result }
    })
    if (!options.json) context.stdout.write(formatRows(rows, context.stdout))
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

function formatRows(
  rows: readonly { readonly name: QueuePolicyName; readonly result: SwfResult }[],
  out: TableOutput,
): string {
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
    out,
  )
  const longest = Math.max(1, ...rows.flatMap(({ result }) => result.queueLengths))
  const curves = rows.map(({ name, result }) => [name, halve(result.queueLengths)] as const)
  return `${table}\nWaiting jobs over time (a full cell: ${longest}):\n${formatCurves(curves, 0, longest)}`
}

/** The greater of every two values: 60 cells and the name fit into 80 columns. */
function halve(values: readonly number[]): readonly number[] {
  return Array.from({ length: values.length / 2 }, (_, cell) =>
    Math.max(values[2 * cell] ?? 0, values[2 * cell + 1] ?? 0),
  )
}
