/** What a panel shows, row by row, made only for the rows that are in view. */
import type { Span } from '../compositor/compositor.ts'
import { textWidth } from '../text-width.ts'
import type { Panel } from './panel.ts'

export type PanelRow = readonly Span[]

export type PanelDocument = {
  /** Over the document; it does not scroll. */
  readonly head: readonly PanelRow[]
  readonly length: number
  row(index: number): PanelRow
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
