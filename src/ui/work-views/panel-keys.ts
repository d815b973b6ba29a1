/** The keys of the panel: its footer, the help, docs/keys.md and the panel itself derive from this one table. */
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
    help: 'Gives the keys back to the shells; the panel stays where there is room beside them.',
  },
  {
    id: 'cancel',
    keys: ['c', 'Ctrl-c'],
    title: 'end it',
    help: 'Ends the command on the hosts (TERM, after two seconds KILL), or the copy.',
    isMeant: isBusy,
  },
  {
    id: 'open',
    keys: ['Enter'],
    title: 'whole',
    help: 'Shows all of the selected group; Esc goes back to all groups.',
    isMeant: (panel) => panel.view.kind === 'run' && panel.view.opened === undefined,
  },
  { id: 'close', keys: ['Esc', 'x'], title: 'close', help: 'Closes the panel; asks while something is going on.' },
  {
    id: 'retry',
    keys: ['r'],
    title: 'retry',
    help: 'The same again on the hosts where it did not succeed.',
    isMeant: (panel) => isDone(panel) && hasFailed(panel),
  },
  {
    id: 'difference',
    keys: ['d'],
    title: 'differ',
    help: 'Shows what differs from the largest group of hosts; the same key goes back.',
    isMeant: isRun,
  },
  { id: 'search', keys: ['/'], title: 'search', help: 'Searches in all that was printed.', isMeant: isRun },
  {
    id: 'save',
    keys: ['s'],
    title: 'save',
    help: 'Writes what each host printed into a directory, HOST.out and HOST.err; never over a file.',
    isMeant: isRun,
  },
  {
    id: 'receive',
    keys: ['t'],
    title: 'receivers',
    help: 'The hosts of the selected group become the receivers, and the keys go to their shells.',
    isMeant: isRun,
  },
  { id: 'wide', keys: ['z'], title: 'zoom', help: 'The panel fills the screen; the same key brings the shells back.' },
  { id: 'repeat', keys: ['R'], title: 'repeat', help: 'The same again on all its hosts.', isMeant: isDone },
  { id: 'up', keys: ['Up', 'k'], help: 'The group before; in a single group, or a copy, a line up.' },
  { id: 'down', keys: ['Down', 'j'], help: 'The next group; in a single group, or a copy, a line down.' },
  { id: 'page-up', keys: ['PageUp', 'b'], help: 'A page up.' },
  { id: 'page-down', keys: ['PageDown', 'Space'], help: 'A page down.' },
  { id: 'top', keys: ['Home', 'g'], help: 'To the beginning.' },
  { id: 'end', keys: ['End', 'G'], help: 'To the end.' },
  { id: 'left', keys: ['Left', 'h'], help: 'Long lines: to the left.' },
  { id: 'right', keys: ['Right', 'l'], help: 'Long lines: to the right.' },
  { id: 'next-hit', keys: ['n'], help: 'The next place where it was found.' },
  { id: 'previous-hit', keys: ['N'], help: 'The place before.' },
])

export const panelCommandOf = (label: string): PanelCommand | undefined => commandOf(panelKeys, label)

export const panelHints = (panel: Panel) => hintsOf<Panel>(panelKeys, panel)
