/** `muster launch KIND`: a launched job from its submission to its end, with the output of one rank and what all of them do. */
import { setTimeout as sleep } from 'node:timers/promises'
import { accountName } from '../../base/account.ts'
import { MusterError } from '../../base/errors.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import {
  failuresOf,
  isActive,
  isFinal,
  type Job,
  type JobSpec,
  leftWords,
  waitsFrom,
} from '../../scheduler/jobs/job.ts'
import { hostsText } from '../../scheduler/jobs/job-columns.ts'
import { bundleKey } from '../../scheduler/jobs/orders.ts'
import { ranksOf } from '../../scheduler/jobs/ranks.ts'
import type { Launcher } from '../../scheduler/launch/launcher.ts'
import { LAUNCHERS } from '../../scheduler/launch/launchers.ts'
import { rankBounds } from '../../scheduler/launch/rank-bounds.ts'
import { rowLauncher } from '../../scheduler/launch/rows.ts'
import { rankFailures } from '../../scheduler/launch/verdict.ts'
import { wholeNumber } from '../command-line/options.ts'
import { type CliContext, EXIT, type VerbCode } from '../command-line/verb.ts'
import { driverEngines, hostStorage, openEngines } from '../job/engines.ts'
import { type ConnectedInventory, connectHosts } from '../job/hosts.ts'
import { linkSpeedsOf, noticeScheduler, type OpenQueue, openQueue } from '../job/open-queue.ts'
import {
  bundleFiles,
  claimText,
  findPlaces,
  launcherPlace,
  numbersThere,
  OutputTail,
  placeWords,
  RankOutput,
  type RankPlace,
} from '../job/rank-logs.ts'
import { formatRanks, type RankReadings, readRanks } from '../job/ranks.ts'
import { jobOr, preflightWords, ringText } from '../job/show.ts'
import { COMMAND_WORDS, checkRoom, prepareJob, type SubmitOptions, tryOut, withJobOptions } from '../job/submit.ts'
import { whyWaiting } from '../job/why-waiting.ts'
import { driveQueue } from '../job/work.ts'
import { ownLine } from '../output/colour.ts'
import { jsonLine } from '../output/json-lines.ts'
import { LiveScreen } from '../output/live-screen.ts'
import { TERMINAL } from '../output/table.ts'
import { withLaunchOptions } from './launch-options.ts'

type LaunchVerbOptions = SubmitOptions & { readonly follow: number; readonly detach?: boolean }

/** Options of `muster job submit` that have no meaning for one job that starts now. */
export const ABSENT = { grid: [], after: [] }

const NOTES = `
The job goes through the queue, like one of muster job submit --launch. If no scheduler is running, this command runs it until the
job ends. Ctrl-C cancels the job and waits until its processes have ended; --detach leaves it running.
Exit codes: 0 the job is done, 1 it could not start or was lost, 130 cancelled, else that of the rank that failed first.
`

const EXAMPLES: Readonly<Record<string, string>> = {
  mpi: "mpi --bundles 4 --slots 4 -- 'python3 train.py'",
  torchrun: 'torchrun --bundles 2 --gpu 4 -- train.py --epochs 3',
  tf: 'tf --role chief=1 --role worker=3 --role ps=1 -- python3 train.py',
  vllm: 'vllm --gpu 4 --tp 4 -- MODEL --max-model-len 8192',
}

/** Of one launcher, with its options. */
export const launchVerb = (launcher: Launcher): VerbCode => ({
  define: (command) =>
    withLaunchVerb(withLaunchOptions(command, [single(launcher)]).argument('<command...>', COMMAND_WORDS)),
  help: `
Examples:
  muster launch ${EXAMPLES[launcher.name] ?? `${launcher.name} -- COMMAND`}
${NOTES}`,
  run: (words: readonly string[], options: LaunchVerbOptions, context: CliContext) =>
    launch(words, { ...options, ...ABSENT, launch: launcher.name }, context),
})

/** Without the options that ask for several jobs. */
const single = (launcher: Launcher): Launcher => ({
  ...launcher,
  options: launcher.options.filter(({ isCopies }) => isCopies !== true),
})

