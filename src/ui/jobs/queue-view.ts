/** The queue of jobs for the console (src/cli implements the port), and what the tabs Packing and Jobs show of it. */
import type { ClusterJobDetails } from '../../scheduler/jobs/engine.ts'
import { engineRanks, FAILED_KINDS, FINAL_KINDS, type Job } from '../../scheduler/jobs/job.ts'
import type { JobExtent, JobGroup } from '../../scheduler/jobs/job-group.ts'
import type { DeviceHold, PackedHost } from '../../scheduler/jobs/packing.ts'
import type { RankReading, RankTail } from '../../scheduler/jobs/ranks.ts'
import type { Sweep } from '../../scheduler/jobs/results.ts'
import type { WaitingGroup } from '../../scheduler/jobs/store.ts'
import type { RankTraces } from '../../scheduler/launch/straggler.ts'
import type { BlockSpot } from '../packing/arrange.ts'
import type { ClusterJob, EnginePicture } from '../packing/engine-picture.ts'
import type { TryOut, WhatIf } from '../packing/what-if.ts'
import type { ArrayTable } from './array-table.ts'
import type { StudyChange, StudyLine, StudyReading, StudyView } from './study-view.ts'

export const FILTERS = ['all', 'waiting', 'running', 'ended', 'failed'] as const
export type Filter = (typeof FILTERS)[number]

/** The end of a job's output. `trouble`: why it cannot be read; `isCut`: there is more before it; `hasMore`: after it. */
export type LogView = {
  readonly lines: readonly string[]
  readonly trouble: string | undefined
  readonly isCut?: boolean
  readonly hasMore?: boolean
}

/** So much of the end of stdout, and of stderr, is read for a `LogView`. */
export const LOG_BYTES = 32 * 1024
/** The exit code of a program that reads a log on a host: it was longer. */
export const LOG_IS_CUT = 3
/** There are no files of the job any more. */
export const LOG_IS_GONE = 4
/** Something else is in the place of one. */
export const LOG_IS_OTHER = 5

/** What all processes of a host use, 0 to 1 of its cores. */
export type RealUse = {
  readonly cpu: number
  readonly memoryBytes: number
  readonly cores?: number
  /** All that the host has. */
  readonly totalBytes?: number
  /** Mean use of its GPUs, 0 to 1; undefined: it has none, or they do not report it. */
  readonly gpu?: number | undefined
  /** By index. */
  readonly gpus?: ReadonlyMap<number, RealGpu>
}

/** `busy`: 0 to 1. */
export type RealGpu = {
  readonly name: string
  readonly busy?: number | undefined
  readonly usedBytes?: number | undefined
  readonly totalBytes?: number | undefined
  /** Pids of what computes on it. */
  readonly processes?: readonly number[] | undefined
}

