/** One pass over the queue: which jobs begin on hosts, go to an engine, or have to make room. It changes nothing. */
import { getOrMake } from '../../base/collections.ts'
import { defined } from '../../base/defined.ts'
import { findGang } from '../gangs/place-gang.ts'
import { LAUNCHERS } from '../launch/launchers.ts'
import { type LinkSpeed, orderOnRing } from '../launch/ring.ts'
import { Cluster, type Placement } from '../model/cluster.ts'
import type { Gang, HostCapacity } from '../model/resources.ts'
import { planLines } from '../plan/plan-queue.ts'
import { type ActiveJob, predictS, type RunTimes, type WaitingJob } from '../plan/predict.ts'
import { firstInTurn, type QueueLine, type Usage } from '../plan/turn.ts'
import { fitsIdle, keepRoom, namesIn, takeNeeds } from '../plans/needs.ts'
import { type EngineRoom, enginePlace, type JobEngine } from './engine.ts'
import { freeRoom, takenBy } from './engine-room.ts'
import {
  type BundlePlace,
  isActive,
  isPlaced,
  type Job,
  type JobEvent,
  type JobSpec,
  requestsOf,
  waitsFrom,
} from './job.ts'
import type { JobStore } from './store.ts'

/** Jobs of one user and priority that are placed alike, the longest waiting first. */
type JobLine = { at(index: number): Job | undefined }

export type JobsSnapshot = {
  readonly hosts: readonly HostCapacity[]
  readonly active: readonly Job[]
  /** Those that may begin now. */
  readonly lines: readonly JobLine[]
  /** Whether it fits on no host, even when all are idle. */
  neverFits?(gang: Gang): boolean
  readonly runTimes: RunTimes
  readonly usage: Usage
  readonly nowMs: number
  readonly isPreempting: boolean
}

export type JobsPlan = {
  readonly events: readonly { readonly id: number; readonly event: JobEvent }[]
  readonly expectedS: Readonly<Record<string, number | null>>
}

/** TERM, KILL ten seconds later, and some time for the report. */
const ENDS_WITHIN_S = 30

export function planJobs({ hosts, active, lines, nowMs, ...rest }: JobsSnapshot): JobsPlan {
  const { cluster, placements } = occupy(hosts, active)
  const nowS = Math.floor(nowMs / 1000)
  const running = active.map((job) => runningOf(job, placements.get(job.id) ?? [], nowS))
  const plan = planLines({ ...rest, cluster, nowS, running, lines: lines.map(waitingLine) })
  const starts = plan.starts.map(({ job, placements: spots }) => ({
    id: job.order,
    event: {
      kind: 'placed' as const,
      places: spots.map(({ host, devices }) => ({ host: hosts[host]?.name ?? '', devices })),
    },
  }))
  const victims = plan.victims.map(({ job }) => ({
    id: job.order,
    event: { kind: 'stop' as const, reason: 'preempted' as const },
  }))
  const expected = [...plan.expectedS].map(([order, startS]) => [order, startS ?? null])
  return { events: [...starts, ...victims], expectedS: Object.fromEntries(expected) }
}

export function waitingLine(line: JobLine): QueueLine {
  return {
    at(index) {
      const job = line.at(index)
      return job && waitingOf(job)
    },
  }
}

export function runningOf(job: Job, placements: readonly Placement[], nowS: number): ActiveJob {
  const { state, spec } = job
  const own = waitingOf(job)
  const startS = isActive(state) ? Math.floor(state.startedMs / 1000) : nowS
  if (state.kind !== 'ending') return { ...own, startS, placements, isPreemptible: spec.isPreemptible }
  // A job that was told to stop is expected to end in the next second; if it does not, nothing relies on that any more.
  const sinceS = Math.floor(state.sinceMs / 1000)
  const isSoon = nowS - sinceS < ENDS_WITHIN_S
  const times = isSoon ? { estimateS: 1, startS: nowS } : { estimateS: ENDS_WITHIN_S, startS: sinceS }
  return { ...own, ...times, placements, isPreemptible: false }
}

/**
 * A cluster with the active jobs in their places. A host that can no longer hold its jobs gets no new ones. A GPU that is no longer
 * offered does not count here: its job takes up only what else it holds.
 */