/** For a verb that makes the jobs itself. */
export const LAUNCHERS_OF_ONE = LAUNCHERS.map(single)

export const ROW = rowLauncher('row', { command: [], per: 'bundle', ports: 0, environment: {}, done: 'all' })

/** Of a row of hosts.yaml, whose name is the first word. */
export const row: VerbCode = {
  define: (command) =>
    withLaunchVerb(
      withLaunchOptions(command, [ROW]).argument('[row]', 'name of the row').argument('[command...]', COMMAND_WORDS),
    ),
  help: `
Examples:
  muster launch accelerate --bundles 2 --gpu 4 -- train.py

The row is one of launchers in hosts.yaml; its name can stand in place of "row".
${NOTES}`,
  async run(kind: string | undefined, words: readonly string[], options: LaunchVerbOptions, context: CliContext) {
    if (kind === undefined)
      throw new MusterError('usage', 'the launcher is missing', { hint: 'Run: muster launch --help' })
    return await launch(words, { ...options, ...ABSENT, launch: kind }, context)
  },
}

const withLaunchVerb: NonNullable<VerbCode['define']> = (command) =>
  withJobOptions(command)
    .option('--follow <rank>', 'print the output of this rank', wholeNumber(0), 0)
    .option('--detach', 'print the number of the job, and do not wait for it')

async function launch(words: readonly string[], options: LaunchVerbOptions, context: CliContext): Promise<number> {
  using queue = await openQueue(options, context)
  const { store } = queue
  // Before anything is copied.
  const planned = await prepareJob(words, { ...options, dryRun: true }, queue, context)
  checkFollowed(planned, options.follow)
  if (options.dryRun) return await tryOut(planned, queue, options, context)
  const spec = await prepareJob(words, options, queue, context)
  await checkRoom(spec, queue, options, context)
  const submission = {
    spec,
    user: options.user ?? accountName(),
    priority: options.priority,
    isHeld: false,
    after: [],
    variants: [{}],
  }
  const [[id = 0] = []] = store.submitAll([submission], context.now())
  if (options.json) context.stdout.write(jsonLine({ type: 'submitted', job: id }, context))
  else if (options.detach) context.stdout.write(`${id}\n`)
  if (options.detach) {
    noticeScheduler(queue, context)
    return EXIT.ok
  }
  // Ctrl-C cancels the job: connections and the scheduler stay until it has ended.
  const over = new AbortController()
  const steady = { ...context, signal: over.signal }
  using hosts = await connectHosts(queue.inventory, options, steady)
  const watch = new LaunchWatch(id, queue, hosts, options, context)
  const driving = drive(queue, hosts, steady, (text) => watch.warn(text))
  try {
    return await Promise.race([watch.run(over.signal), driving.then(() => Promise.withResolvers<never>().promise)])
  } finally {
    over.abort()
    await driving
  }
}

/** @throws MusterError 'usage' for a rank that the job will not have */
function checkFollowed(spec: JobSpec, rank: number): void {
  const { count } = rankBounds(spec, spec.bundles)
  if (rank < count) return
  throw new MusterError('usage', `cannot follow rank ${rank}: ${numbersThere('rank', count)}`)
}

/** Runs the scheduler until the signal, or stands by while another one runs. `say`: prints what went wrong. */
export async function drive(
  queue: OpenQueue,
  hosts: ConnectedInventory,
  context: CliContext,
  say = (text: string): void => void context.stderr.write(`muster: ${text}\n`),
): Promise<void> {
  const { inventory } = queue
  using engines = await openEngines(inventory, context)
  await driveQueue({
    queue,
    port: hosts,
    addresses: hosts.addresses,
    engines: driverEngines(engines, hosts.ops),
    proveStorage: hostStorage(inventory, hosts.ops, context),
    signal: context.signal,
    now: context.now,
    isPreempting: false,
    isUntilEmpty: false,
    linkSpeeds: linkSpeedsOf(inventory, context),
    say,
  })
}

