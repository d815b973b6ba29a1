/** The matrix of a mesh as rows: numbers where they fit, otherwise one or two columns for each cell. Pure. */
import { shortBitRate } from '../../base/format-bit-rate.ts'
import { printable } from '../../base/printable.ts'
import { clip, padEnd, textWidth } from '../../base/text-width.ts'
import type { Heat } from '../../ops/net/mesh/format-mesh.ts'
import { INVERSE } from '../../terminal/cells.ts'
import { boldStyle, labelStyle, mutedStyle, type Style, styleOf, type Theme } from '../compositor/scene.ts'
import type { Row } from '../rows/rows-pane.ts'
import { changeOf, heatAt, type MeshPicture, type PictureState } from './mesh-picture.ts'

/** The lighter, the slower: readable without colours, too. */
const GLYPHS: Readonly<Record<Heat | 'running', string>> = {
  best: '█',
  good: '▓',
  poor: '▒',
  worst: '░',
  failed: '×',
  running: '▸',
}

export const CHANGE_LEGEND = '█ faster ▓ as before ▒ slower ░ less than half × failed'
export const RATE_LEGEND = '█ 90 % of the median or more ▓ 60 % ▒ 30 % ░ less × failed'

/** With numbers, and with glyphs alone. */
const NUMBER_COLUMNS = 7
const GLYPH_COLUMNS = [3, 2, 1] as const
/** The least width of a cell with a number, by its height: on a large screen cells are tiles, wider than high. */
const TILE_COLUMNS = [NUMBER_COLUMNS, 9, 12, 15, 18, 22, 26, 30, 34, 38, 42, 46] as const
const MOST_NAME = 16
const LEAST_NAME = 6

export type MatrixShape = {
  readonly nameWidth: number
  readonly cellWidth: number
  readonly cellHeight: number
  readonly headRows: number
  readonly hasNumbers: boolean
}

/** The largest cells with which all columns and rows fit; the smallest shape scrolls. */
export function matrixShape(names: readonly string[], columns: number, rows: number): MatrixShape {
  const count = names.length
  const longest = names.reduce((most, name) => Math.max(most, textWidth(printable(name))), 0)
  const withNumbers = Math.min(MOST_NAME, Math.max(longest, LEAST_NAME)) + 1
  const perCell = Math.floor((columns - withNumbers) / Math.max(1, count))
  if (perCell >= NUMBER_COLUMNS) {
    const high = Math.max(1, Math.min(TILE_COLUMNS.length, Math.floor((rows - 1) / Math.max(1, count))))
    const cellHeight = Math.max(1, TILE_COLUMNS.findLastIndex((least, index) => index < high && least <= perCell) + 1)
    const cellWidth = TILE_COLUMNS[cellHeight - 1] ?? NUMBER_COLUMNS
    return { nameWidth: withNumbers, cellWidth, cellHeight, headRows: 1, hasNumbers: true }
  }
  // Beside the name is the number at the head of the host's column.
  const numbered = Math.min(MOST_NAME, longest + 4)
  const least = Math.min(numbered, LEAST_NAME + 3)
  const cellWidth = GLYPH_COLUMNS.find((width) => least + count * width <= columns) ?? 1
  const room = columns - count * cellWidth
  const nameWidth = Math.max(least, Math.min(numbered, room))
  return { nameWidth, cellWidth, cellHeight: 1, headRows: cellWidth === 1 ? 2 : 1, hasNumbers: false }
}

export const matrixSize = ({ nameWidth, cellWidth, cellHeight, headRows }: MatrixShape, count: number) => ({
  width: nameWidth + count * cellWidth,
  height: headRows + count * cellHeight,
})

export type MatrixContext = {
  readonly columns: number
  readonly rows: number
  readonly theme: Theme
  /** Pairs that are being measured, as `FROM TO` in JSON. */
  readonly running?: ReadonlySet<string>
}

export const pairKey = (from: string, to: string): string => JSON.stringify([from, to])

