import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findGang } from '../../../../src/scheduler/gangs/place-gang.ts'
import { Cluster } from '../../../../src/scheduler/model/cluster.ts'
import type { Gang, Strategy } from '../../../../src/scheduler/model/resources.ts'
import { planQueue, type QueueSnapshot } from '../../../../src/scheduler/plan/plan-queue.ts'
import type { ActiveJob, WaitingJob } from '../../../../src/scheduler/plan/predict.ts'
import { FairShare } from '../../../../src/scheduler/plan/turn.ts'
import { type QueueRunJob, type QueueRunResult, runQueue } from '../../../../src/scheduler/simulate/queue-run.ts'
import { atOnce } from '../../../support/at-once.ts'
import { randomRuns } from '../../../support/random-runs.ts'

const DAY_S = 86_400

const hosts = (count: number, gpus = 2) =>
  Array.from({ length: count }, (_, index) => ({
    name: `h${index}`,
    cpuMilli: 8000,
    memoryBytes: 1000,
    gpus: Array.from({ length: gpus }, () => ''),
  }))

const gang = (gpuMilli: number, bundles = 1, strategy: Strategy = 'PACK'): Gang => ({
  name: '',
  strategy,
  bundles: Array.from({ length: bundles }, () => ({
    cpuMilli: 1000,
    memoryBytes: 1,
    gpuCount: gpuMilli === 0 ? 0 : Math.max(1, gpuMilli / 1000),
    gpuMilli: Math.min(1000, gpuMilli),
  })),
})

let orders = 0
const job = (own: Gang, rest: Partial<QueueRunJob> = {}): QueueRunJob => ({
  order: orders++,
  gang: own,
  user: 'ann',
  submitS: 0,
  priority: 0,
  estimateS: 100,
  runS: 100,
  isPreemptible: false,
  ...rest,
})

/** Puts them on the cluster, as if they ran since `startS`. */
const started = (cluster: Cluster, job: QueueRunJob, startS: number): ActiveJob => ({
  ...job,
  startS,
  placements: findGang(cluster, job.gang) ?? [],
})

const snapshotOf = (
  cluster: Cluster,
  running: readonly ActiveJob[],
  waiting: readonly WaitingJob[],
  nowS = 0,
): QueueSnapshot => ({ cluster, nowS, running, waiting })

const startedOrders = (snapshot: QueueSnapshot) => planQueue(snapshot).starts.map(({ job: { order } }) => order)

