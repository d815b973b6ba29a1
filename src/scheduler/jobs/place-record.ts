/** What the driver knows of a place (a host or an engine), and when it polls it again. */
import { hasPassed } from '../../base/clock.ts'
import type { HostCapacity } from '../model/resources.ts'
import { enginePlace, type JobEngine } from './engine.ts'
import type { HostClock, HostLine } from './host-line.ts'
import type { BundleOrder, HostAnswer } from './host-program.ts'
import type { Job } from './job.ts'
import type { PlacedOrder } from './orders.ts'

export type DriverHost = {
  readonly name: string
  /** How other hosts reach it. */
  readonly address: string
  /** As declared; undefined: asked of the host. */
  readonly cpuMilli?: number
  readonly memoryBytes?: number
  readonly gpuCount: number
  readonly labels: Readonly<Record<string, string>>
  readonly custom: HostCapacity['custom']
}

/** Between two polls: short after one found something, then longer and longer. */
const HOST_POLL_MS = { soon: 100, late: 2_000 }
const IDLE_MS = 10_000
const FIRST_RETRY_MS = 1_000
const LAST_RETRY_MS = 10_000
/** Between two readings of a host's facts, which test whether its disk can be written: homes may be on a shared server. */
const STARTING_FACTS_MS = 10_000
const BUSY_FACTS_MS = 60_000
const IDLE_FACTS_MS = 300_000
export const NOT_YET = 'no answer yet'

type PlaceRecord = {
  readonly name: string
  readonly pollMs: JobEngine['pollMs']
  trouble: string | undefined
  isBusy: boolean
  nextMs: number
  waitMs: number
  /** Orders that it got: new ones are sent at once. */
  sent: ReadonlySet<string>
}

export type HostRecord = PlaceRecord & {
  readonly spec: DriverHost
  readonly line: HostLine
  readonly clock: HostClock
  facts: HostAnswer['facts']
  /** Undefined: wanted at the next poll. */
  factsMs: number | undefined
  sweptMs: number
  /** A program to run along with the next poll; empty: none. */
  sweep: string
}

export type EngineRecord = PlaceRecord & { readonly engine: JobEngine }

export type AnyRecord = HostRecord | EngineRecord

export type JobOrder = PlacedOrder & { readonly job: Job }

const fresh = (name: string, pollMs: JobEngine['pollMs']) => ({
  name,
  pollMs,
  isBusy: false,
  nextMs: 0,
  waitMs: pollMs.soon,
  sent: new Set<string>(),
})

export function newHostRecord(spec: DriverHost, line: HostLine, clock: HostClock): HostRecord {
  const unknown = { facts: undefined, factsMs: undefined, trouble: NOT_YET }
  return { ...fresh(spec.name, HOST_POLL_MS), ...unknown, spec, line, clock, sweptMs: 0, sweep: '' }
}

export function newEngineRecord(engine: JobEngine): EngineRecord {
  return { ...fresh(enginePlace(engine.name), engine.pollMs), trouble: undefined, engine }
}

/** A clock that was set back makes a poll due at once. */
export function isDue({ nextMs, pollMs }: Pick<PlaceRecord, 'nextMs' | 'pollMs'>, nowMs: number): boolean {
  return nowMs >= nextMs || nextMs - nowMs > Math.max(IDLE_MS, LAST_RETRY_MS, pollMs.late)
}

/**
 * Which orders go to a place now, and whether it is asked about everything; undefined: none. A host reports by itself, so only
 * new orders are sent between polls; an engine reports nothing, and is not polled while it has no jobs.
 */
export function chooseOrders(record: AnyRecord, own: readonly JobOrder[], nowMs: number) {
  const isEngine = 'engine' in record
  if (record.isBusy || (isEngine && own.length === 0 && record.trouble === undefined)) return undefined
  const isPoll = isDue(record, nowMs)
  const isNew = ({ order }: JobOrder) => (isEngine || order.kind !== 'check') && !record.sent.has(wordOf(order))
  const news = record.trouble === undefined ? own.filter(isNew) : []
  if (!isPoll && news.length === 0) return undefined
  // A bundle that was told to stop may end without a report.
  if (news.some(({ order }) => isEngine || order.kind === 'stop')) record.waitMs = record.pollMs.soon
  if (news.length > 0) pollWithin(record, Math.min(record.pollMs.late, record.waitMs), nowMs)
  const isWhole = isPoll || isEngine || record.line.isNew
  const orders = isWhole ? own : news
  const kept = own.filter(({ order }) => record.sent.has(wordOf(order)))
  record.sent = new Set([...orders, ...kept].map(({ order }) => wordOf(order)))
  return { orders, isWhole }
}

/** Facts show when a host's trouble is over; a start that finds no room reports it by itself. */
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

export function planNextPoll(record: AnyRecord, wasDown: boolean, hasOrders: boolean, nowMs: number): void {
  const { trouble, waitMs, pollMs } = record
  if (trouble === undefined) record.waitMs = Math.min(waitMs * 2, hasOrders ? pollMs.late : IDLE_MS)
  else record.waitMs = wasDown ? Math.min(LAST_RETRY_MS, Math.max(FIRST_RETRY_MS, waitMs * 2)) : FIRST_RETRY_MS
  record.nextMs = nowMs + record.waitMs
}

/** A poll found something that was not reported: there may be more. */
export function pollSoon(record: AnyRecord, nowMs: number): void {
  record.waitMs = record.pollMs.soon
  pollWithin(record, record.waitMs, nowMs)
}

function pollWithin(record: AnyRecord, waitMs: number, nowMs: number): void {
  record.nextMs = Math.min(record.nextMs, nowMs + waitMs)
}

function wordOf(order: BundleOrder): string {
  return `${order.kind} ${order.key} ${order.kind === 'stop' ? order.signal : ''}`
}

export function specOf({ spec, facts, trouble }: HostRecord): HostCapacity {
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
