/** Charts of what a host has said, or all hosts together. Pure, but that what was drawn is remembered until it is old. */
import type { Sample } from '../../ops/net/watch/sample.ts'
import type { WatchedHost } from '../../ops/net/watch/watch-hosts.ts'
import { BOLD } from '../../terminal/cells.ts'
import type { lineChart } from '../charts/line-chart.ts'
import type { PaneView, Rect, Span } from '../compositor/scene.ts'
import type { Row } from '../rows/row-document.ts'
import { styleOf, type Theme } from '../theme/theme.ts'
import { framedPane } from './framed-pane.ts'
import { shortAmount } from './traffic-words.ts'
import { gpuBusy, memoryPart } from './watch-view.ts'

export type ChartLook = {
  readonly theme: Theme
  /** Whose charts they are, where that is not plain. */
  readonly of?: string
  readonly nowMs: number
  /** Undefined: not loaded yet. */
  readonly chart: typeof lineChart | undefined
}

type Line = {
  /** Beside its value now; empty where there is one line only. */
  readonly word: string
  value(sample: Sample): number | undefined
  format(value: number): string
}

type Chart = { readonly title: string; readonly lines: readonly [Line, Line?]; readonly most?: number }

const bytes = (value: number) => `${shortAmount(value)}B/s`
const percent = (title: string, part: (sample: Sample) => number | undefined): Chart => {
  const value = (sample: Sample) => {
    const known = part(sample)
    return known === undefined ? undefined : known * 100
  }
  return { title, lines: [{ word: '', value, format: (now) => `${Math.round(now)} %` }], most: 100 }
}
const traffic = (title: string, one: [string, Line['value']], other: [string, Line['value']]): Chart => ({
  title,
  lines: [
    { word: one[0], value: one[1], format: bytes },
    { word: other[0], value: other[1], format: bytes },
  ],
})

const CPU = percent('CPU', ({ cpu }) => cpu)
const MEMORY = percent('memory', memoryPart)
const GPUS = percent('GPUs', gpuBusy)
const NETWORK = traffic('network', ['in', ({ receivedBytes }) => receivedBytes], ['out', ({ sentBytes }) => sentBytes])
const DISKS = traffic('disks', ['read', ({ readBytes }) => readBytes], ['written', ({ writtenBytes }) => writtenBytes])
const NFS = traffic('NFS', ['read', ({ nfs }) => nfs?.readBytes], ['written', ({ nfs }) => nfs?.writtenBytes])
const WAITS: Chart = {
  title: 'NFS round trip',
  lines: [{ word: '', value: ({ nfs }) => nfs?.roundTripMs, format: (ms) => `${ms.toFixed(1)} ms` }],
}
const LOAD: Chart = {
  title: 'load',
  lines: [{ word: '', value: ({ load }) => load, format: (load) => load.toFixed(1) }],
}

/** What there is to see of a host, in the order of importance. */
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

/** As many charts of a host as there are places; the last of too few is as wide as what is left. */
export function hostCharts(host: WatchedHost, places: readonly Rect[], look: ChartLook): readonly PaneView[] {
  const charts = chartsOf(host.samples.at(-1)).slice(0, places.length)
  return charts.flatMap((chart, index) => {
    const rect = places[index]
    if (rect === undefined) return []
    const rest = index === charts.length - 1 ? places.slice(index + 1) : []
    const width = rest.reduce((sum, place) => sum + (place.row === rect.row ? place.width : 0), rect.width)
    // Whose they are is told once: the legends need the room.
    const title = [index === 0 ? look.of : undefined, chart.title].filter(Boolean).join(' ')
    return [chartPane(chart, title, host.samples, { ...rect, width }, look)]
  })
}

/** How many a host has. */
export const chartCount = (host: WatchedHost): number => chartsOf(host.samples.at(-1)).length

/** Rows of places that fill a rectangle. */
export function chartPlaces(rect: Rect, columns: number, rows: number): readonly Rect[] {
  const cut = (from: number, size: number, count: number, index: number) =>
    [from + Math.floor((size * index) / count), from + Math.floor((size * (index + 1)) / count)] as const
  return Array.from({ length: rows * columns }, (_, index) => {
    const [left, right] = cut(rect.column, rect.width, columns, index % columns)
    const [top, bottom] = cut(rect.row, rect.height, rows, Math.floor(index / columns))
    return { column: left, row: top, width: right - left, height: bottom - top }
  })
}

function chartPane(shown: Chart, title: string, samples: readonly Sample[], rect: Rect, look: ChartLook): PaneView {
  const { theme } = look
  const colours = [theme.accent, theme.receiving]
  const latest = samples.at(-1)
  const legend = shown.lines.flatMap((line, index): Span[] => {
    const value = latest === undefined ? undefined : line?.value(latest)
    if (line === undefined) return []
    const text = ` ${[line.word, value === undefined ? '–' : line.format(value)].filter(Boolean).join(' ')} `
    return [{ text, style: styleOf(colours[index], undefined, BOLD) }]
  })
  const rows = look.chart === undefined ? [] : remembered(shown, samples, rect, look, look.chart)
  const pane = framedPane({ id: ` chart ${shown.title}`, title, rows, rect, theme, hasKeys: false })
  return { ...pane, badges: legend }
}

/** A chart takes some milliseconds, and is the same until the next sample. */
const drawn = new Map<string, readonly Row[]>()
const MOST_DRAWN = 16

function remembered(
  shown: Chart,
  samples: readonly Sample[],
  rect: Rect,
  look: ChartLook,
  chart: typeof lineChart,
): readonly Row[] {
  const [first, last] = [samples[0], samples.at(-1)]
  const what = [shown.title, look.of, look.theme.name, rect.width, rect.height, first?.atMs, last?.atMs, last?.cpu]
  const key = JSON.stringify([...what, last?.memoryUsedBytes, samples.length])
  const rows = drawn.get(key) ?? drawChart(shown, samples, rect, look, chart)
  drawn.delete(key)
  drawn.set(key, rows)
  for (const old of drawn.keys()) {
    if (drawn.size <= MOST_DRAWN) break
    drawn.delete(old)
  }
  return rows
}

function drawChart(
  { lines, most }: Chart,
  samples: readonly Sample[],
  rect: Rect,
  { nowMs, theme }: ChartLook,
  chart: typeof lineChart,
): readonly Row[] {
  const [columns, rows] = [rect.width - 2, rect.height - 2]
  const points = Math.min(samples.length, Math.max(2, (columns - 6) * 2))
  // Each point the mean of what falls to it.
  const bucket = (index: number) =>
    samples.slice(Math.floor((index * samples.length) / points), Math.floor(((index + 1) * samples.length) / points))
  const buckets = Array.from({ length: points }, (_, index) => bucket(index))
  const mean = (each: readonly Sample[], { value }: Line) =>
    each.reduce((sum, sample) => sum + (value(sample) ?? 0), 0) / Math.max(1, each.length)
  return chart({
    columns,
    rows,
    theme,
    labels: buckets.map(([first]) => formatAgo(nowMs - (first?.atMs ?? nowMs))),
    series: lines.flatMap((line) => (line === undefined ? [] : [{ values: buckets.map((each) => mean(each, line)) }])),
    ...(most === undefined ? {} : { most }),
  })
}

/** `-4m`, `-30s` */
function formatAgo(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  return seconds < 60 ? `-${seconds}s` : `-${Math.floor(seconds / 60)}m`
}
