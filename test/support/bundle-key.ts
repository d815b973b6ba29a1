import type { Job } from '../../src/scheduler/jobs/job.ts'
import { bundleKey } from '../../src/scheduler/jobs/orders.ts'
import type { JobStore } from '../../src/scheduler/jobs/store.ts'

/** Of a job that was submitted. `attempt`: undefined for its present one. */
export function bundleKeyOf(
  store: JobStore,
  id: number,
  { attempt, rank = 0 }: { attempt?: number; rank?: number } = {},
) {
  const job = store.get(id) as Job
  return bundleKey(store.id, attempt === undefined ? job : { ...job, attempt }, rank)
}
