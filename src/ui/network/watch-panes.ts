/** The watched hosts as panes: the table with charts where they fit, or one host with all its charts. Pure. */
import { formatBytes } from '../../base/format-bytes.ts'
import { printable } from '../../base/printable.ts'
import { textWidth } from '../../base/text-width.ts'
import { ageText } from '../../base/time-text.ts'
import type { WatchedProcesses } from '../../ops/net/watch/processes.ts'
import { isRealCard, type Sample } from '../../ops/net/watch/sample.ts'
import type { WatchedHost } from '../../ops/net/watch/watch-hosts.ts'
import { mutedStyle, type PaneView, type Rect, type Span, type Style, styleOf } from '../compositor/scene.ts'
import {
  centredOn,
  documentOf,
  percentOf,
  type Row,
  rowsPane,
  shortAmount,
  shortMemory,
  splitRows,
} from '../rows/rows-pane.ts'
import { orderText, type TableView } from '../rows/table-view.ts'
import { PROCESSES, processColumns, processTable, shownProcesses } from './process-table.ts'
import { allHosts, chartCount, chartPlaces, type HostChartContext, hostCharts, isOld } from './watch-charts.ts'
import { HOSTS, hostColumns, NAME, shownHosts } from './watch-columns.ts'
import { watchTable } from './watch-table.ts'
import { lastOf, NO_SAMPLES, swapPart, type WatchView } from './watch-view.ts'

export type WatchContext = HostChartContext & {
  readonly rect: Rect
  /** Shows that the tab records or replays. */
  readonly badge?: Span
  readonly tables: { readonly hosts: TableView; readonly processes: TableView }
  /** Undefined: those of this host are not known here, as in a recording. */
  readonly processes?: WatchedProcesses | undefined
  /** A click in a table. */
  select?(chosen: Partial<WatchView>): void
}

const LEAST_CHART_ROWS = 9
/** From this height on there are two rows of charts. */
const TALL_ROWS = 28
const CHART_COLUMNS = 40

export function watchPanes(hosts: readonly WatchedHost[], view: WatchView, context: WatchContext): readonly PaneView[] {
  const chosen = hosts.find(({ host }) => host === view.selected)
  if (view.isDetailed && chosen !== undefined) return hostPanes(chosen, view, context)
  const { rect } = context
  // What the table with its frame and heading leaves free.
  const rest = rect.height - hosts.length - 3
  if (rest < LEAST_CHART_ROWS || rect.width < CHART_COLUMNS) return [tablePane(hosts, view, context)]
  const shown = chosen ?? allHosts(hosts)
  const rows = rest < TALL_ROWS ? 1 : 2
  const columns = Math.min(Math.floor(rect.width / CHART_COLUMNS), Math.ceil(chartCount(shown) / rows))
  const [table, below] = splitRows(rect, rect.height - rest)
  return [
    ...hostCharts(shown, chartPlaces(below, columns, rows), { ...context, of: shown.host }),
    tablePane(hosts, view, { ...context, rect: table }),
  ]
}

function tablePane(
  hosts: readonly WatchedHost[],
  view: WatchView,
  { rect, theme, badge, select, tables }: WatchContext,
): PaneView {
  const others = hosts.filter(({ isOwn }) => isOwn !== true)
  const latest = others.flatMap((host) => (host.trouble === undefined ? (lastOf(host) ?? []) : []))
  const sum = (pick: (sample: Sample) => number) => shortAmount(latest.reduce((all, sample) => all + pick(sample), 0))
  // One that has not answered yet is not silent.
  const silent = others.filter(({ trouble }) => trouble !== undefined).length
  const title = [
    `${latest.length} of ${others.length} hosts`,
    ...(silent > 0 ? [`${silent} silent`] : []),
    `in ${sum(({ receivedBytes = 0 }) => receivedBytes)}B/s`,
    `out ${sum(({ sentBytes = 0 }) => sentBytes)}B/s`,
  ].join(' · ')
  const document = watchTable(hosts, { ...view, view: tables.hosts, width: rect.width - 2, theme })
  const order = shownHosts(hosts, tables.hosts)
  const selected = order.findIndex(({ host }) => host === view.selected)
  return rowsPane({
    id: HOSTS,
    title,
    hasKeys: true,
    badges: badge ? [badge] : [],
    document,
    table: {
      view: tables.hosts,
      noun: 'host',
      all: hosts.length,
      order: orderText(tables.hosts, hostColumns, NAME),
    },
    place: centredOn(selected, rect.height, document),
    rect,
    theme,
    list: { select: (row) => select?.({ selected: order[row]?.host }) },
  })
}

