/** `muster job logs`: the output of a bundle, read from its host piece by piece. */
import { setTimeout as sleep } from 'node:timers/promises'
import { MusterError, messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { fileTitle } from '../../inventory/inventory.ts'
import { NO_FILES } from '../../ops/kernel/host-output.ts'
import { enginePlace, placeTitle } from '../../scheduler/jobs/engine.ts'
import { engineRanks, isFinal, type Job } from '../../scheduler/jobs/job.ts'
import { bundleKey } from '../../scheduler/jobs/orders.ts'
import { wholeNumber } from '../command-line/options.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { jsonLine } from '../output/json-lines.ts'
import { withJob } from './arguments.ts'
import { earlierAttempt } from './earlier-attempt.ts'
import { engineLog, openEngines } from './engines.ts'
import { type ConnectedHosts, connectHosts } from './hosts.ts'
import { type OpenQueue, readQueue } from './open-queue.ts'
import {
  bundleFiles,
  claimText,
  deletedError,
  findPlaces,
  findRank,
  hostsWithoutFiles,
  indented,
  numbersThere,
  OutputTail,
  placeWords,
  printAll,
  printAllOfEngine,
  printFailed,
  RankOutput,
  type RankPlace,
} from './rank-logs.ts'
import { checkHasRanks } from './ranks.ts'
import { jobOr } from './show.ts'
import { heldWords } from './why-waiting.ts'

type LogOptions = GlobalOptions & {
  readonly rank?: number
  readonly bundle?: number
  readonly all?: boolean
  readonly failed?: boolean
  readonly follow?: boolean
  readonly attempt?: number
}

const CHECK_MS = 500

export const verb: VerbCode = {
  define: (command) =>
    withJob(command)
      .option('--rank <n>', 'read the output of this rank (default: 0)', wholeNumber(0))
      .option('--bundle <n>', 'read the output of this bundle: where a launcher starts ranks, its own', wholeNumber(0))
      .option('--all', 'read the output of all ranks; a line that several have is printed once')
      .option('--failed', 'read the output of ranks that failed, the likely cause first')
      .option('--attempt <n>', 'read the output of attempt N (default: the last one)', wholeNumber(1))
      .option('-f, --follow', 'keep printing until the job ends, also while it waits and when it is tried again'),
  help: `
Examples:
  muster job logs 17 -f              the output of a job, until it ends
  muster job logs 17 --rank 3        the output of one rank
  muster job logs 17 --all           all ranks; > marks what only some of them say
  muster job logs 17 --failed        why it failed
  muster job logs 17 --attempt 1     what it said before it was retried, requeued or preempted

Without a launcher, the ranks are the bundles. With --launch, a launcher may start several ranks in a bundle, each with output of
its own. Lines of --all count as the same if they differ only in numbers.
`,
  async run(id: number, options: LogOptions, context: CliContext) {
    const { rank, bundle, all, failed, follow, attempt } = options
    const chosen = Object.entries({ rank, bundle, all, failed }).flatMap(([name, value]) =>
      value === undefined ? [] : [`--${name}`],
    )
    const isWhole = all || failed
    const names = [
      ...chosen,
      ...(follow && isWhole ? ['--follow'] : []),
      ...(attempt !== undefined && isWhole ? ['--attempt'] : []),
    ]
    if (names.length > 1) throw new MusterError('usage', `${names.join(' and ')} cannot be used together`)
    using queue = await readQueue(options, context)
    const isEarlier = attempt !== undefined && attempt !== jobOr(queue, id).attempt
    const job = follow && !isEarlier ? await untilPlaced(queue, id, context) : jobOr(queue, id)
    if (all && job.spec.engine !== undefined) return await printEngine(job, options, queue, context)
    if (isWhole) checkHasRanks(job)
    using hosts = await connectHosts(queue.inventory, options, context)
    if (all) return await printAll(job, queue.store.id, hosts, options, context)
    if (failed) return await printFailed(job, queue.store.id, hosts, options, context)
    if (follow && attempt === undefined) return await printAttempts(job, options, queue, hosts, context)
    const shown = isEarlier ? await earlierAttempt(job, attempt, queue, hosts, context) : job
    return await printOne(shown, options, queue, hosts, context)
  },
}

const QUEUED = 'queued: its output follows when it starts'

/** The job once something of it may have output, or it ended without. `told`: the words that are known about its wait. */
async function untilPlaced(queue: OpenQueue, id: number, { stderr, signal }: CliContext, told = ''): Promise<Job> {
  const isWaiting = ({ state }: Job) => state.kind === 'queued' || state.kind === 'held'
  for (;;) {
    const job = jobOr(queue, id)
    if (!isWaiting(job)) return job
    const words = job.state.kind === 'held' ? heldWords(job, queue) : QUEUED
    if (words !== told) stderr.write(`muster: job ${id} is ${words}\n`)
    told = words
    await sleep(CHECK_MS, undefined, { signal })
  }
}

/** From this attempt to the one with which the job ends. */
async function printAttempts(
  job: Job,
  options: LogOptions,
  queue: OpenQueue,
  hosts: ConnectedHosts,
  context: CliContext,
): Promise<number> {
  const { stderr } = context
  const { id } = job
  for (;;) {
    let trouble: unknown
    const code = await printOne(job, options, queue, hosts, context).catch((error: unknown) => {
      trouble = error
      return EXIT.ok
    })
    const { attempt, state } = jobOr(queue, id)
    // What cannot be read of an attempt that is over does not end the next one.
    if (trouble !== undefined && (attempt === job.attempt || !(trouble instanceof MusterError))) throw trouble
    if (attempt === job.attempt) return code
    if (trouble !== undefined) stderr.write(`muster: ${printable(messageOf(trouble))}\n`)
    const last = state.kind === 'queued' ? state.last?.replace(/^failed: /, '') : undefined
    const why = last === undefined ? '' : ` (${printable(last)})`
    stderr.write(`muster: attempt ${job.attempt} of job ${id} ended${why}: attempt ${attempt} follows when it starts\n`)
    job = await untilPlaced(queue, id, context, QUEUED)
    if (!('places' in job.state) || job.state.places === undefined) {
      stderr.write(`muster: job ${id} is ${job.state.kind}: attempt ${job.attempt} did not start\n`)
      return EXIT.ok
    }
  }
}

/** Of all ranks of a job in an engine. */
async function printEngine(job: Job, options: LogOptions, queue: OpenQueue, context: CliContext): Promise<number> {
  const title = placeTitle(enginePlace(job.spec.engine ?? ''))
  if (!('places' in job.state) || job.state.places === undefined)
    throw new MusterError('usage', `job ${job.id} is ${job.state.kind}: it has no ranks yet`)
  using engines = await openEngines(queue.inventory, context)
  using hosts = await connectHosts(queue.inventory, options, context)
  const readEnd = async (rank: number, mostBytes: number) =>
    (await engineLog(
      engines,
      queue.store.id,
      job,
      rank,
    )?.({ fromByte: -mostBytes, mostBytes }, hosts.ops, context.signal)) ??
    `${fileTitle(queue.inventory)} no longer declares ${title}`
  return await printAllOfEngine(job, title, readEnd, options, context)
}

/** Of one rank or bundle, piece by piece. */
async function printOne(
  job: Job,
  options: LogOptions,
  queue: OpenQueue,
  hosts: ConnectedHosts,
  context: CliContext,
): Promise<number> {
  const { id, spec, attempt } = job
  const isOnHosts = spec.engine === undefined
  const { rank = 0 } = options
  const isWrapped = isOnHosts && spec.launch?.ranks !== undefined && options.bundle === undefined
  const wanted = options.bundle ?? rank
  const places = 'places' in job.state ? job.state.places : undefined
  const place = places?.[isOnHosts && !isWrapped ? wanted : 0]
  const noun = options.bundle === undefined ? 'rank' : 'bundle'
  const runsOnce = spec.launch?.ownRanks !== undefined
  const count = noun === 'rank' ? engineRanks(spec) : runsOnce ? 1 : spec.bundles
  if (!isWrapped && wanted >= count)
    throw new MusterError('usage', `job ${id} has no ${noun} ${wanted}: ${numbersThere(noun, count)}`)
  if (place === undefined)
    throw new MusterError('usage', `job ${id} is ${job.state.kind}: bundle ${wanted} has no output`)
  using engines = await openEngines(queue.inventory, context)
  const readLog = engineLog(engines, queue.store.id, job, wanted)
  const names = new Set(queue.inventory.hosts.map(({ name }) => name))
  const needed = readLog !== undefined ? [] : isWrapped ? (places ?? []) : [place]
  const lost = needed.find(({ host }) => !names.has(host))
  if (lost !== undefined)
    throw new MusterError(
      'configuration',
      `it ran on ${placeTitle(lost.host)}, which ${fileTitle(queue.inventory)} no longer declares`,
    )
  const hasEnded = () => {
    const { attempt, state } = jobOr(queue, id)
    return attempt !== job.attempt || isFinal(state)
  }
  /** A rank that has not begun yet has no output either. */
  const find = async () => {
    for (;;) {
      const isLast = !options.follow || hasEnded()
      try {
        const found = await findRank(job, queue.store.id, rank, hosts, context.signal)
        if (isLast || found[0]?.isClaimed !== false) return found
      } catch (error) {
        if (isLast || !(error instanceof MusterError && error.code === 'usage')) throw error
      }
      await sleep(CHECK_MS, undefined, { signal: context.signal })
    }
  }
  const output = new RankOutput(({ host, files, bundle }) =>
    readLog === undefined
      ? new OutputTail(files, bundleFiles(hosts, host, job, bundleKey(queue.store.id, job, bundle)))
      : // An engine keeps both in one.
        new OutputTail(['out'], async (piece, signal) => {
          const read = await readLog(piece, hosts.ops, signal)
          if (read === NO_FILES) throw deletedError(id, [placeTitle(place.host)])
          return read
        }),
  )
  output.add(isWrapped ? await find() : [{ bundle: wanted, host: place.host, files: ['out', 'err'] }])
  const [only, ...others] = output.places
  const words = only && others.length === 0 ? placeWords(rank, only) : undefined
  if (words !== undefined && !options.json) context.stderr.write(`muster: ${words}\n`)
  // Where the launcher chose the ranks, the host is only its own word for it: it is named, and its lines are told apart from Muster's.
  let last = others.length === 0 && only?.isClaimed !== true ? only : undefined
  let isLineEnded = true
  let hasHeads = false
  const write = (from: RankPlace, name: string, text: string) => {
    if (text === '') return
    const { host } = from
    if (options.json) {
      const stream = name === 'err' ? 'err' : 'out'
      const where = readLog === undefined ? { host } : {}
      context.stdout.write(jsonLine({ type: 'output', job: id, attempt, ...where, stream, text }, context))
      return
    }
    const stream = name === 'err' ? context.stderr : context.stdout
    if (from !== last) {
      const claims = claimText({ claimedBy: output.places.map((one) => one.host) })
      stream.write(`${isLineEnded ? '' : '\n'}==> rank ${rank} on ${host}${claims} <==\n`)
      isLineEnded = true
      hasHeads = true
    }
    stream.write(hasHeads ? indented(text, !isLineEnded) : text)
    last = from
    isLineEnded = text.endsWith('\n')
  }
  let isSilent = true
  for (;;) {
    // Checked before reading, so that everything it wrote before it ended is read.
    const isLast = !options.follow || hasEnded()
    if (options.follow && isWrapped && output.isOpen)
      output.add(await findPlaces(job, queue.store.id, rank, hosts, context.signal))
    if (await output.read(write, context.signal)) isSilent = false
    else if (isLast) break
    else await sleep(CHECK_MS, undefined, { signal: context.signal })
  }
  const now = jobOr(queue, id)
  if (isSilent && readLog === undefined && now.attempt === attempt) {
    const deleted = await hostsWithoutFiles(
      now,
      queue.store.id,
      output.places.map(({ bundle }) => bundle),
      hosts,
      context.signal,
    )
    if (deleted.length > 0) throw deletedError(id, deleted)
  }
  return EXIT.ok
}
