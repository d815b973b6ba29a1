/** `muster up [AREA…]`: makes what hosts.yaml declares true on its hosts, after the plan was shown. */
import type { Command } from 'commander'
import { registerVerb } from './bring-up/register.ts'
import type { CliContext, Outcome } from './command-line/context.ts'

const EXAMPLES = `
Examples:
  muster up                        everything that hosts.yaml declares: shows the plan, asks, does it, verifies it
  muster up trust --dry-run        the plan alone
  muster up trust --on m[8-9] -y   on two of its hosts, without a question

It may be run again at any time: what is as declared is left alone, and what was cut is carried on.
Exit codes: 0 all is as declared, 4 some host could not be reached, 5 it could not be completed, 130 declined or interrupted.
`

export function registerUp(program: Command, context: CliContext, outcome: Outcome): void {
  registerVerb(program, {
    name: 'up',
    description: 'makes what hosts.yaml declares true on its hosts',
    examples: EXAMPLES,
    canDryRun: true,
    async run(areas, options) {
      const { change } = await import('./bring-up/change.ts')
      outcome.exitCode = await change('up', areas, options, context)
    },
  })
}