/** Below this height there is one row of charts, so that the processes have room. */
const TALL_PAGE_ROWS = 34
const SHORT_CHART_ROWS = 8

/** Charts above the processes, or above a few lines of text where the processes are not known. */
function hostPanes(host: WatchedHost, view: WatchView, context: WatchContext): readonly PaneView[] {
  const { rect, processes } = context
  if (processes === undefined || host.isOwn === true) {
    const most = Math.max(3, rect.height - 16)
    const infoWith = (gpuRows: number) => infoRows(host, lastOf(host), { columns: rect.width - 2, gpuRows }, context)
    const info = infoWith(Math.max(1, most - 1 - infoWith(1).length))
    const [charts, below] = splitRows(rect, rect.height - Math.min(info.length + 3, most))
    return [...pageCharts(host, charts, 2, context), infoPane(host, info, below, context)]
  }
  const isTall = rect.height >= TALL_PAGE_ROWS
  const [charts, below] = splitRows(rect, isTall ? Math.floor(rect.height * 0.45) : SHORT_CHART_ROWS)
  const pane = processPane(host, processes, view, { ...context, rect: below })
  return [...pageCharts(host, charts, isTall ? 2 : 1, context), pane]
}

function pageCharts(host: WatchedHost, rect: Rect, rows: 1 | 2, context: WatchContext): readonly PaneView[] {
  const fitting = Math.max(2, Math.floor(rect.width / CHART_COLUMNS))
  const columns = Math.min(fitting, Math.max(2, Math.ceil(chartCount(host) / rows)))
  return hostCharts(host, chartPlaces(rect, columns, rows), context)
}

function infoPane(host: WatchedHost, rows: readonly Row[], rect: Rect, { theme, badge }: WatchContext): PaneView {
  const title = host.isOwn === true ? 'this machine' : host.host
  const badges = badge ? [badge] : []
  return rowsPane({ id: HOSTS, title, document: documentOf(rows), badges, rect, theme, hasKeys: true })
}

function processPane(host: WatchedHost, watched: WatchedProcesses, view: WatchView, context: WatchContext): PaneView {
  const { rect, theme, badge, tables, nowMs, select } = context
  const { last, trouble } = watched
  const sample = lastOf(host)
  const own = { id: PROCESSES, badges: badge ? [badge] : [], rect, theme, hasKeys: true }
  const isLow = rect.height < 20
  // GPUs leave room for processes.
  const room = { columns: rect.width - 2, gpuRows: isLow ? 2 : Math.floor((rect.height - 2) / 2), isLow }
  const info = infoRows(host, sample, room, context)
  const say = (text: string, style: Style): Row => [{ text, style }]
  const failed = trouble === undefined ? [] : [say(`processes: ${trouble}`, styleOf(theme.danger))]
  if (last === undefined) {
    const waiting = trouble === undefined && host.trouble === undefined ? [say(NO_SAMPLES, mutedStyle(theme))] : failed
    return rowsPane({ ...own, title: `${host.host} · processes`, document: documentOf([...info, ...waiting]) })
  }
  const rows = shownProcesses(watched, sample, tables.processes)
  const head = [...info, ...failed]
  const table = { view: tables.processes, pid: view.pid, columns: rect.width - 2, theme, head }
  const document = processTable(last, rows, table)
  const selected = rows.findIndex(({ pid }) => pid === view.pid)
  const count = `${last.isCut ? 'first ' : ''}${last.processes.length} processes`
  return rowsPane({
    ...own,
    title: [host.host, count, ...(isOld(last, nowMs) ? [`${ageText(nowMs - last.atMs)} old`] : [])].join(' · '),
    document,
    table: {
      view: tables.processes,
      noun: 'process',
      all: last.processes.length,
      order: orderText(tables.processes, processColumns),
    },
    place: centredOn(Math.max(0, selected), rect.height, document),
    list: { select: (row) => select?.({ pid: rows[row]?.pid }) },
  })
}

/** `isLow`: only the host itself and its GPUs. */
type InfoRoom = { readonly columns: number; readonly gpuRows: number; readonly isLow?: boolean }

const BETWEEN = ' · '
const rate = (bytes: number): string => `${shortAmount(bytes)}B/s`

