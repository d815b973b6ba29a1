/** `muster simulate openb`: the published experiment on the openb trace, with any policy, or all of them beside each other. */
import { calculate } from '../../base/calculation.ts'
import { MusterError } from '../../base/errors.ts'
import { WorkloadMix } from '../../scheduler/model/mix.ts'
import { createPolicy, DEFAULT_POLICY, type PolicyName } from '../../scheduler/policies/policies.ts'
import { type ChurnResult, layOver, replayChurn } from '../../scheduler/simulate/churn.ts'
import {
  inRankOrder,
  parseNodes,
  parsePods,
  parseSequence,
  type TracePod,
} from '../../scheduler/simulate/openb-trace.ts'
import { percentile, type ReplayResult, replayArrivals } from '../../scheduler/simulate/replay.ts'
import { wholeNumber } from '../command-line/options.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { jsonLine } from '../output/json-lines.ts'
import { formatBar, formatCurves, formatTable, type TableOutput } from '../output/table.ts'
import { POLICY_NAMES, policyOption, readTrace, rounded } from './input.ts'

type Options = GlobalOptions & {
  readonly nodes: string
  readonly pods: string
  readonly sequence?: string
  readonly variant: string
  readonly seed: number
  readonly policy: readonly PolicyName[]
  readonly learn?: boolean
  readonly churn?: number
  readonly thin: number
}

type Case = {
  readonly hosts: ReturnType<typeof inRankOrder>
  readonly pods: readonly TracePod[]
  readonly arrivals: readonly TracePod[]
}

/** Requests that are decided once before timing, so that compiled code is timed, as in a scheduler that runs for long. */
const WARM_UP_REQUESTS = 4000

export const verb: VerbCode = {
  define: (command) =>
    command
      .requiredOption('--nodes <file>', 'node list (sn,cpu_milli,memory_mib,gpu,model)')
      .requiredOption('--pods <file>', 'pod list (name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec,…])')
      .option('--sequence <file>', 'order of arrival and ranks of nodes, plain or gzip (not needed with --churn)')
      .option('--variant <name>', 'variant of the sequence to use', 'default')
      .option('--seed <n>', 'seed of the sequence to use, and of the policy random', wholeNumber(0), 42)
      .addOption(policyOption(POLICY_NAMES, DEFAULT_POLICY))
      .option('--learn', 'learn the mix of requests as they arrive (default: known in advance)')
      .option('--churn <percent>', 'let pods come and go, until PERCENT of all GPUs are requested', wholeNumber(1))
      .option('--thin <n>', 'use every Nth node of the list', wholeNumber(1), 1),
  help: `
Examples:
  muster simulate openb --nodes nodes.csv --pods pods.csv --sequence arrivals.txt.gz --policy fgd --json
  muster simulate openb --nodes nodes.csv --pods pods.csv --sequence arrivals.txt.gz --policy default,fgd,first-fit
  muster simulate openb --nodes nodes.csv --pods pods.csv --thin 8 --churn 100 --policy default,fgd

Times exclude the compilation of the code: the first ${WARM_UP_REQUESTS} requests are decided once in advance, on a separate fleet.
`,
  async run(options: Options, context: CliContext) {
    const input = await readCase(options, context.workingDirectory)
    if (options.churn === undefined) await replayAll(input, options, context)
    else await churnAll(input, options.churn / 100, options, context)
    return EXIT.ok
  },
}

async function readCase(options: Options, cwd: string): Promise<Case> {
  const [nodesText, podsText] = await Promise.all([readTrace(options.nodes, cwd), readTrace(options.pods, cwd)])
  const nodes = parseNodes(nodesText).filter((_, index) => index % options.thin === 0)
  if (nodes.every(({ gpus = [] }) => gpus.length === 0))
    throw new MusterError('configuration', `${options.nodes} has no GPUs`)
  const pods = parsePods(podsText)
  if (options.sequence === undefined) {
    if (options.churn !== undefined) return { hosts: nodes, pods, arrivals: pods }
    throw new MusterError('usage', 'the order of arrival is missing', {
      hint: 'Add --sequence FILE, or use --churn.',
    })
  }
  const counts = { nodeCount: nodes.length, podCount: pods.length }
  const { pods: rows, ranks } = parseSequence(await readTrace(options.sequence, cwd), options, counts)
  return { hosts: inRankOrder(nodes, ranks), pods, arrivals: rows.map((row) => pods[row] as TracePod) }
}

async function replayAll({ hosts, pods, arrivals }: Case, options: Options, context: CliContext): Promise<void> {
  const results = await Array.fromAsync(options.policy, async (name) => {
    const requests = arrivals.map(({ request }) => request)
    const replay = (count: number) => {
      const simulation = replayArrivals({
        hosts,
        arrivals: requests.slice(0, count),
        mix: options.learn ? new WorkloadMix() : WorkloadMix.of(pods.map(({ request }) => request)),
        isLearning: options.learn ?? false,
        createPolicy: (cluster, mix) => createPolicy(name, cluster, mix, options.seed),
        now: () => performance.now(),
      })
      return calculate(simulation, context.signal)
    }
    await replay(WARM_UP_REQUESTS)
    const result = await replay(requests.length)
    if (options.json) context.stdout.write(jsonLine(replayJson(name, options, result), context))
    return { name, result }
  })
  if (!options.json) context.stdout.write(formatReplays(results, context.stdout))
}