const CHECK_MS = 200
/** Between two readings of all ranks, and between two of a file that has not grown. */
const RANKS_MS = 2_000
const OUTPUT_MS = 1_000
/** A job that waits for longer is told why; what changes all the time is told only so often. */
const WAIT_MS = 3_000
const MOST_WAITS = 10
/** Characters of a line without an end that are waited for. */
const MOST_UNENDED = 64 * 1024
/** Of the terminal's rows, for ranks. */
const RANKS_SHARE = 0.5

type Unended = { readonly place: RankPlace; readonly name: string; readonly text: string }

class LaunchWatch {
  readonly #id: number
  readonly #queue: OpenQueue
  readonly #hosts: ConnectedInventory
  readonly #options: LaunchVerbOptions
  readonly #context: CliContext
  readonly #screen: LiveScreen
  #job: Job
  #readings: RankReadings = { readings: new Map(), troubles: new Map(), deleted: new Set() }
  #output: { readonly attempt: number; readonly rank: RankOutput } | undefined
  #said = ''
  #waits = ''
  #waitsSaid = 0
  readonly #told = new Set<string>()
  /** By bundle and stream: the line whose end has not come yet. */
  readonly #unended = new Map<string, Unended>()

  constructor(
    id: number,
    queue: OpenQueue,
    hosts: ConnectedInventory,
    options: LaunchVerbOptions,
    context: CliContext,
  ) {
    this.#id = id
    this.#queue = queue
    this.#hosts = hosts
    this.#options = options
    this.#context = context
    this.#job = jobOr(queue, id)
    this.#screen = new LiveScreen({ ...context, live: (rows) => (options.json ? [] : this.#live(rows)) })
  }