function infoRows(
  { trouble }: WatchedHost,
  sample: Sample | undefined,
  { columns, gpuRows, isLow }: InfoRoom,
  { theme, nowMs }: WatchContext,
): readonly Row[] {
  const isPast = sample !== undefined && isOld(sample, nowMs)
  const row = (...parts: Line): Row => [
    {
      text: parts.filter((part) => part !== undefined).join(BETWEEN),
      style: isPast ? mutedStyle(theme) : styleOf(theme.text),
    },
  ]
  const failure: Row[] = trouble === undefined ? [] : [[{ text: trouble, style: styleOf(theme.danger) }]]
  if (sample === undefined) return [...failure, [{ text: NO_SAMPLES, style: mutedStyle(theme) }]]
  const { cores, load, nfs, fullest, upSeconds, swapBytes } = sample
  const swap = `swap ${percentOf(swapPart(sample))} of ${formatBytes(swapBytes)}, ${Math.round(sample.swapped ?? 0)} pages/s`
  const cards = sample.cards.filter(
    ({ name, receivedBytes, sentBytes }) => isRealCard(name) || (name !== 'lo' && receivedBytes + sentBytes > 0),
  )
  const own = [
    ...failure,
    row(
      isPast ? `${ageText(nowMs - sample.atMs)} ago` : undefined,
      `CPU ${percentOf(sample.cpu)} of ${cores} cores`,
      load === undefined ? undefined : `load ${load.toFixed(2)}`,
      `memory ${formatBytes(sample.memoryUsedBytes)} of ${formatBytes(sample.memoryBytes)}`,
      swapBytes === 0 ? 'no swap' : swap,
      upSeconds === undefined ? undefined : `up ${formatUp(upSeconds)}`,
    ),
    ...gpuLines(sample.gpus, columns, gpuRows).map((parts) => row(...parts)),
  ]
  if (isLow === true) return own
  return [
    ...own,
    ...(nfs === undefined
      ? []
      : [
          row(
            `NFS read ${rate(nfs.readBytes)}`,
            `written ${rate(nfs.writtenBytes)}`,
            `${Math.round(nfs.operations)} requests/s${nfs.roundTripMs === undefined ? '' : `, ${nfs.roundTripMs.toFixed(1)} ms each`}`,
          ),
        ]),
    row(...cards.map((card) => `${printable(card.name)} in ${rate(card.receivedBytes)}, out ${rate(card.sentBytes)}`)),
    ...(fullest === undefined
      ? []
      : [row(`fullest file system ${printable(fullest.point)} ${percentOf(fullest.used)}`)]),
  ]
}

type Line = readonly (string | undefined)[]

/** A line for each GPU, or if these are too many, several in a line. */
function gpuLines(sampled: Sample['gpus'], columns: number, most: number): readonly Line[] {
  // Its width counts as it is shown.
  const gpus = sampled.map((gpu) => ({ ...gpu, name: printable(gpu.name) }))
  if (gpus.length <= most) return gpus.map(gpuLine)
  const [name, ...others] = new Set(gpus.map((gpu) => gpu.name))
  const title = `${gpus.length} GPUs${others.length === 0 ? ` ${name}` : ''}`
  const cells = gpus.map(({ id, busy, usedBytes }) =>
    [`${id}:`, busy === undefined ? '–' : percentOf(busy), usedBytes === undefined ? '' : shortMemory(usedBytes)]
      .filter(Boolean)
      .join(' '),
  )
  for (let count = cells.length; ; count -= 1) {
    const rest = count === cells.length ? [] : [`… ${cells.length - count} more`]
    const lines = packed([title, ...cells.slice(0, count), ...rest], columns)
    if (lines.length <= most || count === 0) return lines
  }
}

const gpuLine = ({
  id,
  name,
  busy,
  usedBytes,
  totalBytes,
  celsius,
  watts,
  processes = [],
}: Sample['gpus'][0]): Line => [
  `GPU ${id} ${name}`,
  busy === undefined ? 'use unknown' : percentOf(busy),
  usedBytes === undefined || totalBytes === undefined
    ? undefined
    : `${formatBytes(usedBytes)} of ${formatBytes(totalBytes)}`,
  celsius === undefined ? undefined : `${celsius} °C`,
  watts === undefined ? undefined : `${Math.round(watts)} W`,
  processes.length === 0 ? undefined : `processes ${processes.join(' ')}`,
]

/** As many in each line as fit. */
function packed(parts: readonly string[], columns: number): readonly Line[] {
  const lines: string[][] = []
  for (const part of parts) {
    const last = lines.at(-1)
    if (last !== undefined && textWidth([...last, part].join(BETWEEN)) <= columns) last.push(part)
    else lines.push([part])
  }
  return lines
}

/** `3 d 4 h`, `12 min` */
function formatUp(seconds: number): string {
  const [days = 0, hours = 0, minutes = 0] = [seconds / 86_400, (seconds / 3600) % 24, (seconds / 60) % 60].map(
    Math.floor,
  )
  if (days > 0) return `${days} d ${hours} h`
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min`
}
