/** What a panel shows, row by row, made only for the rows that are in view. */
import type { Span, Style } from '../compositor/compositor.ts'
import { clip, textWidth, wrapText } from '../text-width.ts'
import type { Theme } from '../theme/theme.ts'
import type { Panel } from './panel.ts'

export type PanelRow = readonly Span[]

export type PanelDocument = {
  /** Over the document; it does not scroll. */
  readonly head: readonly PanelRow[]
  readonly length: number
  row(index: number): PanelRow
}

export type PanelLook = {
  readonly theme: Theme
  /** Inside the frame. */
  readonly columns: number
  readonly rows: number
  /** Columns of output that are scrolled out at the left. */
  readonly column: number
}

/** A sentence in lines that fit, behind an indent. */
export function wrapRows(text: string, { columns }: PanelLook, indent: string, style: Style): PanelRow[] {
  const room = Math.max(8, columns - indent.length)
  return wrapText(text, room).map((line) => [{ text: indent + line, style }])
}

/** At most `columns` wide; a cut is marked with `…`. */
export function clipRow(row: PanelRow, columns: number): PanelRow {
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
export const documentRows = (panelRows: number, document: PanelDocument): number =>
  Math.max(1, panelRows - 2 - document.head.length)

/** The first row in view: never beyond the end, at the end while it is followed. */
export function firstRow({ offset, isFollowing }: Panel, document: PanelDocument, rows: number): number {
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
