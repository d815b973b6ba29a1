import type { PaneView, Rect } from '../compositor/scene.ts'
import type { Row } from '../rows/row-document.ts'
import { rowsPane } from '../rows/rows-pane.ts'
import type { Theme } from '../theme/theme.ts'

export type FramedRows = {
  readonly id: string
  readonly title: string
  readonly rows: readonly Row[]
  readonly rect: Rect
  readonly theme: Theme
  readonly hasKeys: boolean
}

/** Rows that are all there, from the first on. */
export function framedPane({ rows, ...rest }: FramedRows): PaneView {
  const document = { head: [], length: rows.length, row: (index: number) => rows[index] ?? [] }
  return rowsPane({ ...rest, isBusy: false, document, place: { offset: 0, isFollowing: false } })
}
