/** The host table: as many columns as fit, the rest of the width for sparklines. Pure. */
import { clip, clipName, padEnd, partsWidth, textWidth } from '../../base/text-width.ts'
import type { Sample } from '../../ops/net/watch/sample.ts'
import type { WatchedHost } from '../../ops/net/watch/watch-hosts.ts'
import { boldStyle, mutedStyle, type Span, type Style, styleOf, type Theme } from '../compositor/scene.ts'
import { type Row, type RowDocument, rowStyle } from '../rows/rows-pane.ts'
import { sortMark, type TableView } from '../rows/table-view.ts'
import { COLUMNS, type Column, insteadOfValues, shownHosts } from './watch-columns.ts'
import { lastOf } from './watch-view.ts'

const LEAST_SPARK = 6
const MOST_SPARK = 30
/** A sparkline covers at least the last minute. */
const SPARK_SECONDS = 60
/** From this part of its limit on a value has the warning colour. */
const RAISED = 0.8

export type WatchTableContext = {
  readonly view: TableView
  readonly selected: string | undefined
  readonly marked?: ReadonlySet<string>
  readonly width: number
  readonly theme: Theme
}

export function watchTable(hosts: readonly WatchedHost[], context: WatchTableContext): RowDocument {
  const { view, selected, marked, width, theme } = context
  const order = shownHosts(hosts, view)
  const latest = hosts.flatMap((host) => (host.trouble === undefined ? (lastOf(host) ?? []) : []))
  const nameWidth = Math.min(16, Math.max(5, ...hosts.map(({ host }) => textWidth(host)))) + 2
  const layout = layOut(latest, width - nameWidth)
  const newestMs = Math.max(0, ...latest.map(({ atMs }) => atMs))
  const mosts = layout.columns.map((column) => mostOf(column, hosts, newestMs))
  return {
    head: [headRow(layout, nameWidth, view, theme)],
    length: order.length,
    row(index) {
      const host = order[index]
      if (host === undefined) return []
      return hostRow(host, {
        ...layout,
        mosts,
        newestMs,
        nameWidth,
        width,
        isSelected: host.host === selected,
        isMarked: marked?.has(host.host) === true,
        theme,
      })
    },
  }
}

type Layout = {
  readonly columns: readonly Column[]
  /** Those with a sparkline. */
  readonly sparks: ReadonlySet<Column>
  readonly sparkWidth: number
}

/** Columns first, with their own sparklines; then the extra sparklines; then wider ones. */
function layOut(latest: readonly Sample[], room: number): Layout {
  const wanted = COLUMNS.filter(({ has }) => has === undefined || latest.some(has))
  const columns: Column[] = []
  const sparks = new Set<Column>()
  let used = 0
  for (const column of wanted) {
    const hasSpark = column.spark !== undefined && column.spark.isExtra !== true
    const need = column.width + (hasSpark ? LEAST_SPARK + 1 : 0)
    if (used + need > room) break
    columns.push(column)
    if (hasSpark) sparks.add(column)
    used += need
  }
  for (const column of columns) {
    if (column.spark?.isExtra !== true || used + LEAST_SPARK + 1 > room) continue
    sparks.add(column)
    used += LEAST_SPARK + 1
  }
  const spare = sparks.size === 0 ? 0 : Math.floor((room - used) / sparks.size)
  return { columns, sparks, sparkWidth: Math.min(MOST_SPARK, LEAST_SPARK + Math.max(0, spare)) }
}

/** The value of a full bar. */
function mostOf({ spark }: Column, hosts: readonly WatchedHost[], newestMs: number): number {
  if (spark === undefined) return 1
  if (spark.most !== undefined) return spark.most
  // Runs for every column once a second: no arrays are made.
  let most = 1
  for (const { samples } of hosts) {
    for (let index = samples.length - 1; index >= 0; index -= 1) {
      const sample = samples[index] as Sample
      if (sample.atMs <= newestMs - SPARK_SECONDS * 1000) break
      most = Math.max(most, spark.value(sample) ?? 0)
    }
  }
  return most
}

function headRow({ columns, sparks, sparkWidth }: Layout, nameWidth: number, view: TableView, theme: Theme): Row {
  const plain = boldStyle(theme.muted)
  const chosen = boldStyle(theme.accent)
  const heading = (title: string, pad: (text: string) => string): Span => {
    const mark = sortMark(view, { title, isDescending: title !== 'HOST' }, 'HOST')
    return { text: pad(`${title}${mark}`), style: mark === '' ? plain : chosen }
  }
  // Above the first sparkline only: all cover the same time.
  let span = sparkWidth < 8 ? '' : `, ${sparkWidth * stepOf(sparkWidth)} s`
  return [
    heading('HOST', (text) => padEnd(` ${text}`, nameWidth)),
    ...columns.flatMap((column): Span[] => {
      const title = heading(column.title, (text) => text.padStart(column.width))
      if (!sparks.has(column)) return [title]
      const over = { text: padEnd(span, sparkWidth + 1), style: mutedStyle(theme) }
      span = ''
      return [title, over]
    }),
  ]
}

/** Seconds of a column of a sparkline. */
const stepOf = (sparkWidth: number): number => Math.max(1, Math.ceil(SPARK_SECONDS / sparkWidth))

type HostRowContext = Layout & {
  readonly mosts: readonly number[]
  readonly newestMs: number
  readonly nameWidth: number
  readonly width: number
  readonly isSelected: boolean
  readonly isMarked: boolean
  readonly theme: Theme
}

