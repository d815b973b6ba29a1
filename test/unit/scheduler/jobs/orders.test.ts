/** What an engine may say of jobs of the queue. */
import { expect, it } from 'vitest'
import { jobsInEngine } from '../../../../src/scheduler/jobs/orders.ts'
import { jobOf, runningOn } from '../../ui/jobs/fake-queue.ts'

it('takes a job of an engine for one of the queue only in the attempt that the queue has given to this engine', () => {
  const active = [
    { ...jobOf(7, runningOn('@slurm'), { engine: 'slurm' }), attempt: 2, stamp: 'x1' },
    jobOf(8, runningOn('m1')),
    jobOf(9, runningOn('@ray'), { engine: 'ray' }),
  ]
  const found = jobsInEngine('abc', 'slurm', active)
  expect(found('abc-7-2-0-x1')).toBe(7)
  const others = [
    'abc-7-1-0-x1',
    'abc-7-2-0',
    'abc-7-2-0-x2',
    'other-7-2-0-x1',
    'abc-8-1-0',
    'abc-9-1-0',
    'abc-3-1-0',
    '',
  ]
  expect(others.map(found)).toEqual(others.map(() => undefined))
})
