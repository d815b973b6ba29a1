/** `muster copy TARGET SRC… DEST`: files and directories of this machine to every host. */
import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { MusterError } from '../../base/errors.ts'
import { expandWord } from '../../ops/run/command-template.ts'
import type { CopyVia } from '../../ssh/copy/passing.ts'
import type { CliContext, Outcome } from '../command-line/context.ts'
import { refuseEmptyPaths } from './paths.ts'
import type { CopyReportOptions } from './report.ts'

type CopyOptions = CopyReportOptions & { readonly via: CopyVia; readonly specialBits?: boolean }

const EXAMPLES = `
Examples:
  muster copy all app.conf /etc/app/             into a directory (the slash makes it where it is missing)
  muster copy @workers data model.bin /srv       directories and files, with modes and times
  muster copy m[8-10] env.sh '.env-%h'           a name for each host: %h name, %n number, %u user
  muster copy all --dry-run site/. /srv/www      what would change: the contents of site into /srv/www

DEST is taken as by cp; without a leading slash it is in the home directory. Identical files (by SHA-256) are left alone,
others are replaced whole, without a question: each is written beside its target and renamed when its checksum agrees.
After a cut, the same command carries on where it was. Sources that would overwrite each other (a/x and b/x, or x and X
where case is ignored) are refused before anything is written. Owners are not copied. Setuid, setgid and sticky bits are
copied only with --special-bits, and only if the copy has the same user (for setgid: and group) number as the original.
Where hosts turn out to share the destination (a home over NFS), one of them writes and all check every file.
Large files to three or more hosts that can reach each other go from host to host where that is measured to be faster.
Exit codes: 0 all well, 1 something failed somewhere, 4 some host could not be reached, 130 interrupted.
`

export function registerCopy(program: Command, context: CliContext, outcome: Outcome): void {
  program
    .command('copy')
    .description('files and directories to every host of the target')
    .argument('<target>', 'hosts: m[8-10], @workers, all, root@h1,h2:2222')
    .argument('<paths...>', 'one or more sources here, then the destination on the hosts')
    .option('--dry-run', 'looks at the hosts and says what would be copied')
    .option('--special-bits', 'keep setuid, setgid and sticky bits where the owner is the same (default: drop them)')
    .addOption(
      new Option('--via <way>', 'large files from here to every host, or along a chain of hosts')
        .choices(['auto', 'chain', 'direct'])
        .default('auto'),
    )
    .addHelpText('after', EXAMPLES)
    .action(async (target: string, paths: readonly string[], _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<CopyOptions>()
      outcome.exitCode = await copy(target, paths, options, context)
    })
}

async function copy(
  target: string,
  paths: readonly string[],
  options: CopyOptions,
  context: CliContext,
): Promise<number> {
  const destination = paths.at(-1)
  if (destination === undefined || paths.length < 2) {
    throw new MusterError('usage', 'a source and a destination are needed', {
      hint: 'As in: muster copy m[8-10] app.conf /etc/app/',
    })
  }
  refuseEmptyPaths(paths)
  const [{ selectEndpoints, openCopyWires }, { CopyReport }, { copyToHosts }, { scanSources }, { bytePathOf }] =
    await Promise.all([
      import('./prepare.ts'),
      import('./report.ts'),
      import('../../ssh/copy/copy-to-hosts.ts'),
      import('../../ssh/copy/source.ts'),
      import('../../ssh/copy/byte-path.ts'),
    ])
  const endpoints = await selectEndpoints(target, options, context)
  const sources = paths.slice(0, -1).map((path) => {
    // `site/.` means what is in it: resolve would drop the dot.
    const absolute = resolve(context.workingDirectory, path)
    return bytePathOf(/(^|\/)\.\/*$/.test(path) ? `${absolute}/.` : absolute)
  })
  const tree = await scanSources(sources, { keepsSpecialBits: options.specialBits === true })
  const report = new CopyReport(
    endpoints.map(({ host }) => host),
    options,
    context,
  )
  for (const problem of tree.problems) report.problem(problem)
  if (tree.entries.length === 0) throw new MusterError('usage', 'there is nothing to copy')
  using wires = openCopyWires(endpoints.length, context, options)
  await copyToHosts(
    endpoints,
    {
      tree,
      isDryRun: options.dryRun === true,
      via: options.via,
      onPath: (event) => report.path(event),
      destinationOf: (endpoint) => expandWord(destination, endpoint),
    },
    { ...wires, onEvent: (event) => report.handle(event) },
  )
  return report.finish(tree.problems)
}
