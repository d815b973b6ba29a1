/** `muster fetch TARGET SRC… DIR`: files and directories of every host into DIR/HOST here. */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { MusterError } from '../../base/errors.ts'
import { expandWord } from '../../ops/run/command-template.ts'
import type { CliContext, Outcome } from '../command-line/context.ts'
import { refuseEmptyPaths } from './paths.ts'
import type { CopyReportOptions } from './report.ts'

type FetchOptions = CopyReportOptions & { readonly specialBits?: boolean }

const EXAMPLES = `
Examples:
  muster fetch all /etc/hosts ./etc              etc/m8/hosts, etc/m9/hosts, …
  muster fetch @workers results logs ./out       directories and files, with modes and times
  muster fetch all '/var/log/%h.log' ./logs      a name for each host: %h name, %n number, %u user
  muster fetch all '~/data/.' ./data             what is in a directory, without its name

Sources without a leading slash are in the home directory; patterns are not expanded. Identical files (by SHA-256) are left
alone, others are replaced whole, without a question, once their checksum agrees. After a cut, the same command carries on.
Sources that would overwrite each other (a/x and b/x, or x and X where case is ignored) are refused before anything is written.
Setuid, setgid and sticky bits are kept only with --special-bits, and only where the host says that your user number owns
the file: such a program then runs as you for everybody here, so use it only with hosts that you trust.
Exit codes: 0 all well, 1 something failed somewhere, 4 some host could not be reached, 130 interrupted.
`

export function registerFetch(program: Command, context: CliContext, outcome: Outcome): void {
  program
    .command('fetch')
    .description('files and directories from every host of the target')
    .argument('<target>', 'hosts: m[8-10], @workers, all, root@h1,h2:2222')
    .argument('<paths...>', 'one or more sources on the hosts, then a directory here')
    .option('--dry-run', 'looks at the hosts and says what there is to fetch')
    .option('--special-bits', 'keep setuid, setgid and sticky bits where the owner is the same (default: drop them)')
    .addHelpText('after', EXAMPLES)
    .action(async (target: string, paths: readonly string[], _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<FetchOptions>()
      outcome.exitCode = await fetchFiles(target, paths, options, context)
    })
}

async function fetchFiles(
  target: string,
  paths: readonly string[],
  options: FetchOptions,
  context: CliContext,
): Promise<number> {
  const directory = paths.at(-1)
  if (directory === undefined || paths.length < 2) {
    throw new MusterError('usage', 'a source and a directory are needed', {
      hint: 'As in: muster fetch m[8-10] /etc/hosts ./etc',
    })
  }
  refuseEmptyPaths(paths)
  const [{ selectEndpoints, openCopyWires }, { CopyReport }, { fetchFromHosts }] = await Promise.all([
    import('./prepare.ts'),
    import('./report.ts'),
    import('../../ssh/copy/fetch-from-hosts.ts'),
  ])
  const endpoints = await selectEndpoints(target, options, context)
  const hosts = endpoints.map(({ host }) => host)
  const report = new CopyReport(hosts, options, context)
  using wires = openCopyWires(endpoints.length, context, options)
  await fetchFromHosts(
    endpoints,
    {
      sourcesOf: (endpoint) => paths.slice(0, -1).map((path) => expandWord(path, endpoint)),
      directory: resolve(context.workingDirectory, directory),
      isDryRun: options.dryRun === true,
      keepsSpecialBits: options.specialBits === true,
    },
    { ...wires, onEvent: (event) => report.handle(event) },
  )
  return report.finish([])
}
