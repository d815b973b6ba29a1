/** `muster completion SHELL`: the script with which a shell completes muster's command line. */
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

For all shells to come:
${lines.join('\n')}

Tab completes verbs, options, hosts and @groups of hosts.yaml, jobs, studies, areas and files. No host is asked.
`,
  run(shell: string, _options: object, { stdout }: CliContext) {
    stdout.write(SHELLS[shell]?.script ?? '')
    return EXIT.ok
  },
}
