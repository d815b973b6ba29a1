import type { KeyEntry } from '../keys/key-table.ts'
import type { ConsoleState } from '../state/console-state.ts'
import type { JobAction } from './jobs-port.ts'
import { CHANGED_KINDS, chosenLine, countOf, hasMetrics, type JobLine } from './queue-view.ts'

const define = <const T extends readonly KeyEntry<ConsoleState>[]>(keys: T): T => keys

type Test = (state: ConsoleState) => boolean

const inTable: Test = ({ queue }) => queue.table !== undefined
const inList: Test = ({ queue }) => queue.table === undefined
const hasJobs: Test = ({ queue }) => (queue.status?.groups.length ?? 0) > 0
const isFiltered: Test = ({ queue }) => queue.needle !== ''
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

/** In the order of the footer: a narrow one shows the keys of the selected row first. */
export const jobsKeys = define([
  { id: 'to-shells', keys: ['Esc', 'q'], title: 'shells', help: 'Back to the shells.', isMeant: inList },
  { id: 'to-list', keys: ['Esc', 'q'], title: 'list', help: 'In a table: back to the list.', isMeant: inTable },
  {
    id: 'table',
    keys: ['Enter'],
    title: 'results',
    help: 'Array or grid: a table of metrics and parameters, the best job first.',
    isMeant: (state) => inList(state) && hasResults(state),
  },
  {
    id: 'members',
    keys: ['Enter'],
    title: 'its jobs',
    help: 'Array or grid without metrics: a table of states and parameters.',
    isMeant: (state) => inList(state) && isSweep(state) && !hasResults(state),
  },
  {
    id: 'from-table',
    keys: ['Enter'],
    title: 'this job',
    help: 'In a table: back to the list, with the selected job and its log.',
    isMeant: inTable,
  },
  { id: 'order', keys: ['o'], title: 'sort', help: 'In a table: sort by the next column.', isMeant: inTable },
  { id: 'reverse', keys: ['O'], title: 'reverse order', help: 'In a table: reverse the order.', isMeant: inTable },
  {
    id: 'member',
    keys: ['Right', 'l'],
    title: 'next',
    help: 'Array or grid: select the next of its jobs.',
    isMeant: (state) => inList(state) && isSweep(state),
  },
  { id: 'member-before', keys: ['Left'], help: 'Array or grid: select the job before.' },
  {
    id: 'cancel',
    keys: ['c'],
    title: 'cancel',
    help: 'Cancel the running and waiting jobs in this row, after a question.',
    isMeant: changes('cancel'),
  },
  {
    id: 'hold',
    keys: ['h'],
    title: 'hold',
    help: 'Keep the waiting jobs in this row from starting, after a question.',
    isMeant: changes('hold'),
  },
  {
    id: 'release',
    keys: ['r'],
    title: 'release',
    help: 'Let the held jobs in this row start, after a question.',
    isMeant: changes('release'),
  },
  {
    id: 'retry',
    keys: ['t'],
    title: 'retry',
    help: 'Retry the failed, lost, cancelled and timed-out jobs in this row, after a question.',
    isMeant: changes('retry'),
  },
  {
    id: 'filter',
    keys: ['f'],
    title: 'filter',
    help: 'Show all jobs, or only waiting, running or ended ones.',
    isMeant: hasJobs,
  },
  {
    id: 'search',
    keys: ['/'],
    title: 'search',
    help: 'Show only rows with a word in name, command or user, or with the number of a job.',
    isMeant: (state) => hasJobs(state) && !isFiltered(state),
  },
  { id: 'show-all', keys: ['/'], title: 'show all', help: 'After a search: show all rows again.', isMeant: isFiltered },
  { id: 'up', keys: ['Up', 'k'], help: 'Select the row above.' },
  { id: 'down', keys: ['Down', 'j'], help: 'Select the row below.' },
  { id: 'page-up', keys: ['PageUp'], help: 'Move ten rows up.' },
  { id: 'page-down', keys: ['PageDown'], help: 'Move ten rows down.' },
  { id: 'log-up', keys: ['b'], help: 'Scroll the log up.' },
  { id: 'log-down', keys: ['Space'], help: 'Scroll the log down; at its end it is followed.' },
])

export type JobsCommand = (typeof jobsKeys)[number]['id']
