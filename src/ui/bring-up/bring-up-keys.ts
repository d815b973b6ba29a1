import type { KeyEntry } from '../keys/key-table.ts'
import type { ConsoleState } from '../state/console-state.ts'
import { isChanging, retryable } from './bring-up-view.ts'

const define = <const T extends readonly KeyEntry<ConsoleState>[]>(keys: T): T => keys

const isAsking = ({ bringUp }: ConsoleState): boolean => bringUp.change?.phase === 'ask'
const onSide = ({ bringUp }: ConsoleState): boolean => bringUp.hasSideKeys
const onTable = (state: ConsoleState): boolean => !onSide(state)
const isFree = ({ bringUp }: ConsoleState): boolean => !isChanging(bringUp.change) && bringUp.check === undefined
const isFreeTable = (state: ConsoleState): boolean => onTable(state) && isFree(state)

/** In the order of the footer. */
export const bringUpKeys = define([
  { id: 'yes', keys: ['y'], title: 'apply', help: 'Apply the plan shown.', isMeant: isAsking },
  {
    id: 'cancel',
    keys: ['c', 'Ctrl-c'],
    title: 'cancel',
    help: 'Cancel the running check or change, on the hosts too. The same change continues where it stopped.',
    isMeant: (state) => !isAsking(state) && !isFree(state),
  },
  { id: 'no', keys: ['Esc', 'q'], title: 'discard plan', help: 'Discard the plan shown.', isMeant: isAsking },
  {
    id: 'back-to-table',
    keys: ['Esc', 'q'],
    title: 'table',
    help: 'Back to the table. Running work continues.',
    isMeant: (state) => onSide(state) && !isAsking(state),
  },
  {
    id: 'up',
    keys: ['u'],
    title: 'bring up',
    help: 'Plan to bring up the marked hosts, or all; `y` applies the plan.',
    isMeant: isFreeTable,
  },
  {
    id: 'down',
    keys: ['d'],
    title: 'take down',
    help: 'Plan to undo bring-up on the marked hosts, or all; `y` applies the plan.',
    isMeant: isFreeTable,
  },
  { id: 'again', keys: ['r'], title: 'refresh', help: 'Check all hosts again.', isMeant: isFreeTable },
  {
    id: 'retry',
    keys: ['r'],
    title: 'retry failed',
    help: 'In the steps: plan again for the hosts that failed.',
    isMeant: (state) => onSide(state) && isFree(state) && retryable(state.bringUp).length > 0,
  },
  {
    id: 'mark',
    keys: ['Space'],
    title: 'mark',
    help: 'Mark the host; a change is for the marked hosts.',
    isMeant: onTable,
  },
  {
    id: 'open',
    keys: ['Enter'],
    title: 'details',
    help: 'Details of the cell: status, problem and fix, journal.',
    isMeant: onTable,
  },
  {
    id: 'whole',
    keys: ['Enter'],
    title: 'all output',
    help: 'In the steps: show all steps and their whole output, or the short form again.',
    isMeant: (state) => onSide(state) && state.bringUp.side === 'steps',
  },
  {
    id: 'only',
    keys: ['t'],
    title: 'this area',
    help: 'Change only the area of the cell, or all areas again.',
    isMeant: onTable,
  },
  { id: 'mark-all', keys: ['a'], help: 'Mark all hosts, or none if some are marked.' },
  {
    id: 'change',
    keys: ['o'],
    title: 'last change',
    help: 'Show the plan or the steps of the running or last change.',
    isMeant: (state) => onTable(state) && state.bringUp.change !== undefined,
  },
  { id: 'to-shells', keys: ['Esc', 'q'], title: 'shells', help: 'Back to the shells.', isMeant: onTable },
  { id: 'left', keys: ['Left', 'h'], help: 'Select the area to the left.' },
  { id: 'right', keys: ['Right', 'l'], help: 'Select the area to the right.' },
  { id: 'row-up', keys: ['Up', 'k'], help: 'Select the host above; beside the table, scroll a line up.' },
  { id: 'row-down', keys: ['Down', 'j'], help: 'Select the host below; beside the table, scroll a line down.' },
  { id: 'page-up', keys: ['PageUp', 'b'], help: 'Move a page up.' },
  { id: 'page-down', keys: ['PageDown', 'f'], help: 'Move a page down.' },
  { id: 'top', keys: ['Home', 'g'], help: 'Go to the beginning.' },
  { id: 'end', keys: ['End', 'G'], help: 'Go to the end.' },
])

export type BringUpCommand = (typeof bringUpKeys)[number]['id']
