/** `muster completion SHELL`: the script that makes a shell complete muster's command line. */
import { Argument } from 'commander'
import { type CliContext, EXIT, type VerbCode } from '../command-line/verb.ts'
import { SHELLS } from './shells.ts'

const lines = Object.entries(SHELLS).map(([name, { install }]) => `  ${name.padEnd(6)}${install}`)

export const verb: VerbCode = {
  define: (command) => command.addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(SHELLS))),
  help: `
Examples:
  muster completion bash            print the script
  source <(muster completion bash)  complete in this shell

To complete in every new shell:
${lines.join('\n')}

Tab completes verbs, options, hosts and @groups of hosts.yaml (without one: names
in ~/.ssh/config), jobs, studies, launchers, areas and files. It connects to no host.
`,
  run(shell: string, _options: object, { stdout }: CliContext) {
    stdout.write(SHELLS[shell]?.script ?? '')
    return EXIT.ok
  },
}