export type QueueView = {
  /** Undefined: not read yet. */
  readonly status?: QueueStatus | undefined
  /** Of its jobs: they keep them while they are there. */
  readonly letters?: ReadonlyMap<number, string> | undefined
  /** When it was read. */
  readonly readMs: number
  /** Why it cannot be read now. */
  readonly trouble?: string | undefined
  readonly filter: Filter
  /** The selected row of the list. */
  readonly spec?: number | undefined
  /** The selected job of an array or a grid; undefined: the most telling one. */
  readonly member?: number | undefined
  /** The selected job. */
  readonly details?: JobDetails | undefined
  readonly log?: LogView | undefined
  readonly logOffset?: number | undefined
  /** The rank whose output is shown, of a gang that an engine runs; undefined: the first one. */
  readonly logRank?: number | undefined
  /** The jobs of the selected array or grid are shown as a table. */
  readonly isTableOpen: boolean
  /** The selected job and its log are shown instead of the list. */
  readonly isLogOpen: boolean
  /** The rows of that table. */
  readonly sweep?: { readonly spec: number; readonly sweep: ArrayTable } | undefined
  /** The ranks of one job are shown instead of the list. */
  readonly ranks?: RanksView | undefined
  /** What was read of them; undefined: nothing yet. */
  readonly seen?: RanksSeen | undefined
  /** A study is shown instead of the list. */
  readonly study?: StudyView | undefined
  /** That study, or the selected one of the list; undefined: not read yet. */
  readonly studied?: StudyReading | undefined
  /** What the Packing tab shows. */
  readonly picture: 'all' | 'queue' | 'ray' | EnginePlace
  /** Engines whose cluster can be shown. */
  readonly clusters: readonly EnginePlace[]
  /** The jobs that the Jobs tab lists. */
  readonly listed: 'queue' | EnginePlace
  /** The key of the selected one of an engine. */
  readonly clusterJob?: string | undefined
  /** More about that job; a string: why nothing is known. */
  readonly clusterDetails?: { readonly key: string; readonly details: ClusterJobDetails | string } | undefined
  /** The clusters that are shown: why one cannot be read, or what it has; without those that have not answered yet. */
  readonly pictures: ReadonlyMap<EnginePlace, EnginePicture | string>
  /** A gang to place without submitting it. */
  readonly whatIf?: WhatIf | undefined
  /** Where it would go; undefined: no answer yet. */
  readonly trial?: TryOut | undefined
  /** By host. */
  readonly used: ReadonlyMap<string, RealUse>
  /** Rows of the Packing tab's picture scrolled out above. */
  readonly packingOffset: number
  /** The selected block of the Packing tab; undefined: the first one. */
  readonly spot?: BlockSpot | undefined
  /** The list of the Packing tab that has the keys; undefined: the picture has them. */
  readonly packingList?: PackingList | undefined
  /** The selected row of its list of jobs; undefined: the first one. */
  readonly packingJob?: { readonly group: number; readonly job: number } | undefined
  /** The selected one of its waiting jobs; undefined: the first one. */
  readonly waitingJob?: { readonly group: number; readonly id: string } | undefined
  /** Rows of each list scrolled out above. */
  readonly listOffsets: ListOffsets
  /** A colour in the Packing tab is a user, not a job. */
  readonly isByUser?: boolean
}

/** The lists beside the picture of the Packing tab: waiting jobs, and all jobs with a letter. */
export type PackingList = 'waiting' | 'jobs'

export type ListOffsets = Readonly<Record<PackingList, number>>

export type RanksView = {
  readonly job: number
  /** Undefined: the first one in trouble, else the first one. */
  readonly rank?: number | undefined
  /** Of a rank that several hosts claim: the one of this bundle. */
  readonly bundle?: number | undefined
  /** Below the ranks: the log of all, only lines that not all wrote, that of the selected rank, or its stack. */
  readonly below: 'log' | 'odd lines' | 'log of rank' | 'stack'
  readonly stack?: LogView | undefined
}

/** What the hosts of a job told of its ranks. */
export type RanksSeen = {
  readonly job: number
  /** By bundle. */
  readonly readings: ReadonlyMap<number, readonly RankReading[]>
  readonly tails: readonly RankTail[]
  /** Why a host cannot be read now, by its name. */
  readonly troubles: ReadonlyMap<string, string>
  readonly traces: RankTraces
  /** Bundles whose files were deleted. */
  readonly deleted: ReadonlySet<number>
}

export const FIRST_QUEUE_VIEW: QueueView = {
  readMs: 0,
  filter: 'all',
  isTableOpen: false,
  isLogOpen: false,
  picture: 'all',
  listed: 'queue',
  clusters: [],
  pictures: new Map(),
  used: new Map(),
  packingOffset: 0,
  listOffsets: { waiting: 0, jobs: 0 },
}

/** The command line that runs a verb on this queue; printable. */
export const commandLineOf = (status: Pick<QueueStatus, 'command'> | undefined, verb: string): string =>
  status?.command?.(verb) ?? `muster ${verb}`

/** With the command that starts one. */
export const noScheduler = (status: Pick<QueueStatus, 'command'> | undefined): string =>
  `no scheduler running: ${commandLineOf(status, 'job work')}`

