/** The keys of the panel of runs and copies; its footer, the help and docs/keys.md derive from this table. */
import { commandOf, hintsOf, type KeyEntry } from '../keys/key-table.ts'
import { failedCopies } from './copy-view.ts'
import { isBusy, type Panel } from './panel.ts'
import { failedHosts } from './run-view.ts'

export type PanelCommand = (typeof panelKeys)[number]['id']

const isRun = ({ view }: Panel): boolean => view.kind === 'run'
const isDone = (panel: Panel): boolean => !isBusy(panel)
const hasFailed = ({ view }: Panel): boolean =>
  (view.kind === 'run' ? failedHosts(view) : failedCopies(view)).length > 0

const define = <const T extends readonly KeyEntry<Panel>[]>(keys: T): T => keys

/** In the order of the footer. */
export const panelKeys = define([
  {
    id: 'to-shells',
    keys: ['Tab'],
    title: 'shells',
    help: 'Give the keys back to the shells; where there is room the panel stays beside them.',
  },
  {
    id: 'cancel',
    keys: ['c', 'Ctrl-c'],
    title: 'stop',
    help: 'Stop the command on the hosts (TERM, KILL after two seconds) or the copy.',
    isMeant: isBusy,
  },
  {
    id: 'open',
    keys: ['Enter'],
    title: 'all output',
    help: 'Show the whole output of the selected group; Esc goes back to all groups.',
    isMeant: (panel) => panel.view.kind === 'run' && panel.view.opened === undefined,
  },
  { id: 'close', keys: ['Esc', 'x'], title: 'close', help: 'Close the panel; asks first while something is running.' },
  {
    id: 'retry',
    keys: ['r'],
    title: 'retry',
    help: 'Run or copy again on the hosts that failed.',
    isMeant: (panel) => isDone(panel) && hasFailed(panel),
  },
  {
    id: 'difference',
    keys: ['d'],
    title: 'compare',
    help: 'Compare the other groups with the largest one, or show the output again.',
    isMeant: isRun,
  },
  { id: 'search', keys: ['/'], title: 'search', help: 'Search the output of all hosts.', isMeant: isRun },
  {
    id: 'save',
    keys: ['s'],
    title: 'save',
    help: 'Save the output of each host to HOST.out and HOST.err in a directory; never overwrites a file.',
    isMeant: isRun,
  },
  {
    id: 'receive',
    keys: ['t'],
    title: 'receivers',
    help: 'Make the hosts of the selected group the receivers, and go to their shells.',
    isMeant: isRun,
  },
  { id: 'wide', keys: ['z'], title: 'zoom', help: 'Fill the screen with the panel, or show the shells again.' },
  { id: 'repeat', keys: ['R'], title: 'repeat', help: 'Run or copy again on all its hosts.', isMeant: isDone },
  { id: 'up', keys: ['Up', 'k'], help: 'Select the group above; in one group or a copy, scroll a line up.' },
  { id: 'down', keys: ['Down', 'j'], help: 'Select the group below; in one group or a copy, scroll a line down.' },
  { id: 'page-up', keys: ['PageUp', 'b'], help: 'Scroll a page up.' },
  { id: 'page-down', keys: ['PageDown', 'Space'], help: 'Scroll a page down.' },
  { id: 'top', keys: ['Home', 'g'], help: 'Go to the beginning.' },
  { id: 'end', keys: ['End', 'G'], help: 'Go to the end.' },
  { id: 'left', keys: ['Left', 'h'], help: 'Scroll long lines to the left.' },
  { id: 'right', keys: ['Right', 'l'], help: 'Scroll long lines to the right.' },
  { id: 'next-hit', keys: ['n'], help: 'Go to the next match.' },
  { id: 'previous-hit', keys: ['N'], help: 'Go to the match before.' },
])

export const panelCommandOf = (label: string): PanelCommand | undefined => commandOf(panelKeys, label)

export const panelHints = (panel: Panel) => hintsOf<Panel>(panelKeys, panel)
