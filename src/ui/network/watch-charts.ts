/** Charts of one host, or of all together. Pure, but remembers what it drew. */
import type { Sample } from '../../ops/net/watch/sample.ts'
import { HISTORY_MS, type WatchedHost } from '../../ops/net/watch/watch-hosts.ts'
import { chartPoints, roundSpan } from '../charts/axis.ts'
import type { LineChart } from '../charts/lazy-line-chart.ts'
import { boldStyle, type PaneView, type Rect, type Span, type Theme } from '../compositor/scene.ts'
import { documentOf, type Row, rowsPane, shortAmount } from '../rows/rows-pane.ts'
import { gpuBusy, memoryPart } from './watch-view.ts'

export type HostChartContext = {
  readonly theme: Theme
  /** In the title of the first chart. */
  readonly of?: string
  readonly nowMs: number
  /** Undefined: not loaded yet. */
  readonly chart: LineChart | undefined
}

type Line = {
  /** In the legend, before the latest value; empty where there is one line. */
  readonly word: string
  value(sample: Sample): number | undefined
  format(value: number): string
}

/** `least`: the scale never ends lower. */
type Chart = {
  readonly title: string
  readonly lines: readonly Line[]
  readonly most?: number
  readonly least?: number
}

const bytes = (value: number) => `${shortAmount(value)}B/s`
const single = (title: string, value: Line['value'], format: Line['format']): Chart => ({
  title,
  lines: [{ word: '', value, format }],
})
const percent = (title: string, part: (sample: Sample) => number | undefined): Chart => {
  const value = (sample: Sample) => {
    const known = part(sample)
    return known === undefined ? undefined : known * 100
  }
  return { ...single(title, value, (latest) => `${Math.round(latest)} %`), most: 100 }
}
const traffic = (title: string, ...lines: (readonly [string, Line['value']])[]): Chart => ({
  title,
  lines: lines.map(([word, value]) => ({ word, value, format: bytes })),
  least: 1000,
})

const CPU = percent('CPU', ({ cpu }) => cpu)
const MEMORY = percent('memory', memoryPart)
const GPUS = percent('GPUs', gpuBusy)
const NETWORK = traffic('network', ['in', ({ receivedBytes }) => receivedBytes], ['out', ({ sentBytes }) => sentBytes])
const DISKS = traffic('disks', ['read', ({ readBytes }) => readBytes], ['written', ({ writtenBytes }) => writtenBytes])
const NFS = traffic('NFS', ['read', ({ nfs }) => nfs?.readBytes], ['written', ({ nfs }) => nfs?.writtenBytes])
const WAITS = single(
  'NFS round trip',
  ({ nfs }) => nfs?.roundTripMs,
  (ms) => `${ms.toFixed(1)} ms`,
)
const LOAD = single(
  'load',
  ({ load }) => load,
  (load) => load.toFixed(1),
)

/** A report is due every two seconds, with GPUs every three. */
const OLD_MS = 10_000

/** Of a host that sends nothing any more: it says nothing of now. */
export const isOld = ({ atMs }: { readonly atMs: number }, nowMs: number): boolean => nowMs - atMs > OLD_MS

/** The charts of a host, in the order of importance. */
function chartsOf(sample: Sample | undefined): readonly Chart[] {
  return [
    CPU,
    MEMORY,
    NETWORK,
    ...((sample?.gpus.length ?? 0) > 0 ? [GPUS] : []),
    ...(sample !== undefined && sample.readBytes === undefined ? [LOAD] : [DISKS]),
    ...(sample?.nfs === undefined ? [] : [NFS, WAITS]),
  ]
}

