/** `muster simulate …`: a scheduling policy against a trace; each simulation loads its own code. */
import type { Command } from 'commander'
import type { CliContext, Outcome } from './command-line/context.ts'
import { registerSimulateFleet } from './simulate/fleet.ts'
import { registerSimulateGangs } from './simulate/gangs.ts'
import { registerSimulateOpenb } from './simulate/openb.ts'
import { registerSimulateQueue } from './simulate/queue.ts'
import { registerSimulateSwf } from './simulate/swf.ts'

const EXAMPLES = `
Examples:
  muster simulate fleet --nodes 1000 --gangs 10000         needs no file
  muster simulate queue jobs.jsonl --help                  each with its own options and examples
`

export function registerSimulate(program: Command, context: CliContext, outcome: Outcome): void {
  const simulate = program
    .command('simulate')
    .description('a scheduling policy against a trace: what it gives away, who waits, how fast it decides')
    .addHelpText('after', EXAMPLES)
  for (const register of [
    registerSimulateOpenb,
    registerSimulateFleet,
    registerSimulateGangs,
    registerSimulateQueue,
    registerSimulateSwf,
  ])
    register(simulate, context, outcome)
}
