/** What the driver knows of a host while it drives, and when it asks it again. */
import { hasPassed } from '../../base/clock.ts'
import type { HostSpec } from '../model/resources.ts'
import { HostClock } from './host-clock.ts'
import type { HostLine } from './host-line.ts'
import type { BundleOrder, HostAnswer } from './host-program.ts'
import type { Job } from './job.ts'
import type { PlacedOrder } from './orders.ts'
import { RAY_PLACE } from './ray-jobs.ts'

export type DriverHost = {
  readonly name: string
  /** Under which other hosts reach it. */
  readonly address: string
  /** As declared; what is not declared is asked of the host. */
  readonly cpuMilli?: number
  readonly memoryBytes?: number
  readonly gpuCount: number
  readonly labels: Readonly<Record<string, string>>
  readonly custom: HostSpec['custom']
}

/** Between two looks at a host: short after one found something, longer and longer while none does. */
const SOON_MS = 100
const LATE_MS = 2_000
const IDLE_MS = 10_000
const FIRST_RETRY_MS = 1_000
const LAST_RETRY_MS = 10_000
/** Between two looks at its facts, of which one is whether its disk takes anything: homes may be on a server that all share. */
const STARTING_FACTS_MS = 10_000
const BUSY_FACTS_MS = 60_000
const IDLE_FACTS_MS = 300_000
export const NOT_YET = 'it has not answered yet'

export type HostRecord = {
  readonly spec: DriverHost
  /** Undefined: no host. */
  readonly line: HostLine | undefined
  readonly clock: HostClock
  facts: HostAnswer['facts']
  trouble: string | undefined
  isBusy: boolean
  nextMs: number
  waitMs: number
  sweptMs: number
  /** A program that goes with the next look; empty: none. */
  sweep: string
  /** When its facts were seen; undefined: they are wanted at the next look. */
  factsMs: number | undefined
  /** Orders that it has had: others go at once. */
  had: ReadonlySet<string>
}

export type JobOrder = PlacedOrder & { readonly job: Job }

export function newRecord(spec: DriverHost, line: HostLine | undefined, clock = new HostClock()): HostRecord {
  return {
    spec,
    line,
    clock,
    facts: undefined,
    trouble: line === undefined ? undefined : NOT_YET,
    isBusy: false,
    nextMs: 0,
    waitMs: SOON_MS,
    sweptMs: 0,
    sweep: '',
    factsMs: undefined,
    had: new Set(),
  }
}

export const isRay = ({ spec }: Pick<HostRecord, 'spec'>): boolean => spec.name === RAY_PLACE

/** A clock that was set back makes a look due at once. */
export function isDue({ nextMs }: Pick<HostRecord, 'nextMs'>, nowMs: number): boolean {
  return nowMs >= nextMs || nextMs - nowMs > Math.max(IDLE_MS, LAST_RETRY_MS)
}

/** Which orders go to a host now, and whether it is asked about everything; undefined: none. */
export function chooseOrders(record: HostRecord, own: readonly JobOrder[], nowMs: number) {
  if (record.isBusy || (isRay(record) && own.length === 0 && record.trouble === undefined)) return undefined
  const isLook = isDue(record, nowMs)
  const news = record.trouble === undefined ? own.filter((order) => isNews(record, order)) : []
  if (!isLook && news.length === 0) return undefined
  // Who was told to end may do so without a word.
  if (news.some(({ order }) => isRay(record) || order.kind === 'stop')) record.waitMs = SOON_MS
  if (news.length > 0) lookWithin(record, Math.min(LATE_MS, record.waitMs), nowMs)
  const isWhole = isLook || isRay(record) || record.line?.isNew === true
  const orders = isWhole ? own : news
  const kept = own.filter(({ order }) => record.had.has(wordOf(order)))
  record.had = new Set([...orders, ...kept].map(({ order }) => wordOf(order)))
  return { orders, isWhole }
}

/** What is wrong with a host is mended where its facts say so; a start that finds no room is told by itself. */
export function wantsFacts(
  { trouble, factsMs }: HostRecord,
  orders: readonly JobOrder[],
  isWhole: boolean,
  nowMs: number,
): boolean {
  const isStarting = orders.some(({ order }) => order.kind === 'start')
  if (!isWhole && !isStarting) return false
  if (trouble !== undefined || factsMs === undefined) return true
  const everyMs = isStarting ? STARTING_FACTS_MS : orders.length > 0 ? BUSY_FACTS_MS : IDLE_FACTS_MS
  return hasPassed(factsMs, everyMs, nowMs)
}

/** After it was asked. */
export function planNextLook(record: HostRecord, wasDown: boolean, hasOrders: boolean, nowMs: number): void {
  const { trouble, waitMs } = record
  record.waitMs =
    trouble === undefined ? Math.min(waitMs * 2, hasOrders ? LATE_MS : IDLE_MS) : nextRetry(wasDown, waitMs)
  record.nextMs = nowMs + record.waitMs
}

/** A look found what nobody had told: others may have something, too. */
export function lookSoon(record: HostRecord, nowMs: number): void {
  record.waitMs = SOON_MS
  lookWithin(record, SOON_MS, nowMs)
}

function lookWithin(record: HostRecord, waitMs: number, nowMs: number): void {
  record.nextMs = Math.min(record.nextMs, nowMs + waitMs)
}

/** What a host tells by itself needs no look; Ray tells nothing. */
function isNews(record: HostRecord, { order }: JobOrder): boolean {
  return (isRay(record) || order.kind !== 'look') && !record.had.has(wordOf(order))
}

function wordOf(order: BundleOrder): string {
  return `${order.kind} ${order.key} ${order.kind === 'stop' ? order.signal : ''}`
}

function nextRetry(wasDown: boolean, waitMs: number): number {
  return wasDown ? Math.min(LAST_RETRY_MS, Math.max(FIRST_RETRY_MS, waitMs * 2)) : FIRST_RETRY_MS
}

export function specOf({ spec, facts, trouble }: HostRecord): HostSpec {
  const { name, gpuCount, labels, custom } = spec
  return {
    name,
    cpuMilli: spec.cpuMilli ?? (facts?.cores ?? 0) * 1000,
    memoryBytes: spec.memoryBytes ?? facts?.memoryBytes ?? 0,
    gpus: Array.from({ length: gpuCount }, () => ''),
    labels,
    ...(custom === undefined ? {} : { custom }),
    isDrained: trouble !== undefined,
  }
}
