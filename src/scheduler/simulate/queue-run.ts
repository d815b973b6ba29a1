/** Jobs come, wait, run and end under the planner of the job queue. */

import * as z from 'zod'
import type { ResultOf } from '../../base/calculation.ts'
import { MusterError } from '../../base/errors.ts'
import { findGang, gpuOf } from '../gangs/place-gang.ts'
import { Cluster } from '../model/cluster.ts'
import type { HostCapacity, ResourceRequest } from '../model/resources.ts'
import { planQueue } from '../plan/plan-queue.ts'
import type { ActiveJob, Reservation, WaitingJob } from '../plan/predict.ts'
import { FairShare } from '../plan/turn.ts'
import { gpuMilliOf } from './churn.ts'
import { bundlesOf, gpuMilli, hostOf, parseJson, strategy } from './json-input.ts'
import { TimeQueue, waitFigures } from './time-queue.ts'

export type QueueRunJob = WaitingJob & { readonly runS: number; readonly isPreemptible: boolean }

type QueueRunInput = {
  readonly hosts: readonly HostCapacity[]
  readonly jobs: readonly QueueRunJob[]
  readonly reservations?: readonly Reservation[]
  readonly isPreempting: boolean
  readonly isFairShare: boolean
}

export type QueueRunResult = ResultOf<ReturnType<typeof runQueue>>

type Event = { readonly kind: 'end'; readonly job: QueueRunJob; readonly startS: number } | { readonly kind: 'replan' }

/** `impossible`: jobs that never fit on these hosts. */
export function* runQueue(input: QueueRunInput) {
  const { hosts, reservations = [], isPreempting, isFairShare } = input
  const cluster = new Cluster(hosts)
  const jobs = input.jobs
    .filter(({ gang }) => findGang(cluster.copy(), gang) !== undefined)
    .toSorted((one, other) => one.submitS - other.submitS || one.order - other.order)
  const running = new Map<QueueRunJob, ActiveJob>()
  const events = new TimeQueue<Event>()
  for (const { untilS } of reservations) events.add(untilS, { kind: 'replan' })
  const share = new FairShare()
  const runTimes = new Map<string, number[]>()
  const startsS = new Map<number, number>()
  let waiting: QueueRunJob[] = []
  let preempted = 0
  let next = 0
  const leave = (job: QueueRunJob, nowS: number) => {
    const active = running.get(job) as ActiveJob
    running.delete(job)
    for (const placement of active.placements) cluster.release(placement)
    // In milli of GPUs, or of cores where there are none.
    const size = sum(job.gang.bundles, ({ cpuMilli, gpuCount, gpuMilli }) => gpuCount * gpuMilli || cpuMilli)
    share.charge(job.user, size * (nowS - active.startS), nowS)
  }
  for (;;) {
    yield
    const nowS = events.next(jobs[next]?.submitS)
    if (nowS === Number.POSITIVE_INFINITY) break
    for (let event = events.first(); event?.timeS === nowS; event = events.first()) {
      events.removeFirst()
      const { value } = event
      if (value.kind === 'replan' || running.get(value.job)?.startS !== value.startS) continue
      leave(value.job, nowS)
      runTimes.set(value.job.user, [...(runTimes.get(value.job.user) ?? []).slice(-1), nowS - value.startS])
    }
    for (let job = jobs[next]; job?.submitS === nowS; job = jobs[++next]) waiting.push(job)
    const plan = planQueue<QueueRunJob>({
      cluster,
      nowS,
      running: [...running.values()],
      waiting,
      reservations,
      runTimes,
      isPreempting,
      ...(isFairShare ? { usage: share.usage(nowS) } : {}),
    })
    for (const { job, placements } of plan.starts) {
      const taken = placements.map(({ shape, host, devices }) => cluster.take(shape, { host, devices }))
      running.set(job, { ...job, startS: nowS, placements: taken })
      startsS.set(job.order, nowS)
      events.add(nowS + job.runS, { kind: 'end', job, startS: nowS })
    }
    const begun = new Set(plan.starts.map(({ job }) => job))
    waiting = waiting.filter((job) => !begun.has(job))
    for (const { job: victim } of plan.victims) {
      const job = [...running].find(([, active]) => active === victim)?.[0]
      if (job === undefined) continue
      leave(job, nowS)
      preempted++
      waiting.push({ ...job, submitS: nowS - (victim.startS - job.submitS) })
    }
    if (plan.victims.length > 0) events.add(nowS + 1, { kind: 'replan' })
  }
  if (waiting.length > 0) throw new MusterError('internal', 'the planner left jobs waiting on empty hosts')
  return { ...summarise(hosts, jobs, startsS), impossible: input.jobs.length - jobs.length, preempted }
}

