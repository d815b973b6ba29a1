/** Drawing into cells: text, frames, highlights. Everything is clipped; a wide character that is cut in half becomes blank. */
import { NARROW } from '../../base/narrow-text.ts'
import { partsWidth, segmenter, textWidth } from '../../base/text-width.ts'
import {
  BLANK,
  type CellGrid,
  CLUSTER_BIT,
  CODE_MASK,
  cellWidth,
  DIM,
  WIDE_TAIL,
  WORDS_PER_CELL,
} from '../../terminal/cells.ts'
import { cellWord } from '../../terminal/clusters.ts'
import type { FrameLines, PaneView, Rect, Span, Style } from './scene.ts'

/** Before a cell is overwritten: blanks the other half of a wide character. */
function blankOtherHalf(grid: CellGrid, column: number, row: number): void {
  const at = (row * grid.columns + column) * WORDS_PER_CELL
  const { words } = grid
  if (words[at] === WIDE_TAIL && column > 0) words[at - WORDS_PER_CELL] = BLANK
  if (cellWidth(words[at] ?? 0) === 2 && column + 1 < grid.columns) words[at + WORDS_PER_CELL] = BLANK
}

function put(grid: CellGrid, column: number, row: number, word: number, style: Style): void {
  const at = (row * grid.columns + column) * WORDS_PER_CELL
  const { words } = grid
  words[at] = word
  words[at + 1] = style.foreground
  words[at + 2] = style.background
  words[at + 3] = style.attributes
}

/** Writes spans from `column` on, at most `width` columns, and returns the columns used. */
export function putSpans(grid: CellGrid, column: number, row: number, width: number, spans: readonly Span[]): number {
  if (row < 0 || row >= grid.rows) return 0
  const end = Math.min(grid.columns, column + width)
  let at = column
  for (const { text, style } of spans) {
    const isNarrow = NARROW.test(text)
    const parts: Iterable<string> = isNarrow ? text : Array.from(segmenter.segment(text), ({ segment }) => segment)
    for (const part of parts) {
      const columns = isNarrow ? 1 : textWidth(part)
      if (columns === 0) continue
      if (at + columns > end) return at - column
      blankOtherHalf(grid, at, row)
      if (columns === 2) blankOtherHalf(grid, at + 1, row)
      put(grid, at, row, cellWord(part, columns === 2 ? 2 : 1), style)
      if (columns === 2) put(grid, at + 1, row, WIDE_TAIL, style)
      at += columns
    }
  }
  return at - column
}

/** Horizontal, vertical, and the corners clockwise from the upper left. */
const LINES: Readonly<Record<Exclude<FrameLines, 'none'>, string>> = {
  light: '─│┌┐┘└',
  heavy: '━┃┏┓┛┗',
  double: '═║╔╗╝╚',
  dashed: '╌╎┌┐┘└',
  ascii: '-|++++',
}

export function drawFrame(grid: CellGrid, pane: PaneView, isUtf8: boolean): void {
  const { rect, frameStyle, lines } = pane
  const { column, row, width, height } = rect
  if (lines === 'none' || width < 2 || height < 2) return
  const [horizontal, vertical, ...corners] = Array.from(LINES[isUtf8 ? lines : 'ascii'], (character) =>
    cellWord(character, 1),
  ) as [number, number, ...number[]]
  const bottom = row + height - 1
  const right = column + width - 1
  for (let at = column + 1; at < right; at++) {
    put(grid, at, row, horizontal, frameStyle)
    put(grid, at, bottom, horizontal, frameStyle)
  }
  // The cells below may be older than the frame and have a wide character across its edge.
  for (let at = row; at <= bottom; at++) {
    blankOtherHalf(grid, column, at)
    blankOtherHalf(grid, right, at)
  }
  for (let at = row + 1; at < bottom; at++) {
    put(grid, column, at, vertical, frameStyle)
    put(grid, right, at, vertical, frameStyle)
  }
  put(grid, column, row, corners[0] ?? BLANK, frameStyle)
  put(grid, right, row, corners[1] ?? BLANK, frameStyle)
  put(grid, right, bottom, corners[2] ?? BLANK, frameStyle)
  put(grid, column, bottom, corners[3] ?? BLANK, frameStyle)
  const room = width - 4
  const badgesWidth = Math.min(partsWidth(pane.badges), room)
  putSpans(grid, column + 2, row, Math.max(0, room - badgesWidth), pane.title)
  if (badgesWidth > 0) putSpans(grid, right - 1 - badgesWidth, row, badgesWidth, pane.badges)
}

