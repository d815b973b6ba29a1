/** The columns of the host table, in the order of importance. Pure. */
import type { Sample } from '../../ops/net/watch/sample.ts'
import type { WatchedHost } from '../../ops/net/watch/watch-hosts.ts'
import { percentOf, shortAmount } from '../rows/rows-pane.ts'
import { findHost, shownRows, type TableColumn, type TableFrame, type TableView } from '../rows/table-view.ts'
import { gpuBusy, gpuHeat, gpuMemory, LIMITS, lastOf, memoryPart, NO_SAMPLES, swapPart } from './watch-view.ts'

export type Column = {
  readonly title: string
  readonly width: number
  /** What it is sorted by, if that is neither its sparkline nor its value. */
  order?(sample: Sample): number | undefined
  /** Undefined: not known. */
  text(sample: Sample): string | undefined
  /** Marked when it reaches `limit`. */
  value?(sample: Sample): number | undefined
  readonly limit?: number
  readonly spark?: Spark
  /** A column that no host has is left out. */
  has?(sample: Sample): boolean
}

export type Spark = {
  value(sample: Sample): number | undefined
  /** The value of a full bar; undefined: the highest of all hosts. */
  readonly most?: number
  /** Of outgoing traffic; has another colour than incoming. */
  readonly isOut?: boolean
  /** Only in wide panes. */
  readonly isExtra?: boolean
}

const amount = (value: number | undefined) => (value === undefined ? undefined : shortAmount(value))
const percent = (value: number | undefined) => (value === undefined ? undefined : percentOf(value))
const hasGpus = ({ gpus }: Sample) => gpus.length > 0
const hasNfs = ({ nfs }: Sample) => nfs !== undefined
/** A percentage, marked from its limit on. */
const part = (
  title: string,
  width: number,
  limit: number | undefined,
  value: (sample: Sample) => number | undefined,
): Pick<Column, 'title' | 'width' | 'text' | 'value' | 'limit'> => ({
  title,
  width,
  text: (sample) => percent(value(sample)),
  value,
  ...(limit === undefined ? {} : { limit }),
})

const cpu = ({ cpu: value }: Sample) => value

export const COLUMNS: readonly Column[] = [
  { ...part('CPU', 5, LIMITS.cpu, cpu), spark: { value: cpu, most: 1 } },
  { ...part('MEM', 5, LIMITS.memory, memoryPart), spark: { value: memoryPart, most: 1 } },
  { ...part('GPU', 5, undefined, gpuBusy), spark: { value: gpuBusy, most: 1 }, has: hasGpus },
  { ...part('VRAM', 5, LIMITS.gpuMemory, gpuMemory), has: hasGpus },
  {
    title: 'IN/s',
    width: 6,
    text: ({ receivedBytes }) => amount(receivedBytes),
    spark: { value: ({ receivedBytes }) => receivedBytes, isExtra: true },
  },
  {
    title: 'OUT/s',
    width: 6,
    text: ({ sentBytes }) => amount(sentBytes),
    spark: { value: ({ sentBytes }) => sentBytes, isOut: true, isExtra: true },
  },
  {
    title: 'READ/s',
    width: 7,
    text: ({ readBytes }) => amount(readBytes),
    spark: { value: ({ readBytes }) => readBytes, isExtra: true },
  },
  {
    title: 'WRITE/s',
    width: 8,
    text: ({ writtenBytes }) => amount(writtenBytes),
    value: ({ diskBusy }) => diskBusy,
    limit: LIMITS.diskBusy,
    spark: { value: ({ writtenBytes }) => writtenBytes, isOut: true, isExtra: true },
  },
  part('FULL', 6, LIMITS.full, ({ fullest }) => fullest?.used),
  {
    title: 'LOAD',
    width: 6,
    text: ({ load }) => load?.toFixed(load < 100 ? 1 : 0),
    value: ({ load, cores }) => (load === undefined || cores === 0 ? undefined : load / cores),
    limit: LIMITS.load,
  },
  { ...part('SWAP', 5, LIMITS.swap, swapPart), has: ({ swapBytes }) => swapBytes > 0 },
  {
    title: 'NFS/s',
    width: 6,
    text: ({ nfs }) => nfs && shortAmount(nfs.readBytes + nfs.writtenBytes),
    has: hasNfs,
    spark: { value: ({ nfs }) => nfs && nfs.readBytes + nfs.writtenBytes, isExtra: true },
  },
  {
    title: 'NFS ms',
    width: 7,
    text: ({ nfs }) => nfs?.roundTripMs?.toFixed(1),
    order: ({ nfs }) => nfs?.roundTripMs,
    has: hasNfs,
  },
  {
    title: '°C',
    width: 5,
    text: (sample) => gpuHeat(sample)?.toFixed(0),
    value: gpuHeat,
    limit: LIMITS.celsius,
    has: hasGpus,
  },
]

/** The id of its pane. */
export const HOSTS = ' network'
export const NAME = 'HOST'

/** Silent hosts and the console's own machine are last in every order. */
const sampleOf = (host: WatchedHost): Sample | undefined =>
  host.trouble === undefined && host.isOwn !== true ? lastOf(host) : undefined

/** What is drawn in place of its values; empty: they are. */
export const insteadOfValues = (host: WatchedHost): string =>
  host.trouble ?? (lastOf(host) === undefined ? NO_SAMPLES : '')

export const hostColumns: readonly TableColumn<WatchedHost>[] = [
  { title: NAME, text: ({ host }) => host, find: findHost(({ host }) => host) },
  { title: 'TROUBLE', text: insteadOfValues },
  ...COLUMNS.map(({ title, text, order, spark, value }): TableColumn<WatchedHost> => {
    const amount = order ?? spark?.value ?? value
    return {
      title,
      isAmount: true,
      isDescending: true,
      text: (host) => {
        const sample = host.trouble === undefined ? lastOf(host) : undefined
        return (sample && text(sample)) ?? ''
      },
      order: (host) => {
        const sample = sampleOf(host)
        return sample && amount?.(sample)
      },
    }
  }),
]

export function hostsFrame(hosts: readonly WatchedHost[]): TableFrame {
  const samples = hosts.flatMap((host) => sampleOf(host) ?? [])
  const shown = COLUMNS.filter(({ has }) => has === undefined || samples.some(has))
  return { id: HOSTS, columns: [NAME, ...shown.map(({ title }) => title)], sorted: NAME }
}

/** Unless sorted by a value, in the order of the inventory. */
export const shownHosts = (hosts: readonly WatchedHost[], view: TableView): readonly WatchedHost[] =>
  shownRows(hosts, hostColumns, view.sort === NAME ? { ...view, sort: undefined } : view)
