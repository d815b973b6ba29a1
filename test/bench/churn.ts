/**
 * `npm run bench -- churn`: the openb trace in MUSTER_TRACES/openb with departures, on parts of its hosts: each seed takes
 * another part (every n-th node) and lays the trace over itself with other shifts. Single runs differ by several hours of
 * waiting for changes that mean nothing; what counts is the mean of the differences to the default, seed by seed.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { WorkloadMix } from '../../src/scheduler/model/mix.ts'
import { createPolicy, DEFAULT_POLICY, type PolicyName } from '../../src/scheduler/policies/policies.ts'
import { type ChurnResult, replayChurn } from '../../src/scheduler/simulate/churn.ts'
import { parseNodes, parsePods } from '../../src/scheduler/simulate/openb-trace.ts'

type Options = {
  readonly traces: string
  readonly seeds: readonly number[]
  readonly policies: readonly string[]
  /** In percent of all GPUs. */
  readonly loads: readonly number[]
  /** Every n-th host. */
  readonly thin: number
  readonly log: (line: string) => void
}

const PEERS: readonly PolicyName[] = ['fgd', 'best-fit', 'first-fit']
const HOUR_S = 3600

export function benchChurn({ traces, seeds, policies, loads, thin, log }: Options): string {
  const directory = join(traces, 'openb')
  if (!existsSync(directory)) return '(no openb trace: MUSTER_TRACES names the directory that has it)'
  const read = (file: string) => readFileSync(join(directory, file), 'utf8')
  const nodes = parseNodes(read('openb_node_list_gpu_node.csv'))
  const pods = parsePods(read('openb_pod_list_default.csv'))
  const names: PolicyName[] = [DEFAULT_POLICY, ...(policies.length > 0 ? (policies as PolicyName[]) : PEERS)]
  const rows: string[] = []
  for (const load of loads) {
    const results = new Map(names.map((name) => [name, [] as ChurnResult[]]))
    for (const seed of seeds)
      for (const name of names) {
        const result = replayChurn({
          hosts: nodes.filter((_, index) => index % thin === seed % thin),
          pods,
          load: load / 100,
          seed,
          mix: WorkloadMix.of(pods.map(({ request }) => request)),
          isLearning: false,
          createPolicy: (cluster, mix) => createPolicy(name, cluster, mix, seed),
        })
        results.get(name)?.push(result)
        log(`${load} % ${seed} ${name}: ${result.allocationPercent.toFixed(2)} %, ${hours(result).toFixed(1)} h`)
      }
    const own = results.get(DEFAULT_POLICY) ?? []
    for (const [name, all] of results) rows.push(`| ${load} % | ${name} | ${cellsOf(all, own).join(' | ')} |`)
  }
  return [
    `Every ${thin}th host, ${seeds.length} parts (seeds ${seeds.join(', ')}). The default beside each: mean difference ± its standard error.`,
    '',
    '| load | policy | given away, % | mean wait, h | waited, % | default: given away | default: wait, h |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...rows,
  ].join('\n')
}

const hours = ({ averageWaitS }: ChurnResult): number => averageWaitS / HOUR_S

function cellsOf(all: readonly ChurnResult[], own: readonly ChurnResult[]): string[] {
  const beside = (value: (result: ChurnResult) => number, digits: number) =>
    all === own
      ? ''
      : difference(
          own.map((result, index) => value(result) - value(all[index] as ChurnResult)),
          digits,
        )
  return [
    mean(all.map(({ allocationPercent }) => allocationPercent)).toFixed(2),
    mean(all.map(hours)).toFixed(1),
    mean(all.map(({ waitedPercent }) => waitedPercent)).toFixed(0),
    beside(({ allocationPercent }) => allocationPercent, 2),
    beside(hours, 1),
  ]
}

function difference(values: readonly number[], digits: number): string {
  const middle = mean(values)
  const squares = values.reduce((sum, value) => sum + (value - middle) ** 2, 0)
  const error = Math.sqrt(squares / Math.max(1, values.length - 1) / values.length)
  return `${middle > 0 ? '+' : ''}${middle.toFixed(digits)} ± ${error.toFixed(digits)}`
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
