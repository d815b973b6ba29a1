/**
 * One pass of the scheduler over the queue: which jobs begin on hosts, go to an engine, or have to make room. It changes nothing,
 * and looks at every line of waiting jobs, however long the queue is.
 */
import { findGang } from '../gangs/search-gang.ts'
import { Cluster } from '../model/cluster.ts'
import type { Gang, HostCapacity } from '../model/resources.ts'
import { predictS, type WaitingJob } from '../plan/predict.ts'
import { firstInTurn, type Usage } from '../plan/turn.ts'
import { enginePlace, type JobEngine } from './engine.ts'
import type { Job } from './job.ts'
import { type JobsPlan, planJobs, waitingLine } from './plan-jobs.ts'
import type { JobStore } from './store.ts'
import type { StoredLine } from './waiting-lines.ts'

export type PassInput = {
  readonly nowMs: number
  readonly hosts: readonly HostCapacity[]
  /** Those that can be used now. */
  readonly engines: readonly Pick<JobEngine, 'name' | 'mostWaiting'>[]
  readonly isPreempting: boolean
  /** Hosts may still answer: gangs, and all jobs whose turn is later, wait for them. */
  readonly isGathering: boolean
}

const NO_USAGE: Usage = new Map()

export class PlanPass {
  readonly #store: JobStore
  readonly #impossible = new ImpossibleGangs()

  constructor(store: JobStore) {
    this.#store = store
  }

  plan({ nowMs, hosts, engines, isPreempting, isGathering }: PassInput): JobsPlan {
    const lines = this.#store.waiting(nowMs)
    const active = this.#store.active()
    const runTimes = this.#store.accounting.runTimes()
    const usage = this.#usageOf(lines, active, nowMs)
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
    const handed = engines.flatMap(({ name, mostWaiting }) => {
      const there = active.filter(({ spec, state }) => spec.engine === name && state.kind === 'starting')
      const ready = (byEngine.get(name) ?? []).map(waitingLine)
      return firstInTurn(ready, mostWaiting - there.length, turn).map(({ order }) => ({
        id: order,
        event: { kind: 'placed' as const, places: [{ host: enginePlace(name), devices: [] }] },
      }))
    })
    return { events: [...handed, ...events], expectedS }
  }

  /** With only one user there is nothing to share. */
  #usageOf(lines: readonly StoredLine[], active: readonly Job[], nowMs: number): Usage {
    const first = lines[0]?.user
    const isShared = lines.some(({ user }) => user !== first)
    return isShared ? this.#store.accounting.usage(active, nowMs) : NO_USAGE
  }
}

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

  has({ bundles, strategy, maxBundlesPerHost }: Gang): boolean {
    const key = JSON.stringify([bundles.length, bundles[0], strategy, maxBundlesPerHost])
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const isImpossible =
      findGang(new Cluster(this.#hosts), {
        name: '',
        bundles,
        strategy,
        ...(maxBundlesPerHost === undefined ? {} : { maxBundlesPerHost }),
      }) === undefined
    if (this.#known.size >= MOST) this.#known.clear()
    this.#known.set(key, isImpossible)
    return isImpossible
  }
}
