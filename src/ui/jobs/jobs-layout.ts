/** Where the parts of the Jobs tab are. Pure. */
import type { Rect } from '../compositor/scene.ts'

const BESIDE_COLUMNS = 160
/** Of the list above an open table. */
const LIST_BY_TABLE_ROWS = 6

type Layout = { readonly list: Rect; readonly table: Rect | undefined; readonly side: Rect }

/** The selected job is beside the list or below it; a table is above the job or in its place. */
export function layout(rect: Rect, hasTable: boolean): Layout {
  if (rect.width >= BESIDE_COLUMNS) {
    const width = Math.ceil(rect.width / 2)
    const right = { ...rect, column: rect.column + width, width: rect.width - width }
    const [table, side] = hasTable ? halves(right, Math.ceil(right.height / 2)) : [undefined, right]
    return { list: { ...rect, width }, table, side }
  }
  const [list, below] = halves(rect, hasTable ? Math.min(LIST_BY_TABLE_ROWS, rect.height) : Math.ceil(rect.height / 2))
  return hasTable ? { list, table: below, side: { ...below, height: 0 } } : { list, table: undefined, side: below }
}

function halves(rect: Rect, height: number): readonly [Rect, Rect] {
  return [
    { ...rect, height },
    { ...rect, row: rect.row + height, height: rect.height - height },
  ]
}
