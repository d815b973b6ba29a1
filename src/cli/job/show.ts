/** `muster job list`, `show` and `results`: jobs as tables. */

import { Option } from 'commander'
import { defined } from '../../base/defined.ts'
import { MusterError } from '../../base/errors.ts'
import { printable, printableLines } from '../../base/printable.ts'
import { clip } from '../../base/text-width.ts'
import { ageText, dayText, timeText, whenText } from '../../base/time-text.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { didYouMean } from '../../inventory/nearest-word.ts'
import { declaredShare } from '../../ops/nfs/shared-directory.ts'
import { placeTitle } from '../../scheduler/jobs/engine.ts'
import {
  type BundleState,
  bundleTitle,
  engineNodes,
  FINAL_KINDS,
  formatBundle,
  isActive,
  isFinal,
  type Job,
  leftWords,
  type PlacedRing,
  requestsOf,
  silenceOf,
  UNFINISHED_KINDS,
} from '../../scheduler/jobs/job.ts'
import { JOB_COLUMNS, noAnswerText, requestText, STATE_COLUMN, termsText } from '../../scheduler/jobs/job-columns.ts'
import { type Metric, metricJson, rankBy } from '../../scheduler/jobs/metric.ts'
import { handLinesOf, preflightOf } from '../../scheduler/jobs/orders.ts'
import type { SweepRow } from '../../scheduler/jobs/results.ts'
import { formatRing } from '../../scheduler/launch/ring.ts'
import type { ResourceRequest } from '../../scheduler/model/resources.ts'
import { offering, wholeNumber } from '../command-line/options.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { jsonLine } from '../output/json-lines.ts'
import { formatTable } from '../output/table.ts'
import { withJob } from './arguments.ts'
import { addressesOf, type OpenQueue, readQueueOnce } from './open-queue.ts'
import { otherQueuesWords } from './other-queues.ts'
import { serviceState } from './service/service.ts'
import { whyWaiting } from './why-waiting.ts'

type ListOptions = GlobalOptions & { readonly state?: string; readonly limit: number }

const STATES: readonly string[] = [...UNFINISHED_KINDS, ...FINAL_KINDS]

export const list: VerbCode = {
  define: (command) =>
    command
      .addOption(
        offering(new Option('--state <names>', `list only jobs in these states: ${STATES.join(', ')}`), STATES),
      )
      .option('--limit <n>', 'show at most N jobs that have ended', wholeNumber(0), 50),
  help: `
Examples:
  muster job list --state running,failed
  muster job list --limit 0          only jobs that run or wait
`,
  async run(options: ListOptions, context: CliContext) {
    using queue = await readQueueOnce(options, context)
    const states = statesOf(options.state)
    const { found: jobs, damage } = queue.store.listWhole(states, options.limit)
    const fewer = fewerEnded(queue.store.counts(), states, options.limit)
    if (options.json) {
      for (const job of jobs) context.stdout.write(jsonLine(jobJson(job), context))
      if (fewer !== undefined) context.stderr.write(`muster: ${fewer}\n`)
      if (damage !== undefined) throw damage
      return EXIT.ok
    }
    const isTerminal = context.stdout.isTTY === true
    const columns = JOB_COLUMNS.filter(({ isNeeded }) => !isTerminal || isNeeded?.(jobs) !== false)
    const nowMs = context.now()
    const driver = queue.store.lease.owner(nowMs)
    // Without a scheduler, the last report about hosts is old.
    const down = (driver !== undefined && queue.store.report()?.down) || {}
    const rows = jobs.toReversed().map((job) =>
      columns.map((column) => {
        const text = column.text(job, nowMs)
        const more = column === STATE_COLUMN ? noAnswerText(job.state, down) : ''
        return isTerminal ? clip(printable(text + more), column.most ?? 1000) : text
      }),
    )
    context.stdout.write(
      formatTable(
        columns.map(({ title }) => title),
        rows,
        context.stdout,
      ),
    )
    const pruned = queue.store.studies.prunedJobs()
    const ofWhich = pruned === 0 ? '' : ` (${pruned} pruned)`
    const counts = [...queue.store.counts()].map(
      ([kind, count]) => `${count} ${kind}${kind === 'cancelled' ? ofWhich : ''}`,
    )
    const service = driver === undefined ? await serviceState(queue.inventory, context) : undefined
    const more = service === undefined ? '' : `, and its service ${service.name} is ${service.state}`
    const scheduler = driver === undefined ? `no scheduler running${more}` : `scheduler: ${printable(driver)}`
    context.stdout.write(`${rows.length === 0 ? '' : '\n'}${counts.join(', ') || 'no jobs'}; ${scheduler}\n`)
    if (fewer !== undefined) context.stdout.write(`${fewer}\n`)
    for (const words of otherQueuesWords(queue.inventory, context)) context.stdout.write(`${words}\n`)
    for (const words of silentPlaces(jobs, down)) context.stdout.write(`${printable(words)}\n`)
    if (damage !== undefined) throw damage
    return EXIT.ok
  },
}

