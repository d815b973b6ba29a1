/** What the ranks of a job wrote: all of them as one text, those that failed, and where the output of one is. */
import { drawnLine } from '../../base/drawn-line.ts'
import { MusterError } from '../../base/errors.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import { JOBS_DIRECTORY } from '../../base/left.ts'
import { formatNumberSet } from '../../base/number-set.ts'
import { printable, printableLines } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { reasonOfResult } from '../../ops/kernel/host-port.ts'
import { formatOutcome } from '../../ops/run/outcome.ts'
import { engineRanks, failuresOf, hasBegun, isFinal, type Job } from '../../scheduler/jobs/job.ts'
import { bundleKey } from '../../scheduler/jobs/orders.ts'
import {
  failedRanks,
  parseRankTails,
  type RankRow,
  type RankTail,
  ranksOf,
  tailPrograms,
  toldApart,
} from '../../scheduler/jobs/ranks.ts'
import { foldLines, formatRanksOf, type RankClaim } from '../../scheduler/launch/fold.ts'
import { rankBounds } from '../../scheduler/launch/rank-bounds.ts'
import { formatFirstFailure } from '../../scheduler/launch/verdict.ts'
import { type CliContext, EXIT, type GlobalOptions } from '../command-line/verb.ts'
import { painterOf } from '../output/colour.ts'
import { jsonLine } from '../output/json-lines.ts'
import type { ConnectedHosts } from './hosts.ts'

/** Of a file that is read whole; what is read of all ranks together has limits as well. */
const MOST_RANK_BYTES = 4 * 1024 * 1024
const MOST_BYTES = 128 * 1024 * 1024
const MOST_LINES = 1_000_000
/** What a host prints between files. */
const HEADERS_BYTES = 64 * 1024
/** Sets of ranks that are longer are not lined up with the others. */
const MOST_LABEL = 40
const MOST_FAILED = 8
const FAILED_BYTES = 256 * 1024

export const DELETED_HINT = 'muster job clean, and muster job work --keep, delete the files of jobs that ended.'

/** For a job whose files are on none of the hosts on which they were. */
export const deletedError = (id: number, hosts: readonly string[]): MusterError =>
  new MusterError('usage', deletedWords(id, hosts), { hint: DELETED_HINT })

export const deletedWords = (id: number, hosts: readonly string[]): string =>
  `no output of job ${id} on ${foldHostSet(hosts)}: its files were deleted`

/** Empty: no other host says that it has the rank. */
export const claimText = ({ claimedBy }: Pick<RankRow, 'claimedBy'>): string =>
  claimedBy === undefined ? '' : `, claimed by ${foldHostSet(claimedBy)}`

/** Output in whose place is something else now, such as a FIFO, which would block its reader. `where`: its rank or file. */
const otherWords = (id: number, where: string): string =>
  `no output of job ${id} from ${where}: it is no longer a plain file`

/**
 * Of these bundles of a job that has ended, the hosts that have none of their directories any more. Those that never began left none,
 * and of a host that does not answer nothing is known.
 */
export async function hostsWithoutFiles(
  job: Job,
  storeId: string,
  bundles: readonly number[],
  hosts: ConnectedHosts,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const { state } = job
  if (!isFinal(state)) return []
  const begun = bundles.filter((bundle) => hasBegun({ bundles: state.bundles?.slice(bundle, bundle + 1) ?? [] }))
  const byHost = Map.groupBy(begun, (bundle) => state.places?.[bundle]?.host ?? '')
  const found = await Promise.all(
    [...byHost].map(async ([host, own]) => {
      const keys = own.map((bundle) => bundleKey(storeId, job, bundle))
      const program = `for d in ${keys.join(' ')}; do [ ! -e ${JOBS_DIRECTORY}/$d ] || exit; done; echo deleted`
      const { stdout } = await hosts.exec(host, program, signal)
      return Buffer.from(stdout).toString() === 'deleted\n' ? [host] : []
    }),
  )
  return found.flat()
}

