/** Places of the table and the pane beside it: both where there is room, else the one with the keys. Pure. */
import type { Rect } from '../compositor/scene.ts'
import { splitColumns, splitRows } from '../rows/split-rect.ts'

export type BringUpLayout = { readonly table: Rect | undefined; readonly side: Rect | undefined }

const BESIDE_COLUMNS = 140
const BELOW_ROWS = 36
/** The frame and head of the table; each host adds a row. */
const TABLE_ROWS = 5
const TABLE_COLUMNS = 104

export function layoutBringUp(area: Rect, hostCount: number, hasSideKeys: boolean): BringUpLayout {
  if (area.width >= BESIDE_COLUMNS) {
    const [table, side] = splitColumns(area, Math.min(TABLE_COLUMNS, Math.floor(area.width / 2)))
    return { table, side }
  }
  if (area.height >= BELOW_ROWS) {
    const [table, side] = splitRows(area, Math.min(TABLE_ROWS + hostCount, Math.floor(area.height / 2)))
    return { table, side }
  }
  return hasSideKeys ? { table: undefined, side: area } : { table: area, side: undefined }
}
