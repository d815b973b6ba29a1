/** The watched hosts as panes: the table, or one host with its charts. Pure, but for the charts' code, which is loaded when it is first needed. */
import { isRealCard } from '../../ops/net/watch/read-samples.ts'
import type { Sample } from '../../ops/net/watch/sample.ts'
import type { WatchedHost } from '../../ops/net/watch/watch-hosts.ts'
import type { lineChart } from '../charts/line-chart.ts'
import type { PaneView, Rect } from '../compositor/compositor.ts'
import type { Row } from '../rows/row-document.ts'
import { rowsPane } from '../rows/rows-pane.ts'
import { mutedStyle, styleOf, type Theme } from '../theme/theme.ts'
import { framedPane } from './framed-pane.ts'
import { percentOf, shortAmount } from './traffic-words.ts'
import { watchTable } from './watch-table.ts'
import { gpuBusy, lastOf, memoryPart, sortHosts, swapPart, type WatchView } from './watch-view.ts'

export type WatchLook = {
  readonly rect: Rect
  readonly theme: Theme
  readonly nowMs: number
  /** Undefined: not loaded yet. */
  readonly chart: typeof lineChart | undefined
}

const ID = ' network'
const INFO_ROWS = 7

export function watchPanes(hosts: readonly WatchedHost[], view: WatchView, look: WatchLook): readonly PaneView[] {
  const chosen = view.isDetailed ? hosts.find(({ host }) => host === view.selected) : undefined
  return chosen === undefined ? [tablePane(hosts, view, look)] : detailPanes(chosen, look)
}

function tablePane(hosts: readonly WatchedHost[], view: WatchView, { rect, theme }: WatchLook): PaneView {
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
  const rows = Math.max(1, rect.height - 2 - document.head.length)
  const offset = Math.max(0, selected - Math.floor(rows / 2))
  return rowsPane({
    id: ID,
    title,
    hasKeys: true,
    isBusy: false,
    document,
    place: { offset, isFollowing: false },
    rect,
    theme,
  })
}

type Chart = {
  readonly title: string
  readonly series: readonly ((sample: Sample) => number)[]
  readonly most?: number
}

function chartsOf(sample: Sample | undefined): readonly Chart[] {
  return [
    { title: 'CPU %', series: [({ cpu }) => cpu * 100], most: 100 },
    { title: 'memory %', series: [(each) => memoryPart(each) * 100], most: 100 },
    {
      title: 'network B/s: in, out',
      series: [({ receivedBytes = 0 }) => receivedBytes, ({ sentBytes = 0 }) => sentBytes],
    },
    (sample?.gpus.length ?? 0) > 0
      ? { title: 'GPUs %', series: [(each) => (gpuBusy(each) ?? 0) * 100], most: 100 }
      : sample !== undefined && sample.readBytes === undefined
        ? { title: 'load', series: [({ load = 0 }) => load] }
        : {
            title: 'disks B/s: read, written',
            series: [({ readBytes = 0 }) => readBytes, ({ writtenBytes = 0 }) => writtenBytes],
          },
  ]
}

/** Four charts over a few lines of words. */
function detailPanes(host: WatchedHost, { rect, theme, chart, nowMs }: WatchLook): readonly PaneView[] {
  const sample = lastOf(host)
  const info = Math.min(INFO_ROWS, Math.max(3, rect.height - 16))
  const chartRows = rect.height - info
  const [upper, left] = [Math.floor(chartRows / 2), Math.floor(rect.width / 2)]
  const places: readonly Rect[] = [
    { column: rect.column, row: rect.row, width: left, height: upper },
    { column: rect.column + left, row: rect.row, width: rect.width - left, height: upper },
    { column: rect.column, row: rect.row + upper, width: left, height: chartRows - upper },
    { column: rect.column + left, row: rect.row + upper, width: rect.width - left, height: chartRows - upper },
  ]
  const charts = chartsOf(sample).map((each, index): PaneView => {
    const place = places[index] ?? rect
    const rows = chart === undefined ? [] : drawChart(host.samples, each, place, nowMs, theme, chart)
    return framedPane({ id: `${ID} ${each.title}`, title: each.title, rows, rect: place, theme, hasKeys: false })
  })
  const below = { ...rect, row: rect.row + chartRows, height: info }
  return [
    ...charts,
    framedPane({
      id: ID,
      title: host.isOwn === true ? 'this machine' : host.host,
      rows: infoRows(host, sample, theme),
      rect: below,
      theme,
      hasKeys: true,
    }),
  ]
}

