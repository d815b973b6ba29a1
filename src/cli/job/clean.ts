/** `muster job clean`: deletes what ended jobs left on hosts, and on request their records. */

import { counted } from '../../base/counted.ts'
import { JOBS_DIRECTORY } from '../../base/left.ts'
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { reasonOfResult } from '../../ops/kernel/host-port.ts'
import { findSharedHomes } from '../../ops/kernel/shared-home.ts'
import { formatOutcome } from '../../ops/run/outcome.ts'
import { formatCleanProgram, parseCleaned } from '../../scheduler/jobs/left.ts'
import type { JobStore } from '../../scheduler/jobs/store.ts'
import { numberFrom } from '../command-line/options.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { jsonLine } from '../output/json-lines.ts'
import { type ConnectedHosts, connectHosts } from './hosts.ts'
import { openQueue } from './open-queue.ts'

const DAY_MS = 86_400_000
const AT_ONCE = 2_000

type Cleaned = NonNullable<ReturnType<typeof parseCleaned>>

type CleanOptions = GlobalOptions & { readonly olderThan: number; readonly records?: boolean }

export const verb: VerbCode = {
  define: (command) =>
    command
      .option(
        '--older-than <days>',
        'delete only files of jobs that ended at least DAYS days ago; those of the last minute always stay',
        numberFrom(0),
        7,
      )
      .option('--records', 'also delete the records of these jobs from the queue, for good (default: keep them)')
      .option('--dry-run', 'count what would be deleted'),
  help: `
Examples:
  muster job clean --older-than 30 --dry-run
`,
  async run(options: CleanOptions, context: CliContext) {
    using queue = await openQueue(options, context)
    const { store, inventory } = queue
    using hosts = await connectHosts(inventory, options, context)
    // Also what jobs of other hosts need: hosts may share a home.
    const own = { kept: store.keptDirectories(), storages: store.storages() }
    const program = formatCleanProgram(store.id, own, options.olderThan, options.dryRun ?? false)
    const results = await Promise.all(
      inventory.hosts.map(async ({ name }) => ({ name, result: await hosts.exec(name, program, context.signal) })),
    )
    const cleaned = new Map<string, Cleaned>()
    const codes = results.map(({ name, result }) => {
      const { outcome, stdout } = result
      const answer = parseCleaned(Buffer.from(stdout).toString())
      if (outcome.kind === 'exit' && outcome.code === 0 && answer !== undefined) {
        cleaned.set(name, answer)
        return EXIT.ok
      }
      const reason = printable(reasonOfResult(result, formatOutcome))
      if (options.json)
        context.stdout.write(jsonLine({ type: 'cleaned', host: name, directories: null, reason }, context))
      else context.stderr.write(`muster: ${name}: ${reason}\n`)
      return outcome.kind === 'exit' ? EXIT.failed : EXIT.unreachable
    })
    for (const names of await sharing(cleaned, hosts, context)) {
      const counts = names.map((name) => cleaned.get(name)?.count ?? 0)
      // Each of them counts all of what they share, and deletes only a part.
      const count = options.dryRun ? (counts[0] ?? 0) : counts.reduce((sum, each) => sum + each, 0)
      const [host, ...others] = names
      const word = options.dryRun ? 'would be deleted' : 'deleted'
      const where = others.length === 0 ? '' : ' (in one directory that they share)'
      const sharedWith = others.length === 0 ? undefined : others
      if (options.json)
        context.stdout.write(jsonLine({ type: 'cleaned', host, sharedWith, directories: count }, context))
      else
        context.stdout.write(`${foldHostSet(names)}: ${counted(count, 'directory', 'directories')} ${word}${where}\n`)
    }
    if (options.records) forgetRecords(store, options, context)
    return Math.max(...codes, EXIT.ok)
  },
}

/** The hosts, those whose jobs are in the same directory together. Hosts of which that is not proved are alone. */
async function sharing(
  cleaned: ReadonlyMap<string, Cleaned>,
  { ops }: ConnectedHosts,
  { signal }: CliContext,
): Promise<readonly (readonly string[])[]> {
  const places = [...cleaned].flatMap(([host, { inode }]) =>
    inode === undefined ? [] : [[host, { inode, path: '' }] as const],
  )
  const shared = await findSharedHomes(new Map(places), { hosts: ops, signal, place: JOBS_DIRECTORY })
  const groupOf = new Map(shared.flatMap(({ hosts }) => hosts.map((host) => [host, hosts] as const)))
  return [...new Set([...cleaned.keys()].map((host) => groupOf.get(host) ?? host))].map((each) =>
    typeof each === 'string' ? [each] : each,
  )
}

/** In parts, so that a scheduler and submissions are not kept waiting. */
function forgetRecords(store: JobStore, { olderThan, dryRun, json }: CleanOptions, context: CliContext): void {
  const beforeMs = context.now() - olderThan * DAY_MS
  let count = dryRun ? store.countForgettable(beforeMs) : 0
  if (!dryRun)
    for (let part = AT_ONCE; part === AT_ONCE && !context.signal.aborted; ) {
      part = store.forgetEnded(beforeMs, AT_ONCE)
      count += part
    }
  const word = dryRun ? 'would be deleted' : 'deleted'
  context.stdout.write(
    json ? jsonLine({ type: 'forgotten', jobs: count }, context) : `queue: records of ${count} jobs ${word}\n`,
  )
}
