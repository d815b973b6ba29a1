/** One plan for the jobs of a queue: from what is stored to what the planner knows, and back to events. Pure. */
import { Cluster, type Placement } from '../model/cluster.ts'
import type { Gang } from '../model/gang.ts'
import type { HostSpec } from '../model/resources.ts'
import type { ActiveJob, WaitingJob } from '../plan/job.ts'
import { planQueue } from '../plan/plan-queue.ts'
import type { RunTimes } from '../plan/predict.ts'
import type { Usage } from '../plan/turn.ts'
import { isActive, type Job, type JobEvent, type JobSpec } from './job.ts'

export type JobsSnapshot = {
  readonly hosts: readonly HostSpec[]
  readonly active: readonly Job[]
  /** Those that may begin now. */
  readonly waiting: readonly Job[]
  readonly runTimes: RunTimes
  readonly usage: Usage
  readonly nowMs: number
  readonly isPreempting: boolean
}

export type JobsPlan = {
  readonly events: readonly { readonly id: number; readonly event: JobEvent }[]
  readonly expectedS: Readonly<Record<string, number | null>>
}

export function planJobs({ hosts, active, waiting, runTimes, usage, nowMs, isPreempting }: JobsSnapshot): JobsPlan {
  const { cluster, placements } = occupy(hosts, active)
  const nowS = Math.floor(nowMs / 1000)
  const running = active.map((job): ActiveJob => {
    const startedMs = isActive(job.state) ? job.state.startedMs : nowMs
    const isEnding = job.state.kind === 'ending'
    return {
      ...waitingOf(job),
      // Who was told to end will not be there for long.
      ...(isEnding ? { estimateS: 1 } : {}),
      startS: isEnding ? nowS : Math.floor(startedMs / 1000),
      placements: placements.get(job.id) ?? [],
      isPreemptible: job.spec.isPreemptible && !isEnding,
    }
  })
  const plan = planQueue({ cluster, nowS, running, waiting: waiting.map(waitingOf), runTimes, usage, isPreempting })
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

/** A cluster on which the active jobs are where they are. A host that does not hold them any more gets nothing new. */
export function occupy(hosts: readonly HostSpec[], active: readonly Job[]) {
  const cluster = new Cluster(hosts)
  const numbers = new Map(hosts.map(({ name }, index) => [name, index]))
  const placements = new Map<number, readonly Placement[]>()
  for (const { id, state, spec } of active) {
    if (!isActive(state)) continue
    const shape = cluster.shapeOf(spec.request)
    const taken = state.places.flatMap(({ host: name, devices }, rank) => {
      const host = numbers.get(name)
      if (host === undefined || state.bundles[rank]?.kind === 'ended') return []
      if (cluster.holdsOn(shape, { host, devices })) return [cluster.take(shape, { host, devices })]
      cluster.close(host, true)
      return []
    })
    placements.set(id, taken)
  }
  return { cluster, placements }
}

export function gangOf({ name, bundles, request, strategy, maxBundlesPerHost }: JobSpec): Gang {
  return {
    name,
    strategy,
    bundles: Array.from({ length: bundles }, () => request),
    ...(maxBundlesPerHost === undefined ? {} : { maxBundlesPerHost }),
  }
}

/** Jobs that were submitted together have one specification, and are looked at in every plan. */
const gangs = new WeakMap<JobSpec, Gang>()

function keptGangOf(spec: JobSpec): Gang {
  const known = gangs.get(spec)
  if (known !== undefined) return known
  const gang = gangOf(spec)
  gangs.set(spec, gang)
  return gang
}

function waitingOf({ id, user, submittedMs, priority, spec }: Job): WaitingJob {
  const { estimateS, limitS } = spec
  const known = [estimateS, limitS].filter((one) => one !== undefined)
  return {
    order: id,
    gang: keptGangOf(spec),
    user,
    submitS: Math.floor(submittedMs / 1000),
    priority,
    estimateS: known.length === 0 ? undefined : Math.max(1, Math.ceil(Math.min(...known))),
  }
}