/** Why a scheduler has to be started: with the command that starts it, then shorter. Empty: there is no need. */
export function schedulerAlerts(status: Pick<QueueStatus, 'driver' | 'changed' | 'command'>): readonly string[] {
  const { driver, changed } = status
  if (driver === undefined) return [noScheduler(status), 'no scheduler running']
  if (changed === undefined) return []
  const words = `hosts.yaml has changed for ${changed}`
  return [`${words} since the scheduler started. Run: ${commandLineOf(status, 'job work')}`, words]
}

/** Undefined: one is running. */
export const undrivenWords = (status: QueueStatus | undefined): string | undefined =>
  status?.driver === undefined ? noScheduler(status) : undefined

export const KINDS: Readonly<Record<Exclude<Filter, 'all'>, readonly string[]>> = {
  waiting: ['queued', 'held', 'pending'],
  running: ['starting', 'running', 'ending'],
  ended: FINAL_KINDS,
  failed: FAILED_KINDS,
}

/** Jobs that were submitted together, or a study with its jobs: it may have none yet, or never any. */
export type JobLine = JobGroup & {
  readonly lead: Job | undefined
  readonly study?: StudyLine
  /** Of an array or a grid; undefined: not read yet. */
  readonly extent?: JobExtent | undefined
}

/** A log, a table, ranks or a study in place of the list or beside it: it stays on its jobs, whatever the list shows. */
export const hasOpenPage = ({ isLogOpen, isTableOpen, ranks, study }: QueueView): boolean =>
  isLogOpen || isTableOpen || ranks !== undefined || study !== undefined

/** Rows of the list without its filter by words. */
export function linesInState({ status, filter }: QueueView): readonly JobLine[] {
  const lines = status?.groups ?? []
  if (filter === 'all') return lines
  return lines.filter((line) => filter === studyFilter(line) || KINDS[filter].some((kind) => line.counts.has(kind)))
}

/** The row that has this job; undefined: none of the rows that are kept. */
export const lineOfJob = (status: QueueStatus | undefined, job: number): JobLine | undefined =>
  status?.groups.find(({ first, count }) => job >= first && job < first + count)

/** A study runs also while none of its jobs does. */
function studyFilter({ study }: JobLine): Filter | undefined {
  return study && (study.study.state.kind === 'running' || study.counts.open > 0 ? 'running' : 'ended')
}

/** It has been placed as several ranks whose hosts can be read. */
export function hasRanks(job: Job | undefined): job is Job {
  if (job === undefined) return false
  const { spec, state } = job
  const places = ('places' in state && state.places) || []
  return spec.engine === undefined && places.length > 0 && (spec.launch !== undefined || places.length > 1)
}

/** An engine runs it, and tells only what each of its ranks printed. */
export const isEngineGang = ({ spec }: Job): boolean => spec.engine !== undefined && engineRanks(spec) > 1

export const countOf = ({ counts }: Pick<JobLine, 'counts'>, kinds: readonly string[]): number =>
  kinds.reduce((sum, kind) => sum + (counts.get(kind) ?? 0), 0)

export function hasMetrics(job: Job | undefined): boolean {
  return (job?.spec.metrics?.length ?? 0) > 0
}

/** The queue at one moment. */
export type QueueStatus = {
  readonly storeId: string
  readonly hosts: readonly PackedHost[]
  /** Why a host does not answer the scheduler, by its name. */
  readonly down: Readonly<Record<string, string>>
  readonly active: readonly Job[]
  readonly waiting: readonly (WaitingGroup & { readonly why: string; readonly expectedMs: number | undefined })[]
  /** The latest first; `lead` is the first job of each. */
  readonly groups: readonly JobLine[]
  /** There are older ones that have ended. */
  readonly isCut?: boolean
  readonly counts: ReadonlyMap<string, number>
  /** What jobs that ended in the last minutes held. */
  readonly past?: readonly DeviceHold[]
  /** The running scheduler; undefined: none. */
  readonly driver: string | undefined
  /** Hosts that hosts.yaml declares otherwise than when the scheduler started. */
  readonly changed?: string | undefined
  /** For `commandLineOf`, where hosts.yaml is not found without an option. */
  command?(verb: string): string
  /** Where its commands work, if not in every shell of this machine. */
  readonly commandsWork?: string
  /** Of the jobs and studies that have these numbers in this status. */
  readonly changes: QueueChanges
}

