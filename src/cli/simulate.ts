/** `muster simulate …`: a scheduling policy against a trace; each simulation loads its own code. */
import type { Command } from 'commander'
import type { CliContext, Outcome } from './context.ts'
import { registerSimulateFleet } from './simulate/fleet.ts'
import { registerSimulateGangs } from './simulate/gangs.ts'
import { registerSimulateOpenb } from './simulate/openb.ts'
import { registerSimulateQueue } from './simulate/queue.ts'
import { registerSimulateSwf } from './simulate/swf.ts'

export function registerSimulate(program: Command, context: CliContext, outcome: Outcome): void {
  const simulate = program
    .command('simulate')
    .description('a scheduling policy against a trace: what it gives away, who waits, how fast it decides')
  for (const register of [
    registerSimulateOpenb,
    registerSimulateFleet,
    registerSimulateGangs,
    registerSimulateQueue,
    registerSimulateSwf,
  ])
    register(simulate, context, outcome)
}
