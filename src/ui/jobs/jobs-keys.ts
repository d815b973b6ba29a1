import type { ClusterAction } from '../../scheduler/jobs/engine.ts'
import { CHANGED_KINDS } from '../../scheduler/jobs/job.ts'
import type { Study } from '../../scheduler/study/study.ts'
import { keyTable } from '../keys/key-table.ts'
import { type ConsoleState, tableView } from '../state/console-state.ts'
import { chosenClusterDetails, chosenLine, lineOfClusterJob, RESULTS, shownMembers } from './jobs-tables.ts'
import { countOf, hasMetrics, hasRanks, isEngineGang, type JobAction, type JobLine } from './queue-view.ts'

type Test = (state: ConsoleState) => boolean

const inRanks: Test = ({ queue }) => queue.ranks !== undefined
const inStudy: Test = ({ queue }) => queue.study !== undefined && queue.ranks === undefined
const canSwitch: Test = (state) => (inList(state) || inCluster(state)) && state.queue.clusters.length > 0
/** In the table of an array, or in the log of one of its jobs. */
const inArray: Test = ({ queue }) => queue.isTableOpen && queue.ranks === undefined
const inTable: Test = (state) => inArray(state) && !state.queue.isLogOpen
/** The jobs of an engine's cluster are listed, which cannot be changed here. */
export const inCluster: Test = ({ queue }) => queue.listed !== 'queue'
const isOfQueue: Test = (state) => inCluster(state) && lineOfClusterJob(state) !== undefined
const inLog: Test = (state) => state.queue.isLogOpen && !inRanks(state) && !inCluster(state)
const inGangLog: Test = (state) => {
  const { job } = state.queue.details ?? {}
  return inLog(state) && job !== undefined && isEngineGang(job)
}
const inList: Test = (state) =>
  !inRanks(state) && !inStudy(state) && !inTable(state) && !inCluster(state) && !inLog(state)
const hasJobs: Test = (state) =>
  !inRanks(state) &&
  !inStudy(state) &&
  !inCluster(state) &&
  !inLog(state) &&
  (state.queue.status?.groups.length ?? 0) > 0
/** A filter may leave none. */
const hasMember: Test = (state) =>
  inTable(state) && (tableView(state, RESULTS).filter.text === '' || shownMembers(state).length > 0)
/** About the selected row. */
const onLine =
  (test: (line: JobLine) => boolean): Test =>
  (state) => {
    const line = chosenLine(state)
    return line !== undefined && test(line)
  }
/** A study would only start other trials in place of cancelled ones, and the jobs of pruned trials are cancelled, too. */
const changes = (action: JobAction): Test => {
  const canChange = onLine((line) =>
    line.study === undefined || action === 'hold' || action === 'release'
      ? countOf(line, CHANGED_KINDS[action]) > 0
      : action === 'retry' && line.study.counts.failed + line.study.counts.cancelled > 0,
  )
  const canChangeMember: Test = ({ queue: { details } }) =>
    details !== undefined && CHANGED_KINDS[action].includes(details.job.state.kind)
  const isThere: Test = (state) => !inTable(state) || hasMember(state)
  return (state) =>
    !inStudy(state) && !inCluster(state) && isThere(state) && (inArray(state) ? canChangeMember : canChange)(state)
}
/** About the selected job of a cluster: what the engine allows. */
const allows =
  (action: ClusterAction): Test =>
  (state) => {
    const details = inCluster(state) ? chosenClusterDetails(state) : undefined
    return typeof details === 'object' && details.actions.includes(action)
  }
const isSweep = onLine(({ count, study }) => count > 1 && study === undefined)
const hasResults: Test = (state) => isSweep(state) && onLine(({ lead }) => hasMetrics(lead))(state)
const opensResults: Test = (state) => inList(state) && hasResults(state)
const opensJobs: Test = (state) => inList(state) && isSweep(state) && !hasResults(state)
const opensRanks: Test = (state) =>
  inList(state) && onLine(({ lead, study }) => !isSweep(state) && !study && hasRanks(lead))(state)
const opensLog: Test = (state) =>
  inList(state) && onLine(({ lead, study }) => !isSweep(state) && !study && !hasRanks(lead))(state)