/** Exactly what fits: the heads stay, and the cursor stays in view. */
export function matrixRows(state: PictureState, context: MatrixContext): readonly Row[] {
  const { picture, row: cursorRow, column: cursorColumn } = state
  const { names } = picture
  const { columns, rows, theme } = context
  const shape = matrixShape(names, columns, rows)
  const { nameWidth, cellWidth, cellHeight, headRows, hasNumbers } = shape
  const { shownColumns, firstColumn } = columnsShown(state, shape, columns)
  const { shownRows, firstRow } = rowsShown(state, shape, rows)
  const across = names.slice(firstColumn, firstColumn + shownColumns)
  const nameOf = (index: number): string => {
    const name = printable(names[index] ?? '')
    if (hasNumbers) return padEnd(clip(name, nameWidth - 1), nameWidth)
    const number = String(index + 1)
    return `${padEnd(clip(name, nameWidth - 1 - number.length), nameWidth - number.length - (cellWidth > 1 ? 0 : 1))}${number}${cellWidth > 1 ? '' : ' '}`
  }
  const heads = Array.from({ length: headRows }, (_, headRow): Row => {
    const corner = headRow === headRows - 1 ? (nameWidth > 'from↓ to→'.length ? 'from↓ to→' : 'from↓') : ''
    return [
      { text: padEnd(corner, nameWidth), style: mutedStyle(theme) },
      ...across.map((name, index) => {
        const at = firstColumn + index
        const isEven = at % 2 === 1
        // Neighbours differ in style, so that adjacent numbers are readable without spaces between them.
        const plain = isEven ? styleOf(theme.text) : mutedStyle(theme)
        const style = at === cursorColumn ? boldStyle(theme.accent) : plain
        return { text: headText(printable(name), at + 1, shape, headRow).padStart(cellWidth), style }
      }),
    ]
  })
  const middle = Math.floor((cellHeight - 1) / 2)
  const body = Array.from({ length: shownRows * cellHeight }, (_, index): Row => {
    const at = firstRow + Math.floor(index / cellHeight)
    const line = index % cellHeight
    const from = names[at] ?? ''
    const style = at === cursorRow ? boldStyle(theme.accent) : styleOf(theme.text)
    return [
      { text: line === middle ? nameOf(at) : ' '.repeat(nameWidth), style },
      ...across.flatMap((to, place) => {
        const isCursor = at === cursorRow && firstColumn + place === cursorColumn
        const lineOf = line === middle ? 'middle' : line >= LEAST_GAP && line === cellHeight - 1 ? 'gap' : 'fill'
        return cell(picture, from, to, { ...context, shape, line: lineOf, isCursor, showsChange: state.showsChange })
      }),
    ]
  })
  return [...heads, ...body]
}

function rowsShown({ picture: { names }, row }: PictureState, { cellHeight, headRows }: MatrixShape, rows: number) {
  const shownRows = Math.max(1, Math.min(names.length, Math.floor((rows - headRows) / cellHeight)))
  return { shownRows, firstRow: firstShown(row, shownRows, names.length) }
}

/** The cell at a line and column of the drawn matrix. */
export function cellAt(
  state: PictureState,
  { columns, rows }: Omit<MatrixContext, 'theme'>,
  line: number,
  column: number,
): Pick<PictureState, 'row' | 'column'> {
  const { names } = state.picture
  const shape = matrixShape(names, columns, rows)
  const { nameWidth, cellWidth, cellHeight, headRows } = shape
  const inside = (index: number) => Math.max(0, Math.min(names.length - 1, index))
  const { firstRow } = rowsShown(state, shape, rows)
  return {
    row: inside(firstRow + Math.floor((line - headRows) / cellHeight)),
    // A name selects the sender alone.
    column:
      column < nameWidth
        ? state.column
        : inside(columnsShown(state, shape, columns).firstColumn + Math.floor((column - nameWidth) / cellWidth)),
  }
}

function columnsShown(
  { picture: { names }, column }: PictureState,
  { nameWidth, cellWidth }: MatrixShape,
  columns: number,
) {
  const shownColumns = Math.max(1, Math.min(names.length, Math.floor((columns - nameWidth) / cellWidth)))
  return { shownColumns, firstColumn: firstShown(column, shownColumns, names.length) }
}

/** Tiles of four rows or more end with a gap. */
const LEAST_GAP = 3

