/** `muster copy TARGET SRC… DEST`: files and directories of this machine to every host; `muster fetch TARGET SRC… DIR`: of every host into DIR/HOST here. */
import { resolve } from 'node:path'
import { Option } from 'commander'
import { systemClock } from '../../base/clock.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { expandWord } from '../../ops/run/command-template.ts'
import { bytePathOf } from '../../ssh/copy/byte-path.ts'
import { copyToHosts } from '../../ssh/copy/copy-to-hosts.ts'
import type { CopyEvent, CopyVia, PathEvent } from '../../ssh/copy/events.ts'
import { fetchFromHosts } from '../../ssh/copy/fetch-from-hosts.ts'
import type { CopyWires } from '../../ssh/copy/on-each-host.ts'
import { hostInPath } from '../../ssh/copy/remote-path.ts'
import { scanSources } from '../../ssh/copy/source.ts'
import type { CliContext, GlobalOptions, VerbCode } from '../command-line/verb.ts'
import { selectEndpoints } from '../connect/endpoints.ts'
import { createVerbWires, fanOutFor } from '../connect/transports.ts'
import { TtyDialog } from '../connect/tty-dialog.ts'
import { CopyReport } from './report.ts'

/**
 * Sources, and the last path. An empty one is a variable that was never set: as the current directory it would copy all of that.
 * @throws MusterError `usage`
 */
function splitPaths(
  target: string,
  paths: readonly string[],
  last: string,
  example: string,
): [readonly string[], string] {
  const end = paths.at(-1)
  if (end === undefined || paths.length < 2) {
    const asScp = end === undefined ? undefined : scpWords(target, end)
    const hint = asScp === undefined ? `Example: ${example}` : `Run: ${asScp}`
    throw new MusterError('usage', `copying needs a source and a ${last}`, { hint })
  }
  if (paths.includes(''))
    throw new MusterError('usage', 'a path is empty', {
      hint: 'Is a variable not set? Write . for the current directory, and ~ for the home directory of a host.',
    })
  return [paths.slice(0, -1), end]
}

/** `HOST:PATH` */
const SCP_PATH = /^((?:[^\s@:/]+@)?[^\s@:/]+):([/~.].*)$/

/** What somebody meant who typed it as for scp; undefined: nothing that is known. */
function scpWords(from: string, to: string): string | undefined {
  const command = (verb: string, [, host = '', there = '']: readonly string[], ...here: readonly [string] | []) => {
    const paths = verb === 'fetch' ? [there, ...here] : [...here, there]
    return printable(['muster', verb, ...[host, ...paths].map(shellQuote)].join(' '))
  }
  const [source, destination] = [SCP_PATH.exec(from), SCP_PATH.exec(to)]
  if (source !== null && destination === null) return command('fetch', source, to)
  return source === null && destination !== null ? command('copy', destination, from) : undefined
}

type CopyOptions = GlobalOptions & { readonly via: CopyVia; readonly specialBits?: boolean }

type CopyCall = {
  readonly endpoints: readonly Endpoint[]
  readonly wires: CopyWires
  readonly report: CopyReport
  readonly sources: readonly string[]
  /** The last path. */
  readonly destination: string
  readonly options: CopyOptions
  readonly workingDirectory: string
}

type CopyWords = {
  /** In the help of the paths and of `--dry-run`. */
  readonly paths: string
  readonly done: string
  /** Of bytes, in the last line. */
  readonly moved: string
  readonly last: string
  readonly example: string
  readonly help: string
  /** Those of the paths that are on hosts. */
  remotePaths(sources: readonly string[], last: string): readonly string[]
}

