/**
 * Drives a queue: looks at what was sent to hosts, plans, sends more. It keeps nothing that is not in the store or on the
 * hosts, so that it may end at any moment and another one carries on. One round at a time a host; no host waits for another.
 */
import type { Clock } from '../../base/clock.ts'
import type { HostSpec } from '../model/resources.ts'
import type { Usage } from '../plan/turn.ts'
import { formatCleanProgram } from './clean-program.ts'
import {
  type BundleOrder,
  formatHostProgram,
  type HostAnswer,
  parseHostAnswer,
  type RoundResult,
} from './host-program.ts'
import { isActive, type Job, type JobEvent } from './job.ts'
import { bundleKey, ordersFor, type PlacedOrder } from './orders.ts'
import { planJobs } from './plan-jobs.ts'
import { isRayJob, RAY_PLACE, type RayEngine, type RayOrder, sendToRay } from './ray-jobs.ts'
import type { JobStore, Lease, QueueView } from './store.ts'

export interface JobHosts {
  /** Runs a program of POSIX sh on a host. Never rejects. */
  round(host: string, program: string, signal: AbortSignal): Promise<RoundResult>
}

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

export type DriverOptions = {
  readonly store: JobStore
  readonly lease: Lease
  readonly hosts: readonly DriverHost[]
  readonly port: JobHosts
  /** Where hosts.yaml declares a Ray cluster. */
  readonly ray?: RayEngine
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly isPreempting: boolean
  /** What ended jobs left on hosts is removed after so many days; undefined: never. */
  readonly keepDays?: number
  /** Ends when nothing waits and nothing runs; held ones do not count. */
  readonly isUntilEmpty: boolean
  onEvent?(event: DriverEvent): void
}

export type DriverEvent =
  | { readonly kind: 'job'; readonly job: Job }
  | { readonly kind: 'host'; readonly host: string; readonly trouble: string | undefined }

export const LEASE_MS = 20_000
const RENEW_MS = 5_000
/** How soon it notices what others write to the queue. */
const TICK_MS = 50
/** Between two looks at a host: short after something happened, longer and longer while nothing does. */
const SOON_MS = 100
const LATE_MS = 2_000
const IDLE_MS = 10_000
const FIRST_RETRY_MS = 1_000
const LAST_RETRY_MS = 10_000
/** How many of those that wait are looked at in one plan. */
const DEPTH = 1_000
const VIEW_MS = 1_000
const NOT_YET = 'it has not answered yet'
const SWEEP_MS = 86_400_000

type HostRecord = {
  readonly spec: DriverHost
  facts: HostAnswer['facts']
  trouble: string | undefined
  isBusy: boolean
  nextMs: number
  waitMs: number
  sweptMs: number
  /** Orders that it has had: others go at once. */
  had: ReadonlySet<string>
}

const NO_USAGE: Usage = new Map()

type JobOrder = PlacedOrder & { readonly job: Job }

type Answer = {
  readonly record: HostRecord
  readonly orders: readonly JobOrder[]
  readonly bundles: HostAnswer['bundles']
}

export async function driveJobs(options: DriverOptions): Promise<void> {
  await new JobDriver(options).run()
}

/** Whether nothing runs and nothing waits but held ones. */
export function isEmpty(store: JobStore): boolean {
  return store.active().length === 0 && store.queued(1).length === 0
}

class JobDriver {
  readonly #options: DriverOptions
  readonly #records: ReadonlyMap<string, HostRecord>
  readonly #addresses: ReadonlyMap<string, string>
  #wake = () => {}
  #isDirty = true
  #rounds = 0
  #tickedMs = 0
  #renewedMs = 0
  #plannedMs = 0
  #viewedMs = 0
  #orphansMs = 0
  /** Whether something ended that is not done, and others may have waited for it. */
  #mayOrphan = true
  #version = -1
  #failure: unknown
  /** What hosts have answered and nobody has looked at yet: one wait for the disk is for all of it. */
  #answers: Answer[] = []

