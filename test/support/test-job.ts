/** Jobs for tests that name only what they are about. */
import type { Job, JobSpec } from '../../src/scheduler/jobs/job.ts'

/** One bundle of one core. */
export const testSpec = (rest: Partial<JobSpec> = {}): JobSpec => ({
  name: 'train',
  command: 'train.py',
  environment: {},
  request: { cpuMilli: 1000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0 },
  bundles: 1,
  strategy: 'PACK',
  retries: 0,
  isPreemptible: false,
  ...rest,
})

/** Job 7 of ann, queued, in its first attempt. */
export const testJob = (spec: Partial<JobSpec> = {}, rest: Partial<Job> = {}): Job => ({
  id: 7,
  user: 'ann',
  submittedMs: 0,
  priority: 0,
  attempt: 1,
  failures: 0,
  after: [],
  spec: testSpec(spec),
  state: { kind: 'queued' },
  ...rest,
})
