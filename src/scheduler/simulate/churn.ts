/**
 * Requests come and go. One that does not fit waits; whenever something leaves, waiting requests are tried again, the oldest
 * first.
 */
import type { ResultOf } from '../../base/calculation.ts'
import { getOrMake } from '../../base/collections.ts'
import { MusterError } from '../../base/errors.ts'
import { Cluster, type Placement } from '../model/cluster.ts'
import { type HostCapacity, type ResourceRequest, WHOLE_MILLI } from '../model/resources.ts'
import type { Shape } from '../model/shape.ts'
import { createRandomNumbers } from '../policies/random.ts'
import type { TracePod } from './openb-trace.ts'
import type { TraceInput } from './replay.ts'
import { TimeQueue } from './time-queue.ts'

export type ChurnResult = ResultOf<ReturnType<typeof replayChurn>>

/** In order of arrival. */
type ChurnInput = TraceInput & { readonly requests: readonly TimedRequest[] }

type Job = TimedRequest & { readonly shape: Shape }

/** Waits are over all requests; one that is never placed waits until the last arrival. */
export function* replayChurn({ hosts, requests, mix, isLearning, createPolicy }: ChurnInput) {
  const cluster = new Cluster(hosts)
  const policy = createPolicy(cluster, mix)
  const leaving = new TimeQueue<Placement>()
  /** By shape, the oldest first: if it does not fit, none of the same shape does. */
  const waiting = new Map<number, Job[]>()
  let milliSeconds = 0
  let countedS = 0
  const count = (nowS: number) => {
    milliSeconds += (nowS - countedS) * cluster.usedGpuMilli
    countedS = nowS
  }
  let waitedS = 0
  let longestS = 0
  let waitedCount = 0
  let placements = 0

  const start = (job: Job, nowS: number): boolean => {
    const spot = policy.choose(job.shape)
    if (spot === undefined) return false
    leaving.add(nowS + job.durationS, cluster.take(job.shape, spot))
    placements++
    waitedS += nowS - job.arrivalS
    longestS = Math.max(longestS, nowS - job.arrivalS)
    return true
  }
  const retry = (nowS: number) => {
    const heads = [...waiting.values()].filter((queue) => queue.length > 0)
    while (heads.length > 0) {
      let oldest = 0
      for (let index = 1; index < heads.length; index++)
        if ((heads[index]?.[0]?.arrivalS ?? 0) < (heads[oldest]?.[0]?.arrivalS ?? 0)) oldest = index
      const queue = heads[oldest] as Job[]
      if (queue[0] !== undefined && start(queue[0], nowS)) queue.shift()
      else heads.splice(oldest, 1)
      if (queue.length === 0 && heads[oldest] === queue) heads.splice(oldest, 1)
    }
  }
  const leaveUntil = (timeS: number) => {
    for (let next = leaving.first(); next !== undefined && next.timeS <= timeS; next = leaving.first()) {
      count(next.timeS)
      const { timeS: nowS } = next
      for (let now = leaving.first(); now !== undefined && now.timeS === nowS; now = leaving.first()) {
        cluster.release(now.value)
        leaving.removeFirst()
      }
      retry(nowS)
    }
    count(timeS)
  }

  for (const timed of requests) {
    yield
    const job: Job = { ...timed, shape: cluster.shapeOf(timed.request) }
    leaveUntil(job.arrivalS)
    if (isLearning) mix.add(job.request)
    const queue = getOrMake(waiting, job.shape.id, (): Job[] => [])
    if (queue.length > 0 || !start(job, job.arrivalS)) {
      queue.push(job)
      waitedCount++
    }
  }
  const endS = requests.at(-1)?.arrivalS ?? 0
  for (const job of [...waiting.values()].flat()) {
    waitedS += endS - job.arrivalS
    longestS = Math.max(longestS, endS - job.arrivalS)
  }
  return {
    requests: requests.length,
    /** Of all GPUs, from the first arrival to the last. */
    allocationPercent: (100 * milliSeconds) / Math.max(1, endS * cluster.totalGpuMilli),
    averageWaitS: waitedS / requests.length,
    maximumWaitS: longestS,
    waitedPercent: (100 * waitedCount) / requests.length,
    placements,
  }
}

/** Seconds from the beginning of the span. */
export type TimedRequest = {
  readonly request: ResourceRequest
  readonly arrivalS: number
  readonly durationS: number
}

export type LoadInput = {
  readonly pods: readonly TracePod[]
  readonly hosts: readonly HostCapacity[]
  /** 1: on average as many GPUs are requested as there are. */
  readonly load: number
  readonly seed: number
}

/**
 * A lasting load: overlays copies of the trace, each shifted by another time. Time is a ring: what runs at its end runs at
 * its beginning.
 */
export function layOver({ pods, hosts, load, seed }: LoadInput) {
  const timed = timesOf(pods)
  const spanS = spanOf(timed)
  const wantedMilli = load * gpuMilliOf(hosts)
  const copies = Math.max(1, Math.round((wantedMilli * spanS) / Math.max(1, askedMilliSeconds(timed, spanS))))
  const random = createRandomNumbers(seed)
  const turned = Array.from({ length: copies }, () => turn(timed, spanS, Math.floor(random() * spanS)))
  return { requests: inOrder(turned.flat()), copies }
}

export const gpuMilliOf = (hosts: readonly HostCapacity[]): number =>
  hosts.reduce((sum, { gpus = [] }) => sum + gpus.length * WHOLE_MILLI, 0)

export function timesOf(pods: readonly TracePod[]): TimedRequest[] {
  const timed = pods.flatMap(({ request, createdAtS, deletedAtS }) => {
    if (createdAtS === undefined || deletedAtS === undefined) return []
    return [{ request, arrivalS: createdAtS, durationS: Math.max(1, deletedAtS - createdAtS) }]
  })
  if (timed.length === 0) throw new MusterError('configuration', 'the pod list has no arrival and departure times')
  return timed
}

export const spanOf = (timed: readonly TimedRequest[]): number =>
  timed.reduce((latest, { arrivalS }) => Math.max(latest, arrivalS), 1)

/** Within a span: a request counts at most once at any time. */
export const askedMilliSeconds = (timed: readonly TimedRequest[], spanS: number): number =>
  timed.reduce(
    (sum, { request, durationS }) => sum + request.gpuCount * request.gpuMilli * Math.min(durationS, spanS),
    0,
  )

export function turn(timed: readonly TimedRequest[], spanS: number, turnS: number): TimedRequest[] {
  return timed.flatMap((one) => {
    const arrivalS = (one.arrivalS + turnS) % spanS
    // It arrived before the beginning and still runs.
    const restS = arrivalS + Math.min(one.durationS, spanS) - spanS
    return [{ ...one, arrivalS }, ...(restS > 0 ? [{ ...one, arrivalS: 0, durationS: restS }] : [])]
  })
}

export const inOrder = (requests: TimedRequest[]): TimedRequest[] =>
  requests.sort((one, other) => one.arrivalS - other.arrivalS)
