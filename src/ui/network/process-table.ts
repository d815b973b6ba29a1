/** The processes of one host as a table: what uses its cores, memory, disks and GPUs. Pure. */
import { clip, padEnd, partsWidth } from '../../base/text-width.ts'
import type { ProcessReport, ProcessUse, WatchedProcesses } from '../../ops/net/watch/processes.ts'
import type { Sample } from '../../ops/net/watch/sample.ts'
import { boldStyle, mutedStyle, styleOf, type Theme } from '../compositor/scene.ts'
import { percentOf, type Row, type RowDocument, rowStyle, shortAmount, shortMemory } from '../rows/rows-pane.ts'
import { shownRows, sortMark, type TableColumn, type TableFrame, type TableView } from '../rows/table-view.ts'

/** The id of its pane. */
export const PROCESSES = ' processes'

type ProcessColumn = TableColumn<ProcessUse> & {
  readonly width: number
  /** The last one has the rest of the width. */
  readonly isWide?: boolean
  /** A column that is unknown of every process is left out. */
  isKnown?(process: ProcessUse): boolean
  /** Known from the second report on. */
  readonly isRate?: boolean
}

const amount = (value: number | undefined): string => (value === undefined ? '–' : shortAmount(value))
const memory = (value: number | undefined): string => (value === undefined ? '–' : shortMemory(value))
const percent = (part: number | undefined): string => (part === undefined ? '–' : percentOf(part))

const measured = (
  title: string,
  width: number,
  value: (process: ProcessUse) => number | undefined,
  format: (value: number | undefined) => string,
): ProcessColumn => ({
  title,
  width,
  isAmount: true,
  isDescending: true,
  text: (process) => format(value(process)),
  order: value,
  isKnown: (process) => value(process) !== undefined,
})

/** CPU as top counts it: 100% is one core. */
export const processColumns: readonly ProcessColumn[] = [
  { title: 'PID', width: 8, text: ({ pid }) => String(pid), order: ({ pid }) => pid, isAmount: true },
  { title: 'USER', width: 9, text: ({ user = '' }) => user, isKnown: ({ user }) => user !== undefined },
  measured('GPU', 6, ({ gpu }) => gpu, percent),
  measured('VRAM', 6, ({ gpuBytes }) => gpuBytes, memory),
  { ...measured('CPU', 7, ({ cpu }) => cpu, percent), isRate: true },
  measured('MEM', 6, ({ memoryBytes }) => memoryBytes, memory),
  { ...measured('READ/s', 8, ({ readBytes }) => readBytes, amount), isRate: true },
  { ...measured('WRITE/s', 9, ({ writtenBytes }) => writtenBytes, amount), isRate: true },
  { title: 'COMMAND', width: 0, isWide: true, text: ({ command }) => command },
]

function columnsOf({ processes }: ProcessReport): readonly ProcessColumn[] {
  const isFirst = processes.every(({ cpu }) => cpu === undefined)
  return processColumns.filter(
    ({ isKnown, isRate }) => isKnown === undefined || (isFirst && isRate === true) || processes.some(isKnown),
  )
}

export function processesFrame(watched: WatchedProcesses | undefined): TableFrame | undefined {
  const last = watched?.last
  return last && { id: PROCESSES, columns: columnsOf(last).map(({ title }) => title) }
}

const sorted = new WeakMap<ProcessReport, readonly ProcessUse[]>()

/** Unless sorted by a column, the heaviest first: by the sum of its shares of cores, memory and GPUs. */
export function shownProcesses(
  watched: WatchedProcesses | undefined,
  sample: Sample | undefined,
  view: TableView,
): readonly ProcessUse[] {
  const last = watched?.last
  if (last === undefined) return []
  let rows = sorted.get(last)
  if (rows === undefined) {
    const weight = ({ cpu = 0, memoryBytes, gpu = 0, gpuBytes = 0 }: ProcessUse) => {
      const { cores = 1, memoryBytes: all = 0, gpus = [] } = sample ?? {}
      const gpuAll = Math.max(0, ...gpus.map(({ totalBytes = 0 }) => totalBytes))
      const share = (part: number, whole: number) => (whole > 0 ? Math.min(1, part / whole) : 0)
      return cpu / (cores || 1) + share(memoryBytes, all) + gpu + share(gpuBytes, gpuAll)
    }
    rows = last.processes.toSorted((one, other) => weight(other) - weight(one) || one.pid - other.pid)
    sorted.set(last, rows)
  }
  return shownRows(rows, processColumns, view)
}

export type ProcessTableContext = {
  readonly view: TableView
  /** The selected process. */
  readonly pid: number | undefined
  readonly columns: number
  readonly theme: Theme
  /** Above the heading. */
  readonly head: readonly Row[]
}

export function processTable(
  last: ProcessReport,
  rows: readonly ProcessUse[],
  { view, pid, columns, theme, head }: ProcessTableContext,
): RowDocument {
  const shown = columnsOf(last)
  // Each cell begins with a blank. In the first cell, the mark of the selected row takes its place.
  const cell = ({ title, width, isWide }: ProcessColumn, text: string, room: number) =>
    isWide === true
      ? ` ${clip(text, room - 1)}`
      : title === 'USER'
        ? ` ${padEnd(clip(text, width - 1), width - 1)}`
        : ` ${clip(text, width - 1)}`.padStart(width)
  const heading = shown.map((column): Row[number] => {
    const title = `${column.title}${sortMark(view, column)}`
    return { text: cell(column, title, columns), style: boldStyle(title === column.title ? theme.muted : theme.accent) }
  })
  return {
    head: [...head, heading],
    length: rows.length,
    row(index) {
      const process = rows[index]
      if (process === undefined) return []
      const isSelected = process.pid === pid
      let room = columns
      const row = shown.map((column, at): Row[number] => {
        const own = cell(column, column.text(process), room)
        const text = at === 0 && isSelected ? `▸${own.slice(1)}` : own
        room -= column.width
        const isIdle = ['–', '0', '0%'].includes(own.trim())
        return { text, style: isIdle && !isSelected ? mutedStyle(theme) : rowStyle(theme, isSelected) }
      })
      if (!isSelected || theme.bar === undefined) return row
      const background = styleOf(undefined, theme.bar).background
      const rest = { text: ' '.repeat(Math.max(0, columns - partsWidth(row))), style: styleOf(undefined, theme.bar) }
      return [...row.map(({ text, style }) => ({ text, style: { ...style, background } })), rest]
    },
  }
}
