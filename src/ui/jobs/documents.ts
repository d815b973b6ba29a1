/** The list of the Jobs tab, where an array or a grid is one row with its progress; its jobs as a table of metrics and parameters, the best first; one job with its log. Pure. */
import { printable } from '../../base/printable.ts'
import { clip, padEnd, textWidth } from '../../base/text-width.ts'
import { placeTitle } from '../../scheduler/jobs/engine.ts'
import { formatBundle, isFinal, type JobState } from '../../scheduler/jobs/job.ts'
import { JOB_COLUMNS, requestText, STATE_COLUMN, stateText } from '../../scheduler/jobs/job-columns.ts'
import { type Metric, metricNumber, rankBy } from '../../scheduler/jobs/metric.ts'
import type { Sweep, SweepRow } from '../../scheduler/jobs/results.ts'
import { boldStyle, mutedStyle, type Span, styleOf, type Theme } from '../compositor/scene.ts'
import { documentOf, type Row, type RowDocument, rowStyle, timeText, wrapRows } from '../rows/rows-pane.ts'
import {
  countOf,
  type Filter,
  type JobDetails,
  type JobLine,
  KINDS,
  type LogView,
  NO_SCHEDULER,
  type QueueStatus,
  type SweepOrder,
} from './queue-view.ts'

const BAR_CELLS = 8
const PROGRESS_WIDTH = STATE_COLUMN.width - BAR_CELLS - 2

export type ListInput = {
  readonly status: QueueStatus
  readonly lines: readonly JobLine[]
  readonly chosen: JobLine | undefined
  readonly filter: Filter
  readonly needle: string
  readonly columns: number
  readonly theme: Theme
  readonly nowMs: number
}

export function listDocument({ status, lines, chosen, filter, needle, columns, theme, nowMs }: ListInput): RowDocument {
  const muted = mutedStyle(theme)
  const leads = lines.map(({ lead }) => lead)
  const shown = JOB_COLUMNS.filter(({ leastPane = 0, isNeeded }) => columns >= leastPane && isNeeded?.(leads) !== false)
  const counts = [...status.counts].map(([kind, count]) => `${count} ${kind}`).join(', ') || 'no jobs yet'
  const narrowed = `${filter === 'all' ? '' : ` · only ${filter}`}${needle === '' ? '' : ` · with “${needle}”`}`
  const summary: Row = [
    { text: ` ${counts}`, style: boldStyle(theme.text) },
    { text: narrowed, style: boldStyle(theme.accent) },
    status.driver === undefined
      ? { text: `  ${NO_SCHEDULER}`, style: styleOf(theme.warning) }
      : { text: `  scheduler: ${printable(status.driver)}`, style: muted },
  ]
  return {
    head: [
      summary,
      [
        {
          text: ` ${shown
            .map(({ title, width }) => padEnd(title, width))
            .join('')
            .trimEnd()}`,
          style: muted,
        },
      ],
    ],
    length: lines.length,
    row(index) {
      const line = lines[index]
      if (line === undefined) return []
      const isChosen = line.spec === chosen?.spec
      const plain = rowStyle(theme, isChosen)
      const cells = shown.flatMap((column): readonly Span[] => {
        if (column === STATE_COLUMN)
          return line.count === 1 ? [stateSpan(line.lead.state, theme)] : progressSpans(line, theme)
        const text = line.count === 1 ? column.text(line.lead, nowMs) : (column.groupText?.(line) ?? '-')
        const cell = clip(printable(text), column.width - 1)
        return [{ text: column === shown.at(-1) ? cell : padEnd(cell, column.width), style: plain }]
      })
      return [{ text: isChosen ? '▸' : ' ', style: plain }, ...cells]
    },
  }
}

function stateSpan(state: JobState, theme: Theme): Span {
  const reason = 'reason' in state && state.reason !== undefined ? ` ${printable(state.reason)}` : ''
  return {
    text: padEnd(clip(`${stateText(state)}${reason}`, STATE_COLUMN.width - 1), STATE_COLUMN.width),
    style: boldStyle(colourOf(state.kind, theme)),
  }
}

export function colourOf(kind: JobState['kind'], theme: Theme): Theme['text'] {
  if (kind === 'done') return theme.ok
  if (kind === 'failed' || kind === 'lost' || kind === 'timed-out') return theme.danger
  if (kind === 'starting' || kind === 'running' || kind === 'ending') return theme.accent
  return kind === 'queued' ? theme.warning : theme.muted
}

