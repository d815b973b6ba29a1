/**
 * The rounds of a driver with its hosts, and with Ray: orders there, answers back. One round at a time a host; no host waits
 * for another. It keeps nothing that is not in the store or on the hosts.
 */
import { type Clock, hasPassed } from '../../base/clock.ts'
import type { HostSpec } from '../model/resources.ts'
import { formatDetachedClean } from './clean-program.ts'
import { HostClock } from './host-clock.ts'
import { HostLine, type JobHosts } from './host-line.ts'
import { type HostAnswer, parseHostAnswer, parseUp } from './host-program.ts'
import {
  chooseOrders,
  type DriverHost,
  type HostRecord,
  isDue,
  isRay,
  type JobOrder,
  lookSoon,
  NOT_YET,
  newRecord,
  planNextLook,
  specOf,
  wantsFacts,
} from './host-record.ts'
import type { BundleState, Job } from './job.ts'
import { MetricReader } from './metric-reader.ts'
import { ordersFor } from './orders.ts'
import { RAY_PLACE, type RayEngine, type RayOrder } from './ray-jobs.ts'
import type { Reading } from './results.ts'
import type { JobStore, QueueView } from './store.ts'

const SWEEP_MS = 86_400_000
/** Between two readings of what must stay: hosts become due one after another, and with a long queue it takes a while. */
const SWEEP_REST_MS = 5_000

export type RoundsOptions = {
  readonly store: JobStore
  readonly hosts: readonly DriverHost[]
  readonly port: JobHosts
  /** Where hosts.yaml declares a Ray cluster. */
  readonly ray?: RayEngine
  readonly clock: Clock
  readonly signal: AbortSignal
  /** What ended jobs left on hosts is removed after so many days; undefined: never. */
  readonly keepDays?: number
}

export type RoundsHandlers = {
  /** There is an answer to take. */
  onAnswer(): void
  onTrouble(host: string, trouble: string | undefined): void
  onFailure(error: unknown): void
}

/** `record`: it came of a look, and others did not tell it. */
export type Answer = {
  /** What it says of bundles elsewhere is not believed. */
  readonly host: string
  readonly record: HostRecord | undefined
  readonly bundles: HostAnswer['bundles']
  readonly readings: readonly Reading[]
}

export class HostRounds implements Disposable {
  readonly #options: RoundsOptions
  readonly #handlers: RoundsHandlers
  readonly #records: ReadonlyMap<string, HostRecord>
  readonly #addresses: ReadonlyMap<string, string>
  readonly #orders = new WeakMap<Job, readonly JobOrder[]>()
  readonly #metrics: MetricReader
  /** What nobody has looked at yet: one wait for the disk is for all of it. */
  #answers: Answer[] = []
  #underWay = 0
  #sweptMs = 0
  #isDisposed = false

