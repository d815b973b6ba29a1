/** Which part of the Jobs tab is where. Pure. */
import type { Rect } from '../compositor/scene.ts'
import { documentRows, type RowDocument } from '../rows/row-document.ts'

const BESIDE_COLUMNS = 160

/** So that this row is in the middle. */
export function centred(at: number, rect: Rect, document: RowDocument) {
  return { offset: Math.max(0, at - Math.floor(documentRows(rect.height, document) / 2)), isFollowing: false }
}

/** Under a list that is as high as it has to be, where a table is open below it. */
const LIST_BY_TABLE_ROWS = 6

type Layout = { readonly list: Rect; readonly table: Rect | undefined; readonly side: Rect }

/** The list, and the chosen job beside it or below; a table beside it and above the job, or in place of the job. */
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