/** `█████▒·· 61/90 2 failed`, without the count where the bar alone has to show it. */
export function progressSpans(line: JobLine, theme: Theme): readonly Span[] {
  const ended = countOf(line, KINDS.ended)
  const running = countOf(line, KINDS.running)
  const cells = (count: number) => Math.floor((count / line.count) * BAR_CELLS)
  const full = cells(ended)
  const busy = Math.min(BAR_CELLS - full, running > 0 ? Math.max(1, cells(running)) : 0)
  const cancelled = countOf(line, ['cancelled'])
  const failed = ended - countOf(line, ['done']) - cancelled
  const progress = `${ended}/${line.count}`
  const texts = [
    ...(failed > 0 ? [`${progress} ${failed} failed`, `${failed} failed`] : []),
    ...(failed === 0 && cancelled > 0 ? [`${progress} ${cancelled} cancelled`] : []),
    ...(cancelled === line.count ? [`${cancelled} cancelled`] : []),
    progress,
  ]
  const text = texts.find((each) => textWidth(each) <= PROGRESS_WIDTH) ?? clip(progress, PROGRESS_WIDTH)
  const colour = failed > 0 ? theme.danger : cancelled > 0 ? theme.muted : undefined
  return [
    { text: '█'.repeat(full), style: styleOf(colour ?? theme.ok) },
    { text: '▒'.repeat(busy), style: styleOf(theme.accent) },
    { text: '·'.repeat(BAR_CELLS - full - busy), style: mutedStyle(theme) },
    { text: ` ${padEnd(text, PROGRESS_WIDTH + 1)}`, style: boldStyle(colour ?? theme.text) },
  ]
}

const MOST_PLACES = 8

export function jobDocument(
  details: JobDetails,
  log: LogView | undefined,
  columns: number,
  theme: Theme,
  nowMs: number,
): RowDocument {
  const { job, why, expectedMs } = details
  const { state, spec } = job
  const muted = mutedStyle(theme)
  const say = (text: string, style = styleOf(theme.text)): readonly Row[] =>
    wrapRows(printable(text), columns, ' ', style)
  const rows: Row[] = [
    [
      { text: ` ${stateText(state)}`, style: boldStyle(colourOf(state.kind, theme)) },
      { text: `  ${requestText(job)}, attempt ${job.attempt}, priority ${job.priority}`, style: muted },
    ],
    ...say(spec.command),
  ]
  if (isFinal(state) && state.reason !== undefined) rows.push(...say(state.reason, styleOf(theme.danger)))
  if ('places' in state && state.places !== undefined) {
    state.places.slice(0, MOST_PLACES).forEach(({ host, devices }, rank) => {
      const bundle = state.bundles?.[rank]
      const how = bundle === undefined ? '' : formatBundle(bundle)
      const gpu = devices.length > 0 ? `, GPU ${devices.join(',')}` : ''
      rows.push(...say(`bundle ${rank}: ${placeTitle(host)}${gpu}: ${how}`, muted))
    })
    if (state.places.length > MOST_PLACES) rows.push(...say(`and ${state.places.length - MOST_PLACES} more`, muted))
  }
  if (expectedMs !== undefined) rows.push(...say(`expected to start ${timeText(expectedMs, nowMs)}`))
  for (const line of why) rows.push(...say(line, styleOf(theme.warning)))
  if (log?.trouble !== undefined) rows.push(...say(`log: ${log.trouble}`, styleOf(theme.danger)))
  if (log !== undefined && log.lines.length > 0) {
    rows.push([{ text: ` ${'─'.repeat(Math.max(0, columns - 2))}`, style: muted }])
    rows.push(...log.lines.map((line): Row => [{ text: ` ${printable(line)}`, style: styleOf(theme.text) }]))
  }
  return documentOf(rows)
}

type Column = {
  readonly title: string
  readonly kind: 'job' | 'state' | 'metric' | 'parameter'
  /** How its values rank. */
  readonly rank: Metric
}

const RANK_CELLS = 10
const MOST_COLUMN = 18
/** The first rows decide how wide columns are. */
const WIDTH_ROWS = 500

/** Job and state first, then metrics, then parameters. */
function columnsOf({ metrics, parameters }: Pick<Sweep, 'metrics' | 'parameters'>): readonly Column[] {
  return [
    { title: 'JOB', kind: 'job', rank: { name: 'job' } },
    { title: 'STATE', kind: 'state', rank: { name: 'state' } },
    ...metrics.map((rank): Column => ({ title: printable(rank.name), kind: 'metric', rank })),
    ...parameters.map((name): Column => ({ title: printable(name), kind: 'parameter', rank: { name } })),
  ]
}

function sortedBy(sweep: Sweep, { column }: SweepOrder): number {
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

type SweepInput = {
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
  const hasBars = barOf !== undefined && widths.reduce((sum, width) => sum + width, 1 + RANK_CELLS) <= columns
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
        { text: hasBars ? '·'.repeat(RANK_CELLS - bar) : '', style: muted },
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
    return Math.round((column.rank.isMost === true || most === least ? share : 1 - share) * RANK_CELLS)
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
