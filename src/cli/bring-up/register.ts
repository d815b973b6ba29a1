/** What the command lines of up, down and status have in common. */
import type { Command } from 'commander'
import type { CliContext, Outcome } from '../command-line/context.ts'
import type { BringUpOptions } from './prepare.ts'

type Verb = {
  readonly name: string
  readonly description: string
  readonly examples: string
  readonly canDryRun: boolean
  run(areas: readonly string[], options: BringUpOptions): Promise<void>
}

export function registerVerb(program: Command, { name, description, examples, canDryRun, run }: Verb): void {
  const command = program
    .command(name)
    .description(description)
    .argument('[areas...]', 'trust, nfs, env, ray (default: all that hosts.yaml declares)')
    .option('--on <target>', 'only these hosts of the areas')
    .addHelpText('after', examples)
  if (canDryRun) command.option('--dry-run', 'shows the plan and does nothing')
  command.action(async (areas: readonly string[]) => await run(areas, command.optsWithGlobals<BringUpOptions>()))
}

/** `check` is `status` that may write what it removes again. */
type AreaVerb = 'status' | 'check' | 'up' | 'down'

/** The verbs of one area below its own command, each with its description. */
export function registerAreaVerbs(
  parent: Command,
  area: string,
  verbs: readonly (readonly [AreaVerb, string])[],
  context: CliContext,
  outcome: Outcome,
): void {
  for (const [name, description] of verbs) {
    const command = parent.command(name).description(description).option('--on <target>', 'only these hosts')
    if (name === 'up' || name === 'down') command.option('--dry-run', 'shows the plan and does nothing')
    command.action(async () => {
      const options = command.optsWithGlobals<BringUpOptions>()
      if (name === 'up' || name === 'down') {
        const { change } = await import('./change.ts')
        outcome.exitCode = await change(name, [area], options, context)
      } else {
        const { showStatus } = await import('./show-status.ts')
        outcome.exitCode = await showStatus([area], options, context, name === 'check' ? 'proof' : 'look')
      }
    })
  }
}
