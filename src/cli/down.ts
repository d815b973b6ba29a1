/** `muster down [AREA…]`: takes back what `up` did, and nothing else. */
import type { Command } from 'commander'
import { registerVerb } from './bring-up/register.ts'
import type { CliContext, Outcome } from './command-line/context.ts'

const EXAMPLES = `
Examples:
  muster down trust --dry-run      what would be taken back
  muster down trust                asks, and leaves the hosts as they were before up

Lines and files that are not Muster's stay as they are.
Exit codes: 0 nothing of it is left, 4 some host could not be reached, 5 it could not be completed, 130 declined or interrupted.
`

export function registerDown(program: Command, context: CliContext, outcome: Outcome): void {
  registerVerb(program, {
    name: 'down',
    description: 'takes back what up did on the hosts',
    examples: EXAMPLES,
    canDryRun: true,
    async run(areas, options) {
      const { change } = await import('./bring-up/change.ts')
      outcome.exitCode = await change('down', areas, options, context)
    },
  })
}