describe('which jobs begin', () => {
  test('passes the head with jobs that end before it can begin or use other hosts, and with no others', () => {
    const cluster = new Cluster(hosts(2))
    const running = [started(cluster, job(gang(1000)), 0), started(cluster, job(gang(1000)), 0)]
    expect(running.map(({ placements }) => placements[0]?.host)).toEqual([0, 0])
    const head = job(gang(2000, 2, 'STRICT_SPREAD'))
    const short = job(gang(1000), { submitS: 1, estimateS: 50 })
    const long = job(gang(1000), { submitS: 1, estimateS: 500 })
    const late = running.map((one) => ({ ...one, startS: 3890 }))
    const plan = planQueue(snapshotOf(cluster, late, [head, long, short], 4000))
    expect(plan.starts.map((start) => start.job.order)).toEqual([])
    const early = planQueue(snapshotOf(cluster, running, [head, long, short], 10))
    expect(early.starts.map((start) => [start.job.order, start.placements[0]?.host])).toEqual([[short.order, 1]])
    expect(early.expectedS.get(head.order)).toBe(100)
    expect(early.expectedS.get(long.order)).toBe(200)
    const elsewhere = new Cluster(hosts(3))
    const two = [started(elsewhere, job(gang(2000)), 0), started(elsewhere, job(gang(2000)), 0)]
    const besides = job(gang(1000), { estimateS: 5000 })
    const pair = job(gang(2000, 2, 'STRICT_SPREAD'), { priority: 1 })
    const planned = planQueue(snapshotOf(elsewhere, two, [pair, besides], 0))
    expect(planned.expectedS.get(pair.order)).toBe(100)
    expect(planned.starts.map((start) => [start.job.order, start.placements[0]?.host])).toEqual([[besides.order, 2]])
  })

  test('plans by devices, not by sums', () => {
    const cluster = new Cluster(hosts(1))
    const running = [500, 500, 500, 500].map((share, index) =>
      started(cluster, job(gang(share), { estimateS: 100 * (index + 1) }), 0),
    )
    const devices = running.map(({ placements }) => placements[0]?.devices[0])
    expect(devices).toEqual([0, 0, 1, 1])
    const large = job(gang(800))
    expect(planQueue(snapshotOf(cluster, running, [large])).expectedS.get(large.order)).toBe(200)
  })

  test('orders by priority, to which each day of waiting adds one', () => {
    const cluster = new Cluster(hosts(1, 1))
    const low = job(gang(1000))
    const high = job(gang(1000), { priority: 1, submitS: DAY_S + 50 })
    expect(startedOrders(snapshotOf(cluster, [], [low, high], 100))).toEqual([high.order])
    expect(startedOrders(snapshotOf(cluster, [], [low, high], DAY_S + 100))).toEqual([low.order])
  })

  test('with fair share puts users first who consumed less lately', () => {
    const share = new FairShare(DAY_S)
    share.charge('ann', 1_000_000, 0)
    const cluster = new Cluster(hosts(1, 1))
    const ann = job(gang(1000))
    const bob = job(gang(1000), { user: 'bob', submitS: 10 })
    const at = (nowS: number) =>
      startedOrders({ ...snapshotOf(cluster, [], [ann, bob], nowS), usage: share.usage(nowS) })
    expect(at(20)).toEqual([bob.order])
    expect(startedOrders(snapshotOf(cluster, [], [ann, bob], 20))).toEqual([ann.order])
    expect(share.usage(40 * DAY_S).get('ann')).toBeLessThan(1)
  })

  test('keeps reserved hosts free of others and open to their users', () => {
    const cluster = new Cluster(hosts(1, 1))
    const reservations = [{ hosts: [0], fromS: 50, untilS: 400, users: ['bob'] }]
    const fits = job(gang(1000), { estimateS: 50 })
    const tooLong = job(gang(1000), { estimateS: 51 })
    const bobs = job(gang(1000), { user: 'bob' })
    const plan = (one: WaitingJob) => planQueue({ ...snapshotOf(cluster, [], [one]), reservations })
    expect(plan(fits).starts).toHaveLength(1)
    expect(plan(tooLong).starts).toHaveLength(0)
    expect(plan(tooLong).expectedS.get(tooLong.order)).toBe(400)
    expect(plan(bobs).starts).toHaveLength(1)
  })

  test('preempts the lowest priority and the youngest, no more than needed, and only when asked to', () => {
    const cluster = new Cluster(hosts(2, 2))
    const running = [
      started(cluster, job(gang(1000), { isPreemptible: true }), 0),
      started(cluster, job(gang(1000), { isPreemptible: true, priority: 1 }), 0),
      started(cluster, job(gang(1000), { isPreemptible: true }), 0),
      started(cluster, job(gang(1000)), 0),
    ]
    const urgent = job(gang(1000), { priority: 5 })
    const snapshot = snapshotOf(cluster, running, [urgent], 10)
    expect(planQueue(snapshot).victims).toEqual([])
    const plan = planQueue({ ...snapshot, isPreempting: true })
    expect(plan.victims).toEqual([{ job: running[2], forOrder: urgent.order }])
    expect(plan.expectedS.get(urgent.order)).toBe(11)
    const pair = job(gang(2000), { priority: 5 })
    const both = planQueue({ ...snapshotOf(cluster, running, [pair], 10), isPreempting: true })
    expect(new Set(both.victims.map((victim) => victim.job))).toEqual(new Set([running[0], running[1]]))
    const equal = job(gang(1000))
    expect(planQueue({ ...snapshotOf(cluster, running, [equal], 10), isPreempting: true }).victims).toEqual([])
    expect(cluster.placementCount).toBe(4)
  })

  test("predicts from the user's last two jobs, and as long again for a job that exceeds that", () => {
    const cluster = new Cluster(hosts(1, 1))
    const runTimes = new Map([['ann', [5, 100, 200]]])
    const running = [started(cluster, job(gang(1000), { estimateS: undefined }), 0)]
    const next = job(gang(1000))
    const at = (nowS: number) =>
      planQueue({ ...snapshotOf(cluster, running, [next], nowS), runTimes }).expectedS.get(next.order)
    expect([at(10), at(400)]).toEqual([150, 800])
  })

  test('lets no job of unknown length delay one that has waited for six hours', () => {
    const cluster = new Cluster(hosts(1, 2))
    const running = [started(cluster, job(gang(1000), { estimateS: 50_000 }), 0)]
    const head = job(gang(2000))
    const unknown = job(gang(1000), { estimateS: undefined, submitS: 10 })
    expect(startedOrders(snapshotOf(cluster, running, [head, unknown], 4000))).toEqual([unknown.order])
    expect(startedOrders(snapshotOf(cluster, running, [head, unknown], 22_000))).toEqual([])
  })
})

