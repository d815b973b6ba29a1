/** `muster run TARGET -- COMMAND…`: one command on every host of the target, and nothing of it left behind on any. */
import type { Command } from 'commander'
import { Option } from 'commander'
import type { CliContext, GlobalOptions, Outcome } from '../command-line/context.ts'
import type { RunPlan } from './plan-run.ts'

export type RunCommandOptions = GlobalOptions & {
  readonly fold?: boolean
  readonly diff?: boolean
  readonly out?: string
  readonly script?: string
  readonly stdin?: string
  readonly env?: readonly string[]
  readonly sudo?: boolean
  readonly raw?: boolean
  readonly retryFailed?: boolean
}

const EXAMPLES = `
Examples:
  muster run all -- uptime                       lines as they come; on a terminal, equal output is folded
  muster run @workers --diff -- cat /etc/fstab   who differs from the majority, and in what
  muster run m[8-10] --json -- nproc             one JSON object a host, bytes as they are (docs/json.md)
  muster run all --script ./fix.py -- --force    a local file, by its own #! line
  muster run all --sudo -- systemctl restart x   asks for one password, and sends it to sudo's prompt only
  muster run all -- 'echo %h is number %n'       %h %n %u: name, number and user of each host (%%h or --raw: as it is)
  muster run --retry-failed                      the last command, where it did not succeed

After --timeout, Ctrl-C, or the end of muster itself, what it started on the hosts is ended.
Exit codes: 0 all well, 1 it failed somewhere, 4 some host could not be reached, 130 interrupted.
`

function collect(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value]
}

export function registerRun(program: Command, context: CliContext, outcome: Outcome): void {
  program
    .command('run')
    .description('runs a command on every host of the target')
    .argument('[target]', 'hosts: m[8-10], @workers, all, root@h1,h2:2222')
    .argument('[command...]', 'what runs in the login shell of each host; with --script its arguments')
    .option('--fold', 'groups of hosts with equal output (default on a terminal with more than one host)')
    .option('--no-fold', 'lines as they come')
    .option('--diff', 'what differs from the output of most hosts')
    .option('--out <dir>', 'files HOST.out and HOST.err there')
    .option('--script <file>', 'runs this local file')
    .option('--stdin <file>', 'what the command reads (-: stdin)')
    .addOption(new Option('--env <k=v>', 'a variable for the command (may be repeated)').argParser(collect))
    .option('--sudo', 'runs it as root')
    .option('--raw', 'leaves %h %n %u alone')
    .option('--retry-failed', 'the last command again on the hosts where it did not succeed')
    .option('--dry-run', 'says what would run where')
    .addHelpText('after', EXAMPLES)
    .action(async (target: string | undefined, words: readonly string[], _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<RunCommandOptions>()
      const { planRun } = await import('./plan-run.ts')
      // The code that runs it is loaded while ssh -G answers for each host.
      const [plan, { executeRun }] = await Promise.all([
        planRun(target, words, options, context),
        import('./execute-run.ts'),
      ])
      if (options.dryRun) {
        sayPlan(plan, options, context)
        return
      }
      outcome.exitCode = await executeRun(plan, options, context)
    })
}

function sayPlan({ hosts }: RunPlan, { json }: GlobalOptions, { stdout, now }: CliContext): void {
  const time = new Date(now()).toISOString()
  for (const { endpoint, command } of hosts) {
    const told = { type: 'would-run', host: endpoint.host, command, time }
    stdout.write(json === true ? `${JSON.stringify(told)}\n` : `${endpoint.host}: ${command}\n`)
  }
}
