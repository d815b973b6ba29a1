/** The watched hosts as panes: the table with charts below where there is room, or one host with all its charts. Pure. */
import { isRealCard } from '../../ops/net/watch/read-samples.ts'
import type { Sample } from '../../ops/net/watch/sample.ts'
import type { WatchedHost } from '../../ops/net/watch/watch-hosts.ts'
import type { PaneView, Rect, Span } from '../compositor/scene.ts'
import type { Row } from '../rows/row-document.ts'
import { rowsPane } from '../rows/rows-pane.ts'
import { mutedStyle, styleOf, type Theme } from '../theme/theme.ts'
import { allHosts } from './all-hosts.ts'
import { framedPane } from './framed-pane.ts'
import { percentOf, shortAmount } from './traffic-words.ts'
import { type ChartLook, chartCount, chartPlaces, hostCharts } from './watch-charts.ts'
import { watchTable } from './watch-table.ts'
import { lastOf, sortHosts, swapPart, type WatchView } from './watch-view.ts'

export type WatchLook = ChartLook & {
  readonly rect: Rect
  /** That something is recorded, or shown again. */
  readonly sign?: Span
}

const ID = ' network'
const INFO_ROWS = 7
const LEAST_CHART_ROWS = 9
/** From here on two rows of charts. */
const TALL_ROWS = 28
const CHART_COLUMNS = 40

export function watchPanes(hosts: readonly WatchedHost[], view: WatchView, look: WatchLook): readonly PaneView[] {
  const panes = panesOf(hosts, view, look)
  const { sign } = look
  return sign === undefined
    ? panes
    : panes.map((pane) => (pane.host === ID ? { ...pane, badges: [sign, ...pane.badges] } : pane))
}

function panesOf(hosts: readonly WatchedHost[], view: WatchView, look: WatchLook): readonly PaneView[] {
  const chosen = hosts.find(({ host }) => host === view.selected)
  if (view.isDetailed && chosen !== undefined) return detailPanes(chosen, look)
  const { rect } = look
  // What the table does not need, its frame and heading included.
  const rest = rect.height - hosts.length - 3
  if (rest < LEAST_CHART_ROWS || rect.width < CHART_COLUMNS) return [tablePane(hosts, view, look)]
  const shown = chosen ?? allHosts(hosts)
  const rows = rest < TALL_ROWS ? 1 : 2
  const columns = Math.min(Math.floor(rect.width / CHART_COLUMNS), Math.ceil(chartCount(shown) / rows))
  const charts = chartPlaces({ ...rect, row: rect.row + rect.height - rest, height: rest }, columns, rows)
  return [
    ...hostCharts(shown, charts, { ...look, of: shown.host }),
    tablePane(hosts, view, { ...look, rect: { ...rect, height: rect.height - rest } }),
  ]
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

/** Charts over a few lines of words. */
function detailPanes(host: WatchedHost, look: WatchLook): readonly PaneView[] {
  const { rect, theme } = look
  const sample = lastOf(host)
  const info = Math.min(INFO_ROWS + (sample?.gpus.length ?? 0), Math.max(3, rect.height - 16))
  const charts = { ...rect, height: rect.height - info }
  const columns = chartCount(host) > 4 && rect.width >= 3 * CHART_COLUMNS ? 3 : 2
  const below = { ...rect, row: rect.row + charts.height, height: info }
  return [
    ...hostCharts(host, chartPlaces(charts, columns, 2), look),
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

function infoRows({ trouble }: WatchedHost, sample: Sample | undefined, theme: Theme): readonly Row[] {
  const plain = (text: string): Row => [{ text, style: styleOf(theme.text) }]
  const muted = (text: string): Row => [{ text, style: mutedStyle(theme) }]
  const words: Row[] = trouble === undefined ? [] : [[{ text: trouble, style: styleOf(theme.danger) }]]
  if (sample === undefined) return [...words, muted('waiting for the first seconds')]
  const { cores, load, nfs, fullest, upSeconds } = sample
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
        ...(load === undefined ? [] : [`load ${load.toFixed(2)}`]),
        `memory ${memory}`,
        swap,
        ...(upSeconds === undefined ? [] : [`up ${formatUp(upSeconds)}`]),
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
            `NFS read ${shortAmount(nfs.readBytes)}B/s · written ${shortAmount(nfs.writtenBytes)}B/s · ${Math.round(nfs.operations)} requests/s${nfs.roundTripMs === undefined ? '' : `, ${nfs.roundTripMs.toFixed(1)} ms each`}`,
          ),
        ]),
    plain(
      sample.cards
        .filter(
          ({ name, receivedBytes, sentBytes }) => isRealCard(name) || (name !== 'lo' && receivedBytes + sentBytes > 0),
        )
        .map(
          ({ name, receivedBytes, sentBytes }) =>
            `${name} in ${shortAmount(receivedBytes)}B/s, out ${shortAmount(sentBytes)}B/s`,
        )
        .join(' · '),
    ),
    ...(fullest === undefined ? [] : [plain(`fullest file system ${fullest.point} ${percentOf(fullest.used)}`)]),
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