/** `50 of 213 ended jobs: --limit N shows more`; undefined: all of these states are listed. */
function fewerEnded(counts: ReadonlyMap<string, number>, states: readonly string[], most: number): string | undefined {
  const meant = FINAL_KINDS.filter((kind) => states.length === 0 || states.includes(kind))
  const ended = meant.reduce((sum, kind) => sum + (counts.get(kind) ?? 0), 0)
  return ended > most ? `${most} of ${ended} ended jobs: --limit N shows more` : undefined
}

/** Why what is known of some of these jobs is old: `h[1-2]: unreachable`. */
function silentPlaces(jobs: readonly Job[], down: Readonly<Record<string, string>>): readonly string[] {
  const silent = jobs.flatMap(({ state }) =>
    isActive(state) ? state.places.map(({ host }, rank) => [host, silenceOf(state, rank, down)] as const) : [],
  )
  const byReason = Map.groupBy(silent, ([, reason]) => reason)
  return [...byReason].flatMap(([reason, places]) =>
    reason === undefined ? [] : [`${foldHostSet([...new Set(places.map(([host]) => placeTitle(host)))])}: ${reason}`],
  )
}

const BY_HAND = 'by hand'

/** A variable of --env may be a secret, and others may see the screen. */
function withoutValues({ spec }: Job): Pick<Job, 'spec'> {
  const names = Object.keys(spec.environment ?? {})
  return { spec: { ...spec, environment: Object.fromEntries(names.map((name) => [name, '…'])) } }
}

export const show: VerbCode = {
  define: withJob,
  help: `
Examples:
  muster job show 17                 everything about a job, and why it waits
`,
  async run(id: number, options: GlobalOptions, context: CliContext) {
    using queue = await readQueueOnce(options, context)
    const job = jobOr(queue, id)
    const nowMs = context.now()
    const why = whyWaiting(job, queue, nowMs)
    const values = Object.entries(queue.store.results.of(id))
    const { places, bundles } = 'places' in job.state ? job.state : {}
    const addresses = await addressesOf(queue, places ?? [], options, context)
    const handLines = ({ spec }: Pick<Job, 'spec'>) =>
      places === undefined ? [] : handLinesOf({ ...job, spec, places, bundles }, addresses)
    const byHand = handLines(options.json ? job : withoutValues(job))
    const warnings = preflightWords(job, addresses)
    if (options.json) {
      const metrics = values.length === 0 ? {} : { metrics: metricsJson(values) }
      context.stdout.write(
        jsonLine(
          {
            ...jobJson(job),
            spec: job.spec,
            state: job.state,
            ...why,
            ...metrics,
            ...(byHand.length > 0 ? { byHand } : {}),
            ...(warnings.length > 0 ? { warnings } : {}),
          },
          context,
        ),
      )
      return EXIT.ok
    }
    const { state, spec } = job
    const lines: (readonly [string, string])[] = [
      ['job', String(id)],
      ['name', spec.name],
      ['command', spec.typed?.command ?? spec.command],
      ...(spec.typed === undefined ? [] : [['environment', spec.typed.fromEnv] as const]),
      ['state', state.kind],
      ['user', `${job.user}, priority ${job.priority}`],
      ['requests', [requestText(job), termsText(spec)].filter((text) => text !== '').join(', ')],
      ...(spec.storage === undefined ? [] : [['storage', storageText(spec.storage, queue)] as const]),
      ['submitted', agoText(job.submittedMs, nowMs)],
      ['attempt', `${job.attempt}${earlierWords(job, queue)}`],
    ]
    if ('places' in state && state.places) {
      const nodes = engineNodes(state)
      const { down = {} } = queue.store.report() ?? {}
      lines.push(['since', agoText(state.startedMs ?? 0, nowMs)])
      state.places.forEach(({ host, devices }, rank) => {
        const bundle = state.bundles?.[rank]
        const trouble = silenceOf(state, rank, down)
        const how = bundle === undefined ? '' : bundleWords(bundle, requestsOf(spec)[rank], trouble)
        lines.push([
          bundleTitle(spec, rank),
          `${placeTitle(host)}${nodes === undefined ? '' : ` on ${nodes}`}${devices.length > 0 ? `, GPU ${devices.join(',')}` : ''}: ${how}`,
        ])
      })
    }
    if ('ring' in state && state.ring !== undefined) lines.push(['ring', ringText(state.ring)])
    if (isActive(state) && state.endpoint !== undefined) lines.push(['ready', state.endpoint])
    if (isFinal(state))
      lines.push(['ended', `${timeText(state.endedMs, nowMs)}${state.reason ? `, ${state.reason}` : ''}`])
    for (const text of leftWords(job)) lines.push(['processes', text])
    for (const text of warnings) lines.push(['warning', text])
    for (const { host, command } of byHand) lines.push([BY_HAND, `on ${host}: ${command}`])
    for (const [name, value] of values) lines.push([name, value])
    if (state.kind === 'queued' && state.last !== undefined) lines.push(['last attempt', state.last])
    if (why.expected !== undefined) lines.push(['expected', whenText(Date.parse(why.expected), nowMs)])
    for (const line of why.why) lines.push(['why not now', line])
    // A line to type keeps its line breaks.
    const shown = (name: string, text: string) => (name === BY_HAND ? printableLines(text) : printable(text))
    context.stdout.write(lines.map(([name, text]) => `${`${name}:`.padEnd(14)}${shown(name, text)}\n`).join(''))
    return EXIT.ok
  },
}

