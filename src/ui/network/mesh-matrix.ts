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
const MOST_NAME = 16
const LEAST_NAME = 6

export type MatrixShape = { readonly nameWidth: number; readonly cellWidth: number; readonly headRows: number }

/** The widest cells with which all columns fit; the last shape scrolls. */
export function matrixShape(names: readonly string[], columns: number): MatrixShape {
  const longest = names.reduce((most, name) => Math.max(most, textWidth(printable(name))), 0)
  const withNumbers = Math.min(MOST_NAME, Math.max(longest, LEAST_NAME)) + 1
  if (withNumbers + names.length * NUMBER_COLUMNS <= columns)
    return { nameWidth: withNumbers, cellWidth: NUMBER_COLUMNS, headRows: 1 }
  // Beside the name stands the number that heads the host's column.
  const numbered = Math.min(MOST_NAME, longest + 4)
  const least = Math.min(numbered, LEAST_NAME + 3)
  const cellWidth = GLYPH_COLUMNS.find((width) => least + names.length * width <= columns) ?? 1
  const room = columns - names.length * cellWidth
  const nameWidth = Math.max(least, Math.min(numbered, room))
  return { nameWidth, cellWidth, headRows: cellWidth === 1 ? 2 : 1 }
}

export const matrixWidth = ({ nameWidth, cellWidth }: MatrixShape, count: number): number =>
  nameWidth + count * cellWidth

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
  const shape = matrixShape(names, columns)
  const { nameWidth, cellWidth, headRows } = shape
  const shownColumns = Math.max(1, Math.min(names.length, Math.floor((columns - nameWidth) / cellWidth)))
  const shownRows = Math.max(1, Math.min(names.length, rows - headRows))
  const firstColumn = firstShown(cursorColumn, shownColumns, names.length)
  const firstRow = firstShown(cursorRow, shownRows, names.length)
  const across = names.slice(firstColumn, firstColumn + shownColumns)
  const isWide = cellWidth === NUMBER_COLUMNS
  const nameOf = (index: number): string => {
    const name = printable(names[index] ?? '')
    if (isWide) return padEnd(clip(name, nameWidth - 1), nameWidth)
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
        // Neighbours differ, so that numbers without blanks between them can be told apart.
        const plain = isEven ? styleOf(theme.text) : mutedStyle(theme)
        const style = at === cursorColumn ? boldStyle(theme.accent) : plain
        return { text: headText(printable(name), at + 1, shape, headRow).padStart(cellWidth), style }
      }),
    ]
  })
  const body = Array.from({ length: shownRows }, (_, index): Row => {
    const at = firstRow + index
    const from = names[at] ?? ''
    const style = at === cursorRow ? boldStyle(theme.accent) : styleOf(theme.text)
    return [
      { text: nameOf(at), style },
      ...across.flatMap((to, place) => {
        const isCursor = at === cursorRow && firstColumn + place === cursorColumn
        return cell(picture, from, to, { ...context, cellWidth, isCursor, showsChange: state.showsChange })
      }),
    ]
  })
  return [...heads, ...body]
}

const firstShown = (cursor: number, shown: number, count: number): number =>
  Math.max(0, Math.min(count - shown, cursor - Math.floor(shown / 2)))

function headText(name: string, number: number, { cellWidth, headRows }: MatrixShape, headRow: number): string {
  if (cellWidth === NUMBER_COLUMNS) return clip(name, cellWidth - 1)
  if (headRows === 1) return String(number % 10 ** cellWidth)
  const tens = Math.floor(number / 10) % 10
  return headRow === 0 ? (number % 10 === 0 ? String(tens) : ' ') : String(number % 10)
}

type CellContext = Pick<MatrixContext, 'theme' | 'running'> & {
  readonly cellWidth: number
  readonly isCursor: boolean
  readonly showsChange: boolean
}

function cell(picture: MeshPicture, from: string, to: string, context: CellContext): Row {
  const { theme, running, cellWidth, isCursor, showsChange } = context
  if (from === to) {
    const style = isCursor ? cursorStyle(theme) : mutedStyle(theme)
    return [{ text: '·'.padStart(cellWidth), style }]
  }
  const heat = heatAt(picture, { from, to }, showsChange) ?? (running?.has(pairKey(from, to)) ? 'running' : undefined)
  const glyph = heat === undefined ? ' ' : GLYPHS[heat]
  const style = isCursor ? cursorStyle(theme) : heatStyle(heat, theme)
  if (cellWidth !== NUMBER_COLUMNS) return [{ text: glyph.repeat(cellWidth), style }]
  const text = clip(cellText(picture, from, to, showsChange), cellWidth - 2).padStart(cellWidth - 1)
  return [{ text: text + glyph, style }]
}

function cellText(picture: MeshPicture, from: string, to: string, showsChange: boolean): string {
  const outcome = picture.outcome(from, to)
  if (outcome?.kind !== 'measured') return ''
  if (!showsChange) return shortBitRate(outcome.bitsPerSecond)
  const change = changeOf(picture, { from, to })
  return change === undefined ? '' : percentText(change)
}

/** `+12%`, `−88%`, at most `>+999%`. */
export function percentText(change: number): string {
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