export function occupy(hosts: readonly HostCapacity[], active: readonly Job[]) {
  const cluster = new Cluster(hosts)
  const numbers = new Map(hosts.map(({ name }, index) => [name, index]))
  const placements = new Map<number, readonly Placement[]>()
  for (const { id, state, spec } of active) {
    if (!isActive(state)) continue
    const requests = requestsOf(spec)
    const taken = state.places.flatMap(({ host: name, devices }, rank) => {
      const request = requests[rank] ?? spec.request
      const host = numbers.get(name)
      if (host === undefined || state.bundles[rank]?.kind === 'ended') return []
      const offered = hosts[host]?.gpus?.length ?? 0
      const own = devices.filter((device) => device < offered)
      const gone = devices.length - own.length
      const shape = cluster.shapeOf(gone === 0 ? request : { ...request, gpuCount: request.gpuCount - gone })
      const spot = { host, devices: own }
      if (cluster.holdsOn(shape, spot)) return [cluster.take(shape, spot)]
      cluster.close(host, true)
      return []
    })
    placements.set(id, taken)
  }
  return { cluster, placements }
}

/** Kept, as jobs of one submission share a specification and are seen in every plan. */
const gangs = new WeakMap<JobSpec, Gang>()

export function gangOf(spec: JobSpec): Gang {
  const { name, strategy, maxBundlesPerHost } = spec
  const made = () => defined({ name, strategy, bundles: requestsOf(spec), maxBundlesPerHost })
  const gang = gangs.get(spec) ?? made()
  gangs.set(spec, gang)
  return gang
}

function waitingOf(job: Job): WaitingJob {
  const { id, user, priority, spec } = job
  const { estimateS, limitS } = spec
  const known = [estimateS, limitS].filter((one) => one !== undefined)
  return {
    order: id,
    gang: gangOf(spec),
    user,
    submitS: Math.floor(waitsFrom(job) / 1000),
    priority,
    estimateS: known.length === 0 ? undefined : Math.max(1, Math.ceil(Math.min(...known))),
  }
}

/** Bits a second between hosts, as they were last measured; `network`: at its addresses. */
export type LinkSpeeds = (
  hosts: readonly string[],
  network: string | undefined,
) => { readonly timeMs: number; readonly speed: LinkSpeed } | undefined

/** Ranks follow the ring whose slowest link is the fastest, where links were measured. */
export function onRing(
  { launch, roles, bundles, request }: JobSpec,
  places: readonly BundlePlace[],
  links: LinkSpeeds,
) {
  const { kind, options = {} } = launch ?? {}
  const launcher = LAUNCHERS.find(({ name }) => name === kind)
  const direction = options.order === 'as-placed' ? undefined : launcher?.ringDirection?.(options, request)
  const hosts = [...new Set(places.map(({ host }) => host))]
  if (direction === undefined || hosts.length < 2) return { places }
  const hasNetwork = launcher?.options.some(({ flags }) => flags.startsWith('network ')) === true
  const measured = links(hosts, hasNetwork ? options.network : undefined)
  if (measured === undefined) return { places }
  const counts = (roles ?? [{ count: bundles }]).map(({ count }) => count)
  const { ring, ...ordered } = orderOnRing(places, counts, direction, measured.speed)
  return { ...ordered, ...defined({ ring: ring && { ...ring, measuredMs: measured.timeMs } }) }
}

export type PassInput = {
  readonly nowMs: number
  readonly hosts: readonly HostCapacity[]
  /** Those that can be used now. */
  readonly engines: readonly (Pick<JobEngine, 'name' | 'mostWaiting'> & { readonly room?: EngineRoom | undefined })[]
  readonly isPreempting: boolean
  /** Hosts may still answer: gangs, and all jobs whose turn is later, wait for them. */
  readonly isGathering: boolean
}

export class PlanPass {
  readonly #store: JobStore
  readonly #links: LinkSpeeds
  readonly #impossible = new ImpossibleGangs()

  constructor(store: JobStore, links: LinkSpeeds = () => undefined) {
    this.#store = store
    this.#links = links
  }