function hostRow(host: WatchedHost, context: HostRowContext): Row {
  const { columns, mosts, newestMs, sparks, sparkWidth, nameWidth, width, isSelected, isMarked, theme } = context
  const name: Span = {
    text: padEnd(`${isMarked ? '●' : isSelected ? '▸' : ' '}${clipName(host.host, nameWidth - 2)}`, nameWidth),
    style: host.isOwn === true && !isSelected ? mutedStyle(theme) : rowStyle(theme, isSelected),
  }
  const sample = lastOf(host)
  if (host.trouble !== undefined || sample === undefined) {
    const style = host.trouble === undefined ? mutedStyle(theme) : styleOf(theme.danger)
    return highlighted([name, { text: clip(insteadOfValues(host), width - nameWidth), style }], context)
  }
  const stepMs = stepOf(sparkWidth) * 1000
  const row = columns.flatMap((column, index): Span[] => {
    const text = column.text(sample)
    const rank = rankOf(column.value?.(sample), column.limit)
    const value: Span = {
      text: cellText(text ?? '–', rank === 'high' ? '!' : '', column.width),
      style: valueStyle(text, rank, theme),
    }
    const { spark } = column
    if (spark === undefined || !sparks.has(column)) return [value]
    const bars = sparkBars(host.samples, spark.value, {
      columns: sparkWidth,
      stepMs,
      newestMs,
      most: mosts[index] ?? 1,
    })
    const blank = (width: number) => ({ text: ' '.repeat(width), style: styleOf(theme.text) })
    // Not known on this host at all.
    if (text === undefined && bars.every(({ mean }) => mean === undefined)) return [value, blank(sparkWidth + 1)]
    return [value, blank(1), ...barSpans(bars, column, theme)]
  })
  return highlighted([name, ...row], context)
}

/** `mark` follows the text. What a host makes too wide is cut, and stays apart from the column before. */
function cellText(text: string, mark: string, width: number): string {
  const isTooWide = textWidth(text + mark) > width
  return ((isTooWide ? clip(text, width - 1 - mark.length) : text) + mark).padStart(width)
}

/** The whole row of the selected host has the colour of the bar behind it. */
function highlighted(row: Row, { isSelected, width, theme }: HostRowContext): Row {
  if (!isSelected || theme.bar === undefined) return row
  const bar = styleOf(undefined, theme.bar)
  const rest = { text: ' '.repeat(Math.max(0, width - partsWidth(row))), style: bar }
  return [...row.map(({ text, style }) => ({ text, style: { ...style, background: bar.background } })), rest]
}

type Rank = 'usual' | 'raised' | 'high'

function rankOf(value: number | undefined, limit: number | undefined): Rank {
  if (value === undefined || limit === undefined || value < RAISED * limit) return 'usual'
  return value < limit ? 'raised' : 'high'
}

/** Each bar in the colour of its value; neighbours of one colour become one span. */
function barSpans(bars: readonly Bar[], { spark, limit }: Column, theme: Theme): Span[] {
  const spans: { text: string; style: Style }[] = []
  let before: Rank | 'unknown' | undefined
  for (const { text, mean } of bars) {
    const rank = mean === undefined ? 'unknown' : spark?.most === undefined ? 'usual' : rankOf(mean, limit)
    const last = spans.at(-1)
    if (last !== undefined && rank === before) last.text += text
    else {
      const usual = spark?.isOut === true ? theme.receiving : theme.accent
      const colour = { high: theme.danger, raised: theme.warning, usual, unknown: theme.muted }[rank]
      spans.push({ text, style: styleOf(colour) })
    }
    before = rank
  }
  return spans
}

function valueStyle(text: string | undefined, rank: Rank, theme: Theme): Style {
  if (rank === 'high') return boldStyle(theme.danger)
  if (rank === 'raised') return styleOf(theme.warning)
  return text === undefined || text === '0' || text === '0%' ? mutedStyle(theme) : styleOf(theme.text)
}

const BARS = '▁▂▃▄▅▆▇█'

/** One column of a sparkline: the mean of its values; undefined: nothing is known there. */
type Bar = { readonly text: string; readonly mean: number | undefined }

const UNKNOWN: Bar = { text: '·', mean: undefined }
/** A sample may be this late without a mark. */
const LATE_MS = 3000

export type SparkOptions = {
  readonly columns: number
  /** Of a column. */
  readonly stepMs: number
  /** In the last column. */
  readonly newestMs: number
  /** The value of a full bar. */
  readonly most: number
}

/** The values of the last time, as many as there are columns; a time of which nothing is known is dotted. */
export function sparkBars<T extends { readonly atMs: number }>(
  samples: readonly T[],
  pick: (sample: T) => number | undefined,
  { columns, stepMs, newestMs, most }: SparkOptions,
): readonly Bar[] {
  // Runs for every host and column once a second: one array is made.
  const bars = new Array<Bar>(columns).fill(UNKNOWN)
  const first = Math.floor(newestMs / stepMs) - columns + 1
  let index = samples.length
  while (index > 0 && (samples[index - 1] as T).atMs >= first * stepMs) index -= 1
  let last = UNKNOWN
  let lastMs = Number.NEGATIVE_INFINITY
  for (let column = 0; column < columns; column += 1) {
    const beginMs = (first + column) * stepMs
    let sum = 0
    let known = 0
    for (; index < samples.length && (samples[index] as T).atMs < beginMs + stepMs; index += 1) {
      const value = pick(samples[index] as T)
      if (value === undefined) continue
      sum += value
      known += 1
      lastMs = (samples[index] as T).atMs
    }
    const level = Math.round((sum / known / (most || 1)) * 7)
    if (known > 0) last = { text: BARS[Math.max(0, Math.min(7, level))] ?? ' ', mean: sum / known }
    if (beginMs - lastMs <= LATE_MS) bars[column] = last
  }
  return bars
}
