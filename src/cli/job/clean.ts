/** `muster job clean`: deletes what ended jobs left on hosts, and on request their records in the queue. */
import { printable } from '../../base/printable.ts'
import { reasonOfResult } from '../../ops/kernel/host-port.ts'
import { formatOutcome } from '../../ops/run/outcome.ts'
import { formatCleanProgram } from '../../scheduler/jobs/left.ts'
import type { JobStore } from '../../scheduler/jobs/store.ts'
import { numberFrom } from '../command-line/options.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { jsonLine } from '../output/json-lines.ts'
import { connectHosts } from './hosts.ts'
import { openQueue } from './open-queue.ts'

const DAY_MS = 86_400_000
const AT_ONCE = 2_000

type CleanOptions = GlobalOptions & {
  readonly olderThan: number
  readonly dryRun?: boolean
  readonly records?: boolean
}

export const verb: VerbCode = {
  define: (command) =>
    command
      .option('--older-than <days>', 'delete only files of jobs that ended at least DAYS days ago', numberFrom(0), 7)
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
    const kept = store.keptDirectories()
    const codes = await Promise.all(
      inventory.hosts.map(async ({ name }) => {
        const program = formatCleanProgram(store.id, kept, options.olderThan, options.dryRun ?? false)
        const result = await hosts.exec(name, program, context.signal)
        const { outcome, stdout } = result
        const count = Number(/^removed (\d+)$/m.exec(Buffer.from(stdout).toString())?.[1] ?? Number.NaN)
        const isWell = outcome.kind === 'exit' && outcome.code === 0 && Number.isSafeInteger(count)
        const reason = isWell ? undefined : printable(reasonOfResult(result, formatOutcome))
        const word = options.dryRun ? 'would be deleted' : 'deleted'
        if (options.json)
          context.stdout.write(jsonLine({ type: 'cleaned', host: name, directories: isWell ? count : null, reason }))
        else if (isWell) context.stdout.write(`${name}: ${count} directories ${word}\n`)
        else context.stderr.write(`muster: ${name}: ${reason}\n`)
        if (isWell) return EXIT.ok
        return outcome.kind === 'exit' ? EXIT.failed : EXIT.unreachable
      }),
    )
    if (options.records) forgetRecords(store, options, context)
    return Math.max(...codes, EXIT.ok)
  },
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
    json ? jsonLine({ type: 'forgotten', jobs: count }) : `queue: records of ${count} jobs ${word}\n`,
  )
}
