/** `muster simulate fleet`: how fast a policy decides on a large fleet that is full of running gangs. */
import { type Command, Option } from 'commander'
import { createPolicy, DEFAULT_POLICY, type PolicyName } from '../../scheduler/policies/policies.ts'
import { runFleet } from '../../scheduler/simulate/fleet-run.ts'
import { type CliContext, EXIT, type GlobalOptions, type Outcome } from '../command-line/context.ts'
import { formatBar } from '../output/picture.ts'
import { formatTable } from '../output/table.ts'
import { POLICY_NAMES, parseCount, parsePolicies, parseWhole } from './policy-option.ts'

type Options = GlobalOptions & {
  readonly nodes: number
  readonly gangs: number
  readonly seed: number
  readonly policy: readonly PolicyName[]
}

export function registerSimulateFleet(simulate: Command, context: CliContext, outcome: Outcome): void {
  const command = simulate
    .command('fleet')
    .description('how fast a policy decides on a large fleet of its own making')
    .option('--nodes <n>', 'hosts', parseCount, 1000)
    .option('--gangs <n>', 'gangs that run at once', parseCount, 10_000)
    .option('--seed <n>', 'another fleet, other gangs', parseWhole, 1)
    .addOption(
      new Option('--policy <names>', `one or several of ${POLICY_NAMES.join(', ')}`)
        .argParser(parsePolicies)
        .default([DEFAULT_POLICY], DEFAULT_POLICY),
    )
    .addHelpText('after', '\nExample:\n  muster simulate fleet --nodes 10000 --gangs 100000 --json\n')
    .action(() => {
      simulateFleet(command.optsWithGlobals<Options>(), context)
      outcome.exitCode = EXIT.ok
    })
}

function simulateFleet({ nodes, gangs, seed, policy, json }: Options, context: CliContext): void {
  const rows = policy.map((name) => {
    const result = runFleet({
      hostCount: nodes,
      gangCount: gangs,
      seed,
      createPolicy: (cluster, mix) => createPolicy(name, cluster, mix, seed),
      now: () => performance.now(),
    })
    const memoryBytes = process.memoryUsage.rss()
    const round = (value: number) => Number(value.toFixed(2))
    if (json)
      context.stdout.write(
        `${JSON.stringify({
          type: 'simulation',
          policy: name,
          nodes,
          gangs: result.gangs,
          placements: result.placements,
          placementsPerSecond: Math.round(result.placementsPerSecond),
          p50Us: round(result.p50Us),
          p99Us: round(result.p99Us),
          allocationPercent: round(result.allocationPercent),
          memoryBytes,
        })}\n`,
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
  const header = ['POLICY', 'HOSTS', 'GANGS', 'PLACED A SECOND', 'P50 µs', 'P99 µs', 'MEMORY', 'GPUS GIVEN AWAY']
  if (!json) context.stdout.write(formatTable(header, rows))
}
