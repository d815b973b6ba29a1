import { describe, expect, test } from 'vitest'
import { ElapsedTimes } from '../../../../src/scheduler/jobs/elapsed-times.ts'
import { type BundleState, type Job, type JobState, overdue } from '../../../../src/scheduler/jobs/job.ts'
import { testJob } from '../../../support/test-job.ts'

const sent: BundleState = { kind: 'sent' }
const begun: BundleState = { kind: 'begun' }
const done: BundleState = { kind: 'ended', end: { kind: 'exit', code: 0 } }

const job = (bundles: readonly BundleState[], limitS: number | null = 60, rest: Partial<JobState> = {}): Job =>
  testJob(
    { bundles: bundles.length, ...(limitS === null ? {} : { limitS }) },
    {
      state: {
        kind: bundles.includes(sent) ? 'starting' : 'running',
        places: bundles.map(() => ({ host: 'a', devices: [] })),
        bundles,
        startedMs: 1000,
        ...rest,
      } as JobState,
    },
  )

const isOverdue = (one: Job, nowMs = 61_001) => overdue([one], nowMs, new ElapsedTimes()).length === 1

describe('the limit of a job', () => {
  test('stops it after that time, not before, and only if it has a limit', () => {
    expect(isOverdue(job([begun]))).toBe(true)
    expect(isOverdue(job([begun]), 61_000)).toBe(false)
    expect(isOverdue(job([begun], null), 1e12)).toBe(false)
  })

  test('stops a gang although the host of one bundle does not answer', () => {
    expect(isOverdue(job([begun, sent]))).toBe(true)
    expect(isOverdue(job([done, sent]))).toBe(true)
  })

  test('ignores jobs that have not begun and jobs that are already ending', () => {
    expect(isOverdue(job([sent, sent]))).toBe(false)
    expect(isOverdue(job([begun], 60, { kind: 'ending' }))).toBe(false)
  })

  test('stops it in time although the clock is set back', () => {
    let passedMs = 5000
    const times = new ElapsedTimes(() => passedMs)
    const atMs = (nowMs: number) => overdue([job([begun])], nowMs, times).length
    expect(atMs(31_000)).toBe(0)
    passedMs += 30_000
    expect(atMs(-3_600_000)).toBe(0)
    passedMs += 1
    expect(atMs(-3_600_000)).toBe(1)
  })

  test('counts again from a new start', () => {
    let passedMs = 0
    const times = new ElapsedTimes(() => passedMs)
    expect(overdue([job([begun])], 1000, times)).toEqual([])
    passedMs = 100_000
    expect(overdue([job([begun], 60, { startedMs: 90_000 })], 101_000, times)).toEqual([])
  })

  test('ends no job early, whatever the other clock shows', () => {
    for (let passedMs = 0.1; passedMs < 40_000; passedMs += 1.234_567) {
      const times = new ElapsedTimes(() => passedMs)
      expect(overdue([job([begun])], 61_000, times)).toEqual([])
    }
  })
})
