/** Drift as a table: what differs × the hosts, of which equal ones share a column; a line an item where that is too wide. */
import { foldHostSet } from '../../inventory/host-set.ts'
import type { Drift } from '../../ops/env/drift.ts'
import { textWidth } from '../../ui/text-width.ts'
import { formatTable } from '../table.ts'

const ABSENT = '-'

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
  if (table.split('\n').every((line) => textWidth(line) <= columns)) return table
  return formatTable(
    ['', 'what', first, 'others'],
    rows.map((row) => {
      const values = Map.groupBy(row.values, ([, value]) => value ?? ABSENT)
      const others = [...values].map(([value, pairs]) => `${foldHostSet(pairs.map(([host]) => host))} ${value}`)
      return [row.gravity, row.name, row.reference ?? ABSENT, others.join(' · ')]
    }),
  )
}
