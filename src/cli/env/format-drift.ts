/** Drift as a table of items and hosts, where equal hosts share a column; too wide for the terminal: a line for each item, or value. */
import { printable } from '../../base/printable.ts'
import { textWidth } from '../../base/text-width.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { Drift } from '../../ops/env/drift.ts'
import { formatTable } from '../output/table.ts'

const ABSENT = '-'
const INDENT = ' '.repeat(11)

/** Empty when nothing differs. `columns`: of the terminal. */
export function formatDrift({ hosts, rows, followed }: Drift, columns: number): string {
  if (rows.length === 0) return ''
  const cell = (row: Drift['rows'][number], host: string) =>
    row.values.has(host) ? (row.values.get(host) ?? ABSENT) : '='
  const first = followed ?? 'most'
  const groups = [...Map.groupBy(hosts, (host) => JSON.stringify(rows.map((row) => cell(row, host)))).values()].filter(
    (group) => rows.some((row) => row.values.has(group[0] ?? '')),
  )
  const table = formatTable(
    ['', 'what', first, ...groups.map((group) => foldHostSet(group))],
    rows.map((row) => [
      row.gravity,
      row.name,
      row.reference ?? ABSENT,
      ...groups.map((group) => cell(row, group[0] ?? '')),
    ]),
  )
  const isFitting = (text: string) => text.split('\n').every((line) => textWidth(line) <= columns)
  if (isFitting(table)) return table
  const othersOf = (row: Drift['rows'][number]) =>
    [...Map.groupBy(row.values, ([, value]) => value ?? ABSENT)].map(
      ([value, pairs]) => `${foldHostSet(pairs.map(([host]) => host))} ${value}`,
    )
  const list = formatTable(
    ['', 'what', first, 'others'],
    rows.map((row) => [row.gravity, row.name, row.reference ?? ABSENT, othersOf(row).join(' · ')]),
  )
  if (isFitting(list)) return list
  return rows
    .map((row) => [`${row.gravity.padEnd(7)}  ${row.name}`, `${first} ${row.reference ?? ABSENT}`, ...othersOf(row)])
    .map((lines) => lines.map((line) => `${printable(line)}\n`).join(INDENT))
    .join('')
}
