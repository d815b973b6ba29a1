import type { KeyEntry } from '../keys/key-table.ts'
import type { ConsoleState } from '../state/console-state.ts'
import type { JobAction } from './jobs-port.ts'
import { CHANGED_KINDS, chosenLine, countOf, hasMetrics, type JobLine } from './queue-view.ts'

const define = <const T extends readonly KeyEntry<ConsoleState>[]>(keys: T): T => keys

type Meant = (state: ConsoleState) => boolean

const inTable: Meant = ({ queue }) => queue.table !== undefined
const inList: Meant = ({ queue }) => queue.table === undefined
const hasJobs: Meant = ({ queue }) => (queue.status?.groups.length ?? 0) > 0
const isFiltered: Meant = ({ queue }) => queue.needle !== ''
/** The line that is looked at is so. */
const onLine =
  (isSo: (line: JobLine) => boolean): Meant =>
  ({ queue }) => {
    const line = chosenLine(queue)
    return line !== undefined && isSo(line)
  }
const changes = (action: JobAction): Meant => onLine((line) => countOf(line, CHANGED_KINDS[action]) > 0)
const isSweep = onLine(({ count }) => count > 1)
const hasResults = onLine(({ count, lead }) => count > 1 && hasMetrics(lead))

/** In the order of the footer: what is of the chosen line comes first, where not all has room. */
export const jobsKeys = define([
  { id: 'to-shells', keys: ['Esc', 'q'], title: 'shells', help: 'Back to the shells.', isMeant: inList },
  { id: 'to-list', keys: ['Esc', 'q'], title: 'list', help: 'From a table back to the list.', isMeant: inTable },
  {
    id: 'table',
    keys: ['Enter'],
    title: 'results',
    help: 'Of an array or a grid: its jobs as a table of metrics and parameters, the best first.',
    isMeant: (state) => inList(state) && hasResults(state),
  },
  {
    id: 'members',
    keys: ['Enter'],
    title: 'its jobs',
    help: 'Of an array or a grid without metrics: its jobs as a table of states and parameters.',
    isMeant: (state) => inList(state) && isSweep(state) && !hasResults(state),
  },
  {
    id: 'from-table',
    keys: ['Enter'],
    title: 'this job',
    help: 'In the table: back to the list, with the chosen job and its log.',
    isMeant: inTable,
  },
  { id: 'order', keys: ['o'], title: 'sort', help: 'In the table: sorts by the next column.', isMeant: inTable },
  {
    id: 'reverse',
    keys: ['O'],
    title: 'turn round',
    help: 'In the table: the worst first, or the best again.',
    isMeant: inTable,
  },
  {
    id: 'member',
    keys: ['Right', 'l'],
    title: 'next',
    help: 'Of an array or a grid: looks at the next of its jobs.',
    isMeant: (state) => inList(state) && isSweep(state),
  },
  { id: 'member-before', keys: ['Left'], help: 'Of an array or a grid: looks at the job before.' },
  {
    id: 'cancel',
    keys: ['c'],
    title: 'cancel',
    help: 'Ends the jobs of the line, or takes them out of the queue; asks.',
    isMeant: changes('cancel'),
  },
  {
    id: 'hold',
    keys: ['h'],
    title: 'hold',
    help: 'Keeps those of the line that wait from beginning; asks.',
    isMeant: changes('hold'),
  },
  {
    id: 'release',
    keys: ['r'],
    title: 'release',
    help: 'Lets the held ones of the line begin; asks.',
    isMeant: changes('release'),
  },
  {
    id: 'retry',
    keys: ['t'],
    title: 'try again',
    help: 'Queues those of the line anew that failed, were lost or cancelled, or took too long; asks.',
    isMeant: changes('retry'),
  },
  {
    id: 'filter',
    keys: ['f'],
    title: 'filter',
    help: 'Shows all, those that wait, run, or have ended.',
    isMeant: hasJobs,
  },
  {
    id: 'search',
    keys: ['/'],
    title: 'search',
    help: 'Only lines with a word in name, command or user, or with the number of a job.',
    isMeant: (state) => hasJobs(state) && !isFiltered(state),
  },
  { id: 'show-all', keys: ['/'], title: 'show all', help: 'After a search: all lines again.', isMeant: isFiltered },
  { id: 'up', keys: ['Up', 'k'], help: 'The line above; in a table, the row.' },
  { id: 'down', keys: ['Down', 'j'], help: 'The line below; in a table, the row.' },
  { id: 'page-up', keys: ['PageUp'], help: 'Ten lines up.' },
  { id: 'page-down', keys: ['PageDown'], help: 'Ten lines down.' },
  { id: 'log-up', keys: ['b'], help: 'Back in what the job wrote.' },
  { id: 'log-down', keys: ['Space'], help: 'On in what the job wrote; at its end it is followed.' },
])

export type JobsCommand = (typeof jobsKeys)[number]['id']
