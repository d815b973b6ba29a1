/**
 * Jobs that Ray places and runs: in the queue they stand on one place that is no host, and what Ray tells of them is what hosts
 * tell of bundles. So few wait in Ray at once that the order of the queue still means something.
 */
import type { BundleOrder, RoundResult } from './host-program.ts'
import { isActive, type Job, type JobEvent } from './job.ts'

/** No host has such a name. */
export const RAY_PLACE = '@ray'

export const MOST_WAITING = 8

export type RayOrder =
  | (Extract<BundleOrder, { kind: 'start' }> & { readonly job: Job })
  | { readonly kind: 'look' | 'stop'; readonly key: string }

export interface RayEngine {
  /** A line a bundle as hosts answer; never rejects. */
  round(orders: readonly RayOrder[], signal: AbortSignal): Promise<RoundResult>
}

export const isRayJob = ({ spec }: Pick<Job, 'spec'>): boolean => spec.engine === 'ray'

/** Which of those that wait for Ray, by number and in turn, go to it now. */
export function sendToRay(
  waiting: readonly number[],
  active: readonly Job[],
): readonly { readonly id: number; readonly event: JobEvent }[] {
  const starting = active.filter((job) => isRayJob(job) && isActive(job.state) && job.state.kind === 'starting')
  const room = Math.max(0, MOST_WAITING - starting.length)
  return waiting
    .slice(0, room)
    .map((id) => ({ id, event: { kind: 'placed', places: [{ host: RAY_PLACE, devices: [] }] } }))
}