/** Lines of all ranks, those that all have once. */
export async function printAll(
  job: Job,
  storeId: string,
  hosts: ConnectedHosts,
  options: GlobalOptions,
  context: CliContext,
): Promise<number> {
  const limits = `at most ${formatBytes(shareOf(job))} a file, and ${MOST_LINES} lines of all ranks`
  const read = await readTails(job, storeId, hosts, context.signal)
  const places = placesOf(job)
  const quiet = places.flatMap(({ host }, bundle) => (read.silent.has(host) ? [bundle] : []))
  const deleted = await hostsWithoutFiles(job, storeId, quiet, hosts, context.signal)
  if (deleted.length > 0 && read.tails.length + read.troubles.size === 0) throw deletedError(job.id, deleted)
  if (deleted.length > 0) context.stderr.write(`muster: ${deletedWords(job.id, deleted)}\n`)
  const [others, tails] = [read.tails.filter(({ isOther }) => isOther), read.tails.filter(({ isOther }) => !isOther)]
  if (others.length > 0) {
    const ranks = [...new Set(others.map(({ rank }) => rank))].toSorted((one, other) => one - other)
    const words = otherWords(job.id, `rank ${formatNumberSet(ranks)}`)
    if (tails.every(({ lines }) => lines.length === 0) && read.troubles.size === 0)
      throw new MusterError('usage', words)
    context.stderr.write(`muster: ${words}\n`)
  }
  return printFolded(read, limits, options, context)
}

/** The end of what one rank of a job in an engine wrote; a string: why it cannot be read. */
type ReadEnd = (rank: number, mostBytes: number) => Promise<Uint8Array | string>

const READS_AT_ONCE = 4

/** The same of a job in an engine, which prints the output of one rank at a time. */
export async function printAllOfEngine(
  { spec }: Job,
  title: string,
  readEnd: ReadEnd,
  options: GlobalOptions,
  context: CliContext,
): Promise<number> {
  const count = engineRanks(spec)
  const share = Math.floor(Math.min(PIECE_BYTES, MOST_BYTES / count))
  const tails: RankTail[] = []
  const troubles = new Map<string, string>()
  let next = 0
  const work = async () => {
    while (next < count) {
      const rank = next++
      const bytes = await readEnd(rank, share)
      if (typeof bytes === 'string') troubles.set(`rank ${rank} in ${title}`, bytes)
      else {
        const isCut = bytes.length >= share
        const text = new TextDecoder().decode(bytes)
        const lines = text.slice(isCut ? text.indexOf('\n') + 1 : 0).split('\n')
        if (lines.at(-1) === '') lines.pop()
        tails.push({ rank, isCut, lines: lines.map((line) => drawnLine(line)) })
      }
    }
  }
  await Promise.all(Array.from({ length: READS_AT_ONCE }, work))
  return printFolded({ tails, troubles }, `at most ${formatBytes(share)}`, options, context)
}

type Tails = { readonly tails: readonly RankTail[]; readonly troubles: ReadonlyMap<string, string> }

function printFolded({ tails, troubles }: Tails, limits: string, options: GlobalOptions, context: CliContext): number {
  const { stdout, stderr } = context
  const paint = painterOf(options, context)
  const folded = foldLines(tails)
  const labels = folded.map(formatRanksOf)
  const width = Math.min(
    MOST_LABEL,
    labels.reduce((most, { length }) => Math.max(most, length), 0),
  )
  for (const [index, { text, ranks, claims, isOdd }] of folded.entries()) {
    if (options.json) stdout.write(jsonLine({ type: 'line', ranks, ...claimsJson(claims), isOdd, text }, context))
    else {
      const line = `${isOdd ? '>' : ' '} ${(labels[index] ?? '').padEnd(width)}  ${printable(text)}`
      stdout.write(`${isOdd && paint ? paint('yellow', line) : line}\n`)
    }
  }
  const cut = [...new Set(tails.flatMap(({ rank, isCut }) => (isCut ? [rank] : [])))]
  if (cut.length > 0) {
    stderr.write(`muster: only the end is read of rank ${formatNumberSet(cut)}: ${limits}\n`)
  }
  const claimed = tails.filter(({ claimedBy }) => claimedBy !== undefined)
  if (claimed.length > 0) {
    const ranks = [...new Set(claimed.map(({ rank }) => rank))].toSorted((one, other) => one - other)
    const names = foldHostSet([...new Set(claimed.map(({ claimedBy = '' }) => claimedBy))])
    stderr.write(`muster: claimed by several of ${names}: rank ${formatNumberSet(ranks)}\n`)
  }
  for (const [host, why] of troubles) stderr.write(`muster: ${host}: ${printable(why)}\n`)
  return troubles.size === 0 ? EXIT.ok : EXIT.unreachable
}

const claimsJson = (claims: readonly RankClaim[]) => (claims.length === 0 ? {} : { claims })

/** On a host, or on all of them. */
const countFiles = (job: Job, host?: string): number =>
  ranksOf(job).reduce((sum, row) => sum + (host === undefined || row.host === host ? filesOf(job, row).length : 0), 0)

/** Bytes of each file. */
const shareOf = (job: Job): number => Math.floor(Math.min(MOST_RANK_BYTES, MOST_BYTES / Math.max(1, countFiles(job))))