/** What preflight found on the hosts of a launched job that started all the same. */
export function preflightWords(job: Job, addresses: ReadonlyMap<string, string>): readonly string[] {
  const { state } = job
  if (!('places' in state) || state.places === undefined) return []
  const found = preflightOf({ ...job, places: state.places, bundles: state.bundles }, addresses)
  const groups = Map.groupBy(
    found.filter(({ gravity }) => gravity !== 'blocker'),
    ({ cause, hint }) => JSON.stringify([cause, hint]),
  )
  return [...groups.values()].map((group) => {
    const [{ cause = '', hint = '' } = {}] = group
    const where = group.map(({ host, detail }) => (detail === undefined ? host : `${host} ${detail}`))
    return `${cause} (${where.join(', ')}).${hint === '' ? '' : ` ${hint}`}`
  })
}

function storageText(path: string, { inventory }: OpenQueue): string {
  const declared = declaredShare(inventory, path)
  return `${path} (${declared === undefined ? 'not declared in nfs' : `nfs: ${declared}`})`
}

const UNLIMITED = '; its memory is not limited there (needs root and cgroup v2)'

const metricsJson = (values: readonly (readonly [string, string])[]): object =>
  Object.fromEntries(values.map(([name, value]) => [name, metricJson(value)]))

function bundleWords(bundle: BundleState, request: ResourceRequest | undefined, trouble: string | undefined): string {
  const how = formatBundle(bundle, request?.memoryBytes)
  const isUnlimited = bundle.kind !== 'sent' && bundle.isUnlimited === true
  const unheard = trouble === undefined ? '' : `, according to its last report: ${trouble}`
  return `${how}${unheard}${isUnlimited ? UNLIMITED : ''}`
}

/** @throws MusterError `usage` when there is none, `configuration` where the queue is away */
export function jobOr({ store }: OpenQueue, id: number): Job {
  store.file.requireInPlace()
  const job = store.get(id)
  if (job === undefined) throw new MusterError('usage', `no such job: ${id}`)
  return job
}