/** As many charts as there are places; when there are fewer, the last one fills its row. */
export function hostCharts(host: WatchedHost, places: readonly Rect[], context: HostChartContext): readonly PaneView[] {
  const charts = chartsOf(host.samples.at(-1)).slice(0, places.length)
  return charts.flatMap((chart, index) => {
    const rect = places[index]
    if (rect === undefined) return []
    const rest = index === charts.length - 1 ? places.slice(index + 1) : []
    const width = rest.reduce((sum, place) => sum + (place.row === rect.row ? place.width : 0), rect.width)
    // Only the first chart names the host: the legends need the room.
    const title = [index === 0 ? context.of : undefined, chart.title].filter(Boolean).join(' ')
    return [chartPane(chart, title, host.samples, { ...rect, width }, context)]
  })
}

export const chartCount = (host: WatchedHost): number => chartsOf(host.samples.at(-1)).length

/** Divides a rectangle into rows of places. */
export function chartPlaces(rect: Rect, columns: number, rows: number): readonly Rect[] {
  const cut = (from: number, size: number, count: number, index: number) =>
    [from + Math.floor((size * index) / count), from + Math.floor((size * (index + 1)) / count)] as const
  return Array.from({ length: rows * columns }, (_, index) => {
    const [left, right] = cut(rect.column, rect.width, columns, index % columns)
    const [top, bottom] = cut(rect.row, rect.height, rows, Math.floor(index / columns))
    return { column: left, row: top, width: right - left, height: bottom - top }
  })
}

function chartPane(chart: Chart, title: string, samples: readonly Sample[], rect: Rect, context: HostChartContext) {
  const { theme } = context
  const last = samples.at(-1)
  const latest = last === undefined || isOld(last, context.nowMs) ? undefined : last
  const badges = chart.lines.map(({ word, value, format }, index): Span => {
    const known = latest === undefined ? undefined : value(latest)
    const text = ` ${[word, known === undefined ? '–' : format(known)].filter(Boolean).join(' ')} `
    return { text, style: boldStyle([theme.accent, theme.receiving][index]) }
  })
  const document = documentOf(
    context.chart === undefined ? [] : remembered(chart, samples, rect, context, context.chart),
  )
  return rowsPane({ id: ` chart ${chart.title}`, title, document, badges, rect, theme, hasKeys: false })
}

/** Drawing takes milliseconds, and the chart stays the same until the next sample. */
const drawn = new Map<string, readonly Row[]>()
const MOST_DRAWN = 16

function remembered(
  chart: Chart,
  samples: readonly Sample[],
  rect: Rect,
  context: HostChartContext,
  draw: LineChart,
): readonly Row[] {
  const { of, nowMs, theme } = context
  const [first, last] = [samples[0], samples.at(-1)]
  const what = [
    chart.title,
    of,
    theme.name,
    rect.width,
    rect.height,
    first?.atMs,
    last?.atMs,
    last?.cpu,
    Math.floor(nowMs / 1000),
  ]
  const key = JSON.stringify([...what, last?.memoryUsedBytes, samples.length])
  const rows = drawn.get(key) ?? drawChart(chart, samples, rect, context, draw)
  drawn.delete(key)
  drawn.set(key, rows)
  for (const old of drawn.keys()) {
    if (drawn.size <= MOST_DRAWN) break
    drawn.delete(old)
  }
  return rows
}

function drawChart(
  { lines, most, least }: Chart,
  samples: readonly Sample[],
  rect: Rect,
  { nowMs, theme }: HostChartContext,
  draw: LineChart,
): readonly Row[] {
  const [columns, rows] = [rect.width - 2, rect.height - 2]
  const oldestMs = samples[0]?.atMs ?? nowMs
  const span = roundSpan(Math.min(HISTORY_MS, nowMs - oldestMs) / 1000)
  const points = chartPoints(columns)
  const pointMs = (span * 1000) / points
  // Whole points, so that the line moves on without changing its shape.
  const endMs = Math.ceil(nowMs / pointMs) * pointMs
  return draw({
    columns,
    rows,
    theme,
    seconds: [-span, 0],
    series: lines.map(({ value }) => ({ values: pointsOf(samples, value, { endMs, pointMs, points }) })),
    ...(most === undefined ? {} : { most }),
    ...(least === undefined ? {} : { least }),
  })
}

