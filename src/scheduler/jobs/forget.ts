/** Which hosts a job that is given up does not wait for. */
import { isActive, type Job } from './job.ts'
import type { QueueView } from './store.ts'

/**
 * Of the hosts of these jobs those that were down when the scheduler looked last, and those that it does not know, as when
 * they left hosts.yaml; Ray's place is among these. What answers is not given up: its bundles run, on devices that others
 * would get.
 */
export function hostsToForget(jobs: readonly Job[], view: QueueView | undefined): readonly string[] {
  if (view === undefined) return []
  const known = new Set(view.hosts.map(({ name }) => name))
  const hosts = new Set(jobs.flatMap(({ state }) => (isActive(state) ? state.places.map(({ host }) => host) : [])))
  return [...hosts].filter((host) => Object.hasOwn(view.down, host) || !known.has(host))
}
