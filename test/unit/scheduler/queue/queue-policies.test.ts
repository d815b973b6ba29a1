import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { QueuedJob, QueueState } from '../../../../src/scheduler/queue/queue-policies.ts'
import { FreeProfile, QUEUE_POLICIES, type QueuePolicyName } from '../../../../src/scheduler/queue/queue-policies.ts'
import type { TimedJob } from '../../../../src/scheduler/simulate/swf.ts'
import { runLog } from '../../../../src/scheduler/simulate/swf.ts'
import { atOnce } from '../../../support/at-once.ts'

const NAMES = Object.keys(QUEUE_POLICIES) as QueuePolicyName[]
const PROCESSORS = 8

/** [submitted, runs, width, estimate beyond the run] */
type Row = readonly [number, number, number, number?]

function jobsOf(rows: readonly Row[]): readonly TimedJob[] {
  return rows
    .toSorted(([one], [other]) => one - other)
    .map(([submitS, runS, width, slackS = 0], order) => ({ order, submitS, runS, width, estimateS: runS + slackS }))
}

/** Starts by order, seen from outside the policy. */
function startsOf(name: QueuePolicyName, jobs: readonly TimedJob[]): ReadonlyMap<number, number> {
  const policy = QUEUE_POLICIES[name]()
  const starts = new Map<number, number>()
  atOnce(
    runLog(jobs, PROCESSORS, {
      choose: (state) => {
        const chosen = policy.choose(state)
        for (const { order } of chosen) starts.set(order, state.nowS)
        return chosen
      },
    }),
  )
  return starts
}

const anyRows = fc.array(
  fc.tuple(
    fc.integer({ min: 0, max: 60 }),
    fc.integer({ min: 1, max: 30 }),
    fc.integer({ min: 1, max: PROCESSORS }),
    fc.integer({ min: 0, max: 20 }),
  ),
  { minLength: 1, maxLength: 40 },
)

const byOrder = ([one]: readonly [number, unknown], [other]: readonly [number, unknown]) => one - other

/** When each waiting job starts, by its order, if nothing passes it and all goes as estimated; undefined: never. */
function expectedStartsS({
  nowS,
  free,
  running,
  waiting,
}: Omit<QueueState, 'hasEndedEarly'>): ReadonlyMap<number, number | undefined> {
  const profile = new FreeProfile(nowS, free, running)
  return new Map(
    waiting.map(({ order, width, estimateS }) => {
      const startS = profile.earliest(width, estimateS)
      if (startS !== undefined) profile.take(startS, estimateS, width)
      return [order, startS]
    }),
  )
}

describe('which jobs begin', () => {
  // Six of eight busy until 10; the head wants all; a short narrow one and a long narrow one wait behind it.
  const jobs = jobsOf([
    [0, 10, 6],
    [1, 5, 8],
    [2, 8, 2],
    [3, 50, 2],
  ])

  test('first come, first served: no job passes the head', () => {
    expect([...startsOf('fcfs', jobs)]).toEqual([
      [0, 0],
      [1, 10],
      [2, 15],
      [3, 15],
    ])
  })

  test.each([
    'easy',
    'easy-sjf',
    'conservative',
    'oldest-reserved',
  ] as const)('%s passes the head only with jobs that end before it can begin', (name) => {
    expect(Object.fromEntries(startsOf(name, jobs))).toEqual({ 0: 0, 1: 10, 2: 2, 3: 15 })
  })

  test('EASY lets jobs pass the second in the queue, conservative back-fill does not', () => {
    const full = jobsOf([
      [0, 10, 4],
      [0, 20, 3],
      [1, 10, 4],
      [2, 10, 8],
      [3, 30, 1],
    ])
    expect(startsOf('easy', full).get(3)).toBe(33)
    expect(startsOf('conservative', full).get(3)).toBe(20)
  })

  test('starts waiting jobs early when a job ended early', () => {
    const early = jobsOf([
      [0, 2, 8, 100],
      [1, 5, 8],
      [1, 5, 8],
    ])
    for (const name of NAMES) expect(Object.fromEntries(startsOf(name, early))).toEqual({ 0: 0, 1: 2, 2: 7 })
  })

  test('the default prefers jobs that suffer most from waiting', () => {
    const rows: Row[] = [
      [0, 1000, 4],
      [2, 100, 4],
      [3, 800, 4],
      [4, 20, 4],
    ]
    const starts = startsOf('oldest-reserved', jobsOf(rows))
    expect([starts.get(2), starts.get(3)]).toEqual([122, 102])
    const inOrder = startsOf('easy', jobsOf(rows))
    expect([inOrder.get(2), inOrder.get(3)]).toEqual([102, 902])
  })
})

