/**
 * The driver's rounds with hosts and engines, and when it polls which: one round at a time with each; none waits for another.
 * Whatever it remembers is also in the store or on the hosts.
 */
import { type Clock, hasPassed } from '../../base/clock.ts'
import { defined } from '../../base/defined.ts'
import type { HostCapacity } from '../model/resources.ts'
import { type DriverHost, foundGpus, gpusOf } from './driver-host.ts'
import {
  type EngineOrder,
  type EngineRoom,
  type EngineWait,
  engineBundle,
  enginePlace,
  isSighting,
  type JobEngine,
  type ProveStorage,
  placeTitle,
} from './engine.ts'
import { HostClock, HostLine, type JobHosts } from './host-line.ts'
import { type BundleNews, type BundleOrder, type HostAnswer, parseHostAnswer } from './host-program.ts'
import { type BundlePlace, isActive, type Job, type JobEvent, type SeenBundle } from './job.ts'
import { formatDetachedClean } from './left.ts'
import { MetricReader } from './metric-reader.ts'
import { launchEvent, ordersFor, type PlacedOrder, parseBundleKey } from './orders.ts'
import type { PassInput } from './plan-jobs.ts'
import type { Reading } from './results.ts'
import { SilenceWatch } from './silence-watch.ts'
import { cannotProve, HostStorageGate, StorageGate } from './storage-gate.ts'
import type { JobStore, SchedulerReport } from './store.ts'

const SWEEP_MS = 86_400_000
/** Between two readings of what to keep: hosts become due one by one, and reading takes a while with a long queue. */
const SWEEP_REST_MS = 5_000

export type RoundsOptions = {
  readonly store: JobStore
  readonly hosts: readonly DriverHost[]
  /** How hosts reach each other, by name; undefined: as declared. */
  readonly addresses?: ReadonlyMap<string, string>
  readonly port: JobHosts
  /** Those that hosts.yaml declares. */
  readonly engines?: readonly JobEngine[]
  /** For launched jobs with --storage; without it none can begin. */
  readonly proveStorage?: ProveStorage
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
  readonly said?: ReadonlyMap<string, BundleNews> | undefined
  readonly readings: readonly Reading[]
}