/** Enter does something else in tables and on arrays. */
const opensRanksOfMember: Test = (state) => {
  const { job } = state.queue.details ?? {}
  if (inRanks(state) || inCluster(state) || !hasRanks(job)) return false
  return inTable(state) || isSweep(state) || state.queue.study?.hasLog === true
}
const opensStudy: Test = (state) => inList(state) && onLine(({ study }) => study !== undefined)(state)
/** About the study that is shown or selected. */
const onStudy =
  (test: (study: Study) => boolean): Test =>
  (state) =>
    (inList(state) || inStudy(state)) && onLine(({ study }) => study !== undefined && test(study.study))(state)
const isFollowed = onStudy(({ state }) => state.kind === 'running')
const hasOpenTrials = onLine(({ study }) => study?.study.spec.source === undefined && (study?.counts.open ?? 0) > 0)
const canStopNow: Test = (state) => onStudy(() => true)(state) && hasOpenTrials(state)
/** Trials of one that has ended may run again. */
const canStop: Test = (state) => isFollowed(state) || canStopNow(state)
const canContinue = onStudy(({ state, spec }) => spec.source === undefined || state.kind !== 'running')
const hasMoreMetrics: Test = (state) => inStudy(state) && onStudy(({ spec }) => spec.metrics.length > 1)(state)