/** A host that answers more than it was asked for is not listened to any longer. */
async function readTails(job: Job, storeId: string, hosts: ConnectedHosts, signal: AbortSignal) {
  const tails: RankTail[] = []
  const troubles = new Map<string, string>()
  /** Hosts that answered, and have no file of the job. */
  const silent = new Set<string>()
  const read = async ([host, program]: readonly [string, string]) => {
    const files = countFiles(job, host)
    const mostBytes = files * shareOf(job) + HEADERS_BYTES
    const full = new AbortController()
    let text = ''
    const result = await hosts.exec(host, program, AbortSignal.any([signal, full.signal]), (part) => {
      text += part.slice(0, mostBytes - text.length)
      if (text.length === mostBytes) full.abort()
    })
    if (full.signal.aborted) {
      text = text.slice(0, text.lastIndexOf('\n') + 1)
      troubles.set(host, `it answered with more than ${formatBytes(mostBytes)}: the rest is left out`)
    } else if (result.outcome.kind !== 'exit') troubles.set(host, reasonOfResult(result, formatOutcome))
    const mostLines = Math.floor((MOST_LINES * files) / Math.max(1, countFiles(job)))
    const own = parseRankTails(text, host, job, storeId, mostLines)
    if (own.length === 0 && !troubles.has(host)) silent.add(host)
    tails.push(...own)
  }
  await Promise.all([...tailPrograms(job, storeId, shareOf(job))].map(read))
  return { tails: toldApart(tails), troubles, silent }
}

/** Below a line that Muster wrote, so that no output looks like such a line. `isBegun`: the text continues a line. */
export const indented = (text: string, isBegun = false): string =>
  isBegun ? text.replace(/\n(?=[\s\S])/g, '\n  ') : text.replace(/^(?=[\s\S])/gm, '  ')

/** The end of what each rank wrote that failed, the likely cause first. */
export async function printFailed(
  job: Job,
  storeId: string,
  hosts: ConnectedHosts,
  { json }: GlobalOptions,
  context: CliContext,
): Promise<number> {
  const { stdout, stderr, signal } = context
  const failures = 'places' in job.state ? failuresOf(job.spec, job.state) : []
  const first = formatFirstFailure(failures)
  const rows = failedRanks(job, ranksOf(job))
  if (first === undefined) stderr.write(`muster: no rank of job ${job.id} failed\n`)
  else if (rows.length === 0)
    stderr.write(`muster: ${printable(first)}. Its own messages: muster job logs ${job.id} --bundle 0\n`)
  const shown = rows.slice(0, MOST_FAILED)
  const bundles = [...new Set(shown.map(({ bundle }) => bundle))]
  const deleted = new Set(await hostsWithoutFiles(job, storeId, bundles, hosts, signal))
  if (shown.length > 0 && shown.every(({ host }) => deleted.has(host))) throw deletedError(job.id, [...deleted])
  if (deleted.size > 0) stderr.write(`muster: ${deletedWords(job.id, [...deleted])}\n`)
  for (const row of shown.filter(({ host }) => !deleted.has(host))) {
    const { rank, title, host, bundle, state, code, claimedBy } = row
    if (!json)
      stdout.write(
        `==> ${title} on ${host}: ${state}${code === undefined ? '' : `, exit ${code}`}${claimText(row)} <==\n`,
      )
    const read = ifPlain('$f', `tail -c ${FAILED_BYTES} $f`, 'other=yes')
    const program = `cd ${JOBS_DIRECTORY}/${bundleKey(storeId, job, bundle)} && for f in ${filesOf(job, row).join(' ')}; do ${read}; done; [ -z "$other" ] || exit ${OTHER_CODE}`
    const result = await hosts.exec(host, program, signal)
    if (result.outcome.kind !== 'exit') {
      stderr.write(`muster: ${host}: ${printable(reasonOfResult(result, formatOutcome))}\n`)
      continue
    }
    if (result.outcome.code === OTHER_CODE) stderr.write(`muster: ${otherWords(job.id, `${title} on ${host}`)}\n`)
    const text = printableLines(Buffer.from(result.stdout).toString())
    if (json) {
      stdout.write(jsonLine({ type: 'failed', job: job.id, rank, title, host, claimedBy, state, code, text }, context))
      continue
    }
    stdout.write(indented(text === '' || text.endsWith('\n') ? text : `${text}\n`))
  }
  if (rows.length > MOST_FAILED)
    stderr.write(`muster: ${rows.length - MOST_FAILED} more ranks failed. Run: muster job ranks ${job.id} --failed\n`)
  return EXIT.ok
}

