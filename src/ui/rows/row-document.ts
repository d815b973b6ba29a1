/** What is shown row by row, made only for the rows that are in view: panels and the pages of tabs. */

import { clip, textWidth, wrapText } from '../../base/text-width.ts'
import type { Span, Style } from '../compositor/scene.ts'
import type { Theme } from '../theme/theme.ts'

export type Row = readonly Span[]

export type RowDocument = {
  /** Over the document; it does not scroll. */
  readonly head: readonly Row[]
  readonly length: number
  row(index: number): Row
}

export type RowLook = {
  readonly theme: Theme
  /** Inside the frame. */
  readonly columns: number
  readonly rows: number
  /** Columns of output that are scrolled out at the left. */
  readonly column: number
}

/** A sentence in lines that fit, behind an indent. */
export function wrapRows(text: string, { columns }: RowLook, indent: string, style: Style): Row[] {
  const room = Math.max(8, columns - indent.length)
  return wrapText(text, room).map((line) => [{ text: indent + line, style }])
}

/** At most `columns` wide; a cut is marked with `…`. */
export function clipRow(row: Row, columns: number): Row {
  if (row.reduce((sum, { text }) => sum + textWidth(text), 0) <= columns) return row
  const spans: Span[] = []
  let room = columns
  for (const span of row) {
    const width = textWidth(span.text)
    // What fits wholly still needs a column after it for the mark.
    const text = width < room ? span.text : clip(`${span.text} `, room)
    spans.push({ ...span, text })
    room -= textWidth(text)
    if (width >= room + textWidth(text)) break
  }
  return spans
}

/** Rows of the document in view: less the frame and the head. */
export const documentRows = (paneRows: number, document: RowDocument): number =>
  Math.max(1, paneRows - 2 - document.head.length)

/** The row that is wanted first; `isFollowing`: the end of the document stays in view instead. */
export type ScrollPlace = { readonly offset: number; readonly isFollowing: boolean }

/** The first row in view: never beyond the end. */
export function firstRow({ offset, isFollowing }: ScrollPlace, document: RowDocument, rows: number): number {
  const last = Math.max(0, document.length - rows)
  return isFollowing ? last : Math.max(0, Math.min(offset, last))
}

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' })
const ASCII = /^[ -~]*$/

/** The text without its first columns; a wide character that is cut in half leaves a space. */
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