const sum = <T>(of: readonly T[], amount: (one: T) => number) => of.reduce((total, one) => total + amount(one), 0)

/** Percent of capacity × time from the first submission to the last end; preempted work is lost. */
function summarise(hosts: readonly HostCapacity[], jobs: readonly QueueRunJob[], startsS: ReadonlyMap<number, number>) {
  const { figures, spanS } = waitFigures(jobs, startsS)
  const cpuOf = ({ cpuMilli }: { readonly cpuMilli: number }) => cpuMilli
  const used = (amount: (bundle: ResourceRequest) => number) =>
    sum(jobs, ({ gang, runS }) => runS * sum(gang.bundles, amount))
  const percent = (amount: number, capacity: number) => (100 * amount) / Math.max(1, capacity * spanS)
  const byUser = Map.groupBy(jobs, ({ user }) => user)
  return {
    ...figures,
    cpuPercent: percent(used(cpuOf), sum(hosts, cpuOf)),
    gpuPercent: percent(used(gpuOf), gpuMilliOf(hosts)),
    averageWaitByUserS: new Map(
      [...byUser].map(([user, own]) => [user, waitFigures(own, startsS).figures.averageWaitS]),
    ),
  }
}

const whole = z.int().min(0)
const file = z.strictObject({
  hosts: z
    .array(z.strictObject({ name: z.string(), cpu: whole, memoryGiB: whole, gpus: whole.max(1024).default(0) }))
    .min(1),
  jobs: z.array(
    z.strictObject({
      submitS: whole,
      runS: whole.min(1),
      estimateS: whole.min(1).optional(),
      user: z.string().default(''),
      priority: z.int().default(0),
      isPreemptible: z.boolean().default(false),
      strategy: strategy.default('PACK'),
      bundles: whole.min(1).max(100_000).default(1),
      cpu: whole.default(1),
      memoryGiB: whole.default(0),
      gpuMilli: gpuMilli.default(0),
    }),
  ),
  reservations: z
    .array(
      z.strictObject({
        hosts: z.array(z.string()),
        fromS: whole,
        untilS: whole,
        users: z.array(z.string()).default([]),
      }),
    )
    .default([]),
})

/** @throws MusterError 'configuration' with the first mistake. */
export function parseQueueFile(text: string) {
  const { hosts, jobs, reservations } = parseJson(text, 'queue', file)
  return {
    hosts: hosts.map(({ name, ...host }) => hostOf(name, host)),
    jobs: jobs.map(({ strategy: own, bundles, cpu, memoryGiB, gpuMilli: milli, estimateS, ...rest }, order) => ({
      ...rest,
      order,
      estimateS,
      gang: { name: `job${order}`, strategy: own, bundles: bundlesOf(bundles, { cpu, memoryGiB, gpuMilli: milli }) },
    })),
    reservations: reservations.map((reservation) => ({
      ...reservation,
      hosts: reservation.hosts.map((name) => {
        const index = hosts.findIndex((host) => host.name === name)
        if (index < 0) throw new MusterError('configuration', `a reservation names '${name}', which is not a host`)
        return index
      }),
    })),
  }
}
