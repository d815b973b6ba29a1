import type { JobEvent } from '../../src/scheduler/jobs/job.ts'
import type { LeaseToken } from '../../src/scheduler/jobs/queue-file.ts'
import type { JobStore } from '../../src/scheduler/jobs/store.ts'

/** One event for one job; returns as `applyAll`. */
export function applyEvent(store: JobStore, id: number, event: JobEvent, nowMs: number, lease?: LeaseToken) {
  return store.applyAll([{ id, event }], nowMs, { lease })[0]
}
