/** `muster simulate swf`: who waits how long when the jobs of a log queue for one machine. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { MusterError } from '../../base/errors.ts'
import { DEFAULT_QUEUE_POLICY, QUEUE_POLICIES, type QueuePolicyName } from '../../scheduler/queue/queue-policies.ts'
import { runLog, type SwfResult } from '../../scheduler/simulate/swf-run.ts'
import { parseWorkloadLog, scaleSubmitTimes } from '../../scheduler/simulate/swf-trace.ts'
import { type CliContext, EXIT, type GlobalOptions, type Outcome } from '../command-line/context.ts'
import { formatCurve } from '../output/picture.ts'
import { formatTable } from '../output/table.ts'
import { DEFAULT_ALIASES, parseWhole } from './policy-option.ts'
import { readTrace } from './read-trace.ts'

type Options = GlobalOptions & {
  readonly policy: readonly QueuePolicyName[]
  readonly processors?: number
  readonly submitScale: number
}

type Row = { readonly name: QueuePolicyName; readonly result: SwfResult }

const NAMES = Object.keys(QUEUE_POLICIES)

export function registerSimulateSwf(simulate: Command, context: CliContext, outcome: Outcome): void {
  const command = simulate
    .command('swf <file>')
    .description('who waits how long when the jobs of a log (Standard Workload Format) queue for one machine')
    .addOption(
      new Option('--policy <names>', `one or several of ${NAMES.join(', ')}`)
        .argParser(parseQueuePolicies)
        .default([DEFAULT_QUEUE_POLICY], DEFAULT_QUEUE_POLICY),
    )
    .option('--processors <n>', 'what the machine has, if not what the log says', parseWhole)
    .option('--submit-scale <factor>', 'submit times are multiplied by it: 0.5 is twice the load', parseFactor, 1)
    .addHelpText(
      'after',
      `
Examples:
  muster simulate swf NASA-iPSC-1993-3.1-cln.swf.gz --policy fcfs,easy,conservative,default
  muster simulate swf NASA-iPSC-1993-3.1-cln.swf.gz --submit-scale 0.5 --policy easy --json
`,
    )
    .action(async (file: string) => {
      await simulateSwf(file, command.optsWithGlobals<Options>(), context)
      outcome.exitCode = EXIT.ok
    })
}

async function simulateSwf(file: string, options: Options, context: CliContext): Promise<void> {
  const log = parseWorkloadLog(await readTrace(file, context.workingDirectory))
  const processors = options.processors || log.processors
  if (processors === undefined)
    throw new MusterError('usage', `${file} does not say how many processors there are`, {
      hint: 'Say it with --processors.',
    })
  const jobs = scaleSubmitTimes(log.jobs, options.submitScale)
  const rows = options.policy.map((name) => {
    const result = runLog(jobs, processors, QUEUE_POLICIES[name]())
    if (options.json) context.stdout.write(`${JSON.stringify(rowJson(name, options.submitScale, result))}\n`)
    return { name, result }
  })
  if (!options.json) context.stdout.write(formatRows(rows))
}

function rowJson(policy: QueuePolicyName, submitScale: number, result: SwfResult): object {
  const round = (value: number, digits: number) => Number(value.toFixed(digits))
  return {
    type: 'simulation',
    policy,
    submitScale,
    jobs: result.jobs,
    tooWide: result.tooWide,
    averageWaitS: round(result.averageWaitS, 1),
    averageBoundedSlowdown: round(result.averageBoundedSlowdown, 3),
    maximumWaitS: result.maximumWaitS,
    utilisationPercent: round(result.utilisationPercent, 2),
  }
}

function formatRows(rows: readonly Row[]): string {
  const table = formatTable(
    ['POLICY', 'JOBS', 'WAIT, MEAN s', 'LONGEST s', 'BOUNDED SLOWDOWN', 'IN USE %'],
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
  return `${table}\nJobs that wait, from the first to the last (a full cell: ${longest}):\n${curves.join('')}`
}

/** Two moments a cell, the fuller one: 60 cells and the name fit into 80 columns. */
function halve(values: readonly number[]): readonly number[] {
  return Array.from({ length: values.length / 2 }, (_, cell) =>
    Math.max(values[2 * cell] ?? 0, values[2 * cell + 1] ?? 0),
  )
}

function parseQueuePolicies(text: string): readonly QueuePolicyName[] {
  return text.split(',').map((word) => {
    const name = DEFAULT_ALIASES.has(word) ? DEFAULT_QUEUE_POLICY : word
    if (!Object.hasOwn(QUEUE_POLICIES, name))
      throw new InvalidArgumentError(`There is no policy '${word}'. There are ${NAMES.join(', ')}.`)
    return name as QueuePolicyName
  })
}

function parseFactor(text: string): number {
  const value = Number(text)
  if (!Number.isFinite(value) || value <= 0) throw new InvalidArgumentError('It has to be a number above 0.')
  return value
}
