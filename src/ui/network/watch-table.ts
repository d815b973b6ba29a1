/** The table of watched hosts: as many columns as fit, the rest of the width for sparklines. Pure. */

import { clip, clipName, padEnd, textWidth } from '../../base/text-width.ts'
import type { Sample } from '../../ops/net/watch/sample.ts'
import type { WatchedHost } from '../../ops/net/watch/watch-hosts.ts'
import { BOLD, INVERSE } from '../../terminal/cells.ts'
import type { Span, Style } from '../compositor/scene.ts'
import type { Row, RowDocument } from '../rows/row-document.ts'
import { mutedStyle, styleOf, type Theme } from '../theme/theme.ts'
import { type Bar, sparkBars } from './traffic-words.ts'
import { COLUMNS, type Column } from './watch-columns.ts'
import { lastOf, type Sort, sortHosts, type WatchView } from './watch-view.ts'

const LEAST_SPARK = 6
const MOST_SPARK = 30
/** A sparkline shows at least the last minute. */
const SPARK_SECONDS = 60
/** From this part of its limit on a value is pointed out. */
const RAISED = 0.8

export function watchTable(hosts: readonly WatchedHost[], view: WatchView, width: number, theme: Theme): RowDocument {
  const order = sortHosts(hosts, view.sort)
  const latest = hosts.flatMap((host) => (host.trouble === undefined ? (lastOf(host) ?? []) : []))
  const nameWidth = Math.min(16, Math.max(5, ...hosts.map(({ host }) => textWidth(host)))) + 2
  const layout = layOut(latest, width - nameWidth)
  const mosts = layout.columns.map((column) => mostOf(column, hosts))
  return {
    head: [headRow(layout, nameWidth, view.sort, theme)],
    length: order.length,
    row(index) {
      const host = order[index]
      return host === undefined
        ? []
        : hostRow(host, { ...layout, mosts, nameWidth, width, isSelected: host.host === view.selected, theme })
    },
  }
}

type Layout = {
  readonly columns: readonly Column[]
  /** Those of them that have a sparkline. */
  readonly sparks: ReadonlySet<Column>
  readonly sparkWidth: number
}

/** First the columns with the sparklines that they always have, then the other sparklines, then the width of all of these. */
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

/** A whole bar: the most of what the sparklines may show. */
function mostOf({ spark }: Column, hosts: readonly WatchedHost[]): number {
  if (spark === undefined) return 1
  if (spark.most !== undefined) return spark.most
  let most = 1
  for (const { samples } of hosts) {
    for (let index = Math.max(0, samples.length - SPARK_SECONDS); index < samples.length; index += 1) {
      const sample = samples[index]
      if (sample !== undefined) most = Math.max(most, spark.value(sample) ?? 0)
    }
  }
  return most
}

function headRow({ columns, sparks, sparkWidth }: Layout, nameWidth: number, sort: Sort, theme: Theme): Row {
  const plain = styleOf(theme.muted, undefined, BOLD)
  const chosen = styleOf(theme.accent, undefined, BOLD)
  const mark = (isChosen: boolean, title: string) => `${isChosen ? '▾' : ' '}${title}`
  // Only once: it is the same of all.
  let span = sparkWidth < 8 ? '' : ` −${sparkWidth * stepOf(sparkWidth)}s`
  return [
    { text: padEnd(mark(sort === 'host', 'HOST'), nameWidth), style: sort === 'host' ? chosen : plain },
    ...columns.flatMap((column): Span[] => {
      const isChosen = column.sort === sort
      const title = { text: mark(isChosen, column.title).padStart(column.width), style: isChosen ? chosen : plain }
      if (!sparks.has(column)) return [title]
      const over = { text: padEnd(span, sparkWidth + 1), style: mutedStyle(theme) }
      span = ''
      return [title, over]
    }),
  ]
}

/** Samples a column of a sparkline. */
const stepOf = (sparkWidth: number): number => Math.max(1, Math.ceil(SPARK_SECONDS / sparkWidth))

type RowLook = Layout & {
  readonly mosts: readonly number[]
  readonly nameWidth: number
  readonly width: number
  readonly isSelected: boolean
  readonly theme: Theme
}

function hostRow(host: WatchedHost, look: RowLook): Row {
  const { columns, mosts, sparks, sparkWidth, nameWidth, width, isSelected, theme } = look
  const name: Span = {
    text: padEnd(`${isSelected ? '▸' : ' '}${clipName(host.host, nameWidth - 2)}`, nameWidth),
    style: isSelected
      ? styleOf(theme.accent, undefined, BOLD | (theme.name === 'none' ? INVERSE : 0))
      : host.isOwn === true
        ? mutedStyle(theme)
        : styleOf(theme.text),
  }
  const sample = lastOf(host)
  if (host.trouble !== undefined || sample === undefined) {
    const words = host.trouble ?? 'waiting for the first seconds'
    const style = host.trouble === undefined ? mutedStyle(theme) : styleOf(theme.danger)
    return lit([name, { text: clip(words, width - nameWidth), style }], look)
  }
  const step = stepOf(sparkWidth)
  const row = columns.flatMap((column, index): Span[] => {
    const text = column.text(sample)
    const rank = rankOf(column.value?.(sample), column.limit)
    const value: Span = {
      text: `${text ?? '–'}${rank === 'high' ? '!' : ''}`.padStart(column.width),
      style: valueStyle(text, rank, theme),
    }
    const { spark } = column
    if (spark === undefined || !sparks.has(column)) return [value]
    const bars = sparkBars(host.samples, spark.value, { columns: sparkWidth, step, most: mosts[index] ?? 1 })
    return [value, { text: ' ', style: styleOf(theme.text) }, ...barSpans(bars, column, theme)]
  })
  return lit([name, ...row], look)
}

/** The chosen host's whole row stands out. */
function lit(row: Row, { isSelected, width, theme }: RowLook): Row {
  if (!isSelected || theme.bar === undefined) return row
  const { background } = styleOf(undefined, theme.bar)
  const used = row.reduce((sum, { text }) => sum + textWidth(text), 0)
  const rest = { text: ' '.repeat(Math.max(0, width - used)), style: styleOf(undefined, theme.bar) }
  return [...row.map(({ text, style }) => ({ text, style: { ...style, background } })), rest]
}

type Rank = 'usual' | 'raised' | 'high'

function rankOf(value: number | undefined, limit: number | undefined): Rank {
  if (value === undefined || limit === undefined || value < RAISED * limit) return 'usual'
  return value < limit ? 'raised' : 'high'
}

/** Each bar in the colour of what it stands for, neighbours of one colour together. */
function barSpans(bars: readonly Bar[], { spark, limit }: Column, theme: Theme): Span[] {
  const spans: { text: string; style: Style }[] = []
  let before: Rank | undefined
  for (const { text, mean } of bars) {
    const rank = spark?.most === undefined ? 'usual' : rankOf(mean, limit)
    const last = spans.at(-1)
    if (last !== undefined && rank === before) last.text += text
    else {
      const usual = spark?.isOut === true ? theme.receiving : theme.accent
      const colour = rank === 'high' ? theme.danger : rank === 'raised' ? theme.warning : usual
      spans.push({ text, style: styleOf(colour) })
    }
    before = rank
  }
  return spans
}

function valueStyle(text: string | undefined, rank: Rank, theme: Theme): Style {
  if (rank === 'high') return styleOf(theme.danger, undefined, BOLD)
  if (rank === 'raised') return styleOf(theme.warning)
  return text === undefined || text === '0' || text === '0%' ? mutedStyle(theme) : styleOf(theme.text)
}