function drawChart(
  samples: readonly Sample[],
  { series, most }: Chart,
  rect: Rect,
  nowMs: number,
  theme: Theme,
  chart: typeof lineChart,
): readonly Row[] {
  const [columns, rows] = [rect.width - 2, rect.height - 2]
  const points = Math.min(samples.length, Math.max(2, (columns - 6) * 2))
  // Each point the mean of what falls to it.
  const bucket = (index: number) =>
    samples.slice(Math.floor((index * samples.length) / points), Math.floor(((index + 1) * samples.length) / points))
  const buckets = Array.from({ length: points }, (_, index) => bucket(index))
  return chart({
    columns,
    rows,
    theme,
    labels: buckets.map(([first]) => formatAgo(nowMs - (first?.atMs ?? nowMs))),
    series: series.map((pick) => ({
      values: buckets.map((each) => each.reduce((sum, sample) => sum + pick(sample), 0) / Math.max(1, each.length)),
    })),
    ...(most === undefined ? {} : { most }),
  })
}

/** `-4m`, `-30s` */
function formatAgo(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  return seconds < 60 ? `-${seconds}s` : `-${Math.floor(seconds / 60)}m`
}

function infoRows({ trouble }: WatchedHost, sample: Sample | undefined, theme: Theme): readonly Row[] {
  const plain = (text: string): Row => [{ text, style: styleOf(theme.text) }]
  const muted = (text: string): Row => [{ text, style: mutedStyle(theme) }]
  const words: Row[] = trouble === undefined ? [] : [[{ text: trouble, style: styleOf(theme.danger) }]]
  if (sample === undefined) return [...words, muted('waiting for the first seconds')]
  const { cores, load, nfs, fullest } = sample
  const memory = `${shortAmount(sample.memoryUsedBytes)}B of ${shortAmount(sample.memoryBytes)}B`
  const swap =
    sample.swapBytes === 0
      ? 'no swap'
      : `swap ${percentOf(swapPart(sample))} of ${shortAmount(sample.swapBytes)}B, ${Math.round(sample.swapped ?? 0)} pages/s`
  return [
    ...words,
    plain(
      [
        `CPU ${percentOf(sample.cpu)} of ${cores} cores`,
        ...(load === undefined ? [] : [`load ${load}`]),
        `memory ${memory}`,
        swap,
      ].join(' · '),
    ),
    ...sample.gpus.map(({ id, name, busy, usedBytes, totalBytes, celsius, watts, processes }) =>
      plain(
        [
          `GPU ${id} ${name}`,
          busy === undefined ? 'use unknown' : percentOf(busy),
          ...(usedBytes === undefined || totalBytes === undefined
            ? []
            : [`${shortAmount(usedBytes)}B of ${shortAmount(totalBytes)}B`]),
          ...(celsius === undefined ? [] : [`${celsius} °C`]),
          ...(watts === undefined ? [] : [`${Math.round(watts)} W`]),
          ...(processes === undefined || processes.length === 0 ? [] : [`processes ${processes.join(' ')}`]),
        ].join(' · '),
      ),
    ),
    ...(nfs === undefined
      ? []
      : [
          plain(
            `NFS read ${shortAmount(nfs.readBytes)}B/s · written ${shortAmount(nfs.writtenBytes)}B/s${nfs.roundTripMs === undefined ? '' : ` · ${nfs.roundTripMs.toFixed(1)} ms`}`,
          ),
        ]),
    plain(
      sample.cards
        .filter(
          ({ name, receivedBytes, sentBytes }) => isRealCard(name) || (name !== 'lo' && receivedBytes + sentBytes > 0),
        )
        .map(
          ({ name, receivedBytes, sentBytes }) =>
            `${name} in ${shortAmount(receivedBytes)} out ${shortAmount(sentBytes)}`,
        )
        .join(' · '),
    ),
    ...(fullest === undefined ? [] : [plain(`fullest file system ${fullest.point} ${percentOf(fullest.used)}`)]),
  ]
}
