/** `muster simulate fleet`: how fast a policy decides on a large fleet full of running gangs; `gangs`: how close it comes to the best known placement. */

import { Option } from 'commander'
import { calculate } from '../../base/calculation.ts'
import { createPolicy, DEFAULT_POLICY, type PolicyName } from '../../scheduler/policies/policies.ts'
import { runFleet } from '../../scheduler/simulate/fleet-run.ts'
import {
  GANG_POLICIES,
  type GangPolicyName,
  type GangResult,
  parseGangInstances,
  runGangs,
} from '../../scheduler/simulate/gang-instances.ts'
import { offering, wholeNumber } from '../command-line/options.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { jsonLine } from '../output/json-lines.ts'
import { formatBar, formatTable, type TableOutput } from '../output/table.ts'
import { oneOf, POLICY_NAMES, policyOption, readTrace, rounded } from './input.ts'

type FleetOptions = GlobalOptions & {
  readonly nodes: number
  readonly gangs: number
  readonly seed: number
  readonly policy: readonly PolicyName[]
}

export const fleet: VerbCode = {
  define: (command) =>
    command
      .option('--nodes <n>', 'hosts', wholeNumber(1), 1000)
      .option('--gangs <n>', 'run N gangs at once', wholeNumber(1), 10_000)
      .option('--seed <n>', 'seed of the fleet and the gangs', wholeNumber(0), 1)
      .addOption(policyOption(POLICY_NAMES, DEFAULT_POLICY)),
  help: `
Examples:
  muster simulate fleet --nodes 10000 --gangs 100000 --json

GANGS counts those that run in the end. One leaves for each that comes, and one that
does not fit is dropped, so a fleet that is too small empties.
`,
  async run({ nodes, gangs, seed, policy, json }: FleetOptions, context: CliContext) {
    const rows = await Array.fromAsync(policy, async (name) => {
      const simulation = runFleet({
        hostCount: nodes,
        gangCount: gangs,
        seed,
        createPolicy: (cluster, mix) => createPolicy(name, cluster, mix, seed),
        now: () => performance.now(),
      })
      const result = await calculate(simulation, context.signal)
      const memoryBytes = process.memoryUsage.rss()
      if (json)
        context.stdout.write(
          jsonLine(
            {
              type: 'simulation',
              policy: name,
              nodes,
              gangs: result.gangs,
              placements: result.placements,
              placementsPerSecond: Math.round(result.placementsPerSecond),
              p50Us: rounded(result.p50Us, 2),
              p99Us: rounded(result.p99Us, 2),
              allocationPercent: rounded(result.allocationPercent, 2),
              memoryBytes,
            },
            context,
          ),
        )
      return [
        name,
        String(nodes),
        `${result.gangs} of ${gangs}`,
        String(Math.round(result.placementsPerSecond)),
        result.p50Us.toFixed(1),
        result.p99Us.toFixed(1),
        `${Math.round(memoryBytes / 2 ** 20)} MiB`,
        `${formatBar([[result.allocationPercent / 100, '█']], 20)} ${result.allocationPercent.toFixed(1)} %`,
      ]
    })
    const header = ['POLICY', 'HOSTS', 'GANGS', 'PLACED/s', 'P50 µs', 'P99 µs', 'MEMORY', 'GPUS ALLOCATED']
    if (!json) context.stdout.write(formatTable(header, rows, context.stdout))
    return EXIT.ok
  },
}

type GangOptions = GlobalOptions & { readonly policy: GangPolicyName; readonly window: number }

export const gangs: VerbCode = {
  define: (command) =>
    command
      .argument('<file>', 'JSON file of instances')
      .addOption(
        offering(new Option('--policy <name>', `one of ${GANG_POLICIES.join(', ')}`), GANG_POLICIES)
          .argParser((word) => oneOf(word, GANG_POLICIES, 'window'))
          .default('window'),
      )
      .option('--window <n>', 'consider N gangs together (not for ray)', wholeNumber(1), 64),
  help: `
Examples:
  muster simulate gangs gangs.json --policy ray --json
`,
  async run(file: string, { policy, window, json }: GangOptions, context: CliContext) {
    const instances = parseGangInstances(await readTrace(file, context.workingDirectory))
    const results = await Array.fromAsync(instances, (instance) =>
      calculate(runGangs(instance, policy, window), context.signal),
    )
    const ratios = results.flatMap(({ ratioToBest }) => ratioToBest ?? [])
    const mean = ratios.length === 0 ? undefined : ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length
    const minimum = ratios.length === 0 ? undefined : Math.min(...ratios)
    if (json) {
      for (const { name, gpuPercent, ratioToBest, placed, gangs } of results) {
        const numbers = { gpuPercent: rounded(gpuPercent, 4), ratioToBest: rounded(ratioToBest, 4), placed, gangs }
        context.stdout.write(jsonLine({ type: 'instance', name, ...numbers }, context))
      }
      const ratios = { meanRatio: rounded(mean, 4), minimumRatio: rounded(minimum, 4) }
      context.stdout.write(jsonLine({ type: 'simulation', policy, ...ratios }, context))
    } else context.stdout.write(formatResults(results, mean, minimum, context.stdout))
    return EXIT.ok
  },
}

function formatResults(
  results: readonly GangResult[],
  mean: number | undefined,
  minimum: number | undefined,
  out: TableOutput,
): string {
  const ratio = (value: number | undefined) => (value === undefined ? '' : value.toFixed(4))
  const rows = results.map(({ name, gpuPercent, ratioToBest, placed, gangs }) => [
    name,
    `${placed} of ${gangs}`,
    gpuPercent.toFixed(2),
    ratio(ratioToBest),
    formatBar([[gpuPercent / 100, '█']], 20),
  ])
  const table = formatTable(['INSTANCE', 'PLACED', 'GPUS ALLOCATED %', 'RATIO TO BEST', ''], rows, out)
  return mean === undefined
    ? table
    : `${table}\nRatio to the best known placement: ${ratio(mean)} on average, ${ratio(minimum)} at least.\n`
}
