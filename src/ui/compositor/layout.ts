/** Where panes go: a grid of equal slots over an area. Pure. */
import type { Rect } from './scene.ts'

export type Grid = {
  readonly area: Rect
  readonly columns: number
  readonly rows: number
  /** The smallest slot, frame included: some are one larger if the area does not divide evenly. */
  readonly paneWidth: number
  readonly paneHeight: number
}

/** The ideal size of a shell: the best grid has panes closest to it. */
const IDEAL = { columns: 82, rows: 26 }
/** A page is squeezed by up to this much to avoid a second page. */
const SQUEEZE = { columns: 2, rows: 1 }

/**
 * The grid for `count` panes of at least `minimum` (frame included; less only where the area itself is smaller). When not
 * all fit, it is the fullest grid, and the rest goes to further pages.
 */
export function createGrid(
  area: Rect,
  count: number,
  minimum: { readonly columns: number; readonly rows: number },
): Grid {
  const fitting = (columns: number, rows: number) => ({
    columns: Math.max(1, Math.floor(area.width / Math.max(1, columns))),
    rows: Math.max(1, Math.floor(area.height / Math.max(1, rows))),
  })
  const most = fitting(minimum.columns, minimum.rows)
  const squeezed = fitting(minimum.columns - SQUEEZE.columns, minimum.rows - SQUEEZE.rows)
  const limit = count > most.columns * most.rows && count <= squeezed.columns * squeezed.rows ? squeezed : most
  const grid = (columns: number, rows: number): Grid => ({
    area,
    columns,
    rows,
    paneWidth: Math.floor(area.width / columns),
    paneHeight: Math.floor(area.height / rows),
  })
  if (count > limit.columns * limit.rows) return grid(limit.columns, limit.rows)
  let best = grid(limit.columns, limit.rows)
  let bestScore = -1
  for (let columns = 1; columns <= Math.min(limit.columns, Math.max(1, count)); columns++) {
    const rows = Math.max(1, Math.ceil(count / columns))
    if (rows > limit.rows) continue
    const candidate = grid(columns, rows)
    const score =
      Math.min(1, candidate.paneWidth / IDEAL.columns, candidate.paneHeight / IDEAL.rows) +
      Math.min(1, candidate.paneWidth / IDEAL.columns) * Math.min(1, candidate.paneHeight / IDEAL.rows)
    if (score > bestScore) {
      best = candidate
      bestScore = score
    }
  }
  return best
}

/** The rectangle of a slot, counted row by row. Slots tile the area without gaps. */
export function slotRect(grid: Grid, slot: number): Rect {
  const { area } = grid
  const column = slot % grid.columns
  const row = Math.floor(slot / grid.columns)
  const left = Math.floor((area.width * column) / grid.columns)
  const right = Math.floor((area.width * (column + 1)) / grid.columns)
  const top = Math.floor((area.height * row) / grid.rows)
  const bottom = Math.floor((area.height * (row + 1)) / grid.rows)
  return { column: area.column + left, row: area.row + top, width: right - left, height: bottom - top }
}
