/** `muster env`: the software environment of hosts.yaml by itself. */
import type { Command } from 'commander'
import type { BringUpOptions } from './bring-up/prepare.ts'
import type { CliContext, Outcome } from './context.ts'

const EXAMPLES = `
Examples:
  muster env check                  in what the hosts differ: packages, Python, C library, driver, image; looks only

Exit codes: 0 all is well (check: nothing differs but notes), 1 it is not, 4 some host could not be reached,
5 it could not be completed.
`

export function registerEnv(program: Command, context: CliContext, outcome: Outcome): void {
  const env = program
    .command('env')
    .description('the software environment of the hosts, as hosts.yaml declares it')
    .addHelpText('after', EXAMPLES)
  const check = env
    .command('check')
    .description('in what the environments of the hosts differ')
    .option('--on <target>', 'only these hosts')
  check.action(async () => {
    const { checkEnvironment } = await import('./env/check.ts')
    outcome.exitCode = await checkEnvironment(check.optsWithGlobals<BringUpOptions>(), context)
  })
}
