/**
 * Requests that come and go. The trace is laid over itself, each copy turned round by another time, until the GPUs that are
 * asked for at once are a given part of the cluster's; durations are the trace's own. Who does not fit waits; whenever
 * something leaves, those who wait are tried again, the oldest first, and whoever fits goes in.
 */
import { MusterError } from '../../base/errors.ts'
import { Cluster, type Placement } from '../model/cluster.ts'
import type { WorkloadMix } from '../model/mix.ts'
import type { HostSpec, ResourceRequest } from '../model/resources.ts'
import type { Shape } from '../model/shape.ts'
import type { PlacementPolicy } from '../policies/policy.ts'
import { createRandomNumbers } from '../policies/random.ts'
import type { TracePod } from './openb-trace.ts'
import { TimeQueue } from './time-queue.ts'

export type ChurnResult = {
  /** Copies of the trace. */
  readonly copies: number
  readonly requests: number
  /** Of all GPUs, from the first arrival to the last. */
  readonly allocationPercent: number
  /** Over all requests; who never gets in has waited until the last arrival. */
  readonly averageWaitS: number
  readonly maximumWaitS: number
  /** Requests that waited at all. */
  readonly waitedPercent: number
  readonly placements: number
}

export type ChurnInput = {
  readonly hosts: readonly HostSpec[]
  readonly pods: readonly TracePod[]
  /** 1: as many GPUs are asked for as there are, on average. */
  readonly load: number
  readonly seed: number
  readonly mix: WorkloadMix
  /** Requests are added to the mix as they come. */
  readonly isLearning: boolean
  readonly createPolicy: (cluster: Cluster, mix: WorkloadMix) => PlacementPolicy
}

type Job = {
  readonly request: ResourceRequest
  readonly shape: Shape
  readonly arrivalS: number
  readonly durationS: number
}

export function replayChurn({ hosts, pods, load, seed, mix, isLearning, createPolicy }: ChurnInput): ChurnResult {
  const cluster = new Cluster(hosts)
  const policy = createPolicy(cluster, mix)
  const { jobs, copies } = layOver(cluster, pods, load, seed)
  const leaving = new TimeQueue<Placement>()
  /** By shape, the oldest first: if the oldest does not fit, its like does not either. */
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

  for (const job of jobs) {
    leaveUntil(job.arrivalS)
    if (isLearning) mix.add(job.request)
    const queue = waiting.get(job.shape.id) ?? []
    waiting.set(job.shape.id, queue)
    if (queue.length > 0 || !start(job, job.arrivalS)) {
      queue.push(job)
      waitedCount++
    }
  }
  const endS = jobs.at(-1)?.arrivalS ?? 0
  for (const job of [...waiting.values()].flat()) {
    waitedS += endS - job.arrivalS
    longestS = Math.max(longestS, endS - job.arrivalS)
  }
  return {
    copies,
    requests: jobs.length,
    allocationPercent: (100 * milliSeconds) / Math.max(1, endS * cluster.totalGpuMilli),
    averageWaitS: waitedS / jobs.length,
    maximumWaitS: longestS,
    waitedPercent: (100 * waitedCount) / jobs.length,
    placements,
  }
}

function layOver(cluster: Cluster, pods: readonly TracePod[], load: number, seed: number) {
  const timed = pods.flatMap(({ request, createdAtS, deletedAtS }) => {
    if (createdAtS === undefined || deletedAtS === undefined) return []
    return [{ request, shape: cluster.shapeOf(request), createdAtS, durationS: Math.max(1, deletedAtS - createdAtS) }]
  })
  if (timed.length === 0) throw new MusterError('configuration', 'the pod list says nothing of when pods came and went')
  const spanS = timed.reduce((latest, { createdAtS }) => Math.max(latest, createdAtS), 1)
  const asked = timed.reduce(
    (sum, { shape, durationS }) => sum + shape.gpuCount * shape.gpuMilli * Math.min(durationS, spanS),
    0,
  )
  const copies = Math.max(1, Math.round((load * cluster.totalGpuMilli * spanS) / Math.max(1, asked)))
  const random = createRandomNumbers(seed)
  const jobs: Job[] = []
  for (let copy = 0; copy < copies; copy++) {
    const turnS = Math.floor(random() * spanS)
    for (const { request, shape, createdAtS, durationS } of timed) {
      const arrivalS = (createdAtS + turnS) % spanS
      jobs.push({ request, shape, arrivalS, durationS })
      // Came before the beginning and still runs.
      const restS = arrivalS + Math.min(durationS, spanS) - spanS
      if (restS > 0) jobs.push({ request, shape, arrivalS: 0, durationS: restS })
    }
  }
  return { jobs: jobs.sort((one, other) => one.arrivalS - other.arrivalS), copies }
}
