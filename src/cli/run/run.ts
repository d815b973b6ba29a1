/** `muster run TARGET -- COMMAND…`: one command on every host of the target, with nothing left behind. */
import { InvalidArgumentError, Option } from 'commander'
import { persistMsOf } from '../../ssh/persist/warm-connections.ts'
import { variable } from '../command-line/options.ts'
import { type CliContext, EXIT, type VerbCode, type WorkInKeeper } from '../command-line/verb.ts'
import { writeEvent } from '../output/json-lines.ts'
import type { RunPlan, RunVerbOptions } from './plan-run.ts'

/** `2` or `25%`, at least one host. */
function batchSize(text: string): (hosts: number) => number {
  const [, digits, percent] = /^(\d{1,9})(%?)$/.exec(text.trim()) ?? []
  const value = Number(digits ?? 0)
  if (value < 1 || (percent === '%' && value > 100))
    throw new InvalidArgumentError('It must be a number of hosts or a percentage of them, such as 2 or 25%.')
  return (hosts) => (percent === '%' ? Math.max(1, Math.floor((hosts * value) / 100)) : value)
}

/** It reads or writes what only the user's own process has: stdin, its umask, its terminal. */
const needsOwnProcess = ({ serial, stdin, out, verbose }: RunVerbOptions): boolean =>
  [serial, stdin, out, verbose].some((option) => option !== undefined && option !== false)

/** No question can come up, and it needs nothing of the user's process; also with `--retry-failed`, whose plan says what it repeats. */
function fitsKeeper(plan: RunPlan, { persist }: RunVerbOptions, { connections }: WorkInKeeper): boolean {
  const warm = connections(persist)
  const keptMs = persist === undefined ? undefined : persist * 1000
  if (plan.isSudo || plan.script !== undefined || plan.stdin !== undefined) return false
  return plan.hosts.every(
    ({ endpoint }) => endpoint.transport === 'ssh2' && persistMsOf(endpoint, keptMs) > 0 && warm.has(endpoint),
  )
}

export const verb: VerbCode = {
  define: (command) =>
    command
      .argument('[target]', 'hosts: m[8-10], @workers, all, root@h1,h2:2222')
      .argument('[command...]', 'command for the login shell of each host; with --script, arguments of the script')
      .option('--fold', 'fold hosts with equal output (default on a terminal with more than one host)')
      .option('--no-fold', 'print lines as they come')
      .option('--diff', 'show how the output of each host differs from the majority')
      .option('--out <dir>', 'write HOST.out and HOST.err to this directory')
      .option('--script <file>', 'run this local file')
      .option('--stdin <file>', 'send this file to the command (-: stdin)')
      .addOption(
        new Option('--env <k=v>', 'set a variable for the command; can be given several times').argParser(variable),
      )
      .option('--sudo', 'run as root')
      .option('--raw', 'do not expand %h, %n and %u in the command')
      .option('--retry-failed', 'run the last command again on the hosts where it failed')
      .option('--fail-fast', 'start the command on no more hosts after the first failure; where it runs, it finishes')
      .addOption(
        new Option(
          '--serial <n>',
          'run on N hosts, or N% of them, at a time; after a failure, ask before the next ones',
        ).argParser(batchSize),
      )
      .option('--until-ok', 'run the command again where it failed, after 1 to 30 seconds, until it succeeds')
      .option(
        '--timeout <s>',
        'stop the command on a host after S seconds, with --until-ok after all attempts together (default: no limit)',
      )
      .option('--dry-run', 'show what would run where'),
  help: `
Examples:
  muster run all -- uptime                       lines as they come; on a terminal, equal output is folded
  muster run @workers --diff -- cat /etc/fstab   which hosts differ from the majority, and how
  muster run 'm[8-10]' --json -- nproc           one JSON object per host, output unchanged (docs/json.md)
  muster run all --script ./fix.py -- --force    a local script, run by the interpreter of its #! line
  muster run all --sudo -- systemctl restart x   ask for one password, and send it only to sudo's prompt
  muster run all -- 'echo %h is number %n'       %h %n %u: name, position in hosts.yaml, user (%%h or --raw: unchanged)
  muster run --retry-failed                      run the last command again where it failed
  muster run all --serial 2 -- ./update          two hosts at a time; asks after a failure (--yes: goes on)
  muster run m8 --until-ok --timeout 300 -- true wait until a host is back, for 5 minutes at most

As with ssh, all that follows the first word of the command belongs to it, so Muster's own options come before it:
muster run all --json uptime. A -- before the command is only needed if its first word starts with "-".
Without a terminal, --serial stops after a batch with a failure and names the hosts where it did not start.
Everything that the command started on the hosts is stopped after --timeout, after Ctrl-C, and when Muster itself ends.
Exit codes: 0 all ok, 1 the command failed on a host, 4 a host could not be reached, 130 interrupted.
`,
  async run(target: string | undefined, words: readonly string[], options: RunVerbOptions, context: CliContext) {
    const { inKeeper } = context
    const decline = () => {
      inKeeper?.decline()
      return EXIT.ok
    }
    if (inKeeper !== undefined && needsOwnProcess(options)) return decline()
    const { planRun } = await import('./plan-run.ts')
    // The code that runs it is loaded while ssh -G answers for each host.
    const [plan, { executeRun, MANY_HOSTS }] = await Promise.all([
      planRun(target, words, options, context),
      import('./execute-run.ts'),
    ])
    if (inKeeper !== undefined) {
      if (plan.hosts.length >= MANY_HOSTS || !fitsKeeper(plan, options, inKeeper)) return decline()
      inKeeper.accept()
    }
    if (!options.dryRun) return await executeRun(plan, options, context)
    for (const { endpoint, command } of plan.hosts) {
      if (options.json) writeEvent({ type: 'would-run', host: endpoint.host, command }, context)
      else context.stdout.write(`${endpoint.host}: ${command}\n`)
    }
    return EXIT.ok
  },
}
