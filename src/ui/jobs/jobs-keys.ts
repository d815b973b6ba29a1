import { keyTable } from '../keys/key-table.ts'
import type { ConsoleState } from '../state/console-state.ts'
import { CHANGED_KINDS, chosenLine, countOf, hasMetrics, hasRanks, type JobAction, type JobLine } from './queue-view.ts'

type Test = (state: ConsoleState) => boolean

const inRanks: Test = ({ queue }) => queue.ranks !== undefined
const inTable: Test = ({ queue }) => queue.table !== undefined && queue.ranks === undefined
const inList: Test = ({ queue }) => queue.table === undefined && queue.ranks === undefined
const hasJobs: Test = (state) => !inRanks(state) && (state.queue.status?.groups.length ?? 0) > 0
const isFiltered: Test = (state) => !inRanks(state) && state.queue.needle !== ''
/** About the selected row. */
const onLine =
  (test: (line: JobLine) => boolean): Test =>
  ({ queue }) => {
    const line = chosenLine(queue)
    return line !== undefined && test(line)
  }
const changes = (action: JobAction): Test => onLine((line) => countOf(line, CHANGED_KINDS[action]) > 0)
const isSweep = onLine(({ count }) => count > 1)
const hasResults = onLine(({ count, lead }) => count > 1 && hasMetrics(lead))
const opensResults: Test = (state) => inList(state) && hasResults(state)
const opensJobs: Test = (state) => inList(state) && isSweep(state) && !hasResults(state)
const opensRanks: Test = (state) => inList(state) && onLine(({ count, lead }) => count === 1 && hasRanks(lead))(state)
/** Enter does something else in tables and on arrays. */
const opensRanksOfMember: Test = (state) => {
  const { job } = state.queue.details ?? {}
  return !inRanks(state) && job !== undefined && hasRanks(job) && (inTable(state) || isSweep(state))
}
const canSearch: Test = (state) => hasJobs(state) && !isFiltered(state)

/** A narrow footer shows the keys of the selected row first. */
export const jobsKeys = keyTable<ConsoleState>()(
  ['to-shells', 'Esc q', 'shells', 'Go back to the shells.', inList],
  ['to-list', 'Esc q', 'list', 'In a table: go back to the list.', inTable],
  ['table', 'Enter', 'results', 'Array or grid: show its jobs with metrics and parameters, best first.', opensResults],
  [
    'members',
    'Enter',
    'its jobs',
    'Array or grid without metrics: show its jobs with states and parameters.',
    opensJobs,
  ],
  ['from-table', 'Enter', 'this job', 'In a table: go back to the list, with the selected job and its log.', inTable],
  ['ranks', 'Enter', 'ranks', 'Gang: show its ranks on their hosts, with their steps and logs.', opensRanks],
  ['ranks-of-member', 'g', 'ranks', 'Selected job of an array, if it is a gang: show its ranks.', opensRanksOfMember],
  ['from-ranks', 'Esc q', 'back', 'Ranks: back to the log of all ranks, then to the list.', inRanks],
  ['rank-log', 'Enter', 'its log', 'Ranks: show the log of the selected rank only, or of all ranks again.', inRanks],
  ['odd', 'o', 'odd lines', 'Ranks: show only log lines that not all ranks wrote, or all lines again.', inRanks],
  [
    'stack',
    's',
    'stack',
    'Ranks: show where the selected rank is, with py-spy if its host has it, else by its threads.',
    inRanks,
  ],
  ['trouble', 'n', 'next in trouble', 'Ranks: select the next rank that failed, is behind or cannot be read.', inRanks],
  ['order', 'o', 'sort', 'In a table: sort by the next column.', inTable],
  ['reverse', 'O', 'reverse order', 'In a table: reverse the order.', inTable],
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
  ['filter', 'f', 'filter', 'Show all jobs, or only waiting, running or ended ones.', hasJobs],
  ['search', '/', 'search', 'Show only rows with a word in name, command or user, or a job number.', canSearch],
  ['show-all', '/', 'show all', 'After a search: show all rows again.', isFiltered],
  ['up', 'Up k', '', 'Select the row above, or the rank above.'],
  ['down', 'Down j', '', 'Select the row below, or the rank below.'],
  ['page-up', 'PageUp', '', 'Move ten rows up.'],
  ['page-down', 'PageDown', '', 'Move ten rows down.'],
  ['log-up', 'b', '', 'Scroll the log up.'],
  ['log-down', 'Space', '', 'Scroll the log down; at its end, follow it.'],
)

export type JobsCommand = (typeof jobsKeys)[number]['id']
