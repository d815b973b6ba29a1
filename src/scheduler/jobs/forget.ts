/** Which hosts a job that is given up does not wait for. */
import { isActive, type Job } from './job.ts'
import type { SchedulerReport } from './store.ts'

/**
 * Of the hosts of these jobs those that were down when the scheduler looked last, and those that it does not know, as when
 * they left hosts.yaml; so are places of engines. What answers is not given up: its bundles run, on devices that others
 * would get.
 */
export function hostsToForget(jobs: readonly Job[], report: SchedulerReport | undefined): readonly string[] {
  if (report === undefined) return []
  const known = new Set(report.hosts.map(({ name }) => name))
  const hosts = new Set(jobs.flatMap(({ state }) => (isActive(state) ? state.places.map(({ host }) => host) : [])))
  return [...hosts].filter((host) => Object.hasOwn(report.down, host) || !known.has(host))
}
