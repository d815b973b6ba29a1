/**
 * Drives a queue: hears and looks what became of what was sent to hosts, plans, sends more. It keeps nothing that is not in the
 * store or on the hosts, so that it may end at any moment and another one carries on. One round at a time a host; no host
 * waits for another. Bundles tell when they begin and end; looks find what nobody told.
 */
import type { Clock } from '../../base/clock.ts'
import type { Usage } from '../plan/turn.ts'
import { formatCleanProgram } from './clean-program.ts'
import type { Lease } from './driver-lease.ts'
import { HostLine, type JobHosts } from './host-line.ts'
import { type HostAnswer, parseHostAnswer } from './host-program.ts'
import {
  chooseOrders,
  type DriverHost,
  type HostRecord,
  isRay,
  type JobOrder,
  lookSoon,
  NOT_YET,
  newRecord,
  planNextLook,
  specOf,
  wantsFacts,
} from './host-record.ts'
import { type BundleState, isActive, type Job, type JobEvent } from './job.ts'
import { MetricReader } from './metric-reader.ts'
import { ordersFor, parseBundleKey } from './orders.ts'
import { planJobs } from './plan-jobs.ts'
import { isRayJob, RAY_PLACE, type RayEngine, type RayOrder, sendToRay } from './ray-jobs.ts'
import type { Reading } from './results.ts'
import type { JobStore, QueueView } from './store.ts'

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
  /** Calls back, later only, when somebody may have written to the queue. */
  watchStore?(onWrite: () => void): Disposable
}

export type DriverEvent =
  | { readonly kind: 'job'; readonly job: Job }
  | { readonly kind: 'host'; readonly host: string; readonly trouble: string | undefined }

export const LEASE_MS = 20_000
const RENEW_MS = 5_000
/** How soon it notices what others write to the queue, where nobody tells it. */
const TICK_MS = 50
/** What comes meanwhile is seen together: it rests as long as the last tick took, within these. */
const LEAST_REST_MS = 4
const MOST_REST_MS = 50
/** How many of those that wait are looked at in one plan. */
const DEPTH = 1_000
const VIEW_MS = 1_000
const SWEEP_MS = 86_400_000
/** At first gangs, and with them all whose turn is later, wait so long for hosts to answer or to fail. */
const GATHER_MS = 2_000

const NO_USAGE: Usage = new Map()

