/** The jobs that Tab offers. */
import { ACTIVE_KINDS, FINAL_KINDS, type Job } from '../../scheduler/jobs/job.ts'
import type { JobStore } from '../../scheduler/jobs/store.ts'

const MOST_WAITING = 1_000
const MOST_ENDED = 50

/** First those that run, then those that wait, then the last to end. `meant`: only in these states. */
export function jobsToName(store: JobStore, meant?: readonly string[]): readonly Job[] {
  const read = (kinds: readonly string[], jobsOf: (kinds: readonly string[]) => readonly Job[]) => {
    const own = meant === undefined ? kinds : kinds.filter((kind) => meant.includes(kind))
    return own.length === 0 ? [] : jobsOf(own)
  }
  return [
    ...read(ACTIVE_KINDS, (kinds) => store.active().filter(({ state }) => kinds.includes(state.kind))),
    ...read(['queued', 'held'], (kinds) => store.list(kinds, MOST_WAITING)),
    ...read(FINAL_KINDS, (kinds) => store.listWhole(kinds, MOST_ENDED).found),
  ]
}
