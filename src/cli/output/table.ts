/** Rows as a table: with aligned columns on a terminal, elsewhere one that scripts can read. */
import { printable } from '../../base/printable.ts'
import { clip, padEnd, textWidth } from '../../base/text-width.ts'

export type TableOutput = { readonly isTTY?: boolean; readonly columns?: number | undefined }

export const TERMINAL: TableOutput = { isTTY: true }

/**
 * Without rows nothing. Cells may hold any text. On a terminal columns that are empty in every row are left out; elsewhere all are
 * there, and a tab stands between two, so that the n-th column is always the same. Where the terminal has fewer columns than that
 * takes, the widest texts are shortened; if that is not enough, none is.
 */
export function formatTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  { isTTY, columns: room = 0 }: TableOutput,
): string {
  if (rows.length === 0) return ''
  const shown = rows.map((row) => row.map(printable))
  if (isTTY !== true) return [header, ...shown].map((row) => `${row.join('\t')}\n`).join('')
  const columns = header.flatMap((_, column) => (shown.some((row) => row[column] !== '') ? [column] : []))
  const table = [header, ...shown].map((row) => columns.map((column) => row[column] ?? ''))
  const wanted = columns.map((_, index) =>
    table.reduce((width, row) => Math.max(width, textWidth(row[index] ?? '')), 0),
  )
  const least = wanted.map((width, index) =>
    index > 0 && table.slice(1).some((row) => WORD.test(row[index] ?? ''))
      ? Math.max(LEAST_TEXT, textWidth(table[0]?.[index] ?? ''))
      : width,
  )
  const widths = (room > 0 && fitted(wanted, least, room - GAP.length * (columns.length - 1))) || wanted
  return table
    .map((row) =>
      row
        .map((cell, index) => padEnd(clip(cell, widths[index] ?? 0), widths[index] ?? 0))
        .join(GAP)
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join('')
}

const GAP = '  '
/** Of a shortened column. */
const LEAST_TEXT = 8
/** A column in which this is nowhere has numbers, sizes, times or bars. */
const WORD = /\p{Ll}{4}/u

/** The widest column gives first. Undefined: they do not fit. */
function fitted(wanted: readonly number[], least: readonly number[], room: number): readonly number[] | undefined {
  const widths = [...wanted]
  for (let over = widths.reduce((sum, width) => sum + width, -room); over > 0; over--) {
    const spare = widths.map((width, index) => (width > (least[index] ?? 0) ? width : 0))
    const widest = Math.max(...spare)
    if (widest === 0) return undefined
    widths[spare.indexOf(widest)] = widest - 1
  }
  return widths
}

/** Whether no line of it is broken on a terminal of so many columns. */
export const fitsIn = (text: string, columns: number): boolean =>
  text.split('\n').every((line) => textWidth(line) <= columns)

const LEVELS = ' ▁▂▃▄▅▆▇█'

type Curve = readonly [name: string, values: readonly (number | undefined)[]]

/** Each on its line, after its name: one character a value, from `lowest` (blank) to `highest` (full). */
export function formatCurves(curves: readonly Curve[], lowest: number, highest: number): string {
  const width = Math.max(...curves.map(([name]) => name.length))
  const cellOf = (value = lowest): string => {
    const part = Math.min(1, Math.max(0, (value - lowest) / (highest - lowest)))
    return LEVELS[Math.round(part * (LEVELS.length - 1))] ?? ' '
  }
  return curves.map(([name, values]) => `${name.padEnd(width)}  ${values.map(cellOf).join('')}\n`).join('')
}

/** A bar of `width` cells in which each part has its own character; the parts add up to no more than 1. */
export function formatBar(parts: readonly (readonly [number, string])[], width: number): string {
  let bar = ''
  let sum = 0
  for (const [part, character] of parts) {
    sum += part
    bar += character.repeat(Math.max(0, Math.round(sum * width) - bar.length))
  }
  return bar.padEnd(width, '·')
}