  plan({
    nowMs,
    hosts,
    engines,
    isPreempting,
    isGathering,
  }: PassInput): JobsPlan & { readonly wantsRoom: Set<string> } {
    const lines = this.#store.waiting(nowMs)
    const active = this.#store.active()
    const runTimes = this.#store.accounting.runTimes()
    // With only one user there is nothing to share.
    const isShared = lines.some(({ user }) => user !== lines[0]?.user)
    const usage: Usage = isShared ? this.#store.accounting.usage(active, nowMs) : new Map()
    const byEngine = Map.groupBy(lines, (line) => (line.at(0) as Job).spec.engine)
    const own = byEngine.get(undefined) ?? []
    const isWaiting = isGathering && own.some((line) => (line.at(0)?.spec.bundles ?? 0) > 1)
    this.#impossible.note(hosts)
    const { events, expectedS } = planJobs({
      hosts,
      active: active.filter(({ spec }) => spec.engine === undefined),
      lines: isWaiting ? [] : own,
      neverFits: (gang) => this.#impossible.has(gang),
      runTimes,
      usage,
      nowMs,
      isPreempting,
    })
    const turn = { nowS: Math.floor(nowMs / 1000), usage, lengthS: (job: WaitingJob) => predictS(job, runTimes) }
    const wantsRoom = new Set<string>()
    const handed = engines.flatMap(({ name, mostWaiting, room }) => {
      const there = active.filter(({ spec }) => spec.engine === name)
      const count = mostWaiting - there.filter(({ state }) => isPlaced(state)).length
      const { true: needing = [], false: others = [] } = Object.groupBy(byEngine.get(name) ?? [], (line) =>
        String(line.at(0)?.spec.needs !== undefined),
      )
      if (needing.length > 0) wantsRoom.add(name)
      if (count <= 0) return []
      const plain = firstInTurn(others.map(waitingLine), count, turn)
      const fitting =
        needing.length === 0 || room === undefined
          ? []
          : firstInTurn(needing.map(waitingLine), count + MOST_IMPOSSIBLE, turn)
      const alone = [...plain, ...fitting].map((job) => ({ at: (index: number) => [job][index] }))
      const inTurn = firstInTurn(alone, alone.length, turn)
      const ready = fitting.length === 0 || room === undefined ? inTurn : this.#fitting(inTurn, room, there, nowMs)
      return ready.slice(0, count).map(({ order }) => ({
        id: order,
        event: { kind: 'placed' as const, places: [{ host: enginePlace(name), devices: [] }] },
      }))
    })
    const ordered = [...handed, ...events].map(({ id, event }) => {
      const job = event.kind === 'placed' ? this.#store.get(id) : undefined
      if (event.kind !== 'placed' || job === undefined) return { id, event }
      const isAlone = job.spec.launch === undefined || job.spec.engine !== undefined
      const ring = isAlone ? {} : onRing(job.spec, event.places, this.#links)
      return { id, event: { ...event, ...ring, ...this.#endpointsFor(job) } }
    })
    return { events: ordered, expectedS, wantsRoom }
  }

  /**
   * In turn; of jobs with needs, up to the first that has to wait: smaller ones must not overtake it for ever. Impossible ones
   * hold up no other. Jobs without needs never wait; the room that they take is not free for the jobs behind them.
   */
  #fitting(inTurn: readonly WaitingJob[], room: EngineRoom, there: readonly Job[], nowMs: number): WaitingJob[] {
    const store = this.#store
    const waiting = inTurn.flatMap((job) => {
      const spec = store.get(job.order)?.spec
      return spec === undefined ? [] : [{ job, asked: takenBy(spec), isPlain: spec.needs === undefined }]
    })
    const names = waiting.flatMap(({ asked }) => namesIn(asked))
    const cluster = freeRoom(room, there, store.id, nowMs, names)
    const fitting: WaitingJob[] = []
    let isFull = false
    for (const { job, asked, isPlain } of waiting) {
      const isPossible = fitsIdle(room.nodes, asked)
      if (isPlain && isPossible) keepRoom(cluster, asked)
      if (isPlain || (!isFull && takeNeeds(cluster, asked))) fitting.push(job)
      else isFull ||= isPossible
    }
    return fitting
  }

  /** Where the services answer that it waited for. */
  #endpointsFor({ after }: Job): { readonly endpoints?: readonly string[] } {
    const endpoints = after.flatMap((id) => {
      const state = this.#store.get(id)?.state
      return state !== undefined && isActive(state) && state.endpoint !== undefined ? [state.endpoint] : []
    })
    return endpoints.length === 0 ? {} : { endpoints }
  }
}

/** So many jobs that their engine can never place are looked past. */
const MOST_IMPOSSIBLE = 50

const MOST = 10_000

export class ImpossibleGangs {
  #hosts: readonly HostCapacity[] = []
  #text = ''
  readonly #known = new Map<string, boolean>()

  /** Hosts that are down offer nothing. */
  note(hosts: readonly HostCapacity[]): void {
    const text = JSON.stringify(hosts)
    if (text === this.#text) return
    this.#text = text
    this.#hosts = hosts
    this.#known.clear()
  }

  has(gang: Gang): boolean {
    if (this.#known.size >= MOST) this.#known.clear()
    const shapes = [...new Set(gang.bundles)].map((request) => [
      request,
      gang.bundles.filter((one) => one === request).length,
    ])
    const key = JSON.stringify([shapes, gang.strategy, gang.maxBundlesPerHost])
    return getOrMake(this.#known, key, () => findGang(new Cluster(this.#hosts), gang) === undefined)
  }
}