const firstShown = (cursor: number, shown: number, count: number): number =>
  Math.max(0, Math.min(count - shown, cursor - Math.floor(shown / 2)))

function headText(name: string, number: number, shape: MatrixShape, headRow: number): string {
  const { cellWidth, cellHeight, headRows, hasNumbers } = shape
  if (hasNumbers) {
    const text = clip(name, cellWidth - 1)
    return cellHeight === 1 ? text : centred(text, cellWidth)
  }
  if (headRows === 1) return String(number % 10 ** cellWidth)
  const tens = Math.floor(number / 10) % 10
  return headRow === 0 ? (number % 10 === 0 ? String(tens) : ' ') : String(number % 10)
}

/** A tile ends with a blank column. */
function centred(text: string, width: number): string {
  const room = Math.max(0, width - 1 - textWidth(text))
  const left = Math.ceil(room / 2)
  return `${' '.repeat(left)}${text}${' '.repeat(room - left)} `
}

type CellContext = Pick<MatrixContext, 'theme' | 'running'> & {
  readonly shape: MatrixShape
  /** Which row of the cell. */
  readonly line: 'fill' | 'middle' | 'gap'
  readonly isCursor: boolean
  readonly showsChange: boolean
}

function cell(picture: MeshPicture, from: string, to: string, context: CellContext): Row {
  const { theme, running, line, isCursor, showsChange } = context
  const { cellWidth, cellHeight, hasNumbers } = context.shape
  const heat =
    from === to
      ? undefined
      : (heatAt(picture, { from, to }, showsChange) ?? (running?.has(pairKey(from, to)) ? 'running' : undefined))
  const glyph = heat === undefined ? ' ' : GLYPHS[heat]
  const style = isCursor ? cursorStyle(theme) : heatStyle(heat, theme)
  if (!hasNumbers) return [{ text: from === to ? '·'.padStart(cellWidth) : glyph.repeat(cellWidth), style }]
  const text = from === to ? '·' : clip(cellText(picture, from, to, showsChange), cellWidth - 2)
  if (cellHeight === 1)
    return [{ text: from === to ? text.padStart(cellWidth) : text.padStart(cellWidth - 1) + glyph, style }]
  if (line === 'gap') return [{ text: ' '.repeat(cellWidth), style: mutedStyle(theme) }]
  const gap = { text: ' ', style: mutedStyle(theme) }
  if (line === 'fill') return [{ text: glyph.repeat(cellWidth - 1), style }, gap]
  const inner = centred(text, cellWidth - 2).slice(0, -1)
  return [{ text: `${glyph}${inner}${glyph}`, style }, gap]
}

function cellText(picture: MeshPicture, from: string, to: string, showsChange: boolean): string {
  const outcome = picture.outcome(from, to)
  if (outcome?.kind !== 'measured') return ''
  if (!showsChange) return shortBitRate(outcome.bitsPerSecond)
  const change = changeOf(picture, { from, to })
  return change === undefined ? '' : percentText(change)
}

/** `+12%`, `−88%`, at most `>+999%`. */
function percentText(change: number): string {
  const percent = Math.round((change - 1) * 100)
  if (percent > 999) return '>999%'
  return percent < 0 ? `−${-percent}%` : `+${percent}%`
}

const cursorStyle = (theme: Theme): Style =>
  theme.name === 'none' ? styleOf(undefined, undefined, INVERSE) : labelStyle(theme, theme.bar, theme.accent)

/** What is slow is filled, so that it catches the eye. */
export function heatStyle(heat: Heat | 'running' | undefined, theme: Theme): Style {
  switch (heat) {
    case 'best':
    case 'good':
      return styleOf(theme.ok)
    case 'poor':
      return theme.name === 'none' ? styleOf(theme.text) : styleOf(theme.matchText, theme.warning)
    case 'worst':
      return theme.name === 'none' ? styleOf(theme.text) : styleOf(theme.dangerText, theme.danger)
    case 'failed':
      return boldStyle(theme.danger)
    case 'running':
      return boldStyle(theme.receiving)
    case undefined:
      return mutedStyle(theme)
  }
}
