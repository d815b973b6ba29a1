/** What is shown of the watched hosts, in the console's tab and on the screen of `muster net watch`, and how keys change it. Pure. */
import type { Sample } from '../../ops/net/watch/sample.ts'
import type { WatchedHost } from '../../ops/net/watch/watch-hosts.ts'
import { commandOf, keyTable } from '../keys/key-table.ts'

export const SORTS = ['host', 'cpu', 'memory', 'network', 'disk', 'gpu'] as const
export type Sort = (typeof SORTS)[number]

export type WatchView = {
  readonly sort: Sort
  readonly selected: string | undefined
  /** One host and its charts instead of the table. */
  readonly isDetailed: boolean
  /** For a measurement between them. */
  readonly marked?: ReadonlySet<string>
}

export const FIRST_VIEW: WatchView = { sort: 'host', selected: undefined, isDetailed: false }

/** What the Network tab shows. */
export type WatchState = {
  readonly view: WatchView
  /** Live, or of the recording that is replayed. */
  readonly hosts: readonly WatchedHost[]
  readonly recording: 'on' | 'off' | ReplayView
}

/** `index`: from 0, the newest recording first. */
export type ReplayView = {
  readonly title: string
  readonly index: number
  readonly count: number
  readonly nowMs: number
}

export const FIRST_WATCH: WatchState = { view: FIRST_VIEW, hosts: [], recording: 'off' }

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

const trafficOf = ({ receivedBytes = 0, sentBytes = 0 }: Sample): number => receivedBytes + sentBytes

const KEYS: Readonly<Record<Exclude<Sort, 'host'>, (sample: Sample) => number>> = {
  cpu: ({ cpu }) => cpu,
  memory: memoryPart,
  network: trafficOf,
  disk: ({ readBytes = 0, writtenBytes = 0 }) => readBytes + writtenBytes,
  gpu: (sample) => gpuBusy(sample) ?? -1,
}

/** Highest first; hosts without samples and the console's own machine come last, in the order of the inventory. */
export function sortHosts(hosts: readonly WatchedHost[], sort: Sort): readonly WatchedHost[] {
  if (sort === 'host') return hosts
  const value = (host: WatchedHost) => {
    const sample = host.trouble === undefined && host.isOwn !== true ? lastOf(host) : undefined
    return sample === undefined ? Number.NEGATIVE_INFINITY : KEYS[sort](sample)
  }
  return hosts.toSorted((one, other) => value(other) - value(one) || 0)
}

/** Rows down from the selected one, or the first row where none is selected. */
export function moveSelection(view: WatchView, hosts: readonly WatchedHost[], by: number): WatchView {
  const order = sortHosts(hosts, view.sort)
  const at = order.findIndex(({ host }) => host === view.selected)
  const next = at < 0 ? 0 : Math.max(0, Math.min(order.length - 1, at + by))
  return { ...view, selected: order[next]?.host }
}

export const nextSort = (view: WatchView): WatchView => ({
  ...view,
  sort: SORTS[(SORTS.indexOf(view.sort) + 1) % SORTS.length] ?? 'host',
})

const onTable = ({ isDetailed }: WatchView): boolean => !isDetailed

export const watchKeys = keyTable<WatchView>()(
  ['back', 'q Esc', 'back', 'Go back from one host to the table; from the table, leave.'],
  ['details', 'Enter', 'details', 'Chart the last 15 minutes of the selected host.', onTable],
  ['sort', 's', 'sort', 'Sort by the next column.', onTable],
  ['up', 'Up k', '', 'Select the host above.'],
  ['down', 'Down j', '', 'Select the host below.'],
  ['page-up', 'PageUp b', '', 'Move ten hosts up.'],
  ['page-down', 'PageDown f', '', 'Move ten hosts down.'],
)

const PAGE_ROWS = 10

/** `leave`: the key leaves the table; undefined: it does nothing here. */
export function changeWatch(
  view: WatchView,
  hosts: readonly WatchedHost[],
  label: string,
): WatchView | 'leave' | undefined {
  const command = commandOf(watchKeys, label)
  switch (command) {
    case undefined:
      return undefined
    case 'back':
      return view.isDetailed ? { ...view, isDetailed: false } : 'leave'
    case 'details': {
      const chosen = view.selected === undefined ? moveSelection(view, hosts, 0) : view
      return chosen.selected === undefined ? view : { ...chosen, isDetailed: true }
    }
    case 'sort':
      return nextSort(view)
    default: {
      const by = command === 'up' || command === 'down' ? 1 : PAGE_ROWS
      return moveSelection(view, hosts, command === 'up' || command === 'page-up' ? -by : by)
    }
  }
}