/** Each call rejects, and changes nothing, once the queue that was read is no longer the one in its place. */
export interface QueueChanges {
  /** Returns how many were changed. */
  change(action: JobAction, ids: readonly number[]): Promise<number>
  changeStudy(id: number, change: StudyChange): Promise<void>
}

export type JobDetails = {
  readonly job: Job
  /** Of its queue. */
  readonly storeId: string
  readonly why: readonly string[]
  readonly expectedMs: number | undefined
  /** Of the bundle that failed first, else of bundle 0. */
  readonly log: HostLog | EngineLog | undefined
}

/** `program`: POSIX sh without an apostrophe that prints its end. `whose`: one of several bundles, for people. */
export type HostLog = { readonly host: string; readonly program: string; readonly whose?: string }

/** Of a job that an engine runs; `rank`: the first one unless given. */
export type EngineLog = { readonly job: number; readonly attempt: number; readonly rank?: number }

export type JobAction = 'hold' | 'release' | 'cancel' | 'retry'

/** The place of an engine. */
export type EnginePlace = `@${string}`

export type ClusterSource = {
  readonly place: EnginePlace
  /** Reads it until disposed, at once and then as it changes; a string: why nothing is known now. */
  watch(onPicture: (picture: EnginePicture | string) => void): Disposable
  /** More about a job of its picture; a string: why nothing is known. Never rejects. */
  details?(job: Pick<ClusterJob, 'id' | 'user'>, signal: AbortSignal): Promise<ClusterJobDetails | string>
}

/** Undefined: no answer yet. */
export const pictureAt = ({ pictures }: QueueView, place: string): EnginePicture | string | undefined =>
  pictures.get(place as EnginePlace)

/** Several users, or namespaces, may each have a job of one name. */
export const clusterJobKey = ({ id, user }: Pick<ClusterJob, 'id' | 'user'>): string => `${user}/${id}`

/** `options`: `--gpu`; `values`: by option. */
export type SubmitWords = {
  readonly options: readonly string[]
  readonly values: Readonly<Record<string, readonly string[]>>
}

export interface JobsPort {
  /**
   * `shown`: the submission that a page shows, however old it is. Undefined: nothing has changed since the last call. Rejects when
   * hosts.yaml or the queue cannot be read.
   */
  read(shown?: number): Promise<QueueStatus | undefined>
  /** Where a gang would go now. `away`: hosts that get nothing. */
  tryOut(whatIf: WhatIf, away: readonly string[]): Promise<TryOut>
  details(id: number): Promise<JobDetails | undefined>
  /** All jobs submitted together with it, and their metrics. */
  sweep(id: number): Promise<Sweep | undefined>
  /** Jobs submitted together that are in one of these states, ascending. */
  members(spec: number, kinds: readonly string[]): Promise<readonly number[]>
  /** Undefined: there is none any more. */
  study(id: number): Promise<StudyReading | undefined>
  /** Clusters of engines. */
  clusters(): Promise<readonly ClusterSource[]>
  /** The end of what it printed; a string: why that cannot be read. */
  readLog(log: EngineLog, signal: AbortSignal): Promise<Uint8Array | string>
  /** What Tab completes there. */
  submitWords(): Promise<SubmitWords>
  /**
   * `text`: a command, or options of `muster job submit`, `--` and a command. Returns what was submitted, in a sentence, and what there
   * is to know about it, in others. Rejects with what is wrong with it.
   */
  submit(text: string): Promise<readonly string[]>
}
