/** The tables of the Jobs tab: which one has the keys, its rows as they are filtered and sorted, and the selected one. Pure. */
import { printable } from '../../base/printable.ts'
import type { ClusterJobDetails } from '../../scheduler/jobs/engine.ts'
import type { ClusterJob } from '../packing/engine-picture.ts'
import { shownRows, type TableColumn, type TableFrame } from '../rows/table-view.ts'
import { type ConsoleState, type PageContext, tableView, unfilterTable } from '../state/console-state.ts'
import type { ArrayTable } from './array-table.ts'
import { clusterColumns } from './cluster-document.ts'
import { lineColumns } from './documents.ts'
import { clusterJobKey, hasOpenPage, type JobLine, lineOfJob, linesInState, pictureAt } from './queue-view.ts'
import { anyRankColumns } from './ranks-document.ts'
import { resultColumns, shownResults, sortedTitle, type TableRow } from './results-table.ts'
import { type ShownTrial, trialTable } from './study-documents.ts'
import type { StudyReading } from './study-view.ts'

/** The ids of their panes. */
export const LIST = ' jobs'
export const RESULTS = ' results'
export const TRIALS = ' trials'
export const CLUSTER = ' cluster jobs'
export const RANKS = ' ranks'
export const JOB_LOG = ' log of job'

/** With this job selected: what is open or filtered in the tab may be of other jobs, to which the next key would apply. */
export function showInQueue(context: Pick<PageContext, 'change'>, spec: number, member: number | undefined): void {
  const closed = { isTableOpen: false, isLogOpen: false, ranks: undefined, study: undefined }
  const view = { ...closed, filter: 'all', listed: 'queue', logOffset: undefined, logRank: undefined } as const
  context.change((state) => ({ ...unfilterTable(state, LIST), queue: { ...state.queue, ...view, spec, member } }))
}

const frame = <R>(id: string, columns: readonly TableColumn<R>[], sorted?: string): TableFrame => ({
  id,
  columns: columns.filter(({ isHidden }) => isHidden !== true).map(({ title }) => title),
  sorted,
})

/** The table that has the keys; undefined: nothing has been read yet. */
export function jobsTable(state: ConsoleState): TableFrame | undefined {
  const { queue } = state
  if (queue.listed !== 'queue') return frame(CLUSTER, clusterColumns([], 0))
  if (queue.status === undefined || queue.trouble !== undefined) return undefined
  if (queue.ranks !== undefined) return frame(RANKS, anyRankColumns(), 'RANK')
  if (queue.study !== undefined) {
    const reading = studyShown(state)
    const table = reading && trialTable(reading, queue.study)
    return table && frame(TRIALS, resultColumns(table), sortedTitle(table))
  }
  if (queue.isLogOpen) return frame(JOB_LOG, [])
  if (!queue.isTableOpen) return frame(LIST, lineColumns(queue))
  const sweep = sweepShown(state)
  return sweep && frame(RESULTS, resultColumns(sweep), sortedTitle(sweep))
}

export const shownLines = (state: ConsoleState): readonly JobLine[] =>
  shownRows(linesInState(state.queue), lineColumns(state.queue), tableView(state, LIST))

/** The row of the open page; undefined: its jobs are no longer in the queue. Else the selected row, or the first one where that is not shown. */
export function chosenLine(state: ConsoleState): JobLine | undefined {
  const { status, study, spec } = state.queue
  if (study !== undefined) return status?.groups.find((line) => line.study?.study.id === study.id)
  if (hasOpenPage(state.queue)) return status?.groups.find((line) => line.spec === spec)
  const lines = shownLines(state)
  if (spec === undefined) return lines[0]
  // Of a row that has left the list, the neighbour: the latest jobs are on top.
  return lines.find((line) => line.spec === spec) ?? lines.find((line) => line.spec < spec) ?? lines.at(-1)
}

const logColumns: readonly TableColumn<string>[] = [{ title: 'LINE', text: printable }]

/** The lines of the open log that the filter leaves. */
export const shownLog = (state: ConsoleState): readonly string[] =>
  shownRows(state.queue.log?.lines ?? [], logColumns, tableView(state, JOB_LOG))

/** Of the selected row; undefined: not read yet. */
export function sweepShown(state: ConsoleState): ArrayTable | undefined {
  const { sweep } = state.queue
  return sweep?.spec === chosenLine(state)?.spec ? sweep?.sweep : undefined
}

export function shownMembers(state: ConsoleState, sweep = sweepShown(state)): readonly TableRow[] {
  return sweep === undefined || !state.queue.isTableOpen ? [] : shownResults(sweep, tableView(state, RESULTS))
}

/** Undefined: not read yet. */
export function studyShown({ queue: { studied, study } }: ConsoleState): StudyReading | undefined {
  return studied?.study.id === study?.id ? studied : undefined
}

export function shownTrials(state: ConsoleState): readonly ShownTrial[] {
  const [reading, { study }] = [studyShown(state), state.queue]
  return reading && study ? shownResults(trialTable(reading, study), tableView(state, TRIALS)) : []
}

/** Of the cluster that is listed; none while it does not answer. */
export function shownClusterJobs(state: ConsoleState): readonly ClusterJob[] {
  const picture = pictureAt(state.queue, state.queue.listed)
  if (picture === undefined || typeof picture === 'string') return []
  const active = state.queue.status?.active ?? []
  return shownRows(picture.jobs, clusterColumns(active, state.queue.readMs), tableView(state, CLUSTER))
}

/** The selected job of the listed cluster, or its first one. */
export function chosenClusterJob(state: ConsoleState): ClusterJob | undefined {
  const jobs = shownClusterJobs(state)
  return jobs.find((job) => clusterJobKey(job) === state.queue.clusterJob) ?? jobs[0]
}

/** The row of the own queue that has the selected job; undefined: it is of somebody else. */
export function lineOfClusterJob(state: ConsoleState): { readonly line: JobLine; readonly job: number } | undefined {
  const { job } = chosenClusterJob(state) ?? {}
  const line = job === undefined ? undefined : lineOfJob(state.queue.status, job)
  return job === undefined || line === undefined ? undefined : { line, job }
}

/** More about the selected job, where it was read. */
export function chosenClusterDetails(state: ConsoleState): ClusterJobDetails | string | undefined {
  const job = chosenClusterJob(state)
  const { clusterDetails } = state.queue
  return job !== undefined && clusterDetails?.key === clusterJobKey(job) ? clusterDetails.details : undefined
}
