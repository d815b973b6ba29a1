/** The table of watched hosts: as many columns as fit, the rest of the width for sparklines. Pure. */
import type { Sample } from '../../ops/net/watch/sample.ts'
import type { WatchedHost } from '../../ops/net/watch/watch-hosts.ts'
import { BOLD, INVERSE } from '../../terminal/cells.ts'
import type { Span, Style } from '../compositor/compositor.ts'
import type { Row, RowDocument } from '../rows/row-document.ts'
import { clip, padEnd, textWidth } from '../text-width.ts'
import { mutedStyle, styleOf, type Theme } from '../theme/theme.ts'
import { percentOf, shortAmount, sparkline } from './traffic-words.ts'
import {
  gpuBusy,
  gpuHeat,
  gpuMemory,
  LIMITS,
  lastOf,
  memoryPart,
  type Sort,
  sortHosts,
  swapPart,
  trafficOf,
  type WatchView,
} from './watch-view.ts'

type Column = {
  readonly title: string
  readonly width: number
  /** Sorted by it. */
  readonly sort?: Sort
  /** Undefined: not known. */
  text(sample: Sample): string | undefined
  isHigh?(sample: Sample): boolean
  /** Drawn behind it, 0 to `most`; `most` undefined: the most of all hosts. */
  readonly spark?: { value(sample: Sample): number | undefined; readonly most?: number }
  /** Whether the host has it at all; a column that no host has is left out. */
  has?(sample: Sample): boolean
}

const over = (value: number | undefined, limit: number): boolean => value !== undefined && value >= limit
const amount = (value: number | undefined) => (value === undefined ? undefined : shortAmount(value))
const percent = (value: number | undefined) => (value === undefined ? undefined : percentOf(value))

/** In the order of importance. */
const COLUMNS: readonly Column[] = [
  {
    title: 'CPU',
    width: 5,
    sort: 'cpu',
    text: ({ cpu }) => percentOf(cpu),
    isHigh: ({ cpu }) => cpu >= LIMITS.cpu,
    spark: { value: ({ cpu }) => cpu, most: 1 },
  },
  {
    title: 'MEM',
    width: 5,
    sort: 'memory',
    text: (sample) => percentOf(memoryPart(sample)),
    isHigh: (sample) => memoryPart(sample) >= LIMITS.memory,
    spark: { value: memoryPart, most: 1 },
  },
  {
    title: 'GPU',
    width: 5,
    sort: 'gpu',
    text: (sample) => percent(gpuBusy(sample)),
    spark: { value: gpuBusy, most: 1 },
    has: ({ gpus }) => gpus.length > 0,
  },
  {
    title: 'VRAM',
    width: 5,
    text: (sample) => percent(gpuMemory(sample)),
    isHigh: (sample) => over(gpuMemory(sample), LIMITS.gpuMemory),
    has: ({ gpus }) => gpus.length > 0,
  },
  { title: 'IN/s', width: 6, sort: 'network', text: ({ receivedBytes }) => amount(receivedBytes) },
  {
    title: 'OUT/s',
    width: 6,
    text: ({ sentBytes }) => amount(sentBytes),
    spark: { value: trafficOf },
  },
  { title: 'READ/s', width: 7, sort: 'disk', text: ({ readBytes }) => amount(readBytes) },
  {
    title: 'WRITE/s',
    width: 8,
    text: ({ writtenBytes }) => amount(writtenBytes),
    isHigh: ({ diskBusy }) => over(diskBusy, LIMITS.diskBusy),
  },
  {
    title: 'FULL',
    width: 6,
    text: ({ fullest }) => percent(fullest?.used),
    isHigh: ({ fullest }) => over(fullest?.used, LIMITS.full),
  },
  {
    title: 'LOAD',
    width: 6,
    text: ({ load }) => load?.toFixed(load < 100 ? 1 : 0),
    isHigh: ({ load, cores }) => cores > 0 && over(load, 2 * cores),
  },
  {
    title: 'SWAP',
    width: 5,
    text: (sample) => percentOf(swapPart(sample)),
    isHigh: (sample) => swapPart(sample) >= LIMITS.swap,
    has: ({ swapBytes }) => swapBytes > 0,
  },
  {
    title: 'NFS/s',
    width: 6,
    text: ({ nfs }) => nfs && shortAmount(nfs.readBytes + nfs.writtenBytes),
    has: ({ nfs }) => nfs !== undefined,
  },
  { title: 'NFS ms', width: 7, text: ({ nfs }) => nfs?.roundTripMs?.toFixed(1), has: ({ nfs }) => nfs !== undefined },
  {
    title: '°C',
    width: 5,
    text: (sample) => gpuHeat(sample)?.toFixed(0),
    isHigh: (sample) => over(gpuHeat(sample), LIMITS.celsius),
    has: ({ gpus }) => gpus.length > 0,
  },
]

