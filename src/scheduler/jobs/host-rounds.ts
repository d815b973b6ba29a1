/**
 * The driver's rounds with hosts and engines: orders there, answers back. One round at a time with each; none waits for another.
 * Whatever it remembers is also in the store or on the hosts.
 */
import { type Clock, hasPassed } from '../../base/clock.ts'
import type { HostCapacity } from '../model/resources.ts'
import { type EngineOrder, engineBundle, type JobEngine } from './engine.ts'
import { HostClock, HostLine, type JobHosts } from './host-line.ts'
import { parseHostAnswer } from './host-program.ts'
import type { Job, SeenBundle } from './job.ts'
import { formatDetachedClean } from './left.ts'
import { MetricReader } from './metric-reader.ts'
import { ordersFor } from './orders.ts'
import {
  type AnyRecord,
  chooseOrders,
  type DriverHost,
  type EngineRecord,
  type HostRecord,
  isDue,
  type JobOrder,
  NOT_YET,
  newEngineRecord,
  newHostRecord,
  planNextPoll,
  pollSoon,
  specOf,
  wantsFacts,
} from './place-record.ts'
import type { Reading } from './results.ts'
import type { JobStore, SchedulerReport } from './store.ts'

const SWEEP_MS = 86_400_000
/** Between two readings of what to keep: hosts become due one by one, and reading takes a while with a long queue. */
const SWEEP_REST_MS = 5_000

export type RoundsOptions = {
  readonly store: JobStore
  readonly hosts: readonly DriverHost[]
  readonly port: JobHosts
  /** Those that hosts.yaml declares. */
  readonly engines?: readonly JobEngine[]
  readonly clock: Clock
  readonly signal: AbortSignal
  /** What ended jobs left on hosts is removed after this many days; undefined: never. */
  readonly keepDays?: number
}

export type RoundsHandlers = {
  onAnswer(): void
  onTrouble(place: string, trouble: string | undefined): void
  onFailure(error: unknown): void
}

export type Answer = {
  /** What it says of bundles elsewhere is not believed. */
  readonly place: string
  /** Of the place that was polled; undefined: bundles told it by themselves. */
  readonly record: AnyRecord | undefined
  readonly bundles: ReadonlyMap<string, SeenBundle>
  readonly readings: readonly Reading[]
}

type Asked = {
  readonly trouble: string | undefined
  readonly bundles?: Answer['bundles']
  readonly readings?: readonly Reading[]
}

export class HostRounds implements Disposable {
  readonly #options: RoundsOptions
  readonly #handlers: RoundsHandlers
  readonly #hosts: ReadonlyMap<string, HostRecord>
  readonly #engines: readonly EngineRecord[]
  readonly #addresses: ReadonlyMap<string, string>
  readonly #orders = new WeakMap<Job, readonly JobOrder[]>()
  readonly #metrics: MetricReader
  /** Collected until the driver takes them, so that one wait for the disk is for all of them. */
  #answers: Answer[] = []
  #underWay = 0
  #sweptMs = 0
  #isDisposed = false