describe('preemption', () => {
  const alone = (rest: Partial<QueueRunJob>) => job(gang(1000), rest)
  const victimsOf = (running: readonly ActiveJob[], waiting: WaitingJob, cluster: Cluster, nowS: number) =>
    planQueue({ ...snapshotOf(cluster, running, [waiting], nowS), isPreempting: true }).victims.map(
      (one) => one.job.order,
    )

  test('stops a job past its estimate too, instead of expecting its end every second', () => {
    const cluster = new Cluster(hosts(1, 1))
    const late = started(cluster, alone({ estimateS: 10, isPreemptible: true }), 0)
    const urgent = alone({ priority: 10, submitS: 100 })
    expect(victimsOf([late], urgent, cluster, 1000)).toEqual([late.order])
  })

  test('back-fills a job that ends sooner than one past its estimate', () => {
    const cluster = new Cluster(hosts(2, 1))
    const late = started(cluster, alone({ estimateS: 10 }), 0)
    const pair = job(gang(1000, 2, 'STRICT_SPREAD'), { priority: 1 })
    const short = alone({ estimateS: 60, submitS: 900 })
    expect(startedOrders(snapshotOf(cluster, [late], [pair, short], 1000))).toEqual([short.order])
  })

  test('does not protect a job because it has run for days', () => {
    const cluster = new Cluster(hosts(1, 1))
    const old = started(cluster, alone({ estimateS: 30 * DAY_S, isPreemptible: true }), 0)
    const urgent = alone({ priority: 5, submitS: 5 * DAY_S })
    expect(victimsOf([old], urgent, cluster, 5 * DAY_S + 10)).toEqual([old.order])
  })

  test('never lets equal priorities stop each other', () => {
    const cluster = new Cluster(hosts(1, 1))
    const first = started(cluster, alone({ estimateS: 30 * DAY_S, isPreemptible: true, submitS: 60 }), 120)
    const older = alone({ submitS: 0 })
    for (const nowS of [DAY_S, DAY_S + 30, 3 * DAY_S, 10 * DAY_S])
      expect(victimsOf([first], older, cluster, nowS)).toEqual([])
  })

  test('protects a job that waited for days before it began', () => {
    const cluster = new Cluster(hosts(1, 1))
    const patient = started(cluster, alone({ estimateS: DAY_S, isPreemptible: true }), 5 * DAY_S)
    const fresh = (priority: number) => alone({ priority, submitS: 5 * DAY_S + 5 })
    expect(victimsOf([patient], fresh(1), cluster, 5 * DAY_S + 10)).toEqual([])
    expect(victimsOf([patient], fresh(6), cluster, 5 * DAY_S + 10)).toEqual([patient.order])
  })

  test('orders jobs that have waited for an hour by submission, not by number', () => {
    const cluster = new Cluster(hosts(1, 1))
    const later = alone({ submitS: 50 })
    const earlier = alone({ submitS: 0 })
    expect(earlier.order).toBeGreaterThan(later.order)
    expect(startedOrders(snapshotOf(cluster, [], [later, earlier], 4000))).toEqual([earlier.order])
  })
})

