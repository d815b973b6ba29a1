/** Which jobs have run for longer than their --limit allows. */
import { isActive, type Job } from './job.ts'

/**
 * A gang runs from the first bundle that has begun: one whose host has not answered since the start was sent must not keep the
 * others running for ever.
 */
export function overdue(active: readonly Job[], nowMs: number): readonly Job[] {
  return active.filter(({ state, spec: { limitS } }) => {
    if (limitS === undefined || !isActive(state) || state.kind === 'ending') return false
    return state.bundles.some(({ kind }) => kind !== 'sent') && nowMs - state.startedMs > limitS * 1000
  })
}
