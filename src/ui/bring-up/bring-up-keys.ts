import { keyTable } from '../keys/key-table.ts'
import type { ConsoleState } from '../state/console-state.ts'
import { hasRows, isChanging, isOnlyArea, retryable } from './bring-up-view.ts'

type Test = (state: ConsoleState) => boolean

const isAsking: Test = ({ bringUp }) => bringUp.change?.phase === 'ask'
const onSide: Test = ({ bringUp }) => bringUp.hasSideKeys
const onTable: Test = (state) => !onSide(state)
const isFree: Test = ({ bringUp }) => !isChanging(bringUp.change) && bringUp.check === undefined
/** Where nothing is declared, there is a text in place of the table. */
const onRows: Test = (state) => onTable(state) && hasRows(state.bringUp)
const isFreeTable: Test = (state) => onRows(state) && isFree(state)
const isBusy: Test = (state) => !isAsking(state) && !isFree(state)
const canGoBack: Test = (state) => onSide(state) && !isAsking(state)
const onSteps: Test = (state) => onSide(state) && state.bringUp.side === 'steps'
const onDetails: Test = (state) => onSide(state) && state.bringUp.side === 'details'
const canCheck: Test = (state) => (onTable(state) || onDetails(state)) && isFree(state)
const canRetry: Test = (state) => onSteps(state) && isFree(state) && retryable(state.bringUp).length > 0
const hasChange: Test = (state) => onTable(state) && state.bringUp.change !== undefined

export const bringUpKeys = keyTable<ConsoleState>()(
  ['yes', 'y', 'apply', 'Apply the plan shown.', isAsking],
  ['cancel', 'c Ctrl-c', 'cancel', 'Cancel the check or change. The same change continues where it stopped.', isBusy],
  ['no', 'Esc q Ctrl-c', 'discard plan', 'Discard the plan shown.', isAsking],
  ['back-to-table', 'Esc q', 'table', 'Go back to the table. Running work continues.', canGoBack],
  [
    'up',
    'u',
    'bring up',
    'Plan to bring up the marked hosts, or all that are shown; `y` applies the plan.',
    isFreeTable,
  ],
  [
    'down',
    'd',
    'take down',
    'Plan to undo bring-up on the marked hosts, or on all that are shown; `y` applies the plan.',
    isFreeTable,
  ],
  ['again', 'r', 'refresh', 'Check all hosts again.', canCheck],
  ['retry', 'r', 'retry failed', 'In the view of steps: plan again for the hosts that failed.', canRetry],
  ['mark', 'Space', 'mark', 'Mark or unmark the host, and go to the next; changes apply to the marked hosts.', onRows],
  ['open', 'Enter', 'details', 'Show details of the cell: status, problem and fix, journal.', onRows],
  [
    'whole',
    'Enter',
    'all output',
    'In the view of steps: show all steps with their whole output.',
    (state) => onSteps(state) && !state.bringUp.isWhole,
  ],
  [
    'whole',
    'Enter',
    'short form',
    'In the view of steps: show the short form again.',
    (state) => onSteps(state) && state.bringUp.isWhole,
  ],
  [
    'only',
    't',
    'this area',
    'Plan changes for the area of the cell only; there again, for all areas.',
    (state) => onRows(state) && !isOnlyArea(state.bringUp),
  ],
  [
    'only',
    't',
    'all areas',
    'Plan changes for all areas again.',
    (state) => onRows(state) && isOnlyArea(state.bringUp),
  ],
  ['mark-all', 'a', '', 'Mark all hosts that are shown, or none if some are marked.'],
  ['change', 'o', 'last change', 'Show the plan or the steps of the running or last change.', hasChange],
  ['left', 'Left h', '', 'Select the area to the left.'],
  ['right', 'Right l', '', 'Select the area to the right.'],
  ['row-up', 'Up k', '', 'Select the host above; beside the table, scroll a line up.'],
  ['row-down', 'Down j', '', 'Select the host below; beside the table, scroll a line down.'],
  ['page-up', 'PageUp b', '', 'Move a page up.'],
  ['page-down', 'PageDown f', '', 'Move a page down.'],
  ['top', 'Home g', '', 'Go to the beginning.'],
  ['end', 'End G', '', 'Go to the end.'],
)

export type BringUpCommand = (typeof bringUpKeys)[number]['id']
