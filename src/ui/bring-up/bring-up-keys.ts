import type { KeyEntry } from '../keys/key-table.ts'
import type { ConsoleState } from '../state/console-state.ts'
import { isChanging, retryable } from './bring-up-view.ts'

const define = <const T extends readonly KeyEntry<ConsoleState>[]>(keys: T): T => keys

const isAsking = ({ bringUp }: ConsoleState): boolean => bringUp.change?.phase === 'ask'
const hasSide = ({ bringUp }: ConsoleState): boolean => bringUp.hasSideKeys
const isFree = ({ bringUp }: ConsoleState): boolean => !isChanging(bringUp.change) && bringUp.check === undefined
const onTable = (state: ConsoleState): boolean => !hasSide(state)

/** In the order of the footer. */
export const bringUpKeys = define([
  {
    id: 'yes',
    keys: ['y'],
    title: 'do it',
    help: 'The plan that is shown is done.',
    isMeant: isAsking,
  },
  {
    id: 'cancel',
    keys: ['c', 'Ctrl-c'],
    title: 'end it',
    help: 'Ends what goes on, on the hosts too; doing it again carries on where it was.',
    isMeant: (state) => !isAsking(state) && !isFree(state),
  },
  { id: 'no', keys: ['Esc', 'q'], title: 'do nothing', help: 'The plan that is shown is not done.', isMeant: isAsking },
  {
    id: 'back-to-table',
    keys: ['Esc', 'q'],
    title: 'table',
    help: 'From details, a plan or steps back to the table. What goes on goes on.',
    isMeant: (state) => hasSide(state) && !isAsking(state),
  },
  {
    id: 'up',
    keys: ['u'],
    title: 'bring up',
    help: 'Makes the plan that brings up the marked hosts, or all, shows it and asks.',
    isMeant: (state) => onTable(state) && isFree(state),
  },
  {
    id: 'down',
    keys: ['d'],
    title: 'take down',
    help: 'Makes the plan that takes it back on the marked hosts, or all, shows it and asks.',
    isMeant: (state) => onTable(state) && isFree(state),
  },
  {
    id: 'again',
    keys: ['r'],
    title: 'ask',
    help: 'Reads the facts of all hosts again.',
    isMeant: (state) => onTable(state) && isFree(state),
  },
  {
    id: 'retry',
    keys: ['r'],
    title: 'retry failed',
    help: 'In the steps: makes the plan for the hosts that failed, and asks.',
    isMeant: (state) => hasSide(state) && isFree(state) && retryable(state.bringUp).length > 0,
  },
  {
    id: 'mark',
    keys: ['Space'],
    title: 'mark',
    help: 'Marks the host: a change is for the marked hosts.',
    isMeant: onTable,
  },
  {
    id: 'open',
    keys: ['Enter'],
    title: 'more',
    help: 'The details of the cell: what is so, what is wrong and what mends it, what was done.',
    isMeant: onTable,
  },
  {
    id: 'whole',
    keys: ['Enter'],
    title: 'all of it',
    help: 'In the steps: all of them, with all that was printed; the same key shows the short form again.',
    isMeant: (state) => hasSide(state) && state.bringUp.side === 'steps',
  },
  {
    id: 'only',
    keys: ['t'],
    title: 'area',
    help: 'A change is for the area of the cell only; the same key makes it for all again.',
    isMeant: onTable,
  },
  { id: 'mark-all', keys: ['a'], help: 'Marks all hosts, or none if some are marked.' },
  {
    id: 'change',
    keys: ['o'],
    title: 'last change',
    help: 'Shows the plan or the steps of the change that goes on, or was the last.',
    isMeant: (state) => onTable(state) && state.bringUp.change !== undefined,
  },
  { id: 'to-shells', keys: ['Esc', 'q'], title: 'shells', help: 'Back to the shells.', isMeant: onTable },
  { id: 'left', keys: ['Left', 'h'], help: 'The area before.' },
  { id: 'right', keys: ['Right', 'l'], help: 'The next area.' },
  { id: 'row-up', keys: ['Up', 'k'], help: 'The host before; in a plan, steps and details a line up.' },
  { id: 'row-down', keys: ['Down', 'j'], help: 'The next host; in a plan, steps and details a line down.' },
  { id: 'page-up', keys: ['PageUp', 'b'], help: 'A page up.' },
  { id: 'page-down', keys: ['PageDown', 'f'], help: 'A page down.' },
  { id: 'top', keys: ['Home', 'g'], help: 'To the beginning.' },
  { id: 'end', keys: ['End', 'G'], help: 'To the end.' },
])

export type BringUpCommand = (typeof bringUpKeys)[number]['id']