type Asked = {
  readonly trouble: string | undefined
  readonly bundles?: Answer['bundles']
  readonly said?: Answer['said']
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
  readonly #gate: HostStorageGate
  readonly #silence: SilenceWatch
  /** Collected until the driver takes them, so that one wait for the disk is for all of them. */
  #answers: Answer[] = []
  #underWay = 0
  #sweptMs = 0
  #missedMs = 0
  #isDisposed = false

  constructor(options: RoundsOptions, handlers: RoundsHandlers) {
    this.#options = options
    this.#handlers = handlers
    const { hosts, engines = [], store } = options
    this.#silence = new SilenceWatch(store.id)
    this.#metrics = new MetricReader(store.id, store.results.unread())
    this.#addresses = options.addresses ?? new Map(hosts.map(({ name, address }) => [name, address]))
    this.#hosts = new Map(
      hosts.map((spec) => {
        const clock = new HostClock()
        return [spec.name, newHostRecord(spec, this.#lineTo(spec.name, clock), clock)]
      }),
    )
    this.#engines = engines.map((engine) => this.#newEngine(engine))
    const { clock, signal, proveStorage: prove = cannotProve } = options
    const onProved = () => this.#handlers.onAnswer()
    this.#gate = new HostStorageGate({ storeId: store.id, prove, signal, now: () => clock.now(), onProved })
  }

  #newEngine(engine: JobEngine): EngineRecord {
    const { clock, signal } = this.#options
    const onProved = () => {
      pollSoon(record, clock.now())
      this.#handlers.onAnswer()
    }
    const gate = new StorageGate({ engine, signal, now: () => clock.now(), onProved })
    const unknown = { trouble: undefined, address: undefined, room: undefined }
    const own = { ...unknown, engine, gate, wantsRoom: false, isReading: false }
    const record: EngineRecord = { ...fresh(enginePlace(engine.name), engine.pollMs), ...own }
    return record
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    for (const { line } of this.#hosts.values()) line[Symbol.dispose]()
  }

  /** Nothing is under way, and no answer or metric is left to be read. */
  get isAtRest(): boolean {
    if (this.#underWay > 0 || this.#answers.length > 0) return false
    return !this.#places.some(
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
  engines(): PassInput['engines'] {
    return this.#engines.flatMap(({ engine: { name, mostWaiting }, trouble, room }) =>
      trouble === undefined ? [{ name, mostWaiting, room }] : [],
    )
  }

  /** `names`: engines that have to say what is free. */
  wantRoom(names: ReadonlySet<string>, nowMs: number): void {
    for (const record of this.#engines) {
      const wantsRoom = names.has(record.engine.name)
      if (wantsRoom === record.wantsRoom) continue
      record.wantsRoom = wantsRoom
      record.room = undefined
      if (wantsRoom) pollSoon(record, nowMs)
    }
  }

  specs(): readonly HostCapacity[] {
    return [...this.#hosts.values()].map(specOf)
  }

  /** For programs that show the queue. A host that has not answered yet is as it was `before`; one that is down keeps its GPUs. */
  report(before: readonly HostCapacity[] = []): Omit<SchedulerReport, 'atMs' | 'expectedS' | 'isPreempting'> {
    const known = new Map(before.map((host) => [host.name, host]))
    const hosts = [...this.#hosts.values()].map((record) => {
      const { spec, trouble, facts } = record
      const last = known.get(spec.name)
      const own = { ...specOf(record), ...(facts === undefined ? gpusOf(spec, foundGpus(last)) : {}) }
      if (trouble !== NOT_YET) return own
      const { cpuMilli = 0, memoryBytes = 0 } = { ...last, ...spec }
      return { ...own, cpuMilli, memoryBytes, isDrained: false }
    })
    const troubles = this.#places.flatMap(({ name, trouble }) =>
      trouble === undefined || trouble === NOT_YET ? [] : [[name, trouble] as const],
    )
    const down = [...troubles, ...this.undeclared().map((name) => [name, UNDECLARED] as const)]
    const rooms = this.#engines.flatMap(({ engine, room }) => (room === undefined ? [] : [[engine.name, room]]))
    const byJob = <T>(byKey: ReadonlyMap<string, T> = new Map<string, T>()) =>
      [...byKey].map(([key, value]) => [parseBundleKey(this.#options.store.id, key)?.id ?? 0, value] as const)
    const waits = [...this.#engines.flatMap((record) => byJob(record.waits)), ...this.#elsewhere()]
    return {
      hosts,
      declared: this.#options.hosts,
      down: Object.fromEntries(down),
      ...(rooms.length === 0 ? {} : { rooms: Object.fromEntries(rooms) }),
      ...(waits.length === 0 ? {} : { waits: Object.fromEntries(waits) }),
    }
  }

  /** Where jobs run that can be followed no more, as hosts.yaml no longer declares it. */
  undeclared(): readonly string[] {
    const known = new Set(this.#places.map(({ name }) => name))
    const used = this.#options.store
      .active()
      .flatMap(({ state }) =>
        isActive(state) ? state.places.filter((_, rank) => state.bundles[rank]?.kind !== 'ended') : [],
      )
    return [...new Set(used.map(({ host }) => host))].filter((host) => !known.has(host))
  }

  /** The address of a bundle's host, if it had another one when the bundle was placed. */
  movedTo(job: Job | undefined, rank: number): string | undefined {
    return placeOf(job, rank)?.address === undefined ? undefined : this.newAddress(job, rank)
  }

  /** The address of a bundle's place, if it is not the one that the bundle has. */
  newAddress(job: Job | undefined, rank: number): string | undefined {
    const place = placeOf(job, rank)
    const address = this.#addressOf(place?.host)
    return place?.address === address ? undefined : address
  }

  #addressOf(place = ''): string | undefined {
    return this.#hosts.get(place)?.spec.address ?? this.#engines.find(({ name }) => name === place)?.address
  }

  withAddresses(event: JobEvent): JobEvent {
    if (event.kind !== 'placed') return event
    const places = event.places.map((place) => ({
      ...place,
      ...defined({ address: this.#addressOf(place.host) }),
    }))
    return { ...event, places }
  }

  /** By job, where it may still run, as the address of its host has changed. */
  #elsewhere(): readonly (readonly [id: number, wait: EngineWait])[] {
    return this.#options.store.active().flatMap((job) => {
      const { id, state } = job
      if (!isActive(state)) return []
      const rank = state.bundles.findIndex(
        ({ kind }, index) => kind !== 'ended' && this.movedTo(job, index) !== undefined,
      )
      const place = state.places[rank]
      if (place === undefined) return []
      const isHost = this.#hosts.has(place.host)
      const was = isHost
        ? `${place.host} had the address ${place.address} when this job was placed`
        : `${placeTitle(place.host)} was at ${place.address} when this job was handed over`
      const back = isHost ? 'Put the address back in hosts.yaml' : 'Put that back in hosts.yaml or the kubeconfig'
      const why = `${was}, and nothing of it is at ${this.movedTo(job, rank)}. ${back}, or give the job up: muster job cancel --forget ${id}`
      return [[id, { why }] as const]
    })
  }

  hasDue(nowMs: number): boolean {
    return this.#places.some((record) => !record.isBusy && isDue(record, nowMs))
  }

  send(nowMs: number): void {
    this.#planSweeps(nowMs)
    this.#missUndeclared(nowMs)
    const active = this.#options.store.active()
    const { waiting, ends } = this.#gate.judge(active)
    for (const [key, { host, end }] of ends) {
      const bundles = new Map([[key, { kind: 'ended', end } as const]])
      this.#answers.push({ place: host, record: undefined, bundles, readings: [] })
    }
    if (ends.size > 0) this.#handlers.onAnswer()
    const orders = Map.groupBy(
      active.flatMap((job) => (waiting.has(job) ? [] : this.#ordersOf(job, nowMs))),
      ({ host }) => host,
    )
    for (const record of this.#places) {
      const chosen = chooseOrders(record, orders.get(record.name) ?? [], nowMs, this.#metrics.hasEnded(record.name))
      if (chosen !== undefined) void this.#round(record, chosen).catch(this.#handlers.onFailure)
    }
  }

  /** What follows from what the bundles of launched jobs told. */
  launchEvents(): readonly { readonly id: number; readonly event: JobEvent }[] {
    return this.#options.store.active().flatMap((job) => {
      const event = launchEvent(job, this.#addresses)
      return event === undefined ? [] : [{ id: job.id, event }]
    })
  }

  /** Jobs that look stuck, and are to be stopped then. */
  stuck(nowMs: number): readonly { readonly id: number; readonly event: JobEvent }[] {
    return this.#silence.stuck(this.#options.store.active(), nowMs)
  }

  /** A metric may still have to be read where the job was. */
  noteEnd(job: Job, nowMs: number): void {
    const place = this.#metrics.noteEnd(job)
    const record = place === undefined ? undefined : this.#places.find(({ name }) => name === place)
    if (record !== undefined) pollNow(record, nowMs)
  }

  get #places(): readonly AnyRecord[] {
    return [...this.#hosts.values(), ...this.#engines]
  }

  #lineTo(host: string, hostClock: HostClock): HostLine {
    const { port, clock } = this.#options
    const record = () => this.#hosts.get(host) as HostRecord
    const onNotice = (text: string) => {
      const { bundles, said } = parseHostAnswer(text, hostClock)
      this.#answers.push({ place: host, record: undefined, bundles, said, readings: [] })
      if ([...bundles.values()].some((one) => one.kind === 'ended' && one.end.kind === 'exit' && one.end.isUnwritten)) {
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
    const orders = ordersFor(job, this.#options.store.id, this.#addresses, nowMs).map((placed): JobOrder => {
      const { order, rank } = placed
      // It is looked for, and neither started nor stopped on what may be another machine.
      const isElsewhere = this.movedTo(job, rank) !== undefined
      return { ...placed, job, order: isElsewhere ? { kind: 'check', key: order.key } : order }
    })
    if (job.state.kind !== 'ending') this.#orders.set(job, orders)
    return orders
  }

  async #round(record: AnyRecord, chosen: NonNullable<ReturnType<typeof chooseOrders>>): Promise<void> {
    const { clock, signal } = this.#options
    const { orders, isWhole } = chosen
    record.isBusy = true
    this.#underWay++
    const asked = await ('engine' in record ? this.#askEngine(record, orders) : this.#askHost(record, orders, isWhole))
    record.isBusy = false
    this.#underWay--
    if (this.#isDisposed || signal.aborted) return
    const { name, trouble: before } = record
    const { trouble, bundles, said, readings = [] } = asked
    record.trouble = trouble
    if (trouble !== before) this.#handlers.onTrouble(name, trouble)
    if (bundles !== undefined) this.#answers.push({ place: name, record, bundles, said, readings })
    if (trouble !== undefined || isWhole) {
      const isBusy = orders.length > 0 || ('engine' in record && record.wantsRoom)
      planNextPoll(record, before !== undefined, isBusy, clock.now())
    }
    if ('engine' in record) void this.#readOutput(record).catch(this.#handlers.onFailure)
    else if (trouble === undefined && this.#metrics.hasJustEnded(name)) pollNow(record, clock.now())
    this.#handlers.onAnswer()
  }

  async #askEngine(record: EngineRecord, placed: readonly JobOrder[]): Promise<Asked> {
    const { engine, gate } = record
    record.address = (await engine.locate?.(this.#options.signal)) ?? record.address
    const moved = new Set(
      placed.flatMap(({ job, rank, order }) => (this.movedTo(job, rank) === undefined ? [] : [order.key])),
    )
    const orders = placed.map((one) => {
      const order = engineOrderOf(one)
      return moved.has(order.key) ? ({ kind: 'check', key: order.key } as const) : order
    })
    const sent = gate.replace(orders)
    const wantsRoom = record.wantsRoom || gate.holdsAny(orders)
    const {
      trouble,
      reports,
      room,
      said = new Map(),
      waits,
      nodes,
      times,
    } = await engine.round(sent, this.#options.signal, wantsRoom)
    record.waits = waits
    record.room = record.wantsRoom ? room : undefined
    const heardMs = this.#options.clock.now()
    const heard = [...reports].filter(([key, report]) => !moved.has(key) || isSighting(report))
    const bundles = new Map(
      heard.map(([key, report]) => {
        const { agoMs, ranMs } = times?.get(key) ?? {}
        const began = agoMs === undefined ? {} : { beganMs: heardMs - agoMs, ...defined({ ranMs }) }
        return [key, engineBundle(report, engine.name, nodes?.get(key), began)]
      }),
    )
    gate.judge(orders, { trouble, reports, room, bundles })
    return { trouble, bundles, said: new Map([...said].map(([key, facts]) => [key, { facts, ranks: [] }])) }
  }

  /** Beside the rounds with the engine, which do not wait for it. */
  async #readOutput(record: EngineRecord): Promise<void> {
    const { store, clock, signal } = this.#options
    const { name, trouble, isReading } = record
    const { engine } = record
    if (isReading || engine.searchOutput === undefined) return
    let readings: readonly Reading[]
    if (trouble !== undefined) readings = this.#metrics.miss(name)
    else {
      const search = this.#metrics.searchFor(name, store.active(), clock.now())
      if (search === undefined) return
      record.isReading = true
      this.#underWay++
      const text = await engine.searchOutput(search, signal)
      record.isReading = false
      this.#underWay--
      if (this.#isDisposed || signal.aborted) return
      readings = text === undefined ? this.#metrics.miss(name) : this.#metrics.take(name, text)
      if (this.#metrics.hasJustEnded(name)) pollNow(record, clock.now())
    }
    this.#noteReadings([{ place: name, readings }])
    this.#handlers.onAnswer()
  }

  async #askHost(record: HostRecord, orders: readonly JobOrder[], isWhole: boolean): Promise<Asked> {
    const { clock } = this.#options
    const { name, sweep } = record
    if (isWhole) record.sweep = ''
    const result = await record.line.round({
      orders: orders.map(({ order }) => order),
      wantsFacts: wantsFacts(record, orders, isWhole, clock.now()),
      besides: isWhole ? this.#besides(name) + sweep : '',
    })
    if (result.kind === 'trouble') return { trouble: result.reason }
    this.#silence.take(name, result.text, clock.now())
    const { facts, trouble, bundles, said } = parseHostAnswer(result.text, record.clock)
    if (facts !== undefined) {
      record.facts = facts
      record.factsMs = clock.now()
    }
    const reason = trouble ?? (record.facts ? undefined : "could not parse the host's answer")
    return { trouble: reason, bundles, said, readings: this.#metrics.take(name, result.text) }
  }

  #besides(host: string): string {
    const { store, clock } = this.#options
    const [active, nowMs] = [store.active(), clock.now()]
    return this.#metrics.programFor(host, active, nowMs) + this.#silence.programFor(host, active, nowMs)
  }

  /** What an engine ran that hosts.yaml does not declare any more is given up as if the engine did not answer. */
  #missUndeclared(nowMs: number): void {
    if (!hasPassed(this.#missedMs, LAST_RETRY_MS, nowMs)) return
    this.#missedMs = nowMs
    const known = new Set(this.#places.map(({ name }) => name))
    const gone = this.#metrics.places.filter((place) => place.startsWith('@') && !known.has(place))
    this.#noteReadings(gone.map((place) => ({ place, readings: this.#metrics.miss(place) })))
  }

  #noteReadings(answers: readonly Pick<Answer, 'place' | 'readings'>[]): void {
    const news = answers.filter(({ readings }) => readings.length > 0)
    this.#answers.push(...news.map((answer) => ({ ...answer, record: undefined, bundles: new Map() })))
    if (news.length > 0) this.#handlers.onAnswer()
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
    const own = { kept: store.keptDirectories(), storages: store.storages() }
    for (const record of due) {
      record.sweptMs = nowMs
      record.nextMs = nowMs
      record.sweep = formatDetachedClean(store.id, own, keepDays)
    }
  }
}

const placeOf = (job: Job | undefined, rank: number): BundlePlace | undefined =>
  job !== undefined && isActive(job.state) ? job.state.places[rank] : undefined

/** Hosts and devices are known to the engine alone, which sets their variables itself. */
function engineOrderOf({ job: { spec, state, priority }, order }: JobOrder): EngineOrder {
  const { kind, key } = order
  const awaits = spec.launch !== undefined && !('endpoint' in state && state.endpoint !== undefined)
  if (kind === 'stop') return { kind, key }
  if (kind !== 'start') return { kind: 'check', key, ...(awaits ? { awaits } : {}) }
  const { MUSTER_JOB = '', MUSTER_ATTEMPT = '', MUSTER_GPU_MILLI = '', MUSTER_ENDPOINTS } = order.run.environment
  const own = { MUSTER_JOB, MUSTER_ATTEMPT, MUSTER_GPU_MILLI, ...defined({ MUSTER_ENDPOINTS }) }
  const environment = { ...spec.launch?.environment, ...spec.environment, ...own }
  return { kind, key, spec: { ...spec, command: order.run.command }, priority, environment }
}

export const UNDECLARED =
  'no longer in hosts.yaml, so its jobs cannot be followed. To give one up: muster job cancel --forget and its number'

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
  polledMs: number
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

export type EngineRecord = PlaceRecord & {
  readonly engine: JobEngine
  readonly gate: StorageGate
  /** Of its cluster; undefined: not known yet. */
  address: string | undefined
  /** A job waits for what is free in it. */
  wantsRoom: boolean
  /** Of the last round; undefined: not wanted, or not known. */
  room: EngineRoom | undefined
  /** The output of its jobs is being read. */
  isReading: boolean
  waits?: ReadonlyMap<string, EngineWait> | undefined
}

export type AnyRecord = HostRecord | EngineRecord

export type JobOrder = PlacedOrder & { readonly job: Job }

const fresh = (name: string, pollMs: JobEngine['pollMs']) => ({
  name,
  pollMs,
  isBusy: false,
  nextMs: 0,
  waitMs: pollMs.soon,
  polledMs: 0,
  sent: new Set<string>(),
})

export function newHostRecord(spec: DriverHost, line: HostLine, clock: HostClock): HostRecord {
  const unknown = { facts: undefined, factsMs: undefined, trouble: NOT_YET }
  return { ...fresh(spec.name, HOST_POLL_MS), ...unknown, spec, line, clock, sweptMs: 0, sweep: '' }
}

/** A clock that was set back makes a poll due at once. */
export function isDue({ nextMs, pollMs }: Pick<PlaceRecord, 'nextMs' | 'pollMs'>, nowMs: number): boolean {
  return nowMs >= nextMs || nextMs - nowMs > Math.max(IDLE_MS, LAST_RETRY_MS, pollMs.late)
}

/**
 * Which orders go to a place now, and whether it is asked about everything; undefined: none. A host reports by itself, so only
 * new orders are sent between polls; an engine reports nothing, and is not polled while it has no jobs. `isUnread`: metrics of
 * ended ones must still be read.
 */
export function chooseOrders(record: AnyRecord, own: readonly JobOrder[], nowMs: number, isUnread = false) {
  const isEngine = 'engine' in record
  const isIdle = isEngine && own.length === 0 && !isUnread && !record.wantsRoom && record.trouble === undefined
  if (record.isBusy || isIdle) return undefined
  const isPoll = isDue(record, nowMs)
  const isNew = ({ order }: JobOrder) => (isEngine || order.kind !== 'check') && !record.sent.has(wordOf(order))
  const news = record.trouble === undefined ? own.filter(isNew) : []
  if (!isPoll && news.length === 0) return undefined
  // A bundle that was told to stop may end without a report.
  if (news.some(({ order }) => isEngine || order.kind === 'stop')) record.waitMs = record.pollMs.soon
  if (news.length > 0) pollWithin(record, Math.min(record.pollMs.late, record.waitMs), nowMs)
  const isWhole = isPoll || isEngine || record.line.isNew
  if (isPoll) record.polledMs = nowMs
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

/** A study may wait for what is read: at once, unless many jobs end one after the other. */
function pollNow(record: AnyRecord, nowMs: number): void {
  const { soon } = record.pollMs
  record.waitMs = soon
  pollWithin(record, Math.min(soon, Math.max(0, record.polledMs + soon - nowMs)), nowMs)
}

function pollWithin(record: AnyRecord, waitMs: number, nowMs: number): void {
  record.nextMs = Math.min(record.nextMs, nowMs + waitMs)
}

function wordOf(order: BundleOrder): string {
  return `${order.kind} ${order.key} ${order.kind === 'stop' ? order.signal : order.kind === 'ask' ? order.name : ''}`
}

export function specOf({ spec, facts, trouble }: HostRecord): HostCapacity {
  const { name, labels, custom } = spec
  return {
    name,
    cpuMilli: spec.cpuMilli ?? (facts?.cores ?? 0) * 1000,
    memoryBytes: spec.memoryBytes ?? facts?.memoryBytes ?? 0,
    ...gpusOf(spec, facts?.gpus),
    labels,
    ...(custom === undefined ? {} : { custom }),
    isDrained: trouble !== undefined,
  }
}