/** A host reports once a second; when it has not done so for longer, the line has a gap. */
const GAP_MS = 5000

type Points = { readonly endMs: number; readonly pointMs: number; readonly points: number }

/** The mean of what lies in each point; a short time without a value is bridged. */
function pointsOf(samples: readonly Sample[], value: Line['value'], { endMs, pointMs, points }: Points): number[] {
  const sums = new Float64Array(points)
  const counts = new Uint32Array(points)
  const beginMs = endMs - points * pointMs
  for (const sample of samples) {
    const known = value(sample)
    const point = Math.floor((sample.atMs - beginMs) / pointMs)
    if (known === undefined || !(point >= 0 && point < points)) continue
    sums[point] = (sums[point] ?? 0) + known
    counts[point] = (counts[point] ?? 0) + 1
  }
  const values = Array.from(sums, (sum, point) => (counts[point] === 0 ? Number.NaN : sum / (counts[point] ?? 1)))
  let last = -1
  for (let point = 0; point < points; point += 1) {
    const there = values[point] ?? Number.NaN
    if (Number.isNaN(there)) continue
    const from = values[last] ?? Number.NaN
    const isShort = last >= 0 && (point - last) * pointMs <= GAP_MS
    for (let gap = last + 1; isShort && gap < point; gap += 1)
      values[gap] = from + ((there - from) * (gap - last)) / (point - last)
    last = point
  }
  return values
}

const RECENT_MS = 5 * 60_000
const SECOND_MS = 1000
/** The newest seconds are left out: some hosts have not reported them yet. */
const OPEN_SECONDS = 2

let last: { readonly key: string; readonly host: WatchedHost } | undefined

export function allHosts(hosts: readonly WatchedHost[]): WatchedHost {
  const others = hosts.filter(({ isOwn }) => isOwn !== true)
  const newest = Math.max(0, ...others.map(({ samples }) => samples.at(-1)?.atMs ?? 0))
  const secondOf = ({ atMs }: Sample) => Math.floor(atMs / SECOND_MS)
  const key = JSON.stringify([
    Math.floor(newest / SECOND_MS),
    others.map(({ host, samples }) => [host, samples[0]?.cpu]),
  ])
  if (last?.key === key) return last.host
  const recent = others.flatMap(({ samples }) =>
    samples.slice(samples.findIndex(({ atMs }) => atMs > newest - RECENT_MS)),
  )
  const seconds = [...Map.groupBy(recent, secondOf)].toSorted(([one], [other]) => one - other)
  const whole = seconds.length > OPEN_SECONDS ? seconds.slice(0, -OPEN_SECONDS) : seconds
  last = { key, host: { host: 'all hosts', samples: whole.map(([second, all]) => combine(second * SECOND_MS, all)) } }
  return last.host
}

/** Sums, but the mean of CPU use, weighted by cores. */
function combine(atMs: number, samples: readonly Sample[]): Sample {
  const sum = (pick: (sample: Sample) => number | undefined) =>
    samples.reduce((total, sample) => total + (pick(sample) ?? 0), 0)
  const cores = sum((sample) => sample.cores)
  return {
    atMs,
    cores,
    cpu: cores === 0 ? 0 : sum((sample) => sample.cpu * sample.cores) / cores,
    memoryBytes: sum(({ memoryBytes }) => memoryBytes),
    memoryUsedBytes: sum(({ memoryUsedBytes }) => memoryUsedBytes),
    swapBytes: sum(({ swapBytes }) => swapBytes),
    swapUsedBytes: sum(({ swapUsedBytes }) => swapUsedBytes),
    readBytes: sum(({ readBytes }) => readBytes),
    writtenBytes: sum(({ writtenBytes }) => writtenBytes),
    receivedBytes: sum(({ receivedBytes }) => receivedBytes),
    sentBytes: sum(({ sentBytes }) => sentBytes),
    cards: [],
    gpus: samples.flatMap(({ gpus }) => gpus),
  }
}