/** Rank 0 writes where a bundle writes. */
const filesOf = ({ spec }: Job, { rank }: Pick<RankRow, 'rank'>): readonly string[] =>
  spec.launch?.ranks === undefined || rank === 0 ? ['out', 'err'] : [`rank.${rank}`]

export type RankPlace = {
  readonly bundle: number
  readonly host: string
  readonly files: readonly string[]
  /** Where the launcher chooses: whether its host says that the rank is there. Undefined: Muster placed it there. */
  readonly isClaimed?: boolean
}

/** For people, where a host has to be believed. */
export function placeWords(rank: number, { host, isClaimed }: RankPlace): string | undefined {
  if (isClaimed === undefined) return undefined
  return isClaimed
    ? `rank ${rank} as ${host} has it: its launcher chose the ranks`
    : `no host has rank ${rank}: this is what the launcher says on ${host}`
}

/**
 * Where the output of a rank is: where Muster placed it, or on each host that says that it has it where the launcher chooses. Empty:
 * it has not begun, or there is no such rank.
 * @throws MusterError 'unreachable' when a host cannot be asked
 */
export async function findPlaces(
  job: Job,
  storeId: string,
  rank: number,
  hosts: ConnectedHosts,
  signal: AbortSignal,
): Promise<readonly RankPlace[]> {
  const bounds = boundsOf(job)
  const own = bounds.bundleOf(rank)
  // Rank 0 writes where its bundle does, so there is something to read before it has begun.
  if (own !== undefined && rank === 0) return [placeOf(job, rank, own)]
  const asked = own === undefined ? bundlesOf(job).filter((bundle) => bounds.canHave(bundle, rank)) : [own]
  const found = await findClaims(job, storeId, rank, asked, hosts, signal)
  return found.map((bundle) => ({ ...placeOf(job, rank, bundle), ...(bounds.isChosen ? { isClaimed: true } : {}) }))
}

/**
 * The same; what the launcher says while no host has rank 0.
 * @throws MusterError 'usage' when no host has it or its files were deleted, 'unreachable' when a host cannot be asked
 */
export async function findRank(
  job: Job,
  storeId: string,
  rank: number,
  hosts: ConnectedHosts,
  signal: AbortSignal,
): Promise<readonly RankPlace[]> {
  const { id } = job
  const places = await findPlaces(job, storeId, rank, hosts, signal)
  if (places.length > 0) return places
  if (rank === 0) return [launcherPlace(job)]
  const deleted = await hostsWithoutFiles(job, storeId, bundlesOf(job), hosts, signal)
  if (deleted.length > 0) throw deletedError(id, deleted)
  throw new MusterError('usage', `job ${id} has no output of rank ${rank}`, {
    hint: `Ranks: muster job ranks ${id}. What launchers say: muster job logs ${id} --bundle 0.`,
  })
}

/** What the launcher says while no rank has begun. */
export const launcherPlace = (job: Job): RankPlace => ({ ...placeOf(job, 0, 0), isClaimed: false })

const placesOf = ({ state }: Job) => ('places' in state ? (state.places ?? []) : [])
const bundlesOf = (job: Job): readonly number[] => [...placesOf(job).keys()]
const boundsOf = (job: Job) => rankBounds(job.spec, placesOf(job).length)
const placeOf = (job: Job, rank: number, bundle: number): RankPlace => ({
  bundle,
  host: placesOf(job)[bundle]?.host ?? '',
  files: filesOf(job, { rank }),
})

/** Those of these bundles whose hosts say that they have the rank. @throws MusterError 'unreachable' */
async function findClaims(
  job: Job,
  storeId: string,
  rank: number,
  bundles: readonly number[],
  hosts: ConnectedHosts,
  signal: AbortSignal,
): Promise<readonly number[]> {
  const places = placesOf(job)
  const found = await Promise.all(
    bundles.map(async (bundle) => {
      const host = places[bundle]?.host ?? ''
      const program = `cd ${JOBS_DIRECTORY}/${bundleKey(storeId, job, bundle)} && [ -f ranks ] && grep -q '^${rank} ' ranks`
      const result = await hosts.exec(host, program, signal)
      const { outcome } = result
      if (outcome.kind !== 'exit')
        throw new MusterError('unreachable', `${host}: ${reasonOfResult(result, formatOutcome)}`)
      return outcome.code === 0 ? [bundle] : []
    }),
  )
  return found.flat()
}

const PIECE_BYTES = 256 * 1024