function replayJson(policy: string, { variant, seed }: Options, result: ReplayResult): object {
  const at = (percent: number) => rounded(result.curve.get(percent), 4)
  const percents = [...result.curve.keys()].sort((left, right) => left - right)
  return {
    type: 'simulation',
    policy,
    variant,
    seed,
    allocationPercent: Object.fromEntries(percents.map((percent) => [percent, at(percent)])),
    placements: result.placements,
    dropped: result.dropped,
    placementsPerSecond: Math.round(placementsPerSecond(result)),
    p50Us: rounded(percentile(result.durationsUs, 0.5), 2),
    p99Us: rounded(percentile(result.durationsUs, 0.99), 2),
  }
}

function placementsPerSecond({ placements, durationsUs }: ReplayResult): number {
  return placements / (durationsUs.reduce((sum, us) => sum + us, 0) / 1e6)
}

const FIRST_SHOWN = 80
const LAST_SHOWN = 130

function formatReplays(
  results: readonly { readonly name: string; readonly result: ReplayResult }[],
  out: TableOutput,
): string {
  const percent = (value: number | undefined) => (value === undefined ? '' : value.toFixed(2))
  const table = formatTable(
    ['POLICY', 'ALLOCATED AT 100 %', 'AT 130 %', 'PLACED', 'DROPPED', 'PLACED/s', 'P50 µs', 'P99 µs'],
    results.map(({ name, result }) => [
      name,
      percent(result.curve.get(100)),
      percent(result.curve.get(130)),
      String(result.placements),
      String(result.dropped),
      String(Math.round(placementsPerSecond(result))),
      percentile(result.durationsUs, 0.5).toFixed(1),
      percentile(result.durationsUs, 0.99).toFixed(1),
    ]),
    out,
  )
  const shown = Array.from({ length: LAST_SHOWN - FIRST_SHOWN + 1 }, (_, index) => FIRST_SHOWN + index)
  const width = Math.max(...results.map(({ name }) => name.length))
  const rows = results.map(({ name, result }) => [name, shown.map((at) => result.curve.get(at))] as const)
  const curves = formatCurves(rows, 78, 98)
  const axis = `${' '.repeat(width)}  ${String(FIRST_SHOWN).padEnd(20)}100${' '.repeat(25)}${LAST_SHOWN} % requested\n`
  const [first] = results
  return `${table}\nGPUs allocated (78 to 98 %) as more and more are requested:\n${curves}${axis}${first ? `\n${formatFleet(first.result, first.name, out)}` : ''}`
}

/** The GPUs of each model at the end: full, shared in part, idle. */
function formatFleet({ cluster }: ReplayResult, name: string, out: TableOutput): string {
  const rows = cluster.models.map((model, number) => {
    const lefts = [...cluster.deviceLeftMilli].filter((_, device) => cluster.deviceModel[device] === number)
    const full = lefts.filter((left) => left === 0).length
    const idle = lefts.filter((left) => left === 1000).length
    const partly = lefts.length - full - idle
    const parts = Object.entries({ '█': full, '▒': partly, '·': idle })
    const bar = formatBar(
      parts.map(([sign, count]) => [count / lefts.length, sign]),
      40,
    )
    return [model, String(lefts.length), bar, `${full} full, ${partly} partly used, ${idle} idle`]
  })
  return `At the end, with ${name} (█ full ▒ partly used · idle):\n${formatTable(['MODEL', 'GPUS', '', ''], rows, out)}`
}

async function churnAll({ hosts, pods }: Case, load: number, options: Options, context: CliContext): Promise<void> {
  const { requests, copies } = layOver({ pods, hosts, load, seed: options.seed })
  const results = await Array.fromAsync(options.policy, async (name) => {
    const simulation = replayChurn({
      hosts,
      requests,
      mix: options.learn ? new WorkloadMix() : WorkloadMix.of(pods.map(({ request }) => request)),
      isLearning: options.learn ?? false,
      createPolicy: (cluster, mix) => createPolicy(name, cluster, mix, options.seed),
    })
    const result = await calculate(simulation, context.signal)
    if (options.json)
      context.stdout.write(jsonLine({ type: 'simulation', policy: name, load, copies, ...result }, context))
    return { name, result }
  })
  if (options.json) return
  const hours = (seconds: number) => (seconds / 3600).toFixed(2)
  const cells = ({ name, result }: { name: string; result: ChurnResult }) => [
    name,
    result.allocationPercent.toFixed(2),
    hours(result.averageWaitS),
    hours(result.maximumWaitS),
    `${result.waitedPercent.toFixed(1)} %`,
    formatBar([[result.allocationPercent / 100, '█']], 30),
  ]
  const header = ['POLICY', 'ALLOCATED, MEAN %', 'WAIT, MEAN h', 'LONGEST WAIT h', 'WAITED', '']
  context.stdout.write(formatTable(header, results.map(cells), context.stdout))
}