/**
 * The pane's inner area: the screen's cells, dimmed or marked, and the notice over its last rows. `drawn`: the revision of the
 * screen that the grid shows there. Returns where something may have changed.
 */
export function drawContent(grid: CellGrid, pane: PaneView, drawn?: number): Rect {
  const inner = innerRect(pane.rect)
  if (inner.width <= 0 || inner.height <= 0) return inner
  const isPlain = pane.highlights.length === 0 && pane.notice.length === 0
  let changed = inner
  if (pane.screen) {
    const { column, row, width, height } = inner
    const rows = pane.screen.copyInto(grid, column, row, width, height, isPlain ? drawn : undefined)
    changed = { column, row: row + rows.first, width, height: Math.max(0, rows.end - rows.first) }
  } else clearRect(grid, inner)
  for (const { row, column, length, style } of pane.highlights) {
    if (row < 0 || row >= inner.height) continue
    const from = inner.column + Math.max(0, column)
    const to = Math.min(inner.column + inner.width, inner.column + column + length)
    for (let at = from; at < to; at++) {
      const cell = ((inner.row + row) * grid.columns + at) * WORDS_PER_CELL
      grid.words[cell + 1] = style.foreground
      grid.words[cell + 2] = style.background
      grid.words[cell + 3] = style.attributes
    }
  }
  if (pane.isDimmed) {
    for (let row = changed.row; row < changed.row + changed.height; row++) {
      const start = (row * grid.columns + inner.column) * WORDS_PER_CELL
      for (let at = start + 3; at < start + inner.width * WORDS_PER_CELL; at += WORDS_PER_CELL) {
        grid.words[at] = (grid.words[at] ?? 0) | DIM
      }
    }
  }
  const lines = pane.notice.slice(0, inner.height)
  lines.forEach((spans, index) => {
    const row = inner.row + inner.height - lines.length + index
    clearRect(grid, { column: inner.column, row, width: inner.width, height: 1 })
    putSpans(grid, inner.column, row, inner.width, spans)
  })
  return changed
}

export function innerRect(rect: Rect): Rect {
  return { column: rect.column + 1, row: rect.row + 1, width: rect.width - 2, height: rect.height - 2 }
}

export function clearRect(grid: CellGrid, rect: Rect): void {
  for (let row = Math.max(0, rect.row); row < Math.min(grid.rows, rect.row + rect.height); row++) {
    for (let column = Math.max(0, rect.column); column < Math.min(grid.columns, rect.column + rect.width); column++) {
      const at = (row * grid.columns + column) * WORDS_PER_CELL
      grid.words[at] = BLANK
      grid.words[at + 1] = 0
      grid.words[at + 2] = 0
      grid.words[at + 3] = 0
    }
  }
}

/** Copies a rectangle between grids of the same size and blanks wide characters that its edges cut. */
export function copyRect(from: CellGrid, to: CellGrid, rect: Rect): void {
  const left = Math.max(0, rect.column)
  const right = Math.min(to.columns, rect.column + rect.width)
  if (right <= left) return
  for (let row = Math.max(0, rect.row); row < Math.min(to.rows, rect.row + rect.height); row++) {
    blankOtherHalf(to, left, row)
    blankOtherHalf(to, right - 1, row)
    const start = (row * to.columns + left) * WORDS_PER_CELL
    const end = (row * to.columns + right) * WORDS_PER_CELL
    to.words.set(from.words.subarray(start, end), start)
    if (to.words[start] === WIDE_TAIL) to.words[start] = BLANK
    const last = end - WORDS_PER_CELL
    if (cellWidth(to.words[last] ?? 0) === 2) to.words[last] = BLANK
  }
}

/** A word that no cell has: the content of the terminal is unknown. */
export const UNKNOWN = (CLUSTER_BIT | CODE_MASK) >>> 0
