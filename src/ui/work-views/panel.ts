/** The state of the panel beside the shells, and its place. Pure. */
import type { Rect } from '../compositor/scene.ts'
import { hintsOf, keyTable } from '../keys/key-table.ts'
import { splitColumns, splitRows } from '../rows/rows-pane.ts'
import { type CopyView, failedCopies, isCopying } from './copy-document.ts'
import { failedHosts, isRunning, type RunView } from './run-view.ts'

export type Panel = {
  readonly view: RunView | CopyView
  /** Keys go to the panel and to no host. */
  readonly hasKeys: boolean
  /** Fills the screen while it has the keys. */
  readonly isWide: boolean
  /** The first row shown. */
  readonly offset: number
  /** Columns of output scrolled out at the left. */
  readonly column: number
  /** The end of the document stays in view. */
  readonly isFollowing: boolean
}

export const openPanel = (view: Panel['view']): Panel => ({
  view,
  hasKeys: true,
  isWide: false,
  offset: 0,
  column: 0,
  isFollowing: false,
})

export const isBusy = ({ view }: Panel): boolean => (view.kind === 'run' ? isRunning(view) : isCopying(view))

/** `run view`, `copy view`, `ray view`. */
export const panelName = ({ view }: Panel): string =>
  `${view.kind === 'run' && view.by === 'ray' ? 'ray' : view.kind} view`

type Room = { readonly columns: number; readonly rows: number; readonly panel: Panel | undefined; readonly tab: string }

export type PanelLayout = {
  /** Also while the panel covers them: the shells' terminals keep their size. */
  readonly shells: Rect
  readonly areShellsShown: boolean
  /** Undefined: not on the screen. */
  readonly panel: Rect | undefined
}

const BAR_ROWS = 1
/** Beside the shells from this width on, else below them from this height on, else in their place. */
const BESIDE_COLUMNS = 100
const BELOW_ROWS = 34

/** Between header and footer. */
export function areaOf({ columns, rows }: Pick<Room, 'columns' | 'rows'>): Rect {
  return { column: 0, row: BAR_ROWS, width: columns, height: Math.max(1, rows - 2 * BAR_ROWS) }
}

export function layoutPanel({ columns, rows, panel, tab }: Room): PanelLayout {
  const area = areaOf({ columns, rows })
  if (panel === undefined) return { shells: area, areShellsShown: true, panel: undefined }
  const beside = splitArea(area, columns, rows)
  const isShown = tab === 'shells'
  // Without room for both, the one with the keys is shown.
  if (beside === undefined) {
    const hasAll = panel.hasKeys && isShown
    return { shells: area, areShellsShown: !hasAll, panel: hasAll ? area : undefined }
  }
  const isWide = panel.isWide && panel.hasKeys
  const [shells, place] = beside
  return { shells, areShellsShown: !isWide, panel: isShown ? (isWide ? area : place) : undefined }
}

function splitArea(area: Rect, columns: number, rows: number): readonly [Rect, Rect] | undefined {
  if (columns >= BESIDE_COLUMNS) return splitColumns(area, Math.ceil(area.width / 2))
  return rows >= BELOW_ROWS ? splitRows(area, Math.ceil(area.height / 2)) : undefined
}

export type PanelCommand = (typeof panelKeys)[number]['id']

type Test = (panel: Panel) => boolean

const isRun: Test = ({ view }) => view.kind === 'run'
const isList: Test = ({ view }) => view.kind === 'run' && view.opened === undefined
const isOpened: Test = ({ view }) => view.kind === 'run' && view.opened !== undefined
const hasSearched: Test = ({ view }) => view.kind === 'run' && view.needle !== ''
const isDone: Test = (panel) => !isBusy(panel)
const hasFailed: Test = ({ view }) => (view.kind === 'run' ? failedHosts(view) : failedCopies(view)).length > 0
const canRetry: Test = (panel) => isDone(panel) && hasFailed(panel)

export const panelKeys = keyTable<Panel>()(
  ['to-shells', 'Tab', 'shells', 'Return the keys to the shells; if there is room, the panel stays beside them.'],
  [
    'cancel',
    'c',
    'stop',
    'Stop the command on the hosts (SIGTERM, and SIGKILL after two seconds) or the copy; asks first.',
    isBusy,
  ],
  ['cancel-now', 'Ctrl-c', '', 'The same without a question.', isBusy],
  ['open', 'Enter', 'all output', 'Show the whole output of the selected group.', isList],
  ['back', 'Esc', 'all groups', 'From the output of one group, go back to all groups.', isOpened],
  ['next-hit', 'n', 'next match', 'Go to the next match of the search.', hasSearched],
  ['previous-hit', 'N', 'previous match', 'Go to the previous match of the search.', hasSearched],
  ['close', 'x', 'close', 'Close the panel; while something runs, asks whether to stop that.'],
  ['retry', 'r', 'retry', 'Run or copy again on the hosts that failed; asks first.', canRetry],
  ['difference', 'd', 'compare', 'Compare the other groups with the largest one, or show the output again.', isRun],
  ['search', '/', 'search', 'Search the output of all hosts.', isRun],
  ['save', 's', 'save', 'Save the output to HOST.out and HOST.err in a directory; never overwrites a file.', isRun],
  ['receive', 't', 'receivers', 'Make the hosts of the selected group the receivers, and go to their shells.', isRun],
  ['wide', 'z', 'zoom', 'Fill the screen with the panel, or show the shells again.'],
  ['repeat', 'R', 'repeat', 'Run or copy again on all its hosts; asks first.', isDone],
  ['up', 'Up k', '', 'Select the group above; in one group or a copy, scroll a line up.'],
  ['down', 'Down j', '', 'Select the group below; in one group or a copy, scroll a line down.'],
  ['page-up', 'PageUp b', '', 'Scroll a page up.'],
  ['page-down', 'PageDown Space', '', 'Scroll a page down.'],
  ['top', 'Home g', '', 'Go to the beginning.'],
  ['end', 'End G', '', 'Go to the end.'],
  ['left', 'Left h', '', 'Scroll long lines to the left.'],
  ['right', 'Right l', '', 'Scroll long lines to the right.'],
)

export const panelHints = (panel: Panel) => hintsOf<Panel>(panelKeys, panel)
