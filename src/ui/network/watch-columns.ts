/** The columns of the host table, in the order of importance. Pure. */
import type { Sample } from '../../ops/net/watch/sample.ts'
import { percentOf, shortAmount } from '../rows/rows-pane.ts'
import { gpuBusy, gpuHeat, gpuMemory, LIMITS, memoryPart, type Sort, swapPart } from './watch-view.ts'

export type Column = {
  readonly title: string
  readonly width: number
  /** What sorts by it. */
  readonly sort?: Sort
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
  { ...part('CPU', 5, LIMITS.cpu, cpu), sort: 'cpu', spark: { value: cpu, most: 1 } },
  { ...part('MEM', 5, LIMITS.memory, memoryPart), sort: 'memory', spark: { value: memoryPart, most: 1 } },
  { ...part('GPU', 5, undefined, gpuBusy), sort: 'gpu', spark: { value: gpuBusy, most: 1 }, has: hasGpus },
  { ...part('VRAM', 5, LIMITS.gpuMemory, gpuMemory), has: hasGpus },
  {
    title: 'IN/s',
    width: 6,
    sort: 'network',
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
    sort: 'disk',
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
  { title: 'NFS ms', width: 7, text: ({ nfs }) => nfs?.roundTripMs?.toFixed(1), has: hasNfs },
  {
    title: '°C',
    width: 5,
    text: (sample) => gpuHeat(sample)?.toFixed(0),
    value: gpuHeat,
    limit: LIMITS.celsius,
    has: hasGpus,
  },
]
