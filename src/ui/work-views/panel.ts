/** The panel beside the shells: what it shows, whether it has the keys, and where it goes. Pure. */
import type { Rect } from '../compositor/scene.ts'
import { type CopyView, isCopying } from './copy-view.ts'
import { isRunning, type RunView } from './run-view.ts'

export type Panel = {
  readonly view: RunView | CopyView
  /** Keys move the panel; no host receives any. */
  readonly hasKeys: boolean
  /** Fills the screen while it has the keys, also where there is room beside it. */
  readonly isWide: boolean
  /** The row of its document that is shown first. */
  readonly offset: number
  /** Columns of output that are scrolled out at the left. */
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
  /** Where the shells are, or would be: their terminals are not resized when the panel covers them for a while. */
  readonly shells: Rect
  readonly areShellsShown: boolean
  /** Undefined: it is not on the screen. */
  readonly panel: Rect | undefined
}

const BAR_ROWS = 1
/** Beside the shells from so many columns on; otherwise below them from so many rows on; otherwise in their place. */
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
  // Where there is no room for both, the shells come back when the keys go to them.
  if (beside === undefined) {
    const hasAll = panel.hasKeys && isShown
    return { shells: area, areShellsShown: !hasAll, panel: hasAll ? area : undefined }
  }
  const isWide = panel.isWide && panel.hasKeys
  return {
    shells: beside.shells,
    areShellsShown: !isWide,
    panel: isShown ? (isWide ? area : beside.panel) : undefined,
  }
}

function splitArea(area: Rect, columns: number, rows: number): { shells: Rect; panel: Rect } | undefined {
  if (columns >= BESIDE_COLUMNS) {
    const width = Math.floor(area.width / 2)
    return {
      shells: { ...area, width: area.width - width },
      panel: { ...area, column: area.column + area.width - width, width },
    }
  }
  if (rows >= BELOW_ROWS) {
    const height = Math.floor(area.height / 2)
    return {
      shells: { ...area, height: area.height - height },
      panel: { ...area, row: area.row + area.height - height, height },
    }
  }
  return undefined
}
