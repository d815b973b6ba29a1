/** Where the parts of the Jobs tab are. Pure. */
import type { Rect } from '../compositor/scene.ts'
import { splitColumns, splitRows } from '../rows/split-rect.ts'

const BESIDE_COLUMNS = 160
/** Of the list above an open table. */
const LIST_BY_TABLE_ROWS = 6

type Layout = { readonly list: Rect; readonly table: Rect | undefined; readonly side: Rect }

/** The selected job is beside the list or below it; a table is above the job or in its place. */
export function layout(rect: Rect, hasTable: boolean): Layout {
  if (rect.width >= BESIDE_COLUMNS) {
    const [list, right] = splitColumns(rect, Math.ceil(rect.width / 2))
    const [table, side] = hasTable ? splitRows(right, Math.ceil(right.height / 2)) : [undefined, right]
    return { list, table, side }
  }
  const height = hasTable ? Math.min(LIST_BY_TABLE_ROWS, rect.height) : Math.ceil(rect.height / 2)
  const [list, below] = splitRows(rect, height)
  return hasTable ? { list, table: below, side: { ...below, height: 0 } } : { list, table: undefined, side: below }
}
