/** The jobs of an array or a grid as a table of metrics and parameters, the best first. Pure. */
import { printable } from '../../base/printable.ts'
import { clip, padEnd, textWidth } from '../../base/text-width.ts'
import { type Metric, metricNumber, rankBy } from '../../scheduler/jobs/metric.ts'
import type { Sweep, SweepRow } from '../../scheduler/jobs/results.ts'
import type { Span } from '../compositor/scene.ts'
import { type Row, type RowDocument, rowStyle } from '../rows/rows-pane.ts'
import { boldStyle, mutedStyle, styleOf, type Theme } from '../theme/theme.ts'
import { colourOf, progressSpans } from './list-document.ts'
import type { JobLine, SweepOrder } from './queue-view.ts'

type Column = {
  readonly title: string
  readonly kind: 'job' | 'state' | 'metric' | 'parameter'
  /** How its values rank. */
  readonly rank: Metric
}

const BAR_CELLS = 10
const MOST_COLUMN = 18
/** The first rows decide how wide columns are. */
const WIDTH_ROWS = 500

/** Job and state first, then metrics, then parameters. */
export function columnsOf({ metrics, parameters }: Pick<Sweep, 'metrics' | 'parameters'>): readonly Column[] {
  return [
    { title: 'JOB', kind: 'job', rank: { name: 'job' } },
    { title: 'STATE', kind: 'state', rank: { name: 'state' } },
    ...metrics.map((rank): Column => ({ title: printable(rank.name), kind: 'metric', rank })),
    ...parameters.map((name): Column => ({ title: printable(name), kind: 'parameter', rank: { name } })),
  ]
}

export function sortedBy(sweep: Sweep, { column }: SweepOrder): number {
  return column ?? (sweep.metrics.length > 0 ? 2 : 0)
}

export function nextOrder(sweep: Sweep, order: SweepOrder, by: 1 | 'reverse'): SweepOrder {
  if (by === 'reverse') return { ...order, isReversed: !order.isReversed }
  return { column: (sortedBy(sweep, order) + 1) % columnsOf(sweep).length, isReversed: false }
}

/** Thousands of rows are sorted once for each order, not for each drawing. */
const sorted = new WeakMap<Sweep, { readonly order: SweepOrder; readonly rows: readonly SweepRow[] }>()

export function sortSweep(sweep: Sweep, order: SweepOrder): readonly SweepRow[] {
  const known = sorted.get(sweep)
  if (known?.order === order) return known.rows
  const rows = sortRows(sweep, order)
  sorted.set(sweep, { order, rows })
  return rows
}

function sortRows(sweep: Sweep, order: SweepOrder): readonly SweepRow[] {
  const column = columnsOf(sweep)[sortedBy(sweep, order)]
  if (column === undefined || column.kind === 'job') return order.isReversed ? sweep.rows.toReversed() : sweep.rows
  const isMost = column.rank.isMost === true
  const rank = { ...column.rank, isMost: order.isReversed !== isMost }
  // Text sorts as text, numbers as numbers.
  const byText = sweep.rows.toSorted((one, other) => {
    const [first, second] = [cellOf(column, one), cellOf(column, other)]
    return first === second ? 0 : first < second === order.isReversed ? 1 : -1
  })
  const hasText = column.kind === 'state' || column.kind === 'parameter'
  return rankBy(hasText ? byText : sweep.rows, rank, (row) => ({ [rank.name]: cellOf(column, row) }))
}

function cellOf({ kind, rank }: Column, { id, kind: state, parameters, values }: SweepRow): string {
  if (kind === 'job') return String(id)
  if (kind === 'state') return state
  return (kind === 'metric' ? values : parameters)[rank.name] ?? ''
}

export type SweepInput = {
  readonly sweep: Sweep
  readonly rows: readonly SweepRow[]
  readonly order: SweepOrder
  readonly line: JobLine
  /** The number of the selected job. */
  readonly chosen: number | undefined
  readonly columns: number
  readonly theme: Theme
}

