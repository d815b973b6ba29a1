/** Rows as a table: with aligned columns on a terminal, elsewhere one that scripts can read. */
import { printable } from '../../base/printable.ts'
import { textWidth } from '../../base/text-width.ts'

export type TableOutput = { readonly isTTY?: boolean }

export const TERMINAL: TableOutput = { isTTY: true }

/**
 * Without rows nothing. Cells may hold any text. On a terminal columns that are empty in every row are left out; elsewhere all are
 * there, and a tab stands between two, so that the n-th column is always the same.
 */
export function formatTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  { isTTY }: TableOutput,
): string {
  if (rows.length === 0) return ''
  const shown = rows.map((row) => row.map(printable))
  if (isTTY !== true) return [header, ...shown].map((row) => `${row.join('\t')}\n`).join('')
  const columns = header.flatMap((_, column) => (shown.some((row) => row[column] !== '') ? [column] : []))
  const table = [header, ...shown].map((row) => columns.map((column) => row[column] ?? ''))
  const widths = columns.map((_, index) =>
    table.reduce((width, row) => Math.max(width, textWidth(row[index] ?? '')), 0),
  )
  return table
    .map((row) =>
      row
        .map((cell, index) => cell + ' '.repeat((widths[index] ?? 0) - textWidth(cell)))
        .join('  ')
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join('')
}

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
