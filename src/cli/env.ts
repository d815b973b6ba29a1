/** `muster env`: the software environment of hosts.yaml by itself. */
import type { Command } from 'commander'
import type { BringUpOptions } from './bring-up/prepare.ts'
import type { CliContext, Outcome } from './command-line/context.ts'
import { addExamples } from './command-line/help-examples.ts'

const EXAMPLES = `
Examples:
  muster env check                  in what the hosts differ: packages, Python, C library, driver, image; looks only
  muster env status                 how each host stands against hosts.yaml
  muster env up --dry-run           what would be made, brought and installed
  muster env sync --on m8           mends one host; where nothing differs nothing is done
  muster env down                   removes what Muster made, and nothing else

Exit codes: 0 all is well (check: nothing differs but notes), 1 it is not, 4 some host could not be reached,
5 it could not be completed.
`

const VERBS = [
  ['check', 'in what the environments of the hosts differ'],
  ['status', 'compares with hosts.yaml; changes nothing'],
  ['up', 'makes the environment that hosts.yaml declares on its hosts'],
  ['sync', 'mends what differs: the same as up'],
  ['down', 'removes what Muster made'],
] as const

export function registerEnv(program: Command, context: CliContext, outcome: Outcome): void {
  const env = program.command('env').description('the software environment of the hosts, as hosts.yaml declares it')
  for (const [name, description] of VERBS) {
    const command = env.command(name).description(description).option('--on <target>', 'only these hosts')
    const isChange = name === 'up' || name === 'sync' || name === 'down'
    if (isChange) command.option('--dry-run', 'shows the plan and does nothing')
    command.action(async () => {
      const options = command.optsWithGlobals<BringUpOptions>()
      if (isChange) {
        const { change } = await import('./bring-up/change.ts')
        outcome.exitCode = await change(name === 'down' ? 'down' : 'up', ['env'], options, context)
      } else if (name === 'check') {
        const { checkEnvironment } = await import('./env/check.ts')
        outcome.exitCode = await checkEnvironment(options, context)
      } else {
        const { showStatus } = await import('./bring-up/show-status.ts')
        outcome.exitCode = await showStatus(['env'], options, context)
      }
    })
  }
  addExamples(env, EXAMPLES)
}
