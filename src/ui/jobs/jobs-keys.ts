import type { KeyEntry } from '../keys/key-table.ts'
import type { ConsoleState } from '../state/console-state.ts'

const define = <const T extends readonly KeyEntry<ConsoleState>[]>(keys: T): T => keys

export const jobsKeys = define([
  { id: 'to-shells', keys: ['Esc', 'q'], title: 'shells', help: 'Back to the shells; from a table, back to the list.' },
  { id: 'filter', keys: ['f'], title: 'filter', help: 'Shows all, those that wait, run, or have ended.' },
  {
    id: 'search',
    keys: ['/'],
    title: 'search',
    help: 'Only lines with a word in name, command or user, or with the number of a job; the same key shows all again.',
  },
  {
    id: 'table',
    keys: ['Enter'],
    title: 'results',
    help: 'Of an array or a grid: its jobs as a table of metrics and parameters, the best first; once more, and the chosen one is shown with its log.',
  },
  {
    id: 'order',
    keys: ['o'],
    title: 'sort',
    help: 'In the table: sorts by the next column.',
    isMeant: ({ queue }) => queue.table !== undefined,
  },
  {
    id: 'reverse',
    keys: ['O'],
    title: 'turn round',
    help: 'In the table: the worst first, or the best again.',
    isMeant: ({ queue }) => queue.table !== undefined,
  },
  {
    id: 'member',
    keys: ['Right', 'l'],
    title: 'next of array',
    help: 'Of an array or a grid: looks at the next of its jobs.',
  },
  { id: 'member-before', keys: ['Left'], help: 'Of an array or a grid: looks at the job before.' },
  {
    id: 'cancel',
    keys: ['c'],
    title: 'cancel',
    help: 'Ends the jobs of the line, or takes them out of the queue; asks.',
  },
  { id: 'hold', keys: ['h'], title: 'hold', help: 'Keeps those of the line that wait from beginning; asks.' },
  { id: 'release', keys: ['r'], title: 'release', help: 'Lets the held ones of the line begin; asks.' },
  {
    id: 'retry',
    keys: ['t'],
    title: 'try again',
    help: 'Queues those of the line anew that failed, were lost or cancelled, or took too long; asks.',
  },
  { id: 'up', keys: ['Up', 'k'], help: 'The line above; in a table, the row.' },
  { id: 'down', keys: ['Down', 'j'], help: 'The line below; in a table, the row.' },
  { id: 'page-up', keys: ['PageUp'], help: 'Ten lines up.' },
  { id: 'page-down', keys: ['PageDown'], help: 'Ten lines down.' },
  { id: 'log-up', keys: ['b'], help: 'Back in what the job wrote.' },
  { id: 'log-down', keys: ['Space'], help: 'On in what the job wrote; at its end it is followed.' },
])

export type JobsCommand = (typeof jobsKeys)[number]['id']
