/** What is shown row by row, made only for the rows that are in view: panels and the pages of tabs. */

import { ASCII, clip, segmenter, textWidth, wrapText } from '../../base/text-width.ts'
import { BOLD, INVERSE } from '../../terminal/cells.ts'
import type { Span, Style } from '../compositor/scene.ts'
import { styleOf, type Theme } from '../theme/theme.ts'

export type Row = readonly Span[]

export type RowDocument = {
  /** Above the rows; it does not scroll. */
  readonly head: readonly Row[]
  readonly length: number
  row(index: number): Row
}

export type RowContext = {
  readonly theme: Theme
  /** Inside the frame. */
  readonly columns: number
  readonly rows: number
}

/** A document of rows that are all there already. */
export function documentOf(rows: readonly Row[], head: readonly Row[] = []): RowDocument {
  return { head, length: rows.length, row: (index) => rows[index] ?? [] }
}

/** The chosen row of a list stands out, in inverse video where there are no colours. */
export const rowStyle = (theme: Theme, isChosen: boolean): Style =>
  isChosen ? styleOf(theme.accent, undefined, BOLD | (theme.name === 'none' ? INVERSE : 0)) : styleOf(theme.text)

/** Wraps a sentence into lines that fit, indented. */
export function wrapRows(text: string, columns: number, indent: string, style: Style): Row[] {
  return wrapText(text, Math.max(8, columns - indent.length)).map((line) => [{ text: indent + line, style }])
}

export const rowWidth = (row: Row): number => row.reduce((sum, { text }) => sum + textWidth(text), 0)

/** At most `columns` wide; `…` marks a cut. */
export function clipRow(row: Row, columns: number): Row {
  if (rowWidth(row) <= columns) return row
  const spans: Span[] = []
  let room = columns
  for (const span of row) {
    const width = textWidth(span.text)
    // A span that just fits still needs a column for the mark.
    const text = width < room ? span.text : clip(`${span.text} `, room)
    spans.push({ ...span, text })
    room -= textWidth(text)
    if (width >= room + textWidth(text)) break
  }
  return spans
}

/** How many rows of the document fit into a pane with its frame. */
export const documentRows = (paneRows: number, document: RowDocument): number =>
  Math.max(1, paneRows - 2 - document.head.length)

/** The row to show first; `isFollowing`: the end of the document stays in view instead. */
export type ScrollPlace = { readonly offset: number; readonly isFollowing: boolean }

/** Keeps a row in the middle of the pane. */
export const centredOn = (row: number, paneRows: number, document: RowDocument): ScrollPlace => ({
  offset: Math.max(0, row - Math.floor(documentRows(paneRows, document) / 2)),
  isFollowing: false,
})

/** The first row in view, never beyond the end. */
export function firstRow({ offset, isFollowing }: ScrollPlace, document: RowDocument, rows: number): number {
  const last = Math.max(0, document.length - rows)
  return isFollowing ? last : Math.max(0, Math.min(offset, last))
}

/** Drops the first columns of a text; a wide character that is cut in half leaves a space. */
export function skipColumns(text: string, columns: number): string {
  if (columns === 0) return text
  if (ASCII.test(text)) return text.slice(columns)
  let width = 0
  for (const { segment, index } of segmenter.segment(text)) {
    if (width >= columns) return ' '.repeat(width - columns) + text.slice(index)
    width += textWidth(segment)
  }
  return ''
}
