/** A table of jobs or trials with their metrics and parameters, sorted by any column, with bars for the sorted metric. Pure. */
import { printable } from '../../base/printable.ts'
import { clip, padEnd, textWidth } from '../../base/text-width.ts'
import { type Metric, type MetricValues, metricNumber } from '../../scheduler/jobs/metric.ts'
import { boldStyle, mutedStyle, type Span, styleOf, type Theme } from '../compositor/scene.ts'
import { type Row, type RowDocument, rowStyle } from '../rows/rows-pane.ts'
import { findHost, shownRows, sortMark, type TableColumn, type TableView } from '../rows/table-view.ts'

export type TableRow = {
  readonly id: number
  /** The state of a job or a trial. */
  readonly kind: string
  readonly parameters: Readonly<Record<string, string>>
  readonly values: MetricValues
  /** By the titles of the columns after the parameters. */
  readonly notes?: Readonly<Record<string, string>>
  /** What a note is sorted by where that is not its text. */
  readonly amounts?: Readonly<Record<string, number | undefined>>
  readonly isMarked?: boolean
}

export type ResultsTable<R extends TableRow = TableRow> = {
  /** Of the numbers; undefined: JOB. */
  readonly title?: string
  readonly metrics: readonly Metric[]
  readonly parameters: readonly string[]
  readonly notes?: readonly string[]
  readonly rows: readonly R[]
  /** The rows come in the order that is shown first. */
  readonly isRanked?: boolean
}

/** Of a job or a trial. */
export function stateColour(kind: string, theme: Theme): Theme['text'] {
  if (kind === 'done') return theme.ok
  if (kind === 'failed' || kind === 'lost' || kind === 'timed-out') return theme.danger
  if (kind === 'starting' || kind === 'running' || kind === 'ending') return theme.accent
  return kind === 'queued' || kind === 'pending' || kind === 'pruned' ? theme.warning : theme.muted
}

type Column = TableColumn<TableRow> & {
  readonly kind: 'job' | 'state' | 'metric' | 'parameter' | 'note'
  /** Among metrics, parameters and notes. */
  readonly name: string
  readonly isMost: boolean
}

const RANK_CELLS = 10
const MOST_COLUMN = 18
/** The first rows decide how wide columns are. */
const WIDTH_ROWS = 500

/** Of the same table they are made once, as thousands of rows are sorted by them. */
const columnsByTable = new WeakMap<Omit<ResultsTable, 'rows'>, readonly Column[]>()

/** Job and state first, then metrics, then parameters. */
export function resultColumns(table: ResultsTable): readonly Column[] {
  const known = columnsByTable.get(table)
  if (known !== undefined) return known
  const { title = 'JOB', metrics, parameters, notes = [] } = table
  const taken = new Set([title, 'STATE', ...metrics.map(({ name }) => name)])
  const columns = [
    columnOf('job', title),
    columnOf('state', 'STATE'),
    ...metrics.map(({ name, isMost = false }) => columnOf('metric', name, isMost)),
    ...parameters.map((name) => ({
      ...columnOf('parameter', name),
      ...(taken.has(name) ? { title: printable(`${name} (parameter)`) } : {}),
    })),
    ...notes.map((name) => columnOf('note', name)),
  ]
  columnsByTable.set(table, columns)
  return columns
}

/** Text sorts as text, numbers as numbers. */
function columnOf(kind: Column['kind'], name: string, isMost = false): Column {
  const text = (row: TableRow) => printable(cellOf({ kind, name }, row)) || '-'
  return {
    ...{ kind, name, isMost, title: printable(name), text, isDescending: isMost, isAmount: kind === 'metric' },
    order: (row) => {
      if (kind === 'job') return row.id
      if (kind === 'note' && row.amounts !== undefined && name in row.amounts) return row.amounts[name]
      const cell = cellOf({ kind, name }, row)
      return metricNumber(cell) ?? (kind === 'metric' || cell === '' ? undefined : cell)
    },
    ...(kind === 'job' ? { find: (row, word) => String(row.id) === word } : {}),
    ...(kind === 'note' && name === 'ON' ? { find: findHost(text) } : {}),
  }
}

/** The first metric, or the number without one. */
const firstTitle = (table: ResultsTable): string => resultColumns(table)[table.metrics.length > 0 ? 2 : 0]?.title ?? ''

/** The column whose order is shown first; undefined: the rows come ranked. */
export const sortedTitle = (table: ResultsTable): string | undefined =>
  table.isRanked === true ? undefined : firstTitle(table)

/** Filtered and sorted. */
export function shownResults<R extends TableRow>(table: ResultsTable<R>, view: TableView): readonly R[] {
  const sort = view.sort ?? (table.metrics.length === 0 ? undefined : sortedTitle(table))
  return shownRows<R>(table.rows, resultColumns(table), { ...view, sort })
}

