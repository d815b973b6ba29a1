import { expect, it } from 'vitest'
import { JOB_COLUMNS, requestText, termsText } from '../../../../src/scheduler/jobs/job-columns.ts'
import { jobOf, runningOn } from '../../ui/jobs/fake-queue.ts'

it('shows in a few columns how long a job has run', () => {
  const ran = JOB_COLUMNS.find(({ title }) => title === 'RAN')
  const job = jobOf(1, { ...runningOn('n1', 0), startedMs: 0 } as Parameters<typeof jobOf>[1])
  const minutes = [1, 5, 119.9, 125, 24 * 60 - 1, 47.99 * 60, 72 * 60, 400 * 24 * 60]
  const texts = minutes.map((minute) => ran?.text(job, minute * 60_000))
  expect(texts).toEqual(['60.0 s', '5 min', '2.0 h', '2.1 h', '24.0 h', '2 days', '3 days', '400 days'])
  for (const text of texts) expect(text?.length).toBeLessThan(ran?.width ?? 0)
  expect(ran?.text(jobOf(2, { kind: 'queued' }), 0)).toBe('-')
})

it('says how many bundles one host may have', () => {
  const job = jobOf(1, { kind: 'queued' }, { bundles: 4, strategy: 'PACK', maxBundlesPerHost: 2 })
  expect(requestText(job)).toMatch(/^4 × \(.+\) PACK, at most 2 per host$/)
})

it('says all that a job asks for, and on which terms', () => {
  const { spec } = jobOf(1, { kind: 'queued' })
  const request = { ...spec.request, memoryBytes: 900 * 2 ** 30, gpuCount: 0 }
  const job = jobOf(1, { kind: 'queued' }, { request })
  expect([requestText(job), termsText(job.spec)]).toEqual(['4 CPU + 900 GiB', ''])
  const selectors = [{ label: 'host', is: 'in', values: ['m1', 'm2'] }] as const
  const terms = { request: { ...request, selectors }, limitS: 7200, estimateS: 90, retries: 3, isPreemptible: true }
  expect(termsText({ ...spec, ...terms })).toBe('on m[1-2], at most 2 h 0 min, 90 s estimated, 3 retries, preemptible')
})