  constructor(options: RoundsOptions, handlers: RoundsHandlers) {
    this.#options = options
    this.#handlers = handlers
    const { hosts, engines = [], store } = options
    this.#metrics = new MetricReader(store.id, store.results.unread())
    this.#addresses = new Map(hosts.map(({ name, address }) => [name, address]))
    this.#hosts = new Map(
      hosts.map((spec) => {
        const clock = new HostClock()
        return [spec.name, newHostRecord(spec, this.#lineTo(spec.name, clock), clock)]
      }),
    )
    this.#engines = engines.map(newEngineRecord)
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    for (const { line } of this.#hosts.values()) line[Symbol.dispose]()
  }

  /** Nothing is under way, and no answer or metric is left to be read. */
  get isAtRest(): boolean {
    if (this.#underWay > 0 || this.#answers.length > 0) return false
    return ![...this.#hosts.values()].some(
      ({ name, trouble }) => (trouble === undefined || trouble === NOT_YET) && this.#metrics.hasEnded(name),
    )
  }

  get hasAnswers(): boolean {
    return this.#answers.length > 0
  }

  takeAnswers(): readonly Answer[] {
    return this.#answers.splice(0)
  }

  /** Some host has neither answered nor failed to. */
  get isGathering(): boolean {
    return [...this.#hosts.values()].some(({ trouble }) => trouble === NOT_YET)
  }

  /** Those that can be used now. */
  engines(): readonly JobEngine[] {
    return this.#engines.flatMap(({ engine, trouble }) => (trouble === undefined ? [engine] : []))
  }

  specs(): readonly HostCapacity[] {
    return [...this.#hosts.values()].map(specOf)
  }

  /** For those who watch. A host that has not answered yet is reported as it was `before`. */
  report(before: readonly HostCapacity[] = []): Pick<SchedulerReport, 'hosts' | 'down'> {
    const known = new Map(before.map((host) => [host.name, host]))
    const hosts = [...this.#hosts.values()].map((record) => {
      const { spec, trouble } = record
      if (trouble !== NOT_YET) return specOf(record)
      const { cpuMilli = 0, memoryBytes = 0 } = { ...known.get(spec.name), ...spec }
      return { ...specOf(record), cpuMilli, memoryBytes, isDrained: false }
    })
    const down = this.#places.flatMap(({ name, trouble }) =>
      trouble === undefined || trouble === NOT_YET ? [] : [[name, trouble]],
    )
    return { hosts, down: Object.fromEntries(down) }
  }

  hasDue(nowMs: number): boolean {
    return this.#places.some((record) => !record.isBusy && isDue(record, nowMs))
  }

  send(nowMs: number): void {
    this.#planSweeps(nowMs)
    const orders = Map.groupBy(
      this.#options.store.active().flatMap((job) => this.#ordersOf(job, nowMs)),
      ({ host }) => host,
    )
    for (const record of this.#places) {
      const chosen = chooseOrders(record, orders.get(record.name) ?? [], nowMs)
      if (chosen !== undefined) void this.#round(record, chosen).catch(this.#handlers.onFailure)
    }
  }

  /** A metric may still have to be read where the job was. */
  noteEnd(job: Job): void {
    const record = this.#hosts.get(this.#metrics.noteEnd(job) ?? '')
    if (record !== undefined) pollSoon(record, this.#options.clock.now())
  }

  get #places(): readonly AnyRecord[] {
    return [...this.#hosts.values(), ...this.#engines]
  }

  #lineTo(host: string, hostClock: HostClock): HostLine {
    const { port, clock } = this.#options
    const record = () => this.#hosts.get(host) as HostRecord
    const onNotice = (text: string) => {
      const { bundles } = parseHostAnswer(text, (upS) => hostClock.toMs(upS))
      this.#answers.push({ place: host, record: undefined, bundles, readings: [] })
      if ([...bundles.values()].some(hasFoundNoRoom)) {
        record().factsMs = undefined
        pollSoon(record(), clock.now())
      }
      this.#handlers.onAnswer()
    }
    return new HostLine({ host, port, clock, hostClock, onNotice, onLost: () => pollSoon(record(), clock.now()) })
  }

  /** Those of a job that is ending change with time. */
  #ordersOf(job: Job, nowMs: number): readonly JobOrder[] {
    const known = this.#orders.get(job)
    if (known !== undefined) return known
    const orders = ordersFor(job, this.#options.store.id, this.#addresses, nowMs).map((order) => ({ ...order, job }))
    if (job.state.kind !== 'ending') this.#orders.set(job, orders)
    return orders
  }

  async #round(
    record: AnyRecord,
    { orders, isWhole }: { readonly orders: readonly JobOrder[]; readonly isWhole: boolean },
  ): Promise<void> {
    const { clock, signal } = this.#options
    record.isBusy = true
    this.#underWay++
    const asked = await ('engine' in record ? this.#askEngine(record, orders) : this.#askHost(record, orders, isWhole))
    record.isBusy = false
    this.#underWay--
    if (this.#isDisposed || signal.aborted) return
    const { name, trouble: before } = record
    const { trouble, bundles, readings = [] } = asked
    record.trouble = trouble
    if (trouble !== before) this.#handlers.onTrouble(name, trouble)
    if (bundles !== undefined) this.#answers.push({ place: name, record, bundles, readings })
    if (trouble !== undefined || isWhole) planNextPoll(record, before !== undefined, orders.length > 0, clock.now())
    if (trouble === undefined && this.#metrics.hasEnded(name)) pollSoon(record, clock.now())
    this.#handlers.onAnswer()
  }

  async #askEngine({ engine }: EngineRecord, orders: readonly JobOrder[]): Promise<Asked> {
    const { trouble, reports } = await engine.round(orders.map(engineOrderOf), this.#options.signal)
    const bundles = [...reports].map(([key, report]) => [key, engineBundle(report, engine.name)] as const)
    return { trouble, bundles: new Map(bundles) }
  }

  async #askHost(record: HostRecord, orders: readonly JobOrder[], isWhole: boolean): Promise<Asked> {
    const { clock, store } = this.#options
    const { name } = record
    const { sweep } = record
    if (isWhole) record.sweep = ''
    const result = await record.line.round({
      orders: orders.map(({ order }) => order),
      wantsFacts: wantsFacts(record, orders, isWhole, clock.now()),
      besides: isWhole ? this.#metrics.programFor(name, store.active(), clock.now()) + sweep : '',
    })
    if (result.kind === 'trouble') return { trouble: result.reason }
    const { facts, trouble, bundles } = parseHostAnswer(result.text, (upS) => record.clock.toMs(upS))
    if (facts !== undefined) {
      record.facts = facts
      record.factsMs = clock.now()
    }
    const reason = trouble ?? (record.facts ? undefined : "could not parse the host's answer")
    return { trouble: reason, bundles, readings: this.#metrics.take(name, result.text) }
  }

  /** Once a day on each host that answers; what to keep is read once for all that are due. */
  #planSweeps(nowMs: number): void {
    const { keepDays, store } = this.#options
    if (keepDays === undefined || !hasPassed(this.#sweptMs, SWEEP_REST_MS, nowMs)) return
    const due = [...this.#hosts.values()].filter(
      ({ trouble, isBusy, sweptMs }) => trouble === undefined && !isBusy && hasPassed(sweptMs, SWEEP_MS, nowMs),
    )
    if (due.length === 0) return
    this.#sweptMs = nowMs
    // Those of all hosts, as hosts that share a home see each other's directories.
    const kept = store.keptDirectories()
    for (const record of due) {
      record.sweptMs = nowMs
      record.nextMs = nowMs
      record.sweep = formatDetachedClean(store.id, kept, keepDays)
    }
  }
}

function hasFoundNoRoom(bundle: SeenBundle): boolean {
  return bundle.kind === 'ended' && bundle.end.kind === 'exit' && bundle.end.isUnwritten === true
}

/** Hosts and devices are known to the engine alone, which sets their variables itself. */
function engineOrderOf({ job: { spec }, order }: JobOrder): EngineOrder {
  if (order.kind !== 'start') return { kind: order.kind, key: order.key }
  const { MUSTER_JOB = '', MUSTER_ATTEMPT = '', MUSTER_GPU_MILLI = '' } = order.run.environment
  const environment = { ...spec.environment, MUSTER_JOB, MUSTER_ATTEMPT, MUSTER_GPU_MILLI }
  return { kind: 'start', key: order.key, spec, environment }
}
