/** Jobs as text: the columns that `muster job list` and the tab Jobs share, and what they say. Pure. */
import { counted } from '../../base/counted.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import { formatDuration, timeText } from '../../base/time-text.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { ResourceRequest } from '../model/resources.ts'
import { needsText } from '../plans/needs.ts'
import { placeTitle } from './engine.ts'
import { engineNodes, FINAL_KINDS, hasBegun, isFinal, type Job, type JobSpec, type JobState, silenceOf } from './job.ts'
import type { JobExtent, JobGroup } from './job-group.ts'

export type JobColumn = {
  readonly title: string
  /** The most in the tab, in terminal columns, with the gap that follows; the last one takes what is left of the row. */
  readonly width: number
  /** The longest text that `muster job list` prints, in terminal columns. */
  readonly most?: number
  /** The tab shows it in a pane of at least this many columns, or where it is needed. */
  readonly leastPane?: number
  /** The tab shows it only if no other column is cut for it. */
  readonly isSpare?: boolean
  /** `muster job list` prints it only then; undefined: always. */
  isNeeded?(jobs: readonly Job[]): boolean
  text(job: Job, nowMs: number): string
  /** For an array or a grid, which the tab shows in one row; undefined: its jobs differ. */
  groupText?(group: JobGroup & { readonly lead: Job; readonly extent?: JobExtent | undefined }, nowMs: number): string
}

/** The tab draws this one itself: colour, reason and progress. */
export const STATE_COLUMN: JobColumn = { title: 'STATE', width: 24, text: ({ state }) => stateText(state) }

/** Hosts, folded. */
export const ON_COLUMN: JobColumn = {
  title: 'ON',
  width: 13,
  most: 20,
  text: (job) => hostsText(job) ?? '-',
  groupText: ({ extent }) => (extent === undefined ? '-' : foldedPlaces(extent.hosts)) || '-',
}

/** A service that answers is ready. */
export const stateText = (state: JobState): string =>
  state.kind === 'running' && state.endpoint !== undefined ? 'ready' : state.kind

/** `, no answer`, or `, h[1-2]: no answer` for a job on several hosts; empty: all of them answer. `down`: from the scheduler's report. */
export function noAnswerText(state: JobState, down: Readonly<Record<string, string>>): string {
  const places = ('places' in state && state.places) || []
  const silent = places.flatMap(({ host }, rank) => (silenceOf(state, rank, down) === undefined ? [] : [host]))
  if (silent.length === 0) return ''
  // A single host is already named in the column ON.
  const which = new Set(places.map(({ host }) => host)).size === 1 ? '' : `${foldedPlaces(silent)}: `
  return `, ${which}no answer`
}

/** A text that is the same for all jobs of an array or a grid. */
const shared = (text: (job: Job) => string): Pick<JobColumn, 'text' | 'groupText'> => ({
  text,
  groupText: ({ lead }) => text(lead),
})

export const JOB_COLUMNS: readonly JobColumn[] = [
  {
    title: 'JOB',
    width: 13,
    text: ({ id }) => String(id),
    groupText: ({ first, count }) => `${first}-${first + count - 1}`,
  },
  STATE_COLUMN,
  {
    title: 'RAN',
    width: 9,
    text: ({ state }, nowMs) => durationText(ranMs(state, nowMs)),
    groupText: (group, nowMs) => durationText(groupRanMs(group, nowMs)),
  },
  {
    title: 'STARTED',
    width: 17,
    isSpare: true,
    text: ({ state }, nowMs) => startText(startedMs(state), nowMs),
    groupText: ({ extent }, nowMs) => startText(extent?.startedMs, nowMs),
  },
  ON_COLUMN,
  {
    title: 'USER',
    width: 10,
    most: 12,
    leastPane: 96,
    isNeeded: (jobs) => new Set(jobs.map(({ user }) => user)).size > 1,
    ...shared(({ user }) => user),
  },
  {
    title: 'ASKS FOR',
    width: 44,
    leastPane: 114,
    text: requestText,
    groupText: ({ lead, isMixed }) => `${requestText(lead)}${isMixed === true ? ', some edited' : ''}`,
  },
  { title: 'NAME', width: 200, most: 40, ...shared(({ spec }) => spec.name) },
]

