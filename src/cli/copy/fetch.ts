/** `muster fetch TARGET SRC… DIR`: files and directories of every host into DIR/HOST here. */
import { resolve } from 'node:path'
import { expandWord } from '../../ops/run/command-template.ts'
import { fetchFromHosts } from '../../ssh/copy/fetch-from-hosts.ts'
import type { CliContext } from '../command-line/context.ts'
import type { VerbCode } from '../command-line/verb.ts'
import { prepareCopy, splitPaths } from './prepare.ts'
import type { CopyReportOptions } from './report.ts'

type FetchOptions = CopyReportOptions & { readonly specialBits?: boolean }

export const verb: VerbCode = {
  define: (command) =>
    command
      .argument('<target>', 'hosts: m[8-10], @workers, all, root@h1,h2:2222')
      .argument('<paths...>', 'one or more sources on the hosts, then a local directory')
      .option('--dry-run', 'check the hosts and show what would be fetched')
      .option('--special-bits', 'keep setuid, setgid and sticky bits where the owner is the same (default: drop them)'),
  help: `
Examples:
  muster fetch all /etc/hosts ./etc              etc/m8/hosts, etc/m9/hosts, …
  muster fetch @workers results logs ./out       directories and files, with modes and times
  muster fetch all '/var/log/%h.log' ./logs      a different name on each host: %h name, %n number, %u user
  muster fetch all '~/data/.' ./data             the contents of a directory, without its name

Sources without a leading slash are in the home directory; patterns are not expanded. Identical files (by SHA-256) are skipped.
Others are replaced without asking, once their checksum matches. After an interruption, the same command continues where it
stopped. Sources that would overwrite each other (a/x and b/x, or x and X where case is ignored) are refused before anything is
written. Setuid, setgid and sticky bits are kept only with --special-bits, and only if the host reports your user ID as the owner.
Anyone on this machine can then run such a program with your rights, so use --special-bits only with hosts that you trust.
Exit codes: 0 all ok, 1 something failed on a host, 4 a host could not be reached, 130 interrupted.
`,
  run: fetchFiles,
}

async function fetchFiles(
  target: string,
  paths: readonly string[],
  options: FetchOptions,
  context: CliContext,
): Promise<number> {
  const [sources, directory] = splitPaths(paths, 'directory', 'muster fetch m[8-10] /etc/hosts ./etc')
  using prepared = await prepareCopy(target, options, context)
  const { endpoints, wires, report } = prepared
  await fetchFromHosts(
    endpoints,
    {
      sourcesOf: (endpoint) => sources.map((path) => expandWord(path, endpoint)),
      directory: resolve(context.workingDirectory, directory),
      isDryRun: options.dryRun === true,
      keepsSpecialBits: options.specialBits === true,
    },
    { ...wires, onEvent: (event) => report.handle(event) },
  )
  return report.finish([])
}
