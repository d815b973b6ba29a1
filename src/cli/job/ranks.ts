/** `muster job ranks`: the ranks of a job on their hosts, and what each does now. */
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { clip } from '../../base/text-width.ts'
import { reasonOfResult } from '../../ops/kernel/host-port.ts'
import { formatOutcome } from '../../ops/run/outcome.ts'
import { enginePlace, placeTitle } from '../../scheduler/jobs/engine.ts'
import { engineRanks, type Job } from '../../scheduler/jobs/job.ts'
import {
  failedRanks,
  parseDeleted,
  parseRankReadings,
  type RankReading,
  type RankRow,
  rankPrograms,
  ranksOf,
} from '../../scheduler/jobs/ranks.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { jsonLine } from '../output/json-lines.ts'
import { formatTable, type TableOutput } from '../output/table.ts'
import { withJob } from './arguments.ts'
import { type ConnectedInventory, connectHosts } from './hosts.ts'
import { readQueue } from './open-queue.ts'
import { claimText, deletedWords } from './rank-logs.ts'
import { jobOr } from './show.ts'

type RanksOptions = GlobalOptions & { readonly failed?: boolean }

export const verb: VerbCode = {
  define: (command) => withJob(command).option('--failed', 'list only ranks that failed, the likely cause first'),
  help: `
Examples:
  muster job ranks 17                each rank with its host, step and last line
  muster job ranks 17 --failed       which rank failed first, and why

Its hosts are asked, also after the job has ended. Steps are read from output such as step=412 or "step 412/1000".
`,
  async run(id: number, options: RanksOptions, context: CliContext) {
    using queue = await readQueue(options, context)
    const job = jobOr(queue, id)
    checkHasRanks(job)
    const connect = async () => await connectHosts(queue.inventory, options, context)
    const { readings, troubles, deleted } = await readOnce(job, queue.store.id, connect, context.signal)
    const all = ranksOf(job, readings)
    const rows = options.failed ? failedRanks(job, all) : all
    if (options.json) for (const row of rows) context.stdout.write(jsonLine(rankJson(job, row), context))
    else context.stdout.write(formatRanks(rows, context.stdout))
    for (const [host, why] of troubles) context.stderr.write(`muster: ${host}: ${printable(why)}\n`)
    if (deleted.size > 0) context.stderr.write(`muster: ${deletedWords(id, [...deleted])}\n`)
    return EXIT.ok
  },
}

/** @throws MusterError 'usage' when it has none */
export function checkHasRanks({ id, spec, state }: Job): void {
  if (spec.engine !== undefined)
    throw new MusterError(
      'usage',
      `${placeTitle(enginePlace(spec.engine))} runs job ${id}, so only what each rank printed can be read. Run: muster job logs ${id}${engineRanks(spec) > 1 ? ' --all' : ''}`,
    )
  if (!('places' in state) || state.places === undefined)
    throw new MusterError('usage', `job ${id} is ${state.kind}: it has no ranks yet`)
}

export type RankReadings = {
  /** By bundle. */
  readonly readings: ReadonlyMap<number, readonly RankReading[]>
  /** Why a host could not be read. */
  readonly troubles: ReadonlyMap<string, string>
  /** Hosts on which files of the job were deleted. */
  readonly deleted: ReadonlySet<string>
}

async function readOnce(
  job: Job,
  storeId: string,
  connect: () => Promise<ConnectedInventory>,
  signal: AbortSignal,
): Promise<RankReadings> {
  if (rankPrograms(job, storeId).size === 0) return { readings: new Map(), troubles: new Map(), deleted: new Set() }
  using hosts = await connect()
  return await readRanks(job, storeId, hosts, signal)
}

/** Asks each host of a job once, all at the same time. Never rejects. */
export async function readRanks(
  job: Job,
  storeId: string,
  hosts: ConnectedInventory,
  signal: AbortSignal,
): Promise<RankReadings> {
  const readings = new Map<number, readonly RankReading[]>()
  const troubles = new Map<string, string>()
  const deleted = new Set<string>()
  const read = async ([host, program]: readonly [string, string]) => {
    if (!hosts.addresses.has(host)) return void troubles.set(host, 'no longer in hosts.yaml')
    const result = await hosts.exec(host, program, signal)
    if (result.outcome.kind !== 'exit') troubles.set(host, reasonOfResult(result, formatOutcome))
    else {
      const text = Buffer.from(result.stdout).toString()
      for (const [bundle, own] of parseRankReadings(text, host, job, storeId)) readings.set(bundle, own)
      if (parseDeleted(text, host, job, storeId).size > 0) deleted.add(host)
    }
  }
  await Promise.all([...rankPrograms(job, storeId)].map(read))
  return { readings, troubles, deleted }
}

const MOST_LINE = 80

/** A table of ranks. */
export function formatRanks(rows: readonly RankRow[], out: TableOutput): string {
  const cells = rows.map((row) => {
    const { title, host, state, restart, text, reading } = row
    const words = text ?? reading?.line ?? ''
    return [
      title.replace(/^rank /, ''),
      host,
      stateText(row),
      restart === 0 ? '' : String(restart),
      reading?.step === undefined ? '' : String(reading.step),
      state === 'running' && reading !== undefined ? `${reading.quietS} s` : '',
      out.isTTY === true ? clip(printable(words), MOST_LINE) : words,
    ]
  })
  return formatTable(['RANK', 'HOST', 'STATE', 'RESTART', 'STEP', 'QUIET', 'LAST LINE'], cells, out)
}

function stateText(row: RankRow): string {
  const { state, code } = row
  const isEnd = code !== undefined && (state === 'failed' || state === 'stopped')
  return `${state}${isEnd ? `, exit ${code}` : ''}${claimText(row)}`
}

function rankJson({ id, attempt }: Job, { endedMs, reading, text, ...row }: RankRow): object {
  return {
    type: 'rank',
    job: id,
    attempt,
    ...row,
    ...(endedMs === undefined ? {} : { ended: new Date(endedMs).toISOString() }),
    ...(text === undefined ? {} : { reason: text }),
    ...(reading === undefined
      ? {}
      : {
          step: reading.step ?? null,
          line: reading.line ?? null,
          bytes: reading.bytes,
          quietS: reading.quietS,
          process: reading.process ?? null,
        }),
  }
}