/** `4 × (8 CPU + 2 GPU + 16 GiB) SPREAD`, `4 × (1 CPU) PACK, at most 2 per host`; `1 × (1 CPU) + 2 × (1 CPU + 1 GPU) PACK` where roles differ; `1 CPU, needs 4 × {GPU 1} PACK` */
export function requestText({ spec }: Job): string {
  const { needs } = spec
  return needs === undefined ? bundlesText(spec) : `${bundlesText(spec)}, needs ${needsText(needs)}`
}

function bundlesText({ request, bundles, strategy, maxBundlesPerHost, roles }: JobSpec): string {
  const one = ({ cpuMilli, gpuCount, gpuMilli, memoryBytes }: ResourceRequest) => {
    const gpus = gpuCount === 0 ? '' : ` + ${(gpuCount * gpuMilli) / 1000} GPU`
    return `${cpuMilli / 1000} CPU${gpus}${memoryBytes === 0 ? '' : ` + ${formatBytes(memoryBytes).replace('.0 ', ' ')}`}`
  }
  if (bundles === 1) return one(request)
  const counts = new Map<string, number>()
  for (const role of roles ?? [{ request, count: bundles }])
    counts.set(one(role.request), (counts.get(one(role.request)) ?? 0) + role.count)
  const perHost = maxBundlesPerHost === undefined ? '' : `, at most ${maxBundlesPerHost} per host`
  return `${[...counts].map(([text, count]) => `${count} × (${text})`).join(' + ')} ${strategy}${perHost}`
}

/** What else it was submitted with: `on h[1-2], at most 2 h, 3 retries`; empty: nothing. */
export function termsText({ request, limitS, estimateS, retries, isPreemptible }: JobSpec): string {
  const hosts = request.selectors?.find(({ label, is }) => label === 'host' && is === 'in')
  return [
    ...(hosts !== undefined && 'values' in hosts ? [`on ${foldHostSet([...hosts.values])}`] : []),
    ...(limitS === undefined ? [] : [`at most ${formatDuration(limitS * 1000)}`]),
    ...(estimateS === undefined ? [] : [`${formatDuration(estimateS * 1000)} estimated`]),
    ...(retries === 0 ? [] : [counted(retries, 'retry', 'retries')]),
    ...(isPreemptible ? ['preemptible'] : []),
  ].join(', ')
}

/** The hosts where it runs or ran, folded, or its engine and that one's nodes, `Slurm n[1-2]`; undefined: it has none. */
export function hostsText({ state }: Pick<Job, 'state'>): string | undefined {
  if (!('places' in state) || state.places === undefined || state.places.length === 0) return undefined
  const nodes = engineNodes(state)
  return `${foldedPlaces(state.places.map(({ host }) => host))}${nodes === undefined ? '' : ` ${nodes}`}`
}

const foldedPlaces = (hosts: readonly string[]): string => foldHostSet([...new Set(hosts.map(placeTitle))])

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000

const startText = (ms: number | undefined, nowMs: number): string => (ms === undefined ? '-' : timeText(ms, nowMs))

/** At most eight columns: `1.0 s`, `5 min`, `2.1 h`, `3 days`. */
export function durationText(ms: number | undefined): string {
  if (ms === undefined) return '-'
  if (ms < 100_000) return `${(ms / 1000).toFixed(1)} s`
  const minutes = Math.round(ms / MINUTE_MS)
  if (minutes < 120) return `${minutes} min`
  const hours = (ms / HOUR_MS).toFixed(1)
  return Number(hours) < 48 ? `${hours} h` : `${Math.round(ms / (24 * HOUR_MS))} days`
}

/** Undefined: nothing of it has begun. */
export function ranMs(state: JobState, nowMs: number): number | undefined {
  const fromMs = startedMs(state)
  return fromMs === undefined ? undefined : Math.max(0, (isFinal(state) ? state.endedMs : nowMs) - fromMs)
}

/** Undefined: nothing of it has begun. */
export const startedMs = (state: JobState): number | undefined =>
  'startedMs' in state && hasBegun(state) ? state.startedMs : undefined

/** From the first start to the last end; while one of them has not ended, until now. */
export function groupRanMs({ counts, extent }: JobGroup & { readonly extent?: JobExtent | undefined }, nowMs: number) {
  if (extent?.startedMs === undefined) return undefined
  const isOver = [...counts.keys()].every((kind) => FINAL_KINDS.some((final) => final === kind))
  return Math.max(0, (isOver ? (extent.endedMs ?? nowMs) : nowMs) - extent.startedMs)
}