const LEAST_SPARK = 6
const MOST_SPARK = 48
/** A sparkline shows at least the last minute. */
const SPARK_SECONDS = 60

export function watchTable(hosts: readonly WatchedHost[], view: WatchView, width: number, theme: Theme): RowDocument {
  const order = sortHosts(hosts, view.sort)
  const latest = hosts.flatMap((host) => (host.trouble === undefined ? (lastOf(host) ?? []) : []))
  const nameWidth = Math.min(16, Math.max(5, ...hosts.map(({ host }) => textWidth(host)))) + 2
  const { columns, spark } = layOut(latest, width - nameWidth)
  const mosts = columns.map((column) => mostOf(column, latest, hosts))
  return {
    head: [headRow(columns, spark, nameWidth, view.sort, theme)],
    length: order.length,
    row(index) {
      const host = order[index]
      return host === undefined
        ? []
        : hostRow(host, { columns, mosts, spark, nameWidth, width, isSelected: host.host === view.selected, theme })
    },
  }
}

function layOut(latest: readonly Sample[], room: number): { columns: readonly Column[]; spark: number } {
  const wanted = COLUMNS.filter(({ has }) => has === undefined || latest.some(has))
  const columns: Column[] = []
  let used = 0
  for (const column of wanted) {
    const need = column.width + (column.spark === undefined ? 0 : LEAST_SPARK + 1)
    if (used + need > room) break
    columns.push(column)
    used += need
  }
  const sparks = columns.filter(({ spark }) => spark !== undefined).length
  const spare = sparks === 0 ? 0 : Math.floor((room - used) / sparks)
  return { columns, spark: Math.min(MOST_SPARK, LEAST_SPARK + Math.max(0, spare)) }
}

function mostOf({ spark }: Column, latest: readonly Sample[], hosts: readonly WatchedHost[]): number {
  if (spark === undefined) return 1
  if (spark.most !== undefined) return spark.most
  const recent = hosts.flatMap(({ samples }) => samples.slice(-SPARK_SECONDS))
  return [...latest, ...recent].reduce((most, sample) => Math.max(most, spark.value(sample) ?? 0), 1)
}

function headRow(columns: readonly Column[], spark: number, nameWidth: number, sort: Sort, theme: Theme): Row {
  const plain = styleOf(theme.muted, undefined, BOLD)
  const chosen = styleOf(theme.accent, undefined, BOLD)
  const mark = (isChosen: boolean, title: string) => `${isChosen ? '▾' : ' '}${title}`
  return [
    { text: padEnd(mark(sort === 'host', 'HOST'), nameWidth), style: sort === 'host' ? chosen : plain },
    ...columns.flatMap((column): Span[] => {
      const isChosen = column.sort === sort
      const title = { text: mark(isChosen, column.title).padStart(column.width), style: isChosen ? chosen : plain }
      return column.spark === undefined ? [title] : [title, { text: ' '.repeat(spark + 1), style: plain }]
    }),
  ]
}

type RowLook = {
  readonly columns: readonly Column[]
  readonly mosts: readonly number[]
  readonly spark: number
  readonly nameWidth: number
  readonly width: number
  readonly isSelected: boolean
  readonly theme: Theme
}

function hostRow(host: WatchedHost, look: RowLook): Row {
  const { columns, mosts, spark, nameWidth, width, isSelected, theme } = look
  const name: Span = {
    text: padEnd(clip(`${isSelected ? '▸' : ' '}${host.host}`, nameWidth - 1), nameWidth),
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
    return [name, { text: clip(words, width - nameWidth), style }]
  }
  const step = Math.max(1, Math.ceil(SPARK_SECONDS / spark))
  const recent = host.samples.slice(-step * spark)
  return [
    name,
    ...columns.flatMap((column, index): Span[] => {
      const text = column.text(sample)
      const isHigh = column.isHigh?.(sample) === true
      const value: Span = {
        text: `${text ?? '–'}${isHigh ? '!' : ''}`.padStart(column.width),
        style: valueStyle(text, isHigh, theme),
      }
      const { spark: line } = column
      if (line === undefined) return [value]
      const bars = sparkline(recent.map(line.value), spark, step, mosts[index] ?? 1)
      return [value, { text: ` ${bars}`, style: isHigh ? styleOf(theme.danger) : styleOf(theme.accent) }]
    }),
  ]
}

function valueStyle(text: string | undefined, isHigh: boolean, theme: Theme): Style {
  if (isHigh) return styleOf(theme.danger, undefined, BOLD)
  return text === undefined || text === '0' ? mutedStyle(theme) : styleOf(theme.text)
}
