/** The keys of the panel of runs and copies; its footer, the help and docs/keys.md derive from this table. */
import { hintsOf, keyTable } from '../keys/key-table.ts'
import { failedCopies } from './copy-view.ts'
import { isBusy, type Panel } from './panel.ts'
import { failedHosts } from './run-view.ts'

export type PanelCommand = (typeof panelKeys)[number]['id']

type Test = (panel: Panel) => boolean

const isRun: Test = ({ view }) => view.kind === 'run'
const isList: Test = ({ view }) => view.kind === 'run' && view.opened === undefined
const isDone: Test = (panel) => !isBusy(panel)
const hasFailed: Test = ({ view }) => (view.kind === 'run' ? failedHosts(view) : failedCopies(view)).length > 0
const canRetry: Test = (panel) => isDone(panel) && hasFailed(panel)

export const panelKeys = keyTable<Panel>()(
  ['to-shells', 'Tab', 'shells', 'Return the keys to the shells; if there is room, the panel stays beside them.'],
  [
    'cancel',
    'c Ctrl-c',
    'stop',
    'Stop the command on the hosts (SIGTERM, and SIGKILL after two seconds) or the copy.',
    isBusy,
  ],
  ['open', 'Enter', 'all output', 'Show the whole output of the selected group; Esc goes back to all groups.', isList],
  ['close', 'Esc x', 'close', 'Close the panel; asks first while something is running.'],
  ['retry', 'r', 'retry', 'Run or copy again on the hosts that failed.', canRetry],
  ['difference', 'd', 'compare', 'Compare the other groups with the largest one, or show the output again.', isRun],
  ['search', '/', 'search', 'Search the output of all hosts.', isRun],
  ['save', 's', 'save', 'Save the output to HOST.out and HOST.err in a directory; never overwrites a file.', isRun],
  ['receive', 't', 'receivers', 'Make the hosts of the selected group the receivers, and go to their shells.', isRun],
  ['wide', 'z', 'zoom', 'Fill the screen with the panel, or show the shells again.'],
  ['repeat', 'R', 'repeat', 'Run or copy again on all its hosts.', isDone],
  ['up', 'Up k', '', 'Select the group above; in one group or a copy, scroll a line up.'],
  ['down', 'Down j', '', 'Select the group below; in one group or a copy, scroll a line down.'],
  ['page-up', 'PageUp b', '', 'Scroll a page up.'],
  ['page-down', 'PageDown Space', '', 'Scroll a page down.'],
  ['top', 'Home g', '', 'Go to the beginning.'],
  ['end', 'End G', '', 'Go to the end.'],
  ['left', 'Left h', '', 'Scroll long lines to the left.'],
  ['right', 'Right l', '', 'Scroll long lines to the right.'],
  ['next-hit', 'n', '', 'Go to the next match.'],
  ['previous-hit', 'N', '', 'Go to the previous match.'],
)

export const panelHints = (panel: Panel) => hintsOf<Panel>(panelKeys, panel)
