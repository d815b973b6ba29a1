/** What is shown of the watched hosts, in the console's tab and on the screen of `muster net watch`, and how keys change it. Pure. */
import type { ProcessUse, WatchedProcesses } from '../../ops/net/watch/processes.ts'
import type { Sample } from '../../ops/net/watch/sample.ts'
import type { WatchedHost } from '../../ops/net/watch/watch-hosts.ts'
import { commandOf, keyTable } from '../keys/key-table.ts'

export type WatchView = {
  readonly selected: string | undefined
  /** One host, its charts and its processes instead of the table. */
  readonly isDetailed: boolean
  /** For a measurement between them. */
  readonly marked?: ReadonlySet<string>
  /** The selected process of that host. */
  readonly pid: number | undefined
}

export const FIRST_VIEW: WatchView = { selected: undefined, isDetailed: false, pid: undefined }

/** What the Network tab shows. */
export type WatchState = {
  readonly view: WatchView
  /** Live, or of the recording that is replayed. */
  readonly hosts: readonly WatchedHost[]
  /** Of the host whose page is open; undefined: none is, or it is that of a recording. */
  readonly processes: WatchedProcesses | undefined
  readonly recording: 'on' | 'off' | ReplayView
}

/** `index`: from 0, the newest recording first. */
export type ReplayView = {
  readonly title: string
  readonly isPaused: boolean
  readonly index: number
  readonly count: number
  readonly nowMs: number
}

export const FIRST_WATCH: WatchState = { view: FIRST_VIEW, hosts: [], processes: undefined, recording: 'off' }

/** A value is marked from its limit on. */
export const LIMITS = {
  cpu: 0.9,
  memory: 0.9,
  swap: 0.5,
  full: 0.9,
  diskBusy: 0.95,
  /** Per core. */
  load: 2,
  gpuMemory: 0.95,
  celsius: 85,
} as const

/** In place of values, before the first ones. */
export const NO_SAMPLES = 'collecting data…'

export const lastOf = ({ samples }: WatchedHost): Sample | undefined => samples.at(-1)

export const gpuBusy = ({ gpus }: Sample): number | undefined => meanOf(gpus.flatMap(({ busy }) => busy ?? []))
export const gpuMemory = ({ gpus }: Sample): number | undefined =>
  mostOf(
    gpus.flatMap(({ usedBytes, totalBytes }) => (usedBytes === undefined || !totalBytes ? [] : usedBytes / totalBytes)),
  )
export const gpuHeat = ({ gpus }: Sample): number | undefined => mostOf(gpus.flatMap(({ celsius }) => celsius ?? []))

const mostOf = (values: readonly number[]): number | undefined =>
  values.length === 0 ? undefined : Math.max(...values)
const meanOf = (values: readonly number[]): number | undefined =>
  values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0) / values.length

export const memoryPart = ({ memoryUsedBytes, memoryBytes }: Sample): number =>
  memoryBytes === 0 ? 0 : memoryUsedBytes / memoryBytes
export const swapPart = ({ swapUsedBytes, swapBytes }: Sample): number =>
  swapBytes === 0 ? 0 : swapUsedBytes / swapBytes

/** As the tables show them. */
export type WatchRows = {
  readonly hosts: readonly WatchedHost[]
  readonly processes: readonly ProcessUse[]
}

function neighbour<R>(rows: readonly R[], isSelected: (row: R) => boolean, by: number): R | undefined {
  const at = rows.findIndex(isSelected)
  return rows[Math.max(0, Math.min(rows.length - 1, at + by))]
}

/** Rows down from the selected one, or from above the first row where none is selected. */
export function moveSelection(view: WatchView, rows: WatchRows, by: number): WatchView {
  if (view.isDetailed) return { ...view, pid: neighbour(rows.processes, ({ pid }) => pid === view.pid, by)?.pid }
  return { ...view, selected: neighbour(rows.hosts, ({ host }) => host === view.selected, by)?.host }
}

/** With the first row selected where the filter hides the selected one; as it is where it hides all. */
export function keptSelection(view: WatchView, rows: WatchRows): WatchView {
  const isThere = view.isDetailed ? rows.processes.length > 0 : rows.hosts.length > 0
  return isThere ? moveSelection(view, rows, 0) : view
}

const onTable = ({ isDetailed }: WatchView): boolean => !isDetailed
const onPage = ({ isDetailed }: WatchView): boolean => isDetailed

export const watchKeys = keyTable<WatchView>()(
  ['back', 'Esc q', 'back', 'Page of a host: go back to the table.', onPage],
  ['details', 'Enter', 'host', 'Show the page of the selected host: its charts and its processes.', onTable],
  // Of a recording, the arrows move in time.
  ['next', 'l Right', 'next host', 'Page of a host: show the next host.', onPage],
  ['previous', 'h Left', '', 'Page of a host: show the previous host.', onPage],
  ['up', 'Up k', '', 'Select the host or process above.'],
  ['down', 'Down j', '', 'Select the host or process below.'],
  ['page-up', 'PageUp b', '', 'Move ten rows up.'],
  ['page-down', 'PageDown f', '', 'Move ten rows down.'],
  ['first', 'Home g', '', 'Select the first host or process.'],
  ['last', 'End G', '', 'Select the last host or process.'],
)

const PAGE_ROWS = 10
const ALL = Number.MAX_SAFE_INTEGER
const STEPS = { up: -1, down: 1, 'page-up': -PAGE_ROWS, 'page-down': PAGE_ROWS, first: -ALL, last: ALL }

/** `leave`: the key leaves the table; undefined: it does nothing here. */
export function changeWatch(view: WatchView, rows: WatchRows, label: string): WatchView | 'leave' | undefined {
  const command = commandOf(watchKeys, label, view)
  switch (command) {
    case undefined:
      return label === 'Esc' || label === 'q' ? 'leave' : undefined
    case 'back':
      return { ...view, isDetailed: false, pid: undefined }
    case 'details': {
      if (view.isDetailed) return undefined
      const chosen = rows.hosts.some(({ host }) => host === view.selected) ? view : moveSelection(view, rows, 0)
      return chosen.selected === undefined ? view : { ...chosen, isDetailed: true }
    }
    case 'next':
    case 'previous': {
      if (!view.isDetailed) return undefined
      const by = command === 'next' ? 1 : -1
      return { ...moveSelection({ ...view, isDetailed: false }, rows, by), isDetailed: true, pid: undefined }
    }
    default:
      return moveSelection(view, rows, STEPS[command])
  }
}