  constructor(options: RoundsOptions, handlers: RoundsHandlers) {
    this.#options = options
    this.#handlers = handlers
    const { hosts, ray, store } = options
    this.#metrics = new MetricReader(store.id, store.results.unread())
    this.#addresses = new Map(hosts.map(({ name, address }) => [name, address]))
    const place = { name: RAY_PLACE, address: RAY_PLACE, gpuCount: 0, labels: {}, custom: undefined }
    this.#records = new Map([
      ...hosts.map((spec) => {
        const hostClock = new HostClock()
        return [spec.name, newRecord(spec, this.#lineTo(spec.name, hostClock), hostClock)] as const
      }),
      ...(ray === undefined ? [] : [[RAY_PLACE, newRecord(place, undefined)] as const]),
    ])
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    for (const { line } of this.#records.values()) line?.[Symbol.dispose]()
  }

  /** Nothing is asked, answered or left to be read. */
  get isAtRest(): boolean {
    if (this.#underWay > 0 || this.#answers.length > 0) return false
    return ![...this.#records.values()].some(
      ({ spec, trouble }) => (trouble === undefined || trouble === NOT_YET) && this.#metrics.hasEnded(spec.name),
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
    return [...this.#records.values()].some(({ trouble }) => trouble === NOT_YET)
  }

  get hasRay(): boolean {
    const record = this.#records.get(RAY_PLACE)
    return record !== undefined && record.trouble === undefined
  }

  specs(): readonly HostSpec[] {
    return this.#hostRecords.map(specOf)
  }

  /** For those who watch. A host that has not been heard of yet is taken to be as it was `before`. */
  sight(before: readonly HostSpec[] = []): Pick<QueueView, 'hosts' | 'down'> {
    const known = new Map(before.map((host) => [host.name, host]))
    const hosts = this.#hostRecords.map((record) => {
      const { spec, trouble } = record
      if (trouble !== NOT_YET) return specOf(record)
      const { cpuMilli = 0, memoryBytes = 0 } = { ...known.get(spec.name), ...spec }
      return { ...specOf(record), cpuMilli, memoryBytes, isDrained: false }
    })
    const down = [...this.#records.values()].flatMap(({ spec, trouble }) =>
      trouble === undefined || trouble === NOT_YET ? [] : [[spec.name, trouble]],
    )
    return { hosts, down: Object.fromEntries(down) }
  }

  hasDue(nowMs: number): boolean {
    return [...this.#records.values()].some((record) => !record.isBusy && isDue(record, nowMs))
  }

  /** To each host that is free what is to be done there now. */
  send(nowMs: number): void {
    this.#planSweeps(nowMs)
    const orders = Map.groupBy(
      this.#options.store.active().flatMap((job) => this.#ordersOf(job, nowMs)),
      ({ host }) => host,
    )
    for (const [name, record] of this.#records) {
      const chosen = chooseOrders(record, orders.get(name) ?? [], nowMs)
      if (chosen !== undefined) void this.#round(record, chosen).catch(this.#handlers.onFailure)
    }
  }

  /** Something may be read of it where it was. */
  noteEnd(job: Job): void {
    const record = this.#records.get(this.#metrics.noteEnd(job) ?? '')
    if (record !== undefined) lookSoon(record, this.#options.clock.now())
  }

  get #hostRecords(): readonly HostRecord[] {
    return [...this.#records.values()].filter((record) => !isRay(record))
  }

  #lineTo(host: string, hostClock: HostClock): HostLine {
    const { port, clock } = this.#options
    const record = () => this.#records.get(host) as HostRecord
    const onNotice = (text: string) => {
      const { bundles } = parseHostAnswer(text, (upS) => hostClock.toMs(upS))
      this.#answers.push({ host, record: undefined, bundles, readings: [] })
      if ([...bundles.values()].some(hasFoundNoRoom)) {
        record().factsMs = undefined
        lookSoon(record(), clock.now())
      }
      this.#handlers.onAnswer()
    }
    return new HostLine({ host, port, clock, hostClock, onNotice, onLost: () => lookSoon(record(), clock.now()) })
  }

  /** Those of one that ends change with time. */
  #ordersOf(job: Job, nowMs: number): readonly JobOrder[] {
    const known = this.#orders.get(job)
    if (known !== undefined) return known
    const orders = ordersFor(job, this.#options.store.id, this.#addresses, nowMs).map((order) => ({ ...order, job }))
    if (job.state.kind !== 'ending') this.#orders.set(job, orders)
    return orders
  }

  async #round(
    record: HostRecord,
    { orders, isWhole }: { readonly orders: readonly JobOrder[]; readonly isWhole: boolean },
  ): Promise<void> {
    const { ray, clock, signal, store } = this.#options
    const { name } = record.spec
    record.isBusy = true
    this.#underWay++
    const sentMs = clock.now()
    const result =
      record.line === undefined
        ? await ray?.round(orders.map(rayOrderOf), signal)
        : await record.line.round({
            orders: orders.map(({ order }) => order),
            wantsFacts: wantsFacts(record, orders, isWhole, clock.now()),
            besides: `${isWhole ? this.#metrics.programFor(name, store.active(), clock.now()) : ''}${isWhole ? takeSweep(record) : ''}`,
          })
    record.isBusy = false
    this.#underWay--
    if (this.#isDisposed || signal.aborted || result === undefined) return
    if (record.line === undefined && result.kind === 'answer') noteTime(record, result.text, sentMs, clock.now())
    const answer = result.kind === 'answer' ? parseHostAnswer(result.text, (upS) => record.clock.toMs(upS)) : undefined
    if (answer?.facts !== undefined) {
      record.facts = answer.facts
      record.factsMs = clock.now()
    }
    const before = record.trouble
    record.trouble =
      result.kind === 'trouble'
        ? result.reason
        : (answer?.trouble ?? (record.facts ? undefined : 'it answered something else than was asked'))
    if (record.trouble !== before) this.#handlers.onTrouble(name, record.trouble)
    if (answer !== undefined && result.kind === 'answer')
      this.#answers.push({
        host: name,
        record,
        bundles: answer.bundles,
        readings: this.#metrics.take(name, result.text),
      })
    if (record.trouble !== undefined || isWhole)
      planNextLook(record, before !== undefined, orders.length > 0, clock.now())
    if (record.trouble === undefined && this.#metrics.hasEnded(name)) lookSoon(record, clock.now())
    this.#handlers.onAnswer()
  }

  /** Once a day on each host that answers. What must stay is read once for all that are due. */
  #planSweeps(nowMs: number): void {
    const { keepDays, store } = this.#options
    if (keepDays === undefined || !hasPassed(this.#sweptMs, SWEEP_REST_MS, nowMs)) return
    const due = this.#hostRecords.filter(
      ({ trouble, isBusy, sweptMs }) => trouble === undefined && !isBusy && hasPassed(sweptMs, SWEEP_MS, nowMs),
    )
    if (due.length === 0) return
    this.#sweptMs = nowMs
    // Those of all hosts: hosts that share a home have the directories of each other.
    const kept = store.keptDirectories()
    for (const record of due) {
      record.sweptMs = nowMs
      record.nextMs = nowMs
      record.sweep = formatDetachedClean(store.id, kept, keepDays)
    }
  }
}

/** It goes with one round alone. */
function takeSweep(record: HostRecord): string {
  const { sweep } = record
  record.sweep = ''
  return sweep
}

/** Ray has no line of its own that would do it. */
function noteTime({ clock }: HostRecord, text: string, sentMs: number, heardMs: number): void {
  const upS = text
    .split('\n')
    .map(parseUp)
    .find((seconds) => seconds !== undefined)
  if (upS !== undefined) clock.note(upS, sentMs, heardMs)
}

function hasFoundNoRoom(bundle: BundleState): boolean {
  return bundle.kind === 'ended' && bundle.end.kind === 'exit' && bundle.end.isUnwritten === true
}

function rayOrderOf({ job, order }: JobOrder): RayOrder {
  return order.kind === 'start' ? { ...order, job } : { kind: order.kind, key: order.key }
}
