/**
 * A queue with hosts that are only a model: the store, the plan and the limits of the driver are the real ones, what hosts do is
 * a rule. Time passes only when told to.
 */

import { ElapsedTimes } from '../../src/scheduler/jobs/elapsed-times.ts'
import {
  isActive,
  type Job,
  type JobEvent,
  type JobSpec,
  overdue,
  type SeenBundle,
} from '../../src/scheduler/jobs/job.ts'
import { PlanPass } from '../../src/scheduler/jobs/plan-jobs.ts'
import type { CheckpointPort } from '../../src/scheduler/jobs/population.ts'
import { JobStore, type Submission } from '../../src/scheduler/jobs/store.ts'
import type { ProgramDesk } from '../../src/scheduler/jobs/study-desk.ts'
import { type OpenSampler, StudyPass } from '../../src/scheduler/jobs/study-pass.ts'
import type { HostCapacity } from '../../src/scheduler/model/resources.ts'
import { testSpec } from './test-job.ts'

type Event = { readonly id: number; readonly event: JobEvent }

export const worldSpec = (rest: Partial<JobSpec> & { readonly runS?: number } = {}): JobSpec => {
  const { runS = 60, ...own } = rest
  // The command is read by the model of the hosts.
  return testSpec({ name: '', command: String(runS), ...own })
}

export class QueueWorld implements Disposable {
  readonly store = new JobStore(':memory:')
  readonly down = new Set<string>()
  readonly isPreempting: boolean
  readonly #hosts: readonly HostCapacity[]
  readonly #times = new ElapsedTimes(() => this.nowMs)
  readonly #pass = new PlanPass(this.store)
  #studies: StudyPass
  #life = new AbortController()
  nowMs = 1_000_000_000

  constructor(hosts: readonly HostCapacity[], isPreempting: boolean) {
    this.#hosts = hosts
    this.isPreempting = isPreempting
    this.#studies = this.#newStudies()
  }

  /** Where programs ask for points. */
  get desk(): ProgramDesk {
    return this.#studies.desk
  }

  /** A scheduler that was killed remembers nothing. */
  restart(openSampler?: OpenSampler, port?: CheckpointPort): void {
    this.#life.abort()
    this.#life = new AbortController()
    this.#studies = this.#newStudies(openSampler, port)
  }

  #newStudies(openSampler?: OpenSampler, port?: CheckpointPort): StudyPass {
    const { signal } = this.#life
    return new StudyPass({ store: this.store, port, signal, onAnswer() {}, ...(openSampler && { openSampler }) })
  }

  [Symbol.dispose](): void {
    this.store[Symbol.dispose]()
  }

  hosts(): readonly HostCapacity[] {
    return this.#hosts.map((host) => ({ ...host, isDrained: this.down.has(host.name) }))
  }

  submit(spec: JobSpec, rest: Partial<Submission> = {}): readonly number[] {
    return this.store.submit(
      { spec, user: 'ann', priority: 0, isHeld: false, after: [], variants: [{}], ...rest },
      this.nowMs,
    )
  }

  /** What one tick of the driver does; returned: what it told to give way. */
  tick(): readonly Job[] {
    const { store, nowMs, isPreempting } = this
    this.#apply(
      overdue(store.active(), nowMs, this.#times).map(({ id }) => ({
        id,
        event: { kind: 'stop', reason: 'timed-out' },
      })),
    )
    const { events: found, after } = store.together(() => this.#studies.run(nowMs))
    this.#apply(found)
    for (const settle of after) settle()
    const rest = { nowMs, isPreempting, isGathering: false, engines: [] }
    const { events } = this.#pass.plan({ ...rest, hosts: this.hosts() })
    this.#apply(events)
    return events.flatMap(({ id, event }) => (event.kind === 'stop' ? [store.get(id) as Job] : []))
  }

  /** Hosts that are up begin what was sent, and end what was told to end or, if `hasEnds`, has run for as long as it runs. */
  act(hasEnds = true): void {
    const events = this.store.active().flatMap((job) => {
      const { state } = job
      if (!isActive(state)) return []
      return state.bundles.flatMap((bundle, rank): Event[] => {
        const host = state.places[rank]?.host ?? ''
        if (bundle.kind === 'ended' || this.down.has(host)) return []
        const see = (own: SeenBundle): Event[] => [{ id: job.id, event: { kind: 'seen', rank, bundle: own } }]
        const exit = (code: number) => see({ kind: 'ended', end: { kind: 'exit', code } })
        if (state.kind === 'ending') return exit(143)
        if (bundle.kind === 'sent') return see({ kind: 'begun' })
        const isOver = this.nowMs - state.startedMs >= Number(job.spec.command) * 1000
        // Some fail, and are tried again.
        return hasEnds && isOver ? exit(job.spec.retries > 0 ? 1 : 0) : []
      })
    })
    this.#apply(events)
  }

  #apply(events: readonly Event[]): void {
    this.store.applyAll(events, this.nowMs)
  }
}