  /** Until the job has ended; its exit code. */
  async run(signal: AbortSignal): Promise<number> {
    using screen = this.#screen
    const over = new AbortController()
    const output = this.#followOutput(over.signal, signal)
    const ranks = this.#context.stderr.isTTY === true ? this.#followRanks(over.signal, signal) : Promise.resolve()
    let isCancelled = false
    for (;;) {
      this.#job = jobOr(this.#queue, this.#id)
      this.#tell()
      screen.refresh()
      if (isFinal(this.#job.state)) break
      if (this.#context.signal.aborted && !isCancelled) {
        isCancelled = true
        this.#cancel()
      }
      await sleep(CHECK_MS, undefined, { signal })
    }
    over.abort()
    await Promise.all([output, ranks])
    screen[Symbol.dispose]()
    return this.#end()
  }

  #cancel(): void {
    const { store } = this.#queue
    store.applyAll([{ id: this.#id, event: { kind: 'stop', reason: 'cancelled' } }], this.#context.now())
    this.#note(`cancelling job ${this.#id}: waiting until its processes have ended`)
  }

  /** What is new about the job and its ranks. */
  #tell(): void {
    const { state, attempt } = this.#job
    const word = `${state.kind} ${attempt}`
    if (word !== this.#said) {
      this.#said = word
      const where = hostsText(this.#job)
      const again = state.kind === 'queued' && state.last !== undefined ? ` again: ${state.last}` : ''
      if (this.#options.json)
        this.#context.stdout.write(jsonLine({ type: 'job', job: this.#id, state: state.kind, attempt }, this.#context))
      else if (!isFinal(state))
        this.#note(
          `job ${this.#id}: ${state.kind}${isActive(state) && where !== undefined ? ` on ${where}` : ''}${again}`,
        )
    }
    this.#tellWait()
    this.#tellStart()
    for (const text of preflightWords(this.#job, this.#hosts.addresses)) {
      const key = `${attempt} ${text}`
      if (this.#told.has(key)) continue
      this.#told.add(key)
      if (this.#options.json)
        this.#context.stdout.write(jsonLine({ type: 'warning', job: this.#id, text }, this.#context))
      else this.warn(`warning: ${text}`)
    }
    for (const row of ranksOf(this.#job)) {
      const { rank, title, host, claimedBy, code, text, restart, state: how } = row
      const key = `${attempt} ${restart} ${host} ${title}`
      if (how !== 'failed' || this.#told.has(key)) continue
      this.#told.add(key)
      if (this.#options.json)
        this.#context.stdout.write(
          jsonLine(
            { type: 'rank', job: this.#id, rank, title, host, claimedBy, state: how, code, reason: text },
            this.#context,
          ),
        )
      else
        this.warn(`${title} on ${host} failed: exit ${code}${claimText(row)}${text === undefined ? '' : `: ${text}`}`)
    }
  }

  /** The order of its ranks, and where a service answers. */
  #tellStart(): void {
    const { state, attempt } = this.#job
    if (!isActive(state)) return
    const { ring, endpoint } = state
    const lines = [
      ...(ring === undefined ? [] : [`ring ${ringText(ring)}`]),
      ...(endpoint === undefined ? [] : [`ready at ${endpoint}`]),
    ]
    for (const text of lines) {
      const key = `${attempt} ${text}`
      if (this.#told.has(key)) continue
      this.#told.add(key)
      if (!this.#options.json) this.#note(`job ${this.#id}: ${text}`)
    }
    if (this.#options.json && endpoint !== undefined && !this.#told.has(endpoint)) {
      this.#told.add(endpoint)
      this.#context.stdout.write(jsonLine({ type: 'ready', job: this.#id, endpoint }, this.#context))
    }
  }

  /** Why it has not started yet, once it should have. */
  #tellWait(): void {
    const { state, attempt } = this.#job
    const nowMs = this.#context.now()
    if (state.kind !== 'queued' || this.#options.json || nowMs - waitsFrom(this.#job) < WAIT_MS) return
    const { why } = whyWaiting(this.#job, this.#queue, nowMs)
    const text = why.join('; ')
    if (text === '' || text === this.#waits || this.#waitsSaid >= MOST_WAITS) return
    this.#waits = text
    this.#waitsSaid += 1
    this.#note(`job ${this.#id} waits${attempt > 1 ? ' again' : ''}: ${text}`)
  }

  #note(text: string): void {
    this.#screen.notice(ownLine(text, this.#options, this.#context))
  }

  /** Also with --quiet. */
  warn(text: string): void {
    this.#screen.err(ownLine(text, this.#options, this.#context))
  }

  /** Until `over`, and then what is left. */
  async #followOutput(over: AbortSignal, signal: AbortSignal): Promise<void> {
    for (;;) {
      // Checked before reading, so that everything it wrote before it ended is read.
      const isOver = over.aborted
      try {
        const hasRead = await this.#readOutput(isOver, signal)
        if (hasRead) continue
      } catch (error) {
        // The scheduler tells what is wrong with a host.
        if (!(error instanceof MusterError)) throw error
      }
      if (isOver) {
        for (const { place, name } of this.#unended.values()) this.#print(place, name, '', true)
        return
      }
      await sleep(OUTPUT_MS, undefined, { signal: over }).catch(() => undefined)
    }
  }

  /** Of all hosts that have it, or say so. */
  async #readOutput(isOver: boolean, signal: AbortSignal): Promise<boolean> {
    const job = this.#job
    const { state, attempt } = job
    if (!('places' in state) || !state.bundles?.some(({ kind }) => kind !== 'sent')) return false
    if (this.#output?.attempt !== attempt) {
      const keyOf = (bundle: number) => bundleKey(this.#queue.store.id, job, bundle)
      const rank = new RankOutput(
        ({ bundle, host, files }) => new OutputTail(files, bundleFiles(this.#hosts, host, job, keyOf(bundle))),
      )
      this.#output = { attempt, rank }
    }
    const { rank } = this.#output
    if (rank.isOpen && rank.add(await this.#newPlaces(job, rank, isOver, signal))) this.#tellSources(rank.places)
    return await rank.read((place, name, text) => this.#print(place, name, text), signal)
  }

  async #newPlaces(job: Job, { places }: RankOutput, isOver: boolean, signal: AbortSignal) {
    const found = await this.#placesOf(job, signal).catch((error: unknown) => {
      // What is known is read on.
      if (places.length === 0 || !(error instanceof MusterError)) throw error
      return []
    })
    const isUnclaimed = found.length + places.length === 0 && isOver && this.#options.follow === 0
    return isUnclaimed ? [launcherPlace(job)] : found
  }

  #tellSources(places: readonly RankPlace[]): void {
    const { follow: rank, json } = this.#options
    if (json) return
    const [place, ...others] = places
    const words = place && placeWords(rank, place)
    if (others.length > 0)
      this.warn(
        `rank ${rank} is claimed by ${foldHostSet(places.map(({ host }) => host))}: its lines begin with the host`,
      )
    else if (words !== undefined) this.#note(words)
  }

  /** Whole lines: the table of ranks and Muster's own lines are below them. */
  #print(place: RankPlace, name: string, text: string, isLast = false): void {
    const { bundle, host } = place
    const key = `${bundle} ${name}`
    const all = (this.#unended.get(key)?.text ?? '') + text
    const end = isLast || all.length > MOST_UNENDED ? all.length : all.lastIndexOf('\n') + 1
    this.#unended.set(key, { place, name, text: all.slice(end) })
    const whole = all.slice(0, end)
    if (whole === '') return
    const { json, follow: rank } = this.#options
    if (json)
      this.#screen.out(
        jsonLine({ type: 'output', job: this.#id, rank, host, stream: name, text: whole }, this.#context),
      )
    else {
      const ended = whole.endsWith('\n') ? whole : `${whole}\n`
      const lines =
        (this.#output?.rank.places.length ?? 0) > 1 ? ended.replace(/[^\n]*\n/g, (line) => `${host}: ${line}`) : ended
      if (name === 'err') this.#screen.err(lines)
      else this.#screen.out(lines)
    }
  }

  async #placesOf(job: Job, signal: AbortSignal): Promise<readonly RankPlace[]> {
    const { follow: rank } = this.#options
    const { state, spec } = job
    if (spec.launch?.ranks !== undefined) return await findPlaces(job, this.#queue.store.id, rank, this.#hosts, signal)
    const host = 'places' in state ? state.places?.[rank]?.host : undefined
    if (host === undefined) throw new MusterError('usage', `job ${job.id} has no rank ${rank}`)
    return [{ bundle: rank, host, files: ['out', 'err'] }]
  }

  async #followRanks(over: AbortSignal, signal: AbortSignal): Promise<void> {
    while (!over.aborted) {
      const job = this.#job
      if (isActive(job.state)) this.#readings = await readRanks(job, this.#queue.store.id, this.#hosts, signal)
      this.#screen.refresh()
      await sleep(RANKS_MS, undefined, { signal: over }).catch(() => undefined)
    }
  }

  #live(rows: number): readonly string[] {
    const all = ranksOf(this.#job, this.#readings.readings)
    const table = formatRanks(all, TERMINAL).split('\n').slice(0, -1)
    const most = Math.max(2, Math.floor(rows * RANKS_SHARE))
    const troubles = [...this.#readings.troubles].map(([host, why]) => `${host}: ${why}`)
    const shown = table.slice(0, most)
    const more = table.length - shown.length
    return [...shown, ...(more > 0 ? [`${more} more: muster job ranks ${this.#id}`] : []), ...troubles.slice(0, 2)]
  }

  #end(): number {
    const { state, spec } = this.#job
    if (!isFinal(state)) return EXIT.failed
    const reason = state.reason === undefined ? '' : `: ${state.reason}`
    if (this.#options.json)
      this.#context.stdout.write(
        jsonLine({ type: 'ended', job: this.#id, state: state.kind, reason: state.reason }, this.#context),
      )
    else {
      const end = `job ${this.#id}: ${state.kind}${reason}`
      if (state.kind === 'done') this.#note(end)
      else this.warn(end)
      for (const line of leftWords(this.#job)) this.warn(line)
    }
    if (state.kind === 'done') return EXIT.ok
    if (state.kind === 'cancelled') return EXIT.interrupted
    const [first] = rankFailures(failuresOf(spec, state))
    return (state.kind === 'failed' ? first?.code : undefined) ?? EXIT.failed
  }
}
