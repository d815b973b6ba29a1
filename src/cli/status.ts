/** `muster status [AREA…]`: how each host stands against what hosts.yaml declares; it changes nothing. */
import type { Command } from 'commander'
import { registerVerb } from './bring-up/register.ts'
import type { CliContext, Outcome } from './command-line/context.ts'

const EXAMPLES = `
Examples:
  muster status                    every area of hosts.yaml on each of its hosts
  muster status trust --json       one object a host and area

good: as declared, and it works · missing: nothing of it is there · differs: otherwise than declared · failed: as declared, and
it does not work · blocked: up could not bring it about · away: the host was not reached.
Exit codes: 0 all good, 1 something is not, 4 some host could not be reached.
`

export function registerStatus(program: Command, context: CliContext, outcome: Outcome): void {
  registerVerb(program, {
    name: 'status',
    description: 'how the hosts stand against what hosts.yaml declares',
    examples: EXAMPLES,
    canDryRun: false,
    async run(areas, options) {
      const { showStatus } = await import('./bring-up/show-status.ts')
      outcome.exitCode = await showStatus(areas, options, context)
    },
  })
}