  constructor(options: DriverOptions) {
    this.#options = options
    this.#addresses = new Map(options.hosts.map(({ name, address }) => [name, address]))
    const ray = { name: RAY_PLACE, address: RAY_PLACE, gpuCount: 0, labels: {}, custom: undefined }
    this.#records = new Map(
      [...options.hosts, ...(options.ray ? [ray] : [])].map((spec) => [
        spec.name,
        {
          spec,
          facts: undefined,
          trouble: spec.name === RAY_PLACE ? undefined : NOT_YET,
          isBusy: false,
          nextMs: 0,
          waitMs: SOON_MS,
          sweptMs: 0,
          had: new Set<string>(),
        },
      ]),
    )
  }

  async run(): Promise<void> {
    const { signal } = this.#options
    const stop = () => this.#wake()
    signal.addEventListener('abort', stop)
    try {
      while (!signal.aborted) {
        this.#tick()
        if (this.#isDone()) {
          const nowMs = this.#options.clock.now()
          this.#options.store.together(() => this.#view(nowMs, {}))
          return
        }
        await this.#pause()
        if (this.#failure !== undefined) throw this.#failure
      }
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  #isDone(): boolean {
    const { store, isUntilEmpty } = this.#options
    return isUntilEmpty && this.#rounds === 0 && this.#answers.length === 0 && isEmpty(store)
  }

  async #pause(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    const timer = this.#options.clock.after(TICK_MS, resolve)
    await promise
    timer[Symbol.dispose]()
  }

  #tick(): void {
    const { store, lease, clock } = this.#options
    const nowMs = clock.now()
    if (nowMs < this.#tickedMs) this.#forgetTimes()
    this.#tickedMs = nowMs
    if (nowMs - this.#renewedMs >= RENEW_MS) {
      store.renewLease(lease, nowMs, LEASE_MS)
      this.#renewedMs = nowMs
    }
    const version = store.version()
    if (version !== this.#version) {
      this.#version = version
      this.#isDirty = true
      this.#mayOrphan = true
    }
    const isDue = this.#isDirty || this.#answers.length > 0 || nowMs - this.#plannedMs >= VIEW_MS
    if (isDue) this.#look(nowMs)
    if (isDue || [...this.#records.values()].some((record) => !record.isBusy && nowMs >= record.nextMs))
      this.#send(nowMs)
  }

  #look(nowMs: number): void {
    const changed = new Set<number>()
    this.#options.store.together(() => {
      this.#note(changed)
      this.#endOverdue(nowMs, changed)
    })
    this.#plan(nowMs, changed)
    this.#tell(changed)
  }

  /** The clock was set back: what is due at a later time than ever comes is due now. */
  #forgetTimes(): void {
    this.#renewedMs = 0
    this.#plannedMs = 0
    this.#viewedMs = 0
    this.#orphansMs = 0
    for (const record of this.#records.values()) record.nextMs = 0
  }

  #endOverdue(nowMs: number, changed: Set<number>): void {
    const overdue = this.#options.store.active().filter(({ state, spec }) => {
      if (spec.limitS === undefined || state.kind !== 'running') return false
      return nowMs - state.startedMs > spec.limitS * 1000
    })
    this.#apply(
      overdue.map(({ id }) => ({ id, event: { kind: 'stop', reason: 'timed-out' } })),
      changed,
    )
  }

  #plan(nowMs: number, changed: Set<number>): void {
    const { store, lease, isPreempting } = this.#options
    this.#plannedMs = nowMs
    if (this.#mayOrphan && nowMs - this.#orphansMs >= VIEW_MS) {
      // Those that wait for the cancelled ones are found in the next look.
      this.#mayOrphan = store.cancelOrphans(nowMs, lease) > 0
      this.#orphansMs = nowMs
    }
    const hosts = [...this.#records.values()].flatMap((record) => (isRay(record) ? [] : [specOf(record)]))
    const waiting = store
      .ready(DEPTH)
      .filter(({ state }) => state.kind === 'queued' && (state.notBeforeMs ?? 0) <= nowMs)
    const active = store.active()
    if (this.#options.ray !== undefined && this.#records.get(RAY_PLACE)?.trouble === undefined)
      this.#apply(sendToRay(waiting, active), changed)
    const { events, expectedS } = planJobs({
      hosts,
      active: active.filter((job) => !isRayJob(job)),
      waiting: waiting.filter((job) => !isRayJob(job)),
      runTimes: store.runTimes(),
      usage: this.#usageOf(waiting, nowMs),
      nowMs,
      isPreempting,
    })
    // Nobody has to wait for the plan to write; what it finds changed meanwhile stays as it is.
    store.together(() => {
      this.#apply(events, changed)
      if (nowMs - this.#viewedMs >= VIEW_MS) this.#view(nowMs, expectedS)
    })
    // What was planned is no news for the next plan.
    this.#isDirty = false
  }

  /** A host that has not been heard of yet is taken to be as it was last. */
  #view(nowMs: number, expectedS: QueueView['expectedS']): void {
    const { store, lease } = this.#options
    this.#viewedMs = nowMs
    const known = new Map(store.view()?.hosts.map((host) => [host.name, host]))
    const records = [...this.#records.values()]
    const hosts = records
      .filter((record) => !isRay(record))
      .map((record) => {
        const { spec, trouble } = record
        if (trouble !== NOT_YET) return specOf(record)
        const { cpuMilli = 0, memoryBytes = 0 } = { ...known.get(spec.name), ...spec }
        return { ...specOf(record), cpuMilli, memoryBytes, isDrained: false }
      })
    const down = records.flatMap(({ spec, trouble }) =>
      trouble === undefined || trouble === NOT_YET ? [] : [[spec.name, trouble]],
    )
    store.writeView({ atMs: nowMs, hosts, down: Object.fromEntries(down), expectedS }, lease)
  }

  /** One user alone shares with nobody. */
  #usageOf(waiting: readonly Job[], nowMs: number): Usage {
    const first = waiting[0]?.user
    return waiting.some(({ user }) => user !== first) ? this.#options.store.usage(nowMs) : NO_USAGE
  }

  #send(nowMs: number): void {
    const orders = new Map<string, JobOrder[]>()
    for (const job of this.#options.store.active())
      for (const order of ordersFor(job, this.#options.store.id, this.#addresses, nowMs)) {
        const own = orders.get(order.host) ?? []
        orders.set(order.host, own)
        own.push({ ...order, job })
      }
    for (const [name, record] of this.#records) {
      if (record.isBusy) continue
      const own = orders.get(name) ?? []
      if (isRay(record) && own.length === 0 && record.trouble === undefined) continue
      const words = new Set(own.map(({ order }) => wordOf(order)))
      const hasNew = record.trouble === undefined && [...words].some((word) => !record.had.has(word))
      if (!hasNew && nowMs < record.nextMs) continue
      record.had = words
      if (hasNew) record.waitMs = SOON_MS
      void this.#round(name, record, own).catch((error: unknown) => {
        this.#failure = error
        this.#wake()
      })
    }
  }

  async #round(name: string, record: HostRecord, orders: readonly JobOrder[]): Promise<void> {
    const { port, ray, signal } = this.#options
    record.isBusy = true
    this.#rounds++
    const result =
      ray !== undefined && isRay(record)
        ? await ray.round(orders.map(rayOrderOf), signal)
        : await port.round(name, formatHostProgram(orders.map(({ order }) => order)) + this.#sweepOf(record), signal)
    record.isBusy = false
    this.#rounds--
    if (signal.aborted) return
    const answer = result.kind === 'answer' ? parseHostAnswer(result.text) : undefined
    const trouble =
      result.kind === 'trouble'
        ? result.reason
        : (answer?.trouble ?? (answer?.facts ? undefined : 'it answered something else than was asked'))
    if (trouble !== record.trouble) {
      this.#isDirty = true
      this.#options.onEvent?.({ kind: 'host', host: name, trouble })
    }
    const wasDown = record.trouble !== undefined
    record.trouble = trouble
    record.facts = answer?.facts ?? record.facts
    if (answer !== undefined) this.#answers.push({ record, orders, bundles: answer.bundles })
    const waitMs = trouble === undefined ? record.waitMs * 2 : nextRetry(wasDown, record.waitMs)
    record.waitMs = trouble === undefined ? Math.min(waitMs, orders.length > 0 ? LATE_MS : IDLE_MS) : waitMs
    record.nextMs = this.#options.clock.now() + record.waitMs
    this.#wake()
  }

  /** Once a day on each host that answers. */
  #sweepOf(record: HostRecord): string {
    const { keepDays, store, clock } = this.#options
    if (keepDays === undefined || record.trouble !== undefined || clock.now() - record.sweptMs < SWEEP_MS) return ''
    record.sweptMs = clock.now()
    return formatCleanProgram(store.id, store.keptDirectories(), keepDays)
  }

  /** Hosts whose bundles are others than they were are looked at again soon. */
  #note(changed: Set<number>): void {
    const { store, clock } = this.#options
    for (const { record, orders, bundles } of this.#answers.splice(0)) {
      const events = orders.flatMap(({ job, rank }) => {
        const bundle = bundles.get(bundleKey(store.id, job, rank))
        const before = isActive(job.state) ? job.state.bundles[rank] : undefined
        if (bundle === undefined || bundle.kind === before?.kind) return []
        return [{ id: job.id, attempt: job.attempt, event: { kind: 'seen', rank, bundle } as const }]
      })
      if (events.length === 0) continue
      if (record.trouble === undefined) {
        record.waitMs = SOON_MS
        record.nextMs = Math.min(record.nextMs, clock.now() + SOON_MS)
      }
      // What was cancelled and tried again meanwhile is another attempt, of which this answer says nothing.
      this.#apply(
        events.filter(({ id, attempt }) => store.get(id)?.attempt === attempt),
        changed,
      )
    }
  }

  #apply(events: readonly { readonly id: number; readonly event: JobEvent }[], changed: Set<number>): void {
    if (events.length === 0) return
    const { store, clock, lease } = this.#options
    store.applyAll(events, clock.now(), lease)
    this.#isDirty = true
    for (const { id, event } of events) {
      changed.add(id)
      if (event.kind !== 'seen' || event.bundle.kind !== 'ended') continue
      const { end } = event.bundle
      if (end.kind !== 'exit' || end.code !== 0) this.#mayOrphan = true
    }
  }

  /** After it is on disk. */
  #tell(changed: ReadonlySet<number>): void {
    const { store, onEvent } = this.#options
    if (onEvent === undefined) return
    for (const id of changed) {
      const job = store.get(id)
      if (job) onEvent({ kind: 'job', job })
    }
  }
}

const isRay = ({ spec }: Pick<HostRecord, 'spec'>): boolean => spec.name === RAY_PLACE

function rayOrderOf({ job, order }: JobOrder): RayOrder {
  return order.kind === 'start' ? { ...order, job } : { kind: order.kind, key: order.key }
}

function wordOf(order: BundleOrder): string {
  return `${order.kind} ${order.key} ${order.kind === 'stop' ? order.signal : ''}`
}

function nextRetry(wasDown: boolean, waitMs: number): number {
  return wasDown ? Math.min(LAST_RETRY_MS, Math.max(FIRST_RETRY_MS, waitMs * 2)) : FIRST_RETRY_MS
}

function specOf({ spec, facts, trouble }: HostRecord): HostSpec {
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
