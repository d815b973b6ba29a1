/** Percentiles of measured times, and how tables say them. */

/** The value below which `share` (0…1) of the values lie, by nearest rank. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? Number.NaN
}

/** Of an even count: the middle of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  const above = sorted.length >> 1
  return (percentile(sorted, 0.5) + (sorted[above] ?? Number.NaN)) / 2
}

/** Three figures at most: 0.42, 8.5, 137. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return '–'
  if (value >= 100) return value.toFixed(0)
  return value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

export const formatPair = (values: readonly number[]): string =>
  values.length === 0 ? '–' : `${formatNumber(median(values))} / ${formatNumber(percentile(values, 0.99))}`

export type Row = {
  readonly what: string
  readonly ours: string
  readonly peer: string
  readonly goal?: string
  readonly isReached?: boolean
}

export function formatTable(rows: readonly Row[]): string {
  const reached = ({ goal, isReached }: Row) =>
    goal === undefined || isReached === undefined ? '' : isReached ? 'yes' : '**no**'
  return [
    '| what | Muster | peer | goal | reached |',
    '| --- | --- | --- | --- | --- |',
    ...rows.map((row) => `| ${row.what} | ${row.ours} | ${row.peer} | ${row.goal ?? ''} | ${reached(row)} |`),
  ].join('\n')
}
