/** `muster copy TARGET SRC… DEST`: files and directories of this machine to every host. */
import { resolve } from 'node:path'
import { Option } from 'commander'
import { MusterError } from '../../base/errors.ts'
import { expandWord } from '../../ops/run/command-template.ts'
import { bytePathOf } from '../../ssh/copy/byte-path.ts'
import { copyToHosts } from '../../ssh/copy/copy-to-hosts.ts'
import type { CopyVia } from '../../ssh/copy/events.ts'
import { scanSources } from '../../ssh/copy/source.ts'
import type { CliContext } from '../command-line/context.ts'
import type { VerbCode } from '../command-line/verb.ts'
import { prepareCopy, splitPaths } from './prepare.ts'
import type { CopyReportOptions } from './report.ts'

type CopyOptions = CopyReportOptions & { readonly via: CopyVia; readonly specialBits?: boolean }

export const verb: VerbCode = {
  define: (command) =>
    command
      .argument('<target>', 'hosts: m[8-10], @workers, all, root@h1,h2:2222')
      .argument('<paths...>', 'one or more local sources, then the destination on the hosts')
      .option('--dry-run', 'check the hosts and show what would be copied')
      .option('--special-bits', 'keep setuid, setgid and sticky bits where the owner is the same (default: drop them)')
      .addOption(
        new Option(
          '--via <path>',
          'send large files to every host from here (direct), from host to host (chain), or the faster way (auto)',
        )
          .choices(['auto', 'chain', 'direct'])
          .default('auto'),
      ),
  help: `
Examples:
  muster copy all app.conf /etc/app/             copy into a directory; the trailing slash creates it if missing
  muster copy @workers data model.bin /srv       directories and files, with modes and times
  muster copy m[8-10] env.sh '.env-%h'           a different name on each host: %h name, %n number, %u user
  muster copy all --dry-run site/. /srv/www      show what copying the contents of site to /srv/www would change

The destination works as in cp; without a leading slash it is in the home directory. Identical files (by SHA-256) are skipped.
Others are replaced without asking: each is written to a partial file, checked, and renamed into place. After an interruption, the
same command continues where it stopped. Sources that would overwrite each other (a/x and b/x, or x and X where case is ignored)
are refused before anything is written. Owners are not copied. Setuid, setgid and sticky bits are copied only with --special-bits,
and only if the copy has the same user ID as the original (for setgid, also the same group ID).
If hosts share the destination (such as a home directory over NFS), one host writes and all of them verify every file.
With --via auto, a large file for three or more hosts goes from host to host if Muster measures that this is faster.
Exit codes: 0 all ok, 1 something failed on a host, 4 a host could not be reached, 130 interrupted.
`,
  run: copy,
}

async function copy(
  target: string,
  paths: readonly string[],
  options: CopyOptions,
  context: CliContext,
): Promise<number> {
  const [given, destination] = splitPaths(paths, 'destination', 'muster copy m[8-10] app.conf /etc/app/')
  using prepared = await prepareCopy(target, options, context)
  const { endpoints, wires, report } = prepared
  const sources = given.map((path) => {
    // `site/.` means what is in it: resolve would drop the dot.
    const absolute = resolve(context.workingDirectory, path)
    return bytePathOf(/(^|\/)\.\/*$/.test(path) ? `${absolute}/.` : absolute)
  })
  const tree = await scanSources(sources, { keepsSpecialBits: options.specialBits === true })
  for (const problem of tree.problems) report.problem(problem)
  if (tree.entries.length === 0) throw new MusterError('usage', 'there is nothing to copy')
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
