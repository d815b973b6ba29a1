/**
 * One pass of the driver over the queue: what begins now on hosts or goes to Ray, and what makes room. It reads the store and
 * changes nothing; whatever stands in the queue, each line of those that wait is looked at.
 */
import type { HostSpec } from '../model/resources.ts'
import type { WaitingJob } from '../plan/job.ts'
import { predictS } from '../plan/predict.ts'
import { firstInTurn, type Usage } from '../plan/turn.ts'
import { ImpossibleGangs } from './impossible-gangs.ts'
import type { Job } from './job.ts'
import { type JobsPlan, planJobs, waitingLine } from './plan-jobs.ts'
import { isRayJob, MOST_WAITING, sendToRay } from './ray-jobs.ts'
import type { JobStore } from './store.ts'
import type { StoredLine } from './waiting-lines.ts'

export type PassInput = {
  readonly nowMs: number
  readonly hosts: readonly HostSpec[]
  readonly hasRay: boolean
  readonly isPreempting: boolean
  /** Hosts may still answer: gangs, and with them all whose turn is later, wait for them. */
  readonly isGathering: boolean
}

const NO_USAGE: Usage = new Map()

export class PlanPass {
  readonly #store: JobStore
  readonly #impossible = new ImpossibleGangs()

  constructor(store: JobStore) {
    this.#store = store
  }

  plan({ nowMs, hosts, hasRay, isPreempting, isGathering }: PassInput): JobsPlan {
    const lines = this.#store.waiting(nowMs)
    const active = this.#store.active()
    const runTimes = this.#store.accounting.runTimes()
    const usage = this.#usageOf(lines, active, nowMs)
    const { ray = [], own = [] } = Object.groupBy(lines, (line) => (isRayJob(line.at(0) as Job) ? 'ray' : 'own'))
    const isWaiting = isGathering && own.some((line) => (line.at(0)?.spec.bundles ?? 0) > 1)
    this.#impossible.note(hosts)
    const { events, expectedS } = planJobs({
      hosts,
      active: active.filter((job) => !isRayJob(job)),
      lines: isWaiting ? [] : own,
      neverFits: (gang) => this.#impossible.has(gang),
      runTimes,
      usage,
      nowMs,
      isPreempting,
    })
    if (!hasRay || ray.length === 0) return { events, expectedS }
    const options = { nowS: Math.floor(nowMs / 1000), usage, lengthS: (job: WaitingJob) => predictS(job, runTimes) }
    const first = firstInTurn(ray.map(waitingLine), MOST_WAITING, options).map(({ order }) => order)
    return { events: [...sendToRay(first, active), ...events], expectedS }
  }

  /** With only one user there is nothing to share. */
  #usageOf(lines: readonly StoredLine[], active: readonly Job[], nowMs: number): Usage {
    const first = lines[0]?.user
    const isShared = lines.some(({ user }) => user !== first)
    return isShared ? this.#store.accounting.usage(active, nowMs) : NO_USAGE
  }
}
