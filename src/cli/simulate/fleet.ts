/** `muster simulate fleet`: how fast a policy decides on a large fleet that is full of running gangs. */
import { createPolicy, DEFAULT_POLICY, type PolicyName } from '../../scheduler/policies/policies.ts'
import { runFleet } from '../../scheduler/simulate/fleet-run.ts'
import { wholeNumber } from '../command-line/options.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { jsonLine } from '../output/json-lines.ts'
import { formatBar, formatTable } from '../output/table.ts'
import { POLICY_NAMES, policyOption, rounded } from './input.ts'

type Options = GlobalOptions & {
  readonly nodes: number
  readonly gangs: number
  readonly seed: number
  readonly policy: readonly PolicyName[]
}

export const verb: VerbCode = {
  define: (command) =>
    command
      .option('--nodes <n>', 'hosts', wholeNumber(1), 1000)
      .option('--gangs <n>', 'run N gangs at once', wholeNumber(1), 10_000)
      .option('--seed <n>', 'seed of the fleet and the gangs', wholeNumber(0), 1)
      .addOption(policyOption(POLICY_NAMES, DEFAULT_POLICY)),
  help: `
Examples:
  muster simulate fleet --nodes 10000 --gangs 100000 --json
`,
  run({ nodes, gangs, seed, policy, json }: Options, context: CliContext) {
    const rows = policy.map((name) => {
      const result = runFleet({
        hostCount: nodes,
        gangCount: gangs,
        seed,
        createPolicy: (cluster, mix) => createPolicy(name, cluster, mix, seed),
        now: () => performance.now(),
      })
      const memoryBytes = process.memoryUsage.rss()
      if (json)
        context.stdout.write(
          jsonLine({
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
          }),
        )
      return [
        name,
        String(nodes),
        String(result.gangs),
        String(Math.round(result.placementsPerSecond)),
        result.p50Us.toFixed(1),
        result.p99Us.toFixed(1),
        `${Math.round(memoryBytes / 2 ** 20)} MiB`,
        `${formatBar([[result.allocationPercent / 100, '█']], 20)} ${result.allocationPercent.toFixed(1)} %`,
      ]
    })
    const header = ['POLICY', 'HOSTS', 'GANGS', 'PLACED/s', 'P50 µs', 'P99 µs', 'MEMORY', 'GPUS ALLOCATED']
    if (!json) context.stdout.write(formatTable(header, rows))
    return EXIT.ok
  },
}