function jobJson(job: Job): object {
  const { state } = job
  return {
    type: 'job',
    job: job.id,
    name: job.spec.name,
    state: state.kind,
    user: job.user,
    priority: job.priority,
    attempt: job.attempt,
    time: new Date(job.submittedMs).toISOString(),
    ...('places' in state && state.places ? { places: state.places } : {}),
    ...defined({ nodes: engineNodes(state) }),
    ...(isActive(state) && state.endpoint !== undefined ? { endpoint: state.endpoint } : {}),
    ...('ring' in state && state.ring !== undefined ? { ring: ringJson(state.ring) } : {}),
    ...('startedMs' in state && state.startedMs !== undefined
      ? { started: new Date(state.startedMs).toISOString() }
      : {}),
    ...(isFinal(state) ? { ended: new Date(state.endedMs).toISOString(), reason: state.reason } : {}),
  }
}

export const ringText = (ring: PlacedRing): string => `${formatRing(ring)} (measured ${dayText(ring.measuredMs)})`

const agoText = (ms: number, nowMs: number): string => `${timeText(ms, nowMs)}, ${ageText(nowMs - ms)} ago`

export const ringJson = ({ measuredMs, ...ring }: PlacedRing): object => ({
  ...ring,
  measured: new Date(measuredMs).toISOString(),
})

/** @throws MusterError `usage` for a misspelt state, which no job would ever be in. */
function statesOf(names: string | undefined): readonly string[] {
  const states = names?.split(',') ?? []
  const wrong = states.find((name) => !STATES.includes(name))
  if (wrong === undefined) return states
  throw new MusterError('usage', `unknown state: ${printable(wrong)}${didYouMean(wrong, STATES)}`, {
    hint: STATES.join(', '),
  })
}

type ResultsOptions = GlobalOptions & { readonly sort?: string; readonly limit: number }

export const results: VerbCode = {
  define: (command) =>
    withJob(command)
      .option('--sort <name>', 'sort by this metric or parameter, or by job (default: the first metric)')
      .option('--limit <n>', 'show at most N jobs', wholeNumber(0), 100),
  help: `
Examples:
  muster job results 17 --sort lr    all jobs that were submitted together with job 17
`,
  async run(id: number, options: ResultsOptions, context: CliContext) {
    using queue = await readQueueOnce(options, context)
    const { spec } = jobOr(queue, id)
    const group = queue.store.groupOf(id) ?? 0
    const { metrics, parameters, rows, count } = queue.store.results.sweep(group, spec)
    const sorted = sortRows(rows, metrics, parameters, options.sort).slice(0, options.limit)
    if (options.json) {
      for (const { id: job, state, attempt, parameters: own, values } of sorted) {
        const metrics = metricsJson(Object.entries(values))
        const line = { type: 'result', job, state: state.kind, attempt, parameters: own, metrics }
        context.stdout.write(jsonLine(line, context))
      }
      return EXIT.ok
    }
    const names = metrics.map(({ name }) => name)
    const cells = sorted.map(({ id: job, state, parameters: own, values }) => [
      String(job),
      state.kind,
      ...parameters.map((name) => own[name] ?? ''),
      ...names.map((name) => values[name] ?? '-'),
    ])
    context.stdout.write(formatTable(['JOB', 'STATE', ...parameters, ...names], cells, context.stdout))
    if (sorted.length < count) context.stdout.write(`\n${sorted.length} of ${count}: --limit shows more\n`)
    return EXIT.ok
  },
}

/** @throws MusterError `usage` for an unknown name */
function sortRows(
  rows: readonly SweepRow[],
  metrics: readonly Metric[],
  parameters: readonly string[],
  by: string | undefined,
): readonly SweepRow[] {
  const metric = by === undefined ? metrics[0] : metrics.find(({ name }) => name === by)
  if (metric !== undefined) return rankBy(rows, metric, ({ values }) => values)
  if (by === undefined || by === 'job') return rows
  if (parameters.includes(by)) return rankBy(rows, { name: by }, ({ parameters: own }) => own)
  throw new MusterError('usage', `--sort ${printable(by)}: no such metric or parameter`, {
    hint: `Names: ${['job', ...parameters, ...metrics.map(({ name }) => name)].join(', ')}.`,
  })
}

/** How to read what it said before; empty: there is nothing. */
function earlierWords({ id, attempt, spec }: Job, queue: OpenQueue): string {
  if (attempt === 1 || spec.engine !== undefined) return ''
  return ` (earlier output: ${queue.command(`job logs ${id} --attempt ${attempt - 1}`)})`
}
