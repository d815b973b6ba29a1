/** Rows as a table with aligned columns. */
import { printable } from '../../base/printable.ts'
import { textWidth } from '../../base/text-width.ts'

/** Leaves out columns that are empty in every row, and the header if there are no rows. Cells may hold any text. */
export function formatTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return ''
  const shown = rows.map((row) => row.map(printable))
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
