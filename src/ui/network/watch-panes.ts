/** The watched hosts as panes: the table with charts where they fit, or one host with all its charts. Pure. */
import { isRealCard, type Sample } from '../../ops/net/watch/sample.ts'
import type { WatchedHost } from '../../ops/net/watch/watch-hosts.ts'
import { mutedStyle, type PaneView, type Rect, type Span, styleOf, type Theme } from '../compositor/scene.ts'
import { centredOn, documentOf, percentOf, type Row, rowsPane, shortAmount, splitRows } from '../rows/rows-pane.ts'
import { allHosts, chartCount, chartPlaces, type HostChartContext, hostCharts } from './watch-charts.ts'
import { watchTable } from './watch-table.ts'
import { lastOf, NO_SAMPLES, sortHosts, swapPart, type WatchView } from './watch-view.ts'

export type WatchContext = HostChartContext & {
  readonly rect: Rect
  /** Shows that the tab records or replays. */
  readonly badge?: Span
  /** A click in the table. */
  select?(host: string): void
}

const ID = ' network'
const INFO_ROWS = 7
const LEAST_CHART_ROWS = 9
/** From this height on there are two rows of charts. */
const TALL_ROWS = 28
const CHART_COLUMNS = 40

export function watchPanes(hosts: readonly WatchedHost[], view: WatchView, context: WatchContext): readonly PaneView[] {
  const chosen = hosts.find(({ host }) => host === view.selected)
  if (view.isDetailed && chosen !== undefined) return detailPanes(chosen, context)
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
  { rect, theme, badge, select }: WatchContext,
): PaneView {
  const others = hosts.filter(({ isOwn }) => isOwn !== true)
  const latest = others.flatMap((host) => (host.trouble === undefined ? (lastOf(host) ?? []) : []))
  const sum = (pick: (sample: Sample) => number) => shortAmount(latest.reduce((all, sample) => all + pick(sample), 0))
  const silent = others.length - latest.length
  const title = [
    `${latest.length} of ${others.length} hosts`,
    ...(silent > 0 ? [`${silent} silent`] : []),
    `in ${sum(({ receivedBytes = 0 }) => receivedBytes)}B/s`,
    `out ${sum(({ sentBytes = 0 }) => sentBytes)}B/s`,
  ].join(' · ')
  const document = watchTable(hosts, view, rect.width - 2, theme)
  const order = sortHosts(hosts, view.sort)
  const selected = order.findIndex(({ host }) => host === view.selected)
  const place = centredOn(selected, rect.height, document)
  const list = { select: (row: number) => select?.(order[row]?.host ?? '') }
  return rowsPane({ id: ID, title, hasKeys: true, badges: badge ? [badge] : [], document, place, rect, theme, list })
}

/** Charts above a few lines of text. */
function detailPanes(host: WatchedHost, context: WatchContext): readonly PaneView[] {
  const { rect, theme, badge } = context
  const sample = lastOf(host)
  const info = Math.min(INFO_ROWS + (sample?.gpus.length ?? 0), Math.max(3, rect.height - 16))
  const [charts, below] = splitRows(rect, rect.height - info)
  const columns = chartCount(host) > 4 && rect.width >= 3 * CHART_COLUMNS ? 3 : 2
  return [
    ...hostCharts(host, chartPlaces(charts, columns, 2), context),
    rowsPane({
      id: ID,
      title: host.isOwn === true ? 'this machine' : host.host,
      document: documentOf(infoRows(host, sample, theme)),
      badges: badge ? [badge] : [],
      rect: below,
      theme,
      hasKeys: true,
    }),
  ]
}

function infoRows({ trouble }: WatchedHost, sample: Sample | undefined, theme: Theme): readonly Row[] {
  const bytes = (value: number) => `${shortAmount(value)}B`
  const row = (...parts: readonly (string | undefined)[]): Row => [
    { text: parts.filter((part) => part !== undefined).join(' · '), style: styleOf(theme.text) },
  ]
  const failure: Row[] = trouble === undefined ? [] : [[{ text: trouble, style: styleOf(theme.danger) }]]
  if (sample === undefined) return [...failure, [{ text: NO_SAMPLES, style: mutedStyle(theme) }]]
  const { cores, load, nfs, fullest, upSeconds, swapBytes } = sample
  const swap = `swap ${percentOf(swapPart(sample))} of ${bytes(swapBytes)}, ${Math.round(sample.swapped ?? 0)} pages/s`
  const cards = sample.cards.filter(
    ({ name, receivedBytes, sentBytes }) => isRealCard(name) || (name !== 'lo' && receivedBytes + sentBytes > 0),
  )
  return [
    ...failure,
    row(
      `CPU ${percentOf(sample.cpu)} of ${cores} cores`,
      load === undefined ? undefined : `load ${load.toFixed(2)}`,
      `memory ${bytes(sample.memoryUsedBytes)} of ${bytes(sample.memoryBytes)}`,
      swapBytes === 0 ? 'no swap' : swap,
      upSeconds === undefined ? undefined : `up ${formatUp(upSeconds)}`,
    ),
    ...sample.gpus.map(({ id, name, busy, usedBytes, totalBytes, celsius, watts, processes = [] }) =>
      row(
        `GPU ${id} ${name}`,
        busy === undefined ? 'use unknown' : percentOf(busy),
        usedBytes === undefined || totalBytes === undefined ? undefined : `${bytes(usedBytes)} of ${bytes(totalBytes)}`,
        celsius === undefined ? undefined : `${celsius} °C`,
        watts === undefined ? undefined : `${Math.round(watts)} W`,
        processes.length === 0 ? undefined : `processes ${processes.join(' ')}`,
      ),
    ),
    ...(nfs === undefined
      ? []
      : [
          row(
            `NFS read ${bytes(nfs.readBytes)}/s`,
            `written ${bytes(nfs.writtenBytes)}/s`,
            `${Math.round(nfs.operations)} requests/s${nfs.roundTripMs === undefined ? '' : `, ${nfs.roundTripMs.toFixed(1)} ms each`}`,
          ),
        ]),
    row(...cards.map((card) => `${card.name} in ${bytes(card.receivedBytes)}/s, out ${bytes(card.sentBytes)}/s`)),
    ...(fullest === undefined ? [] : [row(`fullest file system ${fullest.point} ${percentOf(fullest.used)}`)]),
  ]
}

/** `3 d 4 h`, `12 min` */
function formatUp(seconds: number): string {
  const [days = 0, hours = 0, minutes = 0] = [seconds / 86_400, (seconds / 3600) % 24, (seconds / 60) % 60].map(
    Math.floor,
  )
  if (days > 0) return `${days} d ${hours} h`
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min`
}