/** `record`: it came of a look, and others did not tell it. */
type Answer = {
  readonly record: HostRecord | undefined
  readonly bundles: HostAnswer['bundles']
  readonly readings: readonly Reading[]
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
  readonly #orders = new WeakMap<Job, readonly JobOrder[]>()
  #resume = () => {}
  /** Something has come since the last tick began. */
  #isAwake = false
  #isResting = false
  #isDirty = true
  #rounds = 0
  #tickedMs = 0
  #renewedMs = 0
  readonly #beganMs: number
  #plannedMs = 0
  #viewedMs = 0
  #orphansMs = 0
  /** Whether something ended that is not done, and others may have waited for it. */
  #mayOrphan = true
  #version = -1
  #failure: unknown
  #hasEnded = false
  /** What hosts have answered and nobody has looked at yet: one wait for the disk is for all of it. */
  #answers: Answer[] = []
  readonly #metrics: MetricReader

  constructor(options: DriverOptions) {
    this.#options = options
    this.#beganMs = options.clock.now()
    this.#metrics = new MetricReader(options.store.id, options.store.results.unread())
    this.#addresses = new Map(options.hosts.map(({ name, address }) => [name, address]))
    const ray = { name: RAY_PLACE, address: RAY_PLACE, gpuCount: 0, labels: {}, custom: undefined }
    this.#records = new Map(
      [...options.hosts, ...(options.ray ? [ray] : [])].map((spec) => [
        spec.name,
        newRecord(spec, spec.name === RAY_PLACE ? undefined : this.#lineTo(spec.name)),
      ]),
    )
  }

  async run(): Promise<void> {
    const { signal, clock } = this.#options
    const stop = () => {
      this.#wake()
      this.#resume()
    }
    signal.addEventListener('abort', stop)
    using _ = this.#options.watchStore?.(() => this.#noticeWrite())
    try {
      while (!signal.aborted) {
        const sinceMs = clock.now()
        this.#isAwake = false
        this.#tick()
        if (this.#isDone()) {
          const nowMs = clock.now()
          this.#options.store.together(() => this.#view(nowMs, {}))
          return
        }
        await this.#pause(Math.min(MOST_REST_MS, Math.max(LEAST_REST_MS, clock.now() - sinceMs)), true)
        if (!this.#isAwake) await this.#pause(TICK_MS, false)
        if (this.#failure !== undefined) throw this.#failure
      }
    } finally {
      this.#hasEnded = true
      signal.removeEventListener('abort', stop)
      for (const { line } of this.#records.values()) line?.[Symbol.dispose]()
    }
  }

  /** Its own writes are none for it. */
  #noticeWrite(): void {
    if (this.#isAwake) return
    try {
      if (this.#options.store.file.version() !== this.#version) this.#wake()
    } catch (error) {
      this.#failure = error
      this.#wake()
    }
  }

  #lineTo(host: string): HostLine {
    const { port, clock } = this.#options
    const onNotice = (text: string) => {
      const { bundles } = parseHostAnswer(text)
      this.#answers.push({ record: undefined, bundles, readings: [] })
      const record = this.#records.get(host)
      if (record && [...bundles.values()].some(hasFoundNoRoom)) {
        record.factsMs = undefined
        lookSoon(record, clock.now())
      }
      this.#wake()
    }
    const onLost = () => {
      const record = this.#records.get(host)
      if (record) lookSoon(record, clock.now())
    }
    return new HostLine({ host, port, clock, onNotice, onLost })
  }

  #isDone(): boolean {
    const { store, isUntilEmpty } = this.#options
    if (!isUntilEmpty || this.#rounds > 0 || this.#answers.length > 0 || !isEmpty(store)) return false
    return ![...this.#records.values()].some(
      ({ spec, trouble }) => (trouble === undefined || trouble === NOT_YET) && this.#metrics.hasEnded(spec.name),
    )
  }

  #wake(): void {
    if (this.#isAwake) return
    this.#isAwake = true
    if (!this.#isResting) this.#resume()
  }

  async #pause(forMs: number, isRest: boolean): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#isResting = isRest
    this.#resume = resolve
    using _ = this.#options.clock.after(forMs, resolve)
    await promise
  }

  #tick(): void {
    const { store, lease, clock } = this.#options
    const nowMs = clock.now()
    if (nowMs < this.#tickedMs) this.#forgetTimes()
    this.#tickedMs = nowMs
    if (nowMs - this.#renewedMs >= RENEW_MS) {
      store.lease.renew(lease, nowMs, LEASE_MS)
      this.#renewedMs = nowMs
    }
    const version = store.file.version()
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
    const changed = new Map<number, Job>()
    this.#options.store.together(() => {
      this.#note(changed)
      this.#endOverdue(nowMs, changed)
    })
    if (this.#isDirty || nowMs - this.#plannedMs >= VIEW_MS) this.#plan(nowMs, changed)
    this.#tell(changed)
  }

  /** The clock was set back: what is due at a later time than ever comes is due now. */
  #forgetTimes(): void {
    this.#renewedMs = 0
    this.#plannedMs = 0
    this.#viewedMs = 0
    this.#orphansMs = 0
    for (const record of this.#records.values()) {
      record.nextMs = 0
      record.factsMs = undefined
    }
  }

  #endOverdue(nowMs: number, changed: Map<number, Job>): void {
    const overdue = this.#options.store.active().filter(({ state, spec }) => {
      if (spec.limitS === undefined || state.kind !== 'running') return false
      return nowMs - state.startedMs > spec.limitS * 1000
    })
    this.#apply(
      overdue.map(({ id }) => ({ id, event: { kind: 'stop', reason: 'timed-out' } })),
      changed,
    )
  }

  #plan(nowMs: number, changed: Map<number, Job>): void {
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
    const own = waiting.filter((job) => !isRayJob(job))
    const { events, expectedS } = planJobs({
      hosts,
      active: active.filter((job) => !isRayJob(job)),
      waiting: this.#isGathering(own, nowMs) ? [] : own,
      runTimes: store.accounting.runTimes(),
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

  #isGathering(waiting: readonly Job[], nowMs: number): boolean {
    const isEarly = nowMs >= this.#beganMs && nowMs - this.#beganMs < GATHER_MS
    return (
      isEarly &&
      waiting.some(({ spec }) => spec.bundles > 1) &&
      [...this.#records.values()].some(({ trouble }) => trouble === NOT_YET)
    )
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
    const { store } = this.#options
    const first = waiting[0]?.user
    return waiting.some(({ user }) => user !== first) ? store.accounting.usage(store.active(), nowMs) : NO_USAGE
  }

  #send(nowMs: number): void {
    const orders = new Map<string, JobOrder[]>()
    for (const job of this.#options.store.active())
      for (const order of this.#ordersOf(job, nowMs)) {
        const own = orders.get(order.host) ?? []
        orders.set(order.host, own)
        own.push(order)
      }
    for (const [name, record] of this.#records) {
      const chosen = chooseOrders(record, orders.get(name) ?? [], nowMs)
      if (chosen === undefined) continue
      void this.#round(name, record, chosen.orders, chosen.isWhole).catch((error: unknown) => {
        this.#failure = error
        this.#wake()
      })
    }
  }

  /** Those of one that ends change with time. */
  #ordersOf(job: Job, nowMs: number): readonly JobOrder[] {
    const known = this.#orders.get(job)
    if (known !== undefined) return known
    const orders = ordersFor(job, this.#options.store.id, this.#addresses, nowMs).map((order) => ({ ...order, job }))
    if (job.state.kind !== 'ending') this.#orders.set(job, orders)
    return orders
  }

  async #round(name: string, record: HostRecord, orders: readonly JobOrder[], isWhole: boolean): Promise<void> {
    const { ray, clock, signal } = this.#options
    record.isBusy = true
    this.#rounds++
    const result =
      record.line === undefined
        ? await ray?.round(orders.map(rayOrderOf), signal)
        : await record.line.round({
            orders: orders.map(({ order }) => order),
            wantsFacts: wantsFacts(record, orders, isWhole, clock.now()),
            besides: `${isWhole ? this.#metrics.programFor(name, this.#options.store.active(), clock.now()) : ''}${this.#sweepOf(record)}`,
          })
    record.isBusy = false
    this.#rounds--
    if (this.#hasEnded || signal.aborted || result === undefined) return
    const answer = result.kind === 'answer' ? parseHostAnswer(result.text) : undefined
    if (answer?.facts !== undefined) {
      record.facts = answer.facts
      record.factsMs = clock.now()
    }
    const trouble =
      result.kind === 'trouble'
        ? result.reason
        : (answer?.trouble ?? (record.facts ? undefined : 'it answered something else than was asked'))
    if (trouble !== record.trouble) {
      this.#isDirty = true
      this.#options.onEvent?.({ kind: 'host', host: name, trouble })
    }
    const wasDown = record.trouble !== undefined
    record.trouble = trouble
    if (answer !== undefined && result.kind === 'answer')
      this.#answers.push({ record, bundles: answer.bundles, readings: this.#metrics.take(name, result.text) })
    if (trouble !== undefined || isWhole) planNextLook(record, wasDown, orders.length > 0, clock.now())
    if (trouble === undefined && this.#metrics.hasEnded(name)) lookSoon(record, clock.now())
    this.#wake()
  }

  /** Once a day on each host that answers. */
  #sweepOf(record: HostRecord): string {
    const { keepDays, store, clock } = this.#options
    if (keepDays === undefined || record.trouble !== undefined || clock.now() - record.sweptMs < SWEEP_MS) return ''
    record.sweptMs = clock.now()
    return formatCleanProgram(store.id, store.keptDirectories(), keepDays)
  }

  /** Hosts of which a look found what nobody told are looked at again soon. */
  #note(changed: Map<number, Job>): void {
    const { clock, store, lease } = this.#options
    const seen = new Map<string, BundleState>()
    const answers = this.#answers.splice(0)
    store.noteResults(
      answers.flatMap(({ readings }) => readings),
      lease,
    )
    for (const { record, bundles } of answers) {
      const news = [...bundles].filter(([key, bundle]) => seen.get(key)?.kind !== 'ended' && this.#isOther(key, bundle))
      for (const [key, bundle] of news) seen.set(key, bundle)
      if (news.length === 0 || record === undefined || record.trouble !== undefined) continue
      lookSoon(record, clock.now())
    }
    const events = [...seen].flatMap(([key, bundle]) => {
      const parsed = parseBundleKey(store.id, key)
      return parsed === undefined
        ? []
        : [{ id: parsed.id, event: { kind: 'seen', rank: parsed.rank, bundle } as const }]
    })
    this.#apply(events, changed)
  }

  /** Of another attempt, after one was cancelled and tried again, a word says nothing. */
  #isOther(key: string, bundle: BundleState): boolean {
    const { store } = this.#options
    const parsed = parseBundleKey(store.id, key)
    const job = parsed && store.get(parsed.id)
    if (job === undefined || job.attempt !== parsed?.attempt || !isActive(job.state)) return false
    const before = job.state.bundles[parsed.rank]
    return before !== undefined && before.kind !== 'ended' && before.kind !== bundle.kind
  }

  #apply(events: readonly { readonly id: number; readonly event: JobEvent }[], changed: Map<number, Job>): void {
    if (events.length === 0) return
    const { store, clock, lease } = this.#options
    const onChange = (job: Job) => void changed.set(job.id, job)
    store.applyAll(events, clock.now(), { lease, onChange })
    for (const { event } of events) {
      // Who begins where he was placed frees nothing, and nobody has to be placed anew.
      if (event.kind !== 'seen' || event.bundle.kind !== 'begun') this.#isDirty = true
      if (event.kind !== 'seen' || event.bundle.kind !== 'ended') continue
      const { end } = event.bundle
      if (end.kind !== 'exit' || end.code !== 0) this.#mayOrphan = true
    }
  }

  /** After it is on disk. */
  #tell(changed: ReadonlyMap<number, Job>): void {
    for (const job of changed.values()) {
      const record = this.#records.get(this.#metrics.noteEnd(job) ?? '')
      if (record !== undefined) lookSoon(record, this.#options.clock.now())
      this.#options.onEvent?.({ kind: 'job', job })
    }
  }
}

function hasFoundNoRoom(bundle: BundleState): boolean {
  return bundle.kind === 'ended' && bundle.end.kind === 'exit' && bundle.end.isUnwritten === true
}

function rayOrderOf({ job, order }: JobOrder): RayOrder {
  return order.kind === 'start' ? { ...order, job } : { kind: order.kind, key: order.key }
}
