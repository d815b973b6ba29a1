/**
 * `npm run bench -- churn`: the openb trace in MUSTER_TRACES/openb with departures. Either the requests of the published
 * experiment with their own times, coming faster, on all hosts: each seed takes one of the sequences and begins at another
 * time of it. Or, laid over itself, on parts of the hosts: each seed takes another part (every n-th node) and other shifts.
 * Single runs differ for changes that mean nothing; what counts is the mean of the differences to the default, seed by seed.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { WorkloadMix } from '../../src/scheduler/model/mix.ts'
import { DEFAULT_POLICY } from '../../src/scheduler/policies/policies.ts'
import { type ChurnResult, layOver, replayChurn } from '../../src/scheduler/simulate/churn.ts'
import {
  inRankOrder,
  parseNodes,
  parsePods,
  parseSequence,
  type TracePod,
} from '../../src/scheduler/simulate/openb-trace.ts'
import { atOnce } from '../support/at-once.ts'
import { pressTogether } from '../support/press-together.ts'
import { createBenchPolicy } from './bench-policy.ts'

type Options = {
  readonly traces: string
  readonly seeds: readonly number[]
  readonly policies: readonly string[]
  /** In percent of all GPUs. */
  readonly loads: readonly number[]
  /** Every n-th host. */
  readonly thin: number
  readonly isFaster: boolean
  readonly log: (line: string) => void
}

const PEERS: readonly string[] = ['fgd', 'best-fit', 'first-fit']
/** Of the arrival sequences that lie beside the trace. */
const SEQUENCES = [42, 43, 44, 45, 46]
const HOUR_S = 3600

export function benchChurn({ traces, seeds, policies, loads, thin, isFaster, log }: Options): string {
  const directory = join(traces, 'openb')
  if (!existsSync(directory)) return '(no openb trace: MUSTER_TRACES names the directory that has it)'
  const read = (file: string) => readFileSync(join(directory, file))
  const nodes = parseNodes(read('openb_node_list_gpu_node.csv').toString())
  const pods = parsePods(read('openb_pod_list_default.csv').toString())
  const sequences = isFaster ? gunzipSync(read('arrival_sequences.txt.gz')).toString() : ''
  const caseOf = (load: number, seed: number) => {
    const isIn = (_: unknown, index: number) => index % thin === seed % thin
    if (!isFaster) {
      const hosts = nodes.filter(isIn)
      return { hosts, requests: layOver({ pods, hosts, load, seed }).requests }
    }
    const chosen = { variant: 'default', seed: SEQUENCES[seed % SEQUENCES.length] as number }
    const counts = { nodeCount: nodes.length, podCount: pods.length }
    const sequence = parseSequence(sequences, chosen, counts)
    const hosts = inRankOrder(nodes, sequence.ranks).filter(isIn)
    const own = sequence.pods.map((row) => pods[row] as TracePod)
    return { hosts, requests: pressTogether({ pods: own, hosts, load, seed }).requests }
  }
  const [unitS, unit] = isFaster ? [1, 's'] : [HOUR_S, 'h']
  const names = [DEFAULT_POLICY, ...(policies.length > 0 ? policies : PEERS)]
  const rows: string[] = []
  for (const load of loads) {
    const results = new Map(names.map((name) => [name, [] as ChurnResult[]]))
    for (const seed of seeds) {
      const given = caseOf(load / 100, seed)
      for (const name of names) {
        const result = atOnce(
          replayChurn({
            ...given,
            mix: WorkloadMix.of(pods.map(({ request }) => request)),
            isLearning: false,
            createPolicy: (cluster, mix) => createBenchPolicy(name, cluster, mix, seed),
          }),
        )
        results.get(name)?.push(result)
        const waitS = result.averageWaitS
        log(
          `${load} % ${seed} ${name}: ${result.allocationPercent.toFixed(2)} %, ${(waitS / unitS).toFixed(1)} ${unit}`,
        )
      }
    }
    const own = results.get(DEFAULT_POLICY) ?? []
    for (const [name, all] of results) rows.push(`| ${load} % | ${name} | ${cellsOf(all, own, unitS).join(' | ')} |`)
  }
  return [
    `${isFaster ? 'One sequence, faster' : 'Laid over itself'}; every ${thin}th host, ${seeds.length} runs (seeds ${seeds.join(', ')}). The default beside each: mean difference ± its standard error.`,
    '',
    `| load | policy | allocated, % | mean wait, ${unit} | waited, % | default: allocated | default: wait, ${unit} |`,
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...rows,
  ].join('\n')
}

function cellsOf(all: readonly ChurnResult[], own: readonly ChurnResult[], unitS: number): string[] {
  const wait = ({ averageWaitS }: ChurnResult) => averageWaitS / unitS
  const beside = (value: (result: ChurnResult) => number, digits: number) =>
    all === own
      ? ''
      : difference(
          own.map((result, index) => value(result) - value(all[index] as ChurnResult)),
          digits,
        )
  return [
    mean(all.map(({ allocationPercent }) => allocationPercent)).toFixed(2),
    mean(all.map(wait)).toFixed(1),
    mean(all.map(({ waitedPercent }) => waitedPercent)).toFixed(0),
    beside(({ allocationPercent }) => allocationPercent, 2),
    beside(wait, 1),
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