/** Each plan on two hosts, from the first submission until nothing runs or waits. */
function* plansOf(jobs: readonly QueueRunJob[]) {
  const cluster = new Cluster(hosts(2))
  let coming = jobs.filter((one) => findGang(cluster.copy(), one.gang) !== undefined)
  let waiting: QueueRunJob[] = []
  let running: (QueueRunJob & ActiveJob)[] = []
  for (;;) {
    const nowS = Math.min(...coming.map(({ submitS }) => submitS), ...running.map((one) => one.startS + one.runS))
    if (nowS === Number.POSITIVE_INFINITY) return
    for (const { placements } of running.filter((one) => one.startS + one.runS === nowS))
      for (const placement of placements) cluster.release(placement)
    running = running.filter((one) => one.startS + one.runS > nowS)
    waiting.push(...coming.filter(({ submitS }) => submitS === nowS))
    coming = coming.filter(({ submitS }) => submitS > nowS)
    const { starts, expectedS } = planQueue<QueueRunJob>({ cluster, nowS, running, waiting })
    yield { nowS, waiting, expectedS }
    for (const { job, placements } of starts) {
      const taken = placements.map(({ shape, host, devices }) => cluster.take(shape, { host, devices }))
      running.push({ ...job, startS: nowS, placements: taken })
    }
    waiting = waiting.filter((one) => !starts.some(({ job }) => job === one))
  }
}

describe('any sequence of jobs', () => {
  const anyJob = fc.record({
    gpuMilli: fc.constantFrom(0, 300, 500, 800, 1000, 2000),
    bundles: fc.integer({ min: 1, max: 3 }),
    strategy: fc.constantFrom<Strategy>('PACK', 'SPREAD', 'STRICT_PACK', 'STRICT_SPREAD'),
    submitS: fc.integer({ min: 0, max: 200 }),
    runS: fc.integer({ min: 1, max: 60 }),
    slackS: fc.option(fc.integer({ min: 0, max: 40 }), { nil: undefined }),
    priority: fc.integer({ min: 0, max: 2 }),
    user: fc.constantFrom('ann', 'bob', 'cem'),
    isPreemptible: fc.boolean(),
  })
  const anyJobs = fc.array(anyJob, { minLength: 1, maxLength: 25 })
  const jobsOf = (rows: readonly (typeof anyJob extends fc.Arbitrary<infer Row> ? Row : never)[]) =>
    rows.map(({ gpuMilli, bundles, strategy, slackS, ...rest }, order) => ({
      ...rest,
      order,
      estimateS: slackS === undefined ? undefined : rest.runS + slackS,
      gang: gang(gpuMilli, bundles, strategy),
    }))

  test('runs every possible job, deterministically and without over-committing', () => {
    fc.assert(
      fc.property(anyJobs, fc.boolean(), fc.boolean(), (rows, isPreempting, isFairShare) => {
        const jobs = jobsOf(rows)
        const run = (): QueueRunResult => atOnce(runQueue({ hosts: hosts(2), jobs, isPreempting, isFairShare }))
        const result = run()
        expect(result.jobs + result.impossible).toBe(jobs.length)
        expect(run()).toEqual(result)
      }),
      { numRuns: randomRuns(40) },
    )
  })

  test('never delays the first in turn when estimates are right', () => {
    fc.assert(
      fc.property(anyJobs, (rows) => {
        const jobs = jobsOf(rows).map((one) => ({
          ...one,
          submitS: one.submitS * 60,
          runS: one.runS * 60,
          estimateS: one.runS * 60,
          priority: 0,
          user: 'ann',
        }))
        const promised = new Map<number, number>()
        for (const { nowS, waiting, expectedS } of plansOf(jobs)) {
          const old = waiting.toSorted((one, other) => one.submitS - other.submitS || one.order - other.order)[0]
          const startS = old && expectedS.get(old.order)
          if (old === undefined || startS === undefined || nowS - old.submitS <= 3600) continue
          expect(startS).toBeLessThanOrEqual(promised.get(old.order) ?? startS)
          promised.set(old.order, startS)
        }
      }),
      { numRuns: randomRuns(40) },
    )
  })
})
