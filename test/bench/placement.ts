/**
 * `npm run bench -- placement`: every policy on every variant and seed of the openb trace that lies in MUSTER_TRACES/openb,
 * against the published curves, and how fast the default decides on fleets of growing size.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { Cluster } from '../../src/scheduler/model/cluster.ts'
import { WorkloadMix } from '../../src/scheduler/model/mix.ts'
import type { ResourceRequest } from '../../src/scheduler/model/resources.ts'
import { createPolicy, DEFAULT_POLICY, type PolicyName } from '../../src/scheduler/policies/policies.ts'
import { runFleet } from '../../src/scheduler/simulate/fleet-run.ts'
import { inRankOrder, parseNodes, parsePods, parseSequence } from '../../src/scheduler/simulate/openb-trace.ts'
import { percentile, type ReplayResult, replayArrivals } from '../../src/scheduler/simulate/replay.ts'
import { atOnce } from '../support/at-once.ts'
import { createBenchPolicy } from './bench-policy.ts'
import { solveConfigurationLp } from './lpd/configuration-lp.ts'

type Options = {
  readonly traces: string
  readonly seeds: readonly number[]
  readonly policies: readonly string[]
  readonly log: (line: string) => void
}

const PUBLISHED: Readonly<Record<string, PolicyName>> = {
  '06-FGD': 'fgd',
  '05-BestFit': 'best-fit',
  '02-DotProd': 'dot-product',
  '03-GpuClustering': 'gpu-clustering',
  '04-GpuPacking': 'gpu-packing',
}
const FLEETS = [1000, 2000, 4000, 10_000]

export function benchPlacement({ traces, seeds, policies, log }: Options): string {
  const directory = join(traces, 'openb')
  if (!existsSync(directory))
    return `${benchFleets(log)}\n\n(no openb trace: MUSTER_TRACES names the directory that has it)`
  const names: readonly string[] =
    policies.length > 0 ? policies : [DEFAULT_POLICY, 'lpd', 'first-fit', ...Object.values(PUBLISHED)]
  const read = (file: string) => readFileSync(join(directory, file))
  const nodes = parseNodes(read('openb_node_list_gpu_node.csv').toString())
  const sequences = gunzipSync(read('arrival_sequences.txt.gz')).toString()
  const published = read('published_allocation.csv')
    .toString()
    .split('\n')
    .map((line) => line.split(','))
  const variants = readdirSync(directory).flatMap((file) => /^openb_pod_list_(\w+)\.csv$/.exec(file)?.[1] ?? [])
  const rows: string[] = []
  const means = names.map(() => 0)
  const speeds: string[] = []
  let meanBound = 0
  for (const variant of variants) {
    const pods = parsePods(read(`openb_pod_list_${variant}.csv`).toString())
    const cells = names.map((name, index) => {
      let at100 = 0
      let off = 0
      for (const seed of seeds) {
        const counts = { nodeCount: nodes.length, podCount: pods.length }
        const sequence = parseSequence(sequences, { variant, seed }, counts)
        const cpu = process.cpuUsage()
        const result = atOnce(
          replayArrivals({
            hosts: inRankOrder(nodes, sequence.ranks),
            arrivals: sequence.pods.map((row) => pods[row]!.request),
            mix: WorkloadMix.of(pods.map(({ request }) => request)),
            createPolicy: (cluster, mix) => createBenchPolicy(name, cluster, mix, seed),
            now: () => performance.now(),
          }),
        )
        const cpuS = process.cpuUsage(cpu).user / 1e6
        at100 += result.curve.get(100)! / seeds.length
        const curve = published.find(
          ([list, policy, , own]) =>
            list === `openb_pod_list_${variant}` && PUBLISHED[policy ?? ''] === name && own === String(seed),
        )
        if (curve) off = Math.max(off, distance(curve.slice(5), result))
        const beside = curve ? `, ${distance(curve.slice(5), result).toFixed(3)} from the published curve at most` : ''
        log(`${variant} ${seed} ${name}: ${result.curve.get(100)!.toFixed(2)}, ${cpuS.toFixed(2)} s of CPU${beside}`)
        if (name === DEFAULT_POLICY && seed === seeds.at(-1)) speeds.push(speedRow(variant, result, cpuS))
      }
      means[index] = means[index]! + at100 / variants.length
      return `${at100.toFixed(2)}${Object.values<string>(PUBLISHED).includes(name) ? ` (${off.toFixed(3)})` : ''}`
    })
    const bounds = seeds.map((seed) => {
      const { pods: rows } = parseSequence(
        sequences,
        { variant, seed },
        { nodeCount: nodes.length, podCount: pods.length },
      )
      return boundPercent(
        new Cluster(nodes),
        rows.map((row) => pods[row]!.request),
      )
    })
    const bound = bounds.reduce((sum, percent) => sum + percent, 0) / bounds.length
    meanBound += bound / variants.length
    log(`${variant} bound: ${bound.toFixed(2)}`)
    rows.push(`| ${variant} | ${cells.join(' | ')} | ${bound.toFixed(2)} |`)
  }
  return [
    `Percentage of all GPUs that are allocated when 100 % have been requested, mean of seeds ${seeds.join(', ')}; in brackets how far the replay is from the published curve at most, over all percents and seeds. LPD(10,200) is FGD led by the prices of a configuration LP, the bound that LP's own.`,
    '',
    `| variant | ${names.join(' | ')} | bound |`,
    `| --- |${' --- |'.repeat(names.length + 1)}`,
    ...rows,
    `| **mean** | ${means.map((mean) => `**${mean.toFixed(2)}**`).join(' | ')} | **${meanBound.toFixed(2)}** |`,
    '',
    '| variant | placements a second | a second of CPU | p50 / p99 µs |',
    '| --- | --- | --- | --- |',
    ...speeds,
    '',
    benchFleets(log),
  ].join('\n')
}

/** What no policy could exceed when 100 % have been asked for, in percent of all GPUs. */
function boundPercent(cluster: Cluster, arrivals: readonly ResourceRequest[]): number {
  let askedMilli = 0
  const mix = new WorkloadMix()
  for (const request of arrivals) {
    askedMilli += request.gpuCount * request.gpuMilli
    if (askedMilli > cluster.totalGpuMilli) break
    mix.add(request)
  }
  return (100_000 * solveConfigurationLp(cluster, mix.entries()).bound) / cluster.totalGpuMilli
}

