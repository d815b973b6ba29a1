/** The kept results as a table: when, which test, which hosts, how fast, and what was found. Pure. */
import { formatBitRate } from '../../base/format-bit-rate.ts'
import { printable } from '../../base/printable.ts'
import { clip, padEnd } from '../../base/text-width.ts'
import { timeText } from '../../base/time-text.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { Gravity } from '../../ops/kernel/finding.ts'
import { keptMs, kindOf } from '../../ops/net/kept-results.ts'
import { formatValue, hostsOf, judgeTest, type KeptTest, seriesOf } from '../../ops/net/kept-test.ts'
import { judgeMesh, measuredOf, median, noProblemsText } from '../../ops/net/mesh/judge.ts'
import { type KeptMesh, reportOfKept } from '../../ops/net/mesh/kept-mesh.ts'
import { boldStyle, mutedStyle, styleOf, type Theme } from '../compositor/scene.ts'
import { documentOf, type Row, type RowDocument, rowStyle } from '../rows/rows-pane.ts'
import { findHost, sortMark, type TableColumn, type TableFrame, type TableView } from '../rows/table-view.ts'

export type KeptRow = {
  readonly path: string
  readonly timeMs: number
  readonly test: 'mesh' | 'pair' | 'NFS'
  /** Folded. */
  readonly hosts: string
  readonly way: string
  readonly measured: number
  /** 0 for an NFS mount. */
  readonly links: number
  /** The median over all links of a mesh, or of the first rate of another test. */
  readonly median: { readonly text: string; readonly bitsPerSecond: number } | undefined
  readonly gravity: Gravity | undefined
  /** The worst finding, or the measured values. */
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

export function keptRow(path: string, kept: KeptMesh | KeptTest): KeptRow {
  const shared = { path, timeMs: Date.parse(kept.time), way: printable(kept.way) }
  return 'record' in kept ? { ...shared, ...testRow(kept) } : { ...shared, ...meshRow(kept) }
}

/** Of a file that is no result. */
export const unreadableRow = (path: string): KeptRow => {
  const kind = kindOf(path)
  return {
    ...{ path, timeMs: keptMs(path), way: '', hosts: '', measured: 0, links: 0, median: undefined, gravity: 'risk' },
    test: kind === 'mesh' || kind === 'pair' ? kind : 'NFS',
    found: 'cannot be read: damaged, or of a later version',
  }
}

type OwnCells = Omit<KeptRow, 'path' | 'timeMs' | 'way'>

function meshRow(kept: KeptMesh): OwnCells {
  const report = reportOfKept(kept)
  const measured = measuredOf(report.links)
  const [first] = judgeMesh(report)
  const usual = median(measured.map(({ outcome }) => outcome.bitsPerSecond))
  return {
    test: 'mesh',
    hosts: printable(foldHostSet(report.hosts.map(({ name }) => name))),
    measured: measured.length,
    links: report.links.length,
    median: usual === undefined ? undefined : { text: formatBitRate(usual), bitsPerSecond: usual },
    gravity: first?.gravity,
    found: first === undefined ? noProblemsText(report) : printable(first.text),
  }
}

function testRow(kept: KeptTest): OwnCells {
  const all = seriesOf(kept)
  const known = all.flatMap(({ name, unit, values }) => {
    const value = median(values)
    return value === undefined ? [] : [{ name, unit, value, text: formatValue(value, unit) }]
  })
  const ways = all.filter(({ unit }) => unit === 'bit/s')
  const first = known.find(({ unit }) => unit !== 'ms')
  const [finding] = judgeTest(kept)
  const [failure] = kept.record.failures
  const measured = known.map(({ name, text }) => `${name} ${text}`).join(', ')
  return {
    test: kept.kind === 'pair' ? 'pair' : 'NFS',
    hosts: printable(foldHostSet(hostsOf(kept))),
    measured: ways.filter(({ values }) => values.length > 0).length,
    links: ways.length,
    median: first && { text: first.text, bitsPerSecond: first.value * (first.unit === 'B/s' ? 8 : 1) },
    gravity: failure === undefined ? finding?.gravity : 'risk',
    found: printable(failure ?? finding?.text ?? measured),
  }
}

export const RESULTS = ' kept'

/** `width`: undefined takes the rest of the row. */
type ResultColumn = TableColumn<KeptRow> & { readonly width?: number }

const TIME_LEAST = 7
const HOSTS_LEAST = 7
const FOUND_LEAST = 16

const timeCell = (ms: number, nowMs: number): string => (Number.isNaN(ms) ? '–' : timeText(ms, nowMs))

/** `nowMs`: times of today have no date. */
export const resultColumns = (nowMs: number): readonly ResultColumn[] => [
  {
    title: 'TIME',
    width: TIME_LEAST,
    text: ({ timeMs }) => timeCell(timeMs, nowMs),
    order: ({ timeMs }) => timeMs,
    isDescending: true,
  },
  { title: 'TEST', width: 6, text: ({ test }) => test },
  { title: 'HOSTS', width: HOSTS_LEAST, text: ({ hosts }) => hosts, find: findHost(({ hosts }) => hosts) },
  {
    title: 'LINKS',
    width: 8,
    text: ({ measured, links }) => (links === 0 ? '–' : `${measured}/${links}`),
    order: ({ links }) => links,
    isDescending: true,
    isAmount: true,
  },
  {
    title: 'MEDIAN',
    width: 12,
    text: (row) => row.median?.text ?? '–',
    order: (row) => row.median?.bitsPerSecond,
    isDescending: true,
    isAmount: true,
  },
  { title: 'FOUND', text: ({ found }) => found },
  { title: 'WAY', text: ({ way }) => way, isHidden: true },
]

export const RESULTS_FRAME: TableFrame = {
  id: RESULTS,
  columns: resultColumns(0).flatMap(({ title, isHidden }) => (isHidden === true ? [] : [title])),
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

/** `rows`: in the order in which they are shown. */
export function resultsDocument(rows: readonly KeptRow[], context: ResultsContext): RowDocument {
  const { selected, marked, view, width, nowMs, theme } = context
  const shown = resultColumns(nowMs).filter(({ isHidden }) => isHidden !== true)
  const longest = (least: number, text: (row: KeptRow) => string): number =>
    rows.reduce((most, row) => Math.max(most, text(row).length + 2), least)
  const time = longest(TIME_LEAST, ({ timeMs }) => timeCell(timeMs, nowMs))
  const fixed = shown.reduce((sum, column) => sum + (column.width ?? 0), time - TIME_LEAST)
  const most = HOSTS_LEAST + Math.max(0, width - 2 - FOUND_LEAST - fixed)
  const hosts = Math.min(
    most,
    longest(HOSTS_LEAST, (row) => row.hosts),
  )
  const widthOf = ({ title, width: own }: ResultColumn): number | undefined =>
    title === 'TIME' ? time : title === 'HOSTS' ? hosts : own
  const cell = (text: string, columns: number | undefined) =>
    columns === undefined ? text : padEnd(clip(text, columns - 1), columns)
  const head = shown.map((column) => cell(column.title + sortMark(view, column, 'TIME'), widthOf(column)))
  const body = rows.map((row): Row => {
    const isSelected = row.path === selected
    const style = rowStyle(theme, isSelected)
    const found =
      row.gravity === 'blocker'
        ? styleOf(theme.danger)
        : row.gravity === 'risk'
          ? styleOf(theme.warning)
          : mutedStyle(theme)
    return [
      { text: `${isSelected ? '▸' : ' '}${marked.has(row.path) ? '●' : ' '}`, style: boldStyle(theme.accent) },
      ...shown.map((column) => ({
        text: cell(column.text(row), widthOf(column)),
        style: isSelected || column.width !== undefined ? style : found,
      })),
    ]
  })
  return documentOf(body, [[{ text: `  ${head.join('')}`, style: boldStyle(theme.muted) }]])
}
