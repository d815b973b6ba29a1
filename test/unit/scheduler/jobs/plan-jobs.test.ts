import { describe, expect, test } from 'vitest'
import type { Job, JobSpec, JobState } from '../../../../src/scheduler/jobs/job.ts'
import { planJobs } from '../../../../src/scheduler/jobs/plan-jobs.ts'

const HOST = { name: 'a', cpuMilli: 1000, memoryBytes: 2 ** 30, gpus: [] }
const spec: JobSpec = {
  name: '',
  command: 'true',
  environment: {},
  request: { cpuMilli: 1000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0 },
  bundles: 1,
  strategy: 'PACK',
  estimateS: 3600,
  retries: 0,
  isPreemptible: true,
}
const job = (id: number, state: JobState, priority = 0): Job => ({
  id,
  user: 'ann',
  submittedMs: 0,
  priority,
  attempt: 1,
  failures: 0,
  spec,
  state,
  after: [],
})
const on = (host: string) => ({
  places: [{ host, devices: [] }],
  bundles: [{ kind: 'begun' as const }],
  startedMs: 0,
})
const planAt = (nowMs: number, active: readonly Job[], hosts = [HOST]) =>
  planJobs({
    hosts,
    active,
    lines: [[job(9, { kind: 'queued' }, 1)]],
    runTimes: new Map(),
    usage: new Map(),
    nowMs,
    isPreempting: true,
  }).events.map(({ id, event }) => [id, event.kind])

describe('a job that was told to stop', () => {
  const ending = job(1, { kind: 'ending', stop: 'cancelled', sinceMs: 100_000, ...on('a') })
  const running = job(2, { kind: 'running', ...on('b') })
  const hosts = [HOST, { ...HOST, name: 'b' }]

  test('is waited for, and no other job is stopped meanwhile', () => {
    expect(planAt(103_000, [ending, running], hosts)).toEqual([])
  })

  test('is not relied on for ever: if it does not end, another job is stopped', () => {
    expect(planAt(200_000, [ending, running], hosts)).toEqual([[2, 'stop']])
  })
})