/** `work` returns the exit code. */
const copyVerb = (
  { paths, done, moved, last, example, help, remotePaths }: CopyWords,
  work: (call: CopyCall) => Promise<number>,
): VerbCode => ({
  define: (command) =>
    command
      .argument('<target>', 'hosts: m[8-10], @workers, all, root@h1,h2:2222')
      .argument('<paths...>', `one or more ${paths}`)
      .option('--dry-run', `check the hosts and show what would be ${done}`)
      .option('--special-bits', 'keep setuid, setgid and sticky bits where the owner is the same (default: drop them)'),
  help,
  async run(target: string, given: readonly string[], options: CopyOptions, context: CliContext) {
    const [sources, destination] = splitPaths(target, given, last, example)
    const wrong = remotePaths(sources, destination)
      .map(hostInPath)
      .find((error) => error !== undefined)
    if (wrong !== undefined) throw wrong
    const { endpoints } = await selectEndpoints(target, options, context)
    if (endpoints.length === 0) throw new MusterError('usage', 'the target names no host')
    const fanOut = fanOutFor(endpoints.length, options, context)
    const hosts = endpoints.map(({ host }) => host)
    using report = new CopyReport(hosts, moved, options, context)
    using verbWires = createVerbWires(context, options.persist, report.quietly(new TtyDialog()))
    const { signal, workingDirectory } = context
    const onEvent = (event: CopyEvent) => report.handle(event)
    const wires = { ...verbWires, clock: systemClock, fanOut, signal, onEvent }
    return await work({ endpoints, wires, report, sources, destination, options, workingDirectory })
  },
})

const sends = copyVerb(
  {
    paths: 'local sources, then the destination on the hosts',
    done: 'copied',
    moved: 'sent from here',
    last: 'destination',
    example: "muster copy 'm[8-10]' app.conf /etc/app/",
    help: `
Examples:
  muster copy all app.conf /etc/app/             copy into a directory; the trailing slash creates it if missing
  muster copy @workers data model.bin /srv       directories and files, with modes and times
  muster copy 'm[8-10]' env.sh '.env-%h'         a different name on each host: %h name, %n number, %u user
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
    remotePaths: (_, destination) => [destination],
  },
  async ({ endpoints, wires, report, sources, destination, options, workingDirectory }) => {
    const paths = sources.map((path) => {
      // `site/.` means what is in it: resolve would drop the dot.
      const absolute = resolve(workingDirectory, path)
      return bytePathOf(/(^|\/)\.\/*$/.test(path) ? `${absolute}/.` : absolute)
    })
    const tree = await scanSources(paths, { keepsSpecialBits: options.specialBits === true })
    for (const problem of tree.problems) report.problem(problem)
    if (tree.entries.length === 0) throw new MusterError('usage', 'there is nothing to copy')
    const request = {
      tree,
      isDryRun: options.dryRun === true,
      via: options.via,
      onPath: (event: PathEvent) => report.path(event),
      destinationOf: (endpoint: Endpoint) => expandWord(destination, endpoint),
    }
    await copyToHosts(endpoints, request, wires)
    return report.finish(tree.problems)
  },
)

export const copy: VerbCode = {
  ...sends,
  define(command) {
    sends.define?.(command)
    command.addOption(
      new Option(
        '--via <path>',
        'send large files to every host from here (direct), from host to host (chain), or the faster way (auto)',
      )
        .choices(['auto', 'chain', 'direct'])
        .default('auto'),
    )
  },
}

export const fetch = copyVerb(
  {
    paths: 'sources on the hosts, then a local directory',
    done: 'fetched',
    moved: 'received',
    last: 'directory',
    example: "muster fetch 'm[8-10]' /etc/hosts ./etc",
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
    remotePaths: (sources) => sources,
  },
  async ({ endpoints, wires, report, sources, destination, options, workingDirectory }) => {
    const request = {
      sourcesOf: (endpoint: Endpoint) => sources.map((path) => expandWord(path, endpoint)),
      directory: resolve(workingDirectory, destination),
      isDryRun: options.dryRun === true,
      keepsSpecialBits: options.specialBits === true,
    }
    await fetchFromHosts(endpoints, request, wires)
    return report.finish([])
  },
)
