/** What the command lines of up, down and status have in common. */
import type { Command } from 'commander'
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
    .argument('[areas...]', 'trust, nfs, ray (default: all that hosts.yaml declares)')
    .option('--on <target>', 'only these hosts of the areas')
    .addHelpText('after', examples)
  if (canDryRun) command.option('--dry-run', 'shows the plan and does nothing')
  command.action(async (areas: readonly string[]) => await run(areas, command.optsWithGlobals<BringUpOptions>()))
}