export function sweepDocument({ sweep, rows, order, line, chosen, columns, theme }: SweepInput): RowDocument {
  const muted = mutedStyle(theme)
  const shown = columnsOf(sweep)
  const at = sortedBy(sweep, order)
  const widths = shown.map((column) => {
    const longest = rows
      .slice(0, WIDTH_ROWS)
      .reduce((width, row) => Math.max(width, textWidth(printable(cellOf(column, row)))), 1)
    return Math.min(MOST_COLUMN, Math.max(longest, textWidth(column.title) + 1)) + 2
  })
  const sorting = shown[at]
  const barOf = sorting?.kind === 'metric' ? barsOf(rows, sorting) : undefined
  const hasBars = barOf !== undefined && widths.reduce((sum, width) => sum + width, 1 + BAR_CELLS) <= columns
  const titles = shown.map(({ title }, index): Span => {
    const mark = index === at ? (order.isReversed ? '▴' : '▾') : ''
    const style = index === at ? boldStyle(theme.accent) : muted
    return { text: padEnd(clip(`${title}${mark}`, MOST_COLUMN), widths[index] ?? 0), style }
  })
  return {
    head: [summaryOf(sweep, line, theme), [{ text: ' ', style: muted }, ...titles]],
    length: rows.length,
    row(index) {
      const row = rows[index]
      if (row === undefined) return []
      const isChosen = row.id === chosen
      const plain = rowStyle(theme, isChosen)
      const cells = shown.map((column, place): Span => {
        const text = printable(cellOf(column, row)) || '-'
        const style = column.kind === 'state' ? styleOf(colourOf(row.kind, theme)) : plain
        return { text: padEnd(clip(text, MOST_COLUMN), widths[place] ?? 0), style: isChosen ? plain : style }
      })
      const bar = hasBars ? barOf(row) : 0
      return [
        { text: isChosen ? '▸' : ' ', style: plain },
        ...cells,
        { text: '■'.repeat(bar), style: styleOf(theme.ok) },
        { text: hasBars ? '·'.repeat(BAR_CELLS - bar) : '', style: muted },
      ]
    },
  }
}

/** Cells of a bar: all for the best, none for the worst. */
function barsOf(rows: readonly SweepRow[], column: Column): (row: SweepRow) => number {
  const numberOf = (row: SweepRow) => metricNumber(cellOf(column, row) || undefined)
  const numbers = rows.map(numberOf).filter((one) => one !== undefined && Number.isFinite(one)) as number[]
  const least = numbers.reduce((one, other) => Math.min(one, other), Number.POSITIVE_INFINITY)
  const most = numbers.reduce((one, other) => Math.max(one, other), Number.NEGATIVE_INFINITY)
  return (row) => {
    const number = numberOf(row)
    if (number === undefined || !Number.isFinite(number)) return 0
    const share = most === least ? 1 : (number - least) / (most - least)
    return Math.round((column.rank.isMost === true || most === least ? share : 1 - share) * BAR_CELLS)
  }
}

/** Progress, and the best value of each metric with its parameters. */
function summaryOf(sweep: Sweep, line: JobLine, theme: Theme): Row {
  const bests = sweep.metrics.flatMap((metric): Span[] => {
    const [best] = rankBy(sweep.rows, metric, ({ values }) => values)
    const value = best?.values[metric.name]
    if (best === undefined || value === undefined || metricNumber(value) === undefined) return []
    const parameters = Object.entries(best.parameters).map(([name, own]) => `${name}=${own}`)
    return [
      { text: printable(`best ${metric.name} `), style: mutedStyle(theme) },
      { text: printable(value), style: boldStyle(theme.ok) },
      { text: printable(` ${parameters.join(' ')}  `), style: styleOf(theme.text) },
    ]
  })
  const fewer = sweep.rows.length < sweep.count ? `first ${sweep.rows.length} of ${sweep.count}  ` : ''
  return [
    { text: ' ', style: mutedStyle(theme) },
    ...progressSpans(line, theme),
    { text: fewer, style: mutedStyle(theme) },
    ...bests,
  ]
}