function distance(published: readonly string[], { curve }: ReplayResult): number {
  return Math.max(
    ...published.map((text, percent) => {
      const own = curve.get(percent)
      return text === '' || own === undefined ? 0 : Math.abs(Number(text) - Math.round(own * 100) / 100)
    }),
  )
}

function speedRow(variant: string, { placements, durationsUs }: ReplayResult, cpuS: number): string {
  const seconds = durationsUs.reduce((sum, us) => sum + us, 0) / 1e6
  const [p50, p99] = [0.5, 0.99].map((part) => percentile(durationsUs, part).toFixed(1))
  return `| ${variant} | ${Math.round(placements / seconds)} | ${Math.round(placements / cpuS)} | ${p50} / ${p99} |`
}

function benchFleets(log: (line: string) => void): string {
  const rows = FLEETS.map((hostCount) => {
    const cpu = process.cpuUsage()
    const result = atOnce(
      runFleet({
        hostCount,
        gangCount: hostCount * 10,
        seed: 1,
        createPolicy: (cluster, mix) => createPolicy(DEFAULT_POLICY, cluster, mix),
        now: () => performance.now(),
      }),
    )
    const cpuS = process.cpuUsage(cpu).user / 1e6
    log(`fleet of ${hostCount}: ${Math.round(result.placementsPerSecond)} a second, ${cpuS.toFixed(1)} s of CPU in all`)
    const memory = Math.round(process.memoryUsage.rss() / 2 ** 20)
    const microseconds = (1e6 / result.placementsPerSecond).toFixed(1)
    return `| ${hostCount} | ${result.gangs} | ${Math.round(result.placementsPerSecond)} | ${microseconds} | ${result.p50Us.toFixed(1)} / ${result.p99Us.toFixed(1)} | ${memory} |`
  })
  return [
    '| hosts | running gangs | bundles placed a second | µs per bundle | p50 / p99 µs | MiB |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows,
  ].join('\n')
}
