/** The state of the panel beside the shells, and its place. Pure. */
import type { Rect } from '../compositor/scene.ts'
import { splitColumns, splitRows } from '../rows/split-rect.ts'
import { type CopyView, isCopying } from './copy-view.ts'
import { isRunning, type RunView } from './run-view.ts'

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