describe('any sequence of jobs', () => {
  test.each(NAMES)('%s runs every job, within the machine and deterministically', (name) => {
    fc.assert(
      fc.property(anyRows, (rows) => {
        const jobs = jobsOf(rows)
        const starts = startsOf(name, jobs)
        expect(starts.size).toBe(jobs.length)
        for (const { order, submitS } of jobs) {
          const startS = starts.get(order) ?? -1
          expect(startS).toBeGreaterThanOrEqual(submitS)
          const beside = jobs.filter((job) => {
            const since = starts.get(job.order) ?? -1
            return since <= startS && startS < since + job.runS
          })
          expect(beside.reduce((sum, { width }) => sum + width, 0)).toBeLessThanOrEqual(PROCESSORS)
        }
        expect([...startsOf(name, jobs)]).toEqual([...starts])
      }),
    )
  })

  test('conservative back-fill starts each job when it was expected at submission, if estimates are right', () => {
    fc.assert(
      fc.property(anyRows, (rows) => {
        const jobs = jobsOf(rows.map(([submitS, runS, width]) => [submitS, runS, width]))
        const policy = QUEUE_POLICIES.conservative()
        const promised = new Map<number, number | undefined>()
        const starts = new Map<number, number>()
        atOnce(
          runLog(jobs, PROCESSORS, {
            choose: (state) => {
              for (const [order, startS] of expectedStartsS(state))
                if (!promised.has(order)) promised.set(order, startS)
              const chosen = policy.choose(state)
              for (const { order } of chosen) starts.set(order, state.nowS)
              return chosen
            },
          }),
        )
        expect(new Map([...starts].sort(byOrder))).toEqual(new Map([...promised].sort(byOrder)))
      }),
    )
  })

  // Times in units of ten minutes: the default keeps to the order of submission only among those older than an hour.
  test.each([
    ['easy', 0],
    ['easy-sjf', 0],
    ['conservative', 0],
    ['oldest-reserved', 3600],
  ] as const)('%s never delays the head once it has waited for more than %d s', (name, oldS) => {
    fc.assert(
      fc.property(anyRows, (rows) => {
        const jobs = jobsOf(rows.map(([submitted, runs, width]) => [submitted * 600, runs * 600, width]))
        const policy = QUEUE_POLICIES[name]()
        const promised = new Map<number, number>()
        atOnce(
          runLog(jobs, PROCESSORS, {
            choose: (state) => {
              const head = state.waiting[0]
              const startS = head && expectedStartsS(state).get(head.order)
              if (head && startS !== undefined && state.nowS - head.submitS > oldS) {
                expect(startS).toBeLessThanOrEqual(promised.get(head.order) ?? startS)
                promised.set(head.order, startS)
              }
              return policy.choose(state)
            },
          }),
        )
      }),
    )
  })
})

test('expects a start for each job, and none for one wider than the machine', () => {
  const job = (order: number, width: number): QueuedJob => ({ order, submitS: 0, width, estimateS: 10 })
  const state: Omit<QueueState, 'hasEndedEarly'> = {
    nowS: 100,
    free: 2,
    running: [
      { width: 2, estimatedEndS: 130 },
      { width: 4, estimatedEndS: 90 },
    ],
    waiting: [job(1, 6), job(2, 9), job(3, 2), job(4, 8)],
  }
  expect([...expectedStartsS(state)]).toEqual([
    [1, 101],
    [2, undefined],
    [3, 111],
    [4, 130],
  ])
})
