/** The kept meshes as a table: when, which hosts, how fast, and what was found. Pure. */
import { formatBitRate } from '../../base/format-bit-rate.ts'
import { printable } from '../../base/printable.ts'
import { clip, padEnd } from '../../base/text-width.ts'
import { timeText } from '../../base/time-text.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { Gravity } from '../../ops/kernel/finding.ts'
import { judgeMesh, measuredOf, median } from '../../ops/net/mesh/judge.ts'
import { type KeptMesh, reportOfKept } from '../../ops/net/mesh/kept-mesh.ts'
import { boldStyle, mutedStyle, styleOf, type Theme } from '../compositor/scene.ts'
import { documentOf, type Row, type RowDocument, rowStyle } from '../rows/rows-pane.ts'
import { sortMark, type TableColumn, type TableFrame, type TableView } from '../rows/table-view.ts'

export type KeptRow = {
  readonly path: string
  readonly timeMs: number
  /** Folded. */
  readonly hosts: string
  readonly way: string
  readonly measured: number
  readonly links: number
  readonly medianBitsPerSecond: number | undefined
  readonly gravity: Gravity | undefined
  /** The worst finding. */
  readonly found: string
}

export type ResultsState = {
  readonly rows: readonly KeptRow[]
  readonly isReading: boolean
  /** Paths. */
  readonly selected: string | undefined
  readonly marked: ReadonlySet<string>
}

export const FIRST_RESULTS: ResultsState = { rows: [], isReading: false, selected: undefined, marked: new Set() }

export function keptRow(path: string, kept: KeptMesh): KeptRow {
  const report = reportOfKept(kept)
  const measured = measuredOf(report.links)
  const [first] = judgeMesh(report)
  return {
    path,
    timeMs: Date.parse(kept.time),
    hosts: printable(foldHostSet(report.hosts.map(({ name }) => name))),
    way: printable(kept.way),
    measured: measured.length,
    links: report.links.length,
    medianBitsPerSecond: median(measured.map(({ outcome }) => outcome.bitsPerSecond)),
    gravity: first?.gravity,
    found: first === undefined ? 'no problems found' : printable(first.text),
  }
}

export const RESULTS = ' kept'

/** `nowMs`: times of today have no date. */
export const resultColumns = (nowMs: number): readonly TableColumn<KeptRow>[] => [
  { title: 'TIME', text: ({ timeMs }) => timeText(timeMs, nowMs), order: ({ timeMs }) => timeMs, isDescending: true },
  { title: 'HOSTS', text: ({ hosts }) => hosts },
  {
    title: 'LINKS',
    text: ({ measured, links }) => `${measured}/${links}`,
    order: ({ links }) => links,
    isDescending: true,
    needsTitle: true,
  },
  {
    title: 'MEDIAN',
    text: ({ medianBitsPerSecond: rate }) => (rate === undefined ? '–' : formatBitRate(rate)),
    order: ({ medianBitsPerSecond }) => medianBitsPerSecond,
    isDescending: true,
    needsTitle: true,
  },
  { title: 'FOUND', text: ({ found }) => found },
  { title: 'WAY', text: ({ way }) => way, isHidden: true },
]

export const RESULTS_FRAME: TableFrame = {
  id: RESULTS,
  columns: ['TIME', 'HOSTS', 'LINKS', 'MEDIAN', 'FOUND'],
  sorted: 'TIME',
}

type ResultsContext = {
  readonly selected: string | undefined
  readonly marked: ReadonlySet<string>
  readonly view: TableView
  readonly width: number
  readonly nowMs: number
  readonly theme: Theme
}

const TIME_COLUMNS = 17
const LINKS_COLUMNS = 10
const MEDIAN_COLUMNS = 12
const LEAST_FOUND = 16

/** `rows`: in the order in which they are shown. */
export function resultsDocument(rows: readonly KeptRow[], context: ResultsContext): RowDocument {
  const { selected, marked, view, width, nowMs, theme } = context
  const rest = width - 2 - TIME_COLUMNS - LINKS_COLUMNS - MEDIAN_COLUMNS
  const longest = rows.reduce((most, { hosts }) => Math.max(most, hosts.length), 5) + 2
  const hostsWidth = Math.max(7, Math.min(longest, rest - LEAST_FOUND))
  const title = (text: string, columns: number) =>
    padEnd(clip(text + sortMark(view, text, 'TIME'), columns - 1), columns)
  const head: Row = [
    {
      text: `  ${title('TIME', TIME_COLUMNS)}${title('HOSTS', hostsWidth)}${title('LINKS', LINKS_COLUMNS)}${title('MEDIAN', MEDIAN_COLUMNS)}${title('FOUND', 8)}`,
      style: boldStyle(theme.muted),
    },
  ]
  const body = rows.map((row): Row => {
    const isSelected = row.path === selected
    const style = rowStyle(theme, isSelected)
    const cell = (text: string, columns: number) => padEnd(clip(text, columns - 1), columns)
    const rate = row.medianBitsPerSecond === undefined ? '–' : formatBitRate(row.medianBitsPerSecond)
    const found =
      row.gravity === 'blocker'
        ? styleOf(theme.danger)
        : row.gravity === 'risk'
          ? styleOf(theme.warning)
          : mutedStyle(theme)
    return [
      { text: `${isSelected ? '▸' : ' '}${marked.has(row.path) ? '●' : ' '}`, style: boldStyle(theme.accent) },
      {
        text: `${cell(timeText(row.timeMs, nowMs), TIME_COLUMNS)}${cell(row.hosts, hostsWidth)}${cell(`${row.measured}/${row.links}`, LINKS_COLUMNS)}${cell(rate, MEDIAN_COLUMNS)}`,
        style,
      },
      { text: row.found, style: isSelected ? style : found },
    ]
  })
  return documentOf(body, [head])
}