/** A piece of a file; a string: why it cannot be read. */
type ReadPiece = (
  piece: { readonly name: string; readonly fromByte: number; readonly mostBytes: number },
  signal: AbortSignal,
) => Promise<Uint8Array | string>

/** The exit code of a script that found something else in the place of a file. */
const OTHER_CODE = 67

/** Shell code: what reads a file, or what happens if something else is in its place. */
const ifPlain = (name: string, read: string, other: string): string =>
  `if [ -f ${name} ]; then ${read}; elif [ -e ${name} ] || [ -L ${name} ]; then ${other}; fi`

/** Files of a bundle on its host. @throws MusterError 'usage' when something else is in the place of one */
export const bundleFiles =
  (hosts: ConnectedHosts, host: string, { id }: Job, key: string): ReadPiece =>
  async ({ name, fromByte, mostBytes }, signal) => {
    const read = `tail -c +${fromByte + 1} ${name} 2>/dev/null | head -c ${mostBytes}`
    const program = `cd ${JOBS_DIRECTORY}/${key} && ${ifPlain(name, read, `exit ${OTHER_CODE}`)}`
    const result = await hosts.exec(host, program, signal)
    if (result.outcome.kind !== 'exit') return `${host}: ${reasonOfResult(result, formatOutcome)}`
    if (result.outcome.code === OTHER_CODE) throw new MusterError('usage', otherWords(id, `${name} on ${host}`))
    return result.stdout
  }

/** What is added to files, piece by piece. */
export class OutputTail {
  readonly #readPiece: ReadPiece
  readonly #files

  constructor(names: readonly string[], readPiece: ReadPiece) {
    this.#readPiece = readPiece
    this.#files = names.map((name) => ({ name, at: 0, decoder: new TextDecoder() }))
  }

  /**
   * One piece of each; false: nothing was added.
   * @throws MusterError 'unreachable' or 'usage' when one cannot be read, once nothing is added to the others
   */
  async read(write: (name: string, text: string) => void, signal: AbortSignal): Promise<boolean> {
    let count = 0
    let failure: unknown
    for (const file of this.#files) {
      const { name, at: fromByte } = file
      try {
        const piece = await this.#readPiece({ name, fromByte, mostBytes: PIECE_BYTES }, signal)
        if (typeof piece === 'string') throw new MusterError('unreachable', piece)
        file.at += piece.length
        count += piece.length
        // A progress bar returns to the start of its line.
        const text = file.decoder.decode(piece, { stream: true }).replace(/\r\n?/g, '\n')
        write(name, printableLines(text))
      } catch (error) {
        failure ??= error
      }
    }
    if (count === 0 && failure !== undefined) throw failure
    return count > 0
  }
}

/** The output of a rank from all places where it may be. */
export class RankOutput {
  readonly #tailOf: (place: RankPlace) => OutputTail
  readonly #sources = new Map<number, { readonly place: RankPlace; readonly tail: OutputTail }>()

  constructor(tailOf: (place: RankPlace) => OutputTail) {
    this.#tailOf = tailOf
  }

  get places(): readonly RankPlace[] {
    return [...this.#sources.values()].map(({ place }) => place)
  }

  /** Where the launcher chooses, another host may say at any time that it has the rank. */
  get isOpen(): boolean {
    return this.places.every(({ isClaimed }) => isClaimed !== undefined)
  }

  /** Of each bundle once; false: all were known. */
  add(places: readonly RankPlace[]): boolean {
    const more = places.filter(({ bundle }) => !this.#sources.has(bundle))
    for (const place of more) this.#sources.set(place.bundle, { place, tail: this.#tailOf(place) })
    return more.length > 0
  }

  /** As `OutputTail`, of all places at once. @throws MusterError when one cannot be read, once the others were */
  async read(write: (place: RankPlace, name: string, text: string) => void, signal: AbortSignal): Promise<boolean> {
    const sources = [...this.#sources.values()].map((source) => ({ ...source, parts: [] as [string, string][] }))
    const reads = await Promise.allSettled(
      sources.map(({ tail, parts }) => tail.read((name, text) => parts.push([name, text]), signal)),
    )
    for (const { place, parts } of sources) for (const [name, text] of parts) write(place, name, text)
    const failed = reads.find((read) => read.status === 'rejected')
    if (failed !== undefined) throw failed.reason
    return reads.some((read) => read.status === 'fulfilled' && read.value)
  }
}

/** `there are ranks 0-3`. */
export const numbersThere = (noun: 'rank' | 'bundle', count: number): string =>
  count === 1 ? `the only ${noun} is 0` : `there are ${noun}s 0-${count - 1}`
