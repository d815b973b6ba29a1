/** Rows in a frame with a title: a pane without a host. Pure. */

import { defined } from '../../base/defined.ts'
import { ASCII, clip, partsWidth, segmenter, textWidth, wrapText } from '../../base/text-width.ts'
import { BOLD, INVERSE } from '../../terminal/cells.ts'
import {
  boldStyle,
  labelStyle,
  mutedStyle,
  type PaneMouse,
  type PaneView,
  type Rect,
  type Span,
  type Style,
  styleOf,
  type Theme,
} from '../compositor/scene.ts'
import { type FilteredTable, filterSpans, hasSortMark, noMatch } from './table-view.ts'

export type RowsPaneInput = {
  /** Among the panes of the screen: empty or with a leading space, as no host name is. */
  readonly id: string
  readonly title: string
  /** The frame shows that keys go here. */
  readonly hasKeys: boolean
  /** Something in it is still running. */
  readonly isBusy?: boolean
  readonly badges?: readonly Span[]
  readonly document: RowDocument
  /** Its rows can be filtered; the filter is shown in the frame. */
  readonly table?: FilteredTable
  /** From the first row on, unless given. */
  readonly place?: ScrollPlace
  readonly rect: Rect
  readonly theme: Theme
} & Pick<PaneMouse, 'list' | 'scroll'>

/** The filter and its counts need this much of the frame; a narrower frame does not show the rows in view. */
const FILTER_COLUMNS = 32

/** So much of the title stays beside a filter. */
const LEAST_TITLE = 12

const TOP: ScrollPlace = { offset: 0, isFollowing: false }

export function rowsPane({
  id,
  title,
  hasKeys,
  isBusy,
  badges,
  document,
  table,
  place,
  rect,
  theme,
  list,
  scroll,
}: RowsPaneInput): PaneView {
  const rows = documentRows(rect.height, document)
  const first = firstRow(place ?? TOP, document, rows)
  const count = Math.max(0, Math.min(rows, document.length - first))
  const shown = [...document.head, ...Array.from({ length: count }, (_, index) => document.row(first + index))]
  const left = table?.shown ?? document.length
  if (table !== undefined && table.view.filter.text !== '' && left === 0) shown.push(noMatch(table, theme))
  const range = ` ${first + 1}–${first + count} of ${document.length} `
  const isFiltered = table !== undefined && (table.view.filter.text !== '' || table.view.isTyping)
  // The head shows no mark if the sorted column has no title or no room; the title of the pane names it then.
  const isMarked = document.head.some((row) => hasSortMark(clipRow(row, rect.width - 2)))
  const order = isMarked ? '' : (table?.order ?? '')
  const isNarrow = isFiltered && rect.width < textWidth(title + order + range) + FILTER_COLUMNS
  const own = [
    ...(document.length > count && !isNarrow ? [{ text: range, style: mutedStyle(theme) }] : []),
    ...(badges ?? []),
    ...(isBusy === true ? [{ text: ' … ', style: boldStyle(theme.warning) }] : []),
  ]
  const inFrame = rect.width - 6 - partsWidth(own) - textWidth(order)
  // The filter comes first: the title is cut until both can be read.
  const filterWidth = table === undefined ? 0 : partsWidth(filterSpans(table, left, inFrame - LEAST_TITLE, theme))
  const titleText = clip(title, Math.max(LEAST_TITLE, inFrame - filterWidth))
  const room = inFrame - textWidth(titleText)
  return {
    host: id,
    rect,
    screen: undefined,
    lines: hasKeys ? 'double' : 'light',
    frameStyle: styleOf(hasKeys ? theme.accent : theme.frame, undefined, hasKeys ? BOLD : 0),
    title: [
      { text: ` ${titleText}${order} `, style: titleStyle(theme, hasKeys) },
      ...(table === undefined ? [] : filterSpans(table, left, room, theme)),
    ],
    badges: own,
    notice: Array.from({ length: Math.max(0, rect.height - 2) }, (_, at) => clipRow(shown[at] ?? [], rect.width - 2)),
    isDimmed: false,
    highlights: [],
    mouse: { firstRow: first, headRows: document.head.length, length: document.length, ...defined({ list, scroll }) },
  }
}

const titleStyle = (theme: Theme, hasKeys: boolean) =>
  hasKeys
    ? labelStyle(theme, theme.name === 'light' ? '#ffffff' : theme.receivingText, theme.accent)
    : mutedStyle(theme)

/** The upper part of this height, and the rest. */
export const splitRows = (rect: Rect, height: number): readonly [Rect, Rect] => [
  { ...rect, height },
  { ...rect, row: rect.row + height, height: rect.height - height },
]

/** The left part of this width, and the rest. */
export const splitColumns = (rect: Rect, width: number): readonly [Rect, Rect] => [
  { ...rect, width },
  { ...rect, column: rect.column + width, width: rect.width - width },
]

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

/** The first version of a row that fits, else the last one. */
export const firstFitting = (rows: readonly Row[], columns: number): Row =>
  rows.find((row) => partsWidth(row) <= columns) ?? rows.at(-1) ?? []

/** At most `columns` wide; `…` marks a cut. */
export function clipRow(row: Row, columns: number): Row {
  if (partsWidth(row) <= columns) return row
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

/** A number: of pages, each with a row of the one before. */
export type ScrollStep = number | { readonly rows: number }

/** The first row in view after scrolling. */
export function scrolled(document: RowDocument, paneRows: number, place: ScrollPlace, by: ScrollStep) {
  const rows = documentRows(paneRows, document)
  const last = Math.max(0, document.length - rows)
  const step = typeof by === 'number' ? by * Math.max(1, rows - 1) : by.rows
  const offset = Math.max(0, Math.min(last, firstRow(place, document, rows) + step))
  return { offset, isAtEnd: offset === last }
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

/** `0`, `834k`, `1.2M`: bytes or bits a second in powers of 1000, at most five columns. */
export const shortAmount = (value: number): string => shortened(value, 1000)

/** `834k`, `1.2G`: memory in powers of 1024, as free, top and nvidia-smi count it. */
export const shortMemory = (bytes: number): string => shortened(bytes, 1024)

function shortened(value: number, base: number): string {
  if (value < 1) return '0'
  const units = ['', 'k', 'M', 'G', 'T']
  let power = 0
  let rest = value
  for (; rest >= 999.5 && power < units.length - 1; power += 1) rest /= base
  return `${rest < 9.95 && power > 0 ? rest.toFixed(1) : Math.round(rest)}${units[power]}`
}

export const percentOf = (part: number): string => `${Math.round(part * 100)}%`