/** A narrow footer shows the keys of the selected row first. */
export const jobsKeys = keyTable<ConsoleState>()(
  ['to-queue', 'Esc q', 'own queue', 'Jobs of a cluster: go back to your own queue.', inCluster],
  [
    'in-queue',
    'Enter',
    'in own queue',
    'Jobs of a cluster: go to the selected job in your own queue, if it is from there.',
    isOfQueue,
  ],
  ['to-list', 'Esc q', 'list', 'In a table: go back to the list.', inTable],
  ['table', 'Enter', 'results', 'Array or grid: show its jobs with metrics and parameters, best first.', opensResults],
  [
    'members',
    'Enter',
    'its jobs',
    'Array or grid without metrics: show its jobs with states and parameters.',
    opensJobs,
  ],
  ['member-log', 'Enter', 'log', 'In a table: show the log of the selected job alone, and follow it.', hasMember],
  ['log', 'Enter', 'log', 'Job that is no array and no gang: show its log alone, and follow it.', opensLog],
  ['from-log', 'Esc q Enter', 'list', 'Log of a job: go back to the list.', (state) => inLog(state) && !inArray(state)],
  [
    'from-member-log',
    'Esc q Enter',
    'table',
    'Log of a job of an array or a grid: go back to the table.',
    (state) => inLog(state) && inArray(state),
  ],
  [
    'log-rank',
    'Right l',
    'next rank',
    'Log of a gang in Ray, Slurm or Kubernetes: show the output of the next rank.',
    inGangLog,
  ],
  ['log-rank-before', 'Left', '', 'Log of such a gang: show the output of the previous rank.', inGangLog],
  ['ranks', 'Enter', 'ranks', 'Gang: show its ranks on their hosts, with their steps and logs.', opensRanks],
  ['ranks-of-member', 'e', 'ranks', 'Selected job of an array, if it is a gang: show its ranks.', opensRanksOfMember],
  ['from-ranks', 'Esc q', 'back', 'Ranks: back to the log of all ranks, then to the list.', inRanks],
  ['rank-log', 'Enter', 'its log', 'Ranks: show the log of the selected rank only, or of all ranks again.', inRanks],
  [
    'odd',
    'o',
    'odd lines',
    'Ranks: show only log lines that at most half of the ranks wrote, or all lines again. After ~, ranks wrote other numbers.',
    inRanks,
  ],
  [
    'stack',
    's',
    'stack',
    'Ranks: show where the selected rank is, with py-spy if its host has it, else by its threads.',
    inRanks,
  ],
  [
    'trouble',
    'n',
    'next in trouble',
    'Ranks: select the next rank that failed, was lost, is behind or cannot be read.',
    inRanks,
  ],
  ['study', 'Enter', 'study', 'Study: show its trials, its plots and what it does.', opensStudy],
  [
    'all-trials',
    'Esc',
    'all trials',
    'Study of which only some trials are shown: show all again.',
    (state) => inStudy(state) && state.queue.study?.filter !== 'all',
  ],
  ['from-study', 'Esc q', 'back', 'Study: from a log back to the plots, then to the list.', inStudy],
  [
    'trial-log',
    'Enter',
    'its log',
    'Study: show the job and the log of the selected trial, or the plots again.',
    inStudy,
  ],
  ['next-plots', 'Right l Tab', 'plots', 'Study: show the next plots beside the trials.', inStudy],
  ['plots-before', 'Left Shift-Tab', '', 'Study: show the previous plots.', inStudy],
  [
    'trial-filter',
    'f',
    'states',
    'Study: show all trials, or only open, done, pruned, failed or cancelled ones.',
    inStudy,
  ],
  ['metric', 'v', 'next metric', 'Study with several metrics: plot the next one.', hasMoreMetrics],
  [
    'stop-study',
    'c',
    'stop',
    'Study: start no more trials; running ones continue. A study that runs elsewhere is no longer followed. Asks first.',
    canStop,
  ],
  [
    'more-trials',
    'm',
    'more',
    'Study: run more trials, or continue one that was stopped; asks how many. One that runs elsewhere is followed again.',
    canContinue,
  ],
  [
    'stop-study-now',
    'C',
    'stop now',
    'Study: start no more trials, and cancel those that run. Asks first.',
    canStopNow,
  ],
  ['member', 'Right l', 'next', 'Array or grid: select its next job.', (state) => inList(state) && isSweep(state)],
  ['member-before', 'Left', '', 'Array or grid: select its previous job.', inList],
  ['next-rank', 'Right l', '', 'Ranks: select the next rank.', inRanks],
  ['rank-before', 'Left', '', 'Ranks: select the previous rank.', inRanks],
  ['cancel', 'c', 'cancel', 'Cancel the running and waiting jobs of this row; asks first.', changes('cancel')],
  ['hold', 'h', 'hold', 'Keep the waiting jobs of this row from starting; asks first.', changes('hold')],
  ['release', 'r', 'release', 'Let the held jobs of this row start; asks first.', changes('release')],
  [
    'retry',
    't',
    'retry',
    'Retry the failed, lost, cancelled and timed-out jobs of this row; asks first.',
    changes('retry'),
  ],
  [
    'cluster-delete',
    'd',
    'delete',
    'Jobs of a cluster: delete the selected Kubernetes Job or pod, if your credentials allow it; asks first.',
    allows('delete'),
  ],
  [
    'cluster-suspend',
    's',
    'suspend',
    'Jobs of a cluster: suspend the selected Kubernetes Job, which ends its pods, if your credentials allow it; asks first.',
    allows('suspend'),
  ],
  [
    'cluster-resume',
    's',
    'resume',
    'Jobs of a cluster: resume the selected Kubernetes Job, if your credentials allow it; asks first.',
    allows('resume'),
  ],
  [
    'filter',
    'f',
    'states',
    'Show all jobs, or only waiting, running, ended or failed ones.',
    (state) => hasJobs(state) && !inTable(state),
  ],
  [
    'all-states',
    'Esc',
    'all states',
    'List of which only some jobs are shown: show all again.',
    (state) => inList(state) && state.queue.filter !== 'all',
  ],
  ['submit', 'n', 'submit', 'Submit a job, typed as a command or as options, `--` and a command.', inList],
  [
    'cluster',
    'y',
    'next cluster',
    "List all jobs of the next cluster, Slurm's or Kubernetes', with other people's, then your own queue again.",
    canSwitch,
  ],
  ['up', 'Up k', '', 'Select the row above, or the rank above.'],
  ['down', 'Down j', '', 'Select the row below, or the rank below.'],
  ['page-up', 'PageUp', '', 'Move ten rows up.'],
  ['page-down', 'PageDown', '', 'Move ten rows down.'],
  ['first', 'Home g', '', 'Select the first row.'],
  ['last', 'End G', '', 'Select the last row.'],
  ['log-up', 'b', '', 'Scroll the log, or what a study does, up.'],
  ['log-down', 'Space', '', 'Scroll the log, or what a study does, down; at its end, follow it.'],
)

export type JobsCommand = (typeof jobsKeys)[number]['id']

/** What a part of the tab does for each of its keys. */
export type JobsActions = Readonly<Partial<Record<JobsCommand, () => void>>>
