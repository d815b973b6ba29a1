/** When and where the jobs of arrays ran, read again only where something has changed. */
import { hasBegun, isActive, type Job } from '../../scheduler/jobs/job.ts'
import type { JobExtent, JobGroup } from '../../scheduler/jobs/job-group.ts'
import type { JobStore } from '../../scheduler/jobs/store.ts'

/** Keys are waiting: the rest is read the next time. */
const BUDGET_MS = 20
/** With this many jobs it may be some seconds old. */
const LARGE = 1_000
const LARGE_MS = 5_000

export class GroupExtents {
  readonly #store: JobStore
  readonly #known = new Map<number, { readonly key: string; readonly atMs: number; readonly extent: JobExtent }>()

  constructor(store: JobStore) {
    this.#store = store
  }

  /** By specification, for groups of several jobs. `isComplete`: false while some are still to be read. */
  of(groups: readonly JobGroup[], active: readonly Job[], nowMs: number) {
    const untilMs = performance.now() + BUDGET_MS
    const extents = new Map<number, JobExtent>()
    let isComplete = true
    for (const { spec, first, count, counts } of groups) {
      if (count < 2) continue
      const key = JSON.stringify([...counts])
      const last = this.#known.get(spec)
      const isDue = last?.key !== key && (last === undefined || count < LARGE || nowMs - last.atMs >= LARGE_MS)
      if (isDue && performance.now() > untilMs) isComplete = false
      const ended = isDue && performance.now() <= untilMs ? this.#store.extentOf(spec) : last?.extent
      if (ended === undefined) continue
      if (ended !== last?.extent) this.#known.set(spec, { key, atMs: nowMs, extent: ended })
      const own = active.filter(({ id }) => id >= first && id < first + count)
      extents.set(spec, withActive(ended, own))
    }
    for (const spec of this.#known.keys()) if (!extents.has(spec)) this.#known.delete(spec)
    return { extents, isComplete }
  }
}

function withActive({ startedMs, endedMs, hosts }: JobExtent, active: readonly Job[]): JobExtent {
  const starts = active.flatMap(({ state }) => (isActive(state) && hasBegun(state) ? [state.startedMs] : []))
  const places = active.flatMap(({ state }) => ('places' in state ? (state.places ?? []) : []))
  const earliest = Math.min(...starts, startedMs ?? Number.POSITIVE_INFINITY)
  return {
    startedMs: Number.isFinite(earliest) ? earliest : undefined,
    endedMs,
    hosts: [...new Set([...hosts, ...places.map(({ host }) => host)])],
  }
}