function cellOf(
  { kind, name }: Pick<Column, 'kind' | 'name'>,
  { id, kind: state, parameters, values, notes, isMarked }: TableRow,
): string {
  if (kind === 'job') return isMarked === true ? `${id} ★` : String(id)
  if (kind === 'state') return state
  return (kind === 'metric' ? values : kind === 'note' ? notes : parameters)?.[name] ?? ''
}

type TableInput = {
  readonly table: ResultsTable
  readonly rows: readonly TableRow[]
  readonly view: TableView
  /** Above the titles of the columns. */
  readonly head: readonly Row[]
  /** The number of the selected job or trial. */
  readonly chosen: number | undefined
  readonly columns: number
  readonly theme: Theme
}

type Measures = { readonly key: string; readonly widths: readonly number[]; readonly barOf: Bar | undefined }
type Bar = (row: TableRow) => number

/** Of the same rows they are found once. */
const measures = new WeakMap<readonly TableRow[], Measures>()

/** How wide columns are, and bars where there is room for them. */
function measured(rows: readonly TableRow[], shown: readonly Column[], at: number, columns: number): Measures {
  const key = `${columns} ${at} ${shown.length}`
  const known = measures.get(rows)
  if (known?.key === key) return known
  const widths = shown.map((column, index) => {
    const longest = rows
      .slice(0, WIDTH_ROWS)
      .reduce((width, row) => Math.max(width, textWidth(printable(cellOf(column, row)))), 1)
    // The last one may take what is left, if it says why.
    const most = column.kind === 'note' && index === shown.length - 1 ? columns : MOST_COLUMN
    return Math.min(most, Math.max(longest, textWidth(column.title) + 1)) + 2
  })
  const sorting = shown[at]
  const hasBars = widths.reduce((sum, width) => sum + width, 1 + RANK_CELLS) <= columns
  const own = { key, widths, barOf: hasBars && sorting?.kind === 'metric' ? barsOf(rows, sorting) : undefined }
  measures.set(rows, own)
  return own
}

export function tableDocument({ table, rows, view, head, chosen, columns, theme }: TableInput): RowDocument {
  const muted = mutedStyle(theme)
  const shown = resultColumns(table)
  const sorted = sortedTitle(table)
  const at = shown.findIndex(({ title }) => title === (view.sort ?? firstTitle(table)))
  const { widths, barOf } = measured(rows, shown, at, columns)
  const titles = shown.map((column, index): Span => {
    const style = index === at ? boldStyle(theme.accent) : muted
    // There is room for the mark in the gap.
    const text = `${clip(column.title, MOST_COLUMN)}${sortMark(view, column, sorted)}`
    const isLast = index === shown.length - 1 && barOf === undefined
    return { text: isLast ? text : padEnd(text, widths[index] ?? 0), style }
  })
  const barTitle: Row = barOf === undefined ? [] : [{ text: '■ better', style: muted }]
  return {
    head: [...head, [{ text: ' ', style: muted }, ...titles, ...barTitle]],
    length: rows.length,
    row(index) {
      const row = rows[index]
      if (row === undefined) return []
      const isChosen = row.id === chosen
      const plain = rowStyle(theme, isChosen)
      const cells = shown.map((column, place): Span => {
        const text = column.text(row)
        const width = widths[place] ?? 0
        const own =
          column.kind === 'state'
            ? styleOf(stateColour(row.kind, theme))
            : column.kind === 'job' && row.isMarked === true
              ? boldStyle(theme.ok)
              : plain
        const cell = clip(text, width - 2)
        const isLast = place === shown.length - 1 && barOf === undefined
        return { text: isLast ? cell : padEnd(cell, width), style: isChosen ? plain : own }
      })
      const bar = barOf?.(row) ?? 0
      return [
        { text: isChosen ? '▸' : ' ', style: plain },
        ...cells,
        { text: '■'.repeat(bar), style: styleOf(theme.ok) },
        { text: barOf === undefined ? '' : '·'.repeat(RANK_CELLS - bar), style: muted },
      ]
    },
  }
}

/** Cells of a bar: all for the best, none for the worst. */
function barsOf(rows: readonly TableRow[], column: Column): (row: TableRow) => number {
  const numberOf = (row: TableRow) => metricNumber(cellOf(column, row) || undefined)
  const numbers = rows.map(numberOf).filter((one) => one !== undefined && Number.isFinite(one)) as number[]
  const least = numbers.reduce((one, other) => Math.min(one, other), Number.POSITIVE_INFINITY)
  const most = numbers.reduce((one, other) => Math.max(one, other), Number.NEGATIVE_INFINITY)
  return (row) => {
    const number = numberOf(row)
    if (number === undefined || !Number.isFinite(number)) return 0
    const share = most === least ? 1 : (number - least) / (most - least)
    return Math.round((column.isMost || most === least ? share : 1 - share) * RANK_CELLS)
  }
}
