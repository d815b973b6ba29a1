/** How users stop a study, continue it, and let its trials run again. */

import { counted } from '../../base/counted.ts'
import { MusterError } from '../../base/errors.ts'
import type { Study } from '../study/study.ts'
import { isWithoutResult } from '../study/study.ts'
import { mostTrials } from '../study/study-text.ts'
import { isFinal, type Job, type JobEvent } from './job.ts'
import type { JobStore } from './store.ts'

const elsewhere = (name: string, hint: string) =>
  new MusterError('usage', `${name} runs elsewhere: Muster only reads it`, { hint })

/** Some of its trials wait until others have ended, and those are jobs of the queue. */
const isBounded = ({ spec, jobSpec }: Study): boolean =>
  spec.atOnce !== undefined && spec.pbt === undefined && spec.source === undefined && jobSpec !== undefined

/** What users do to jobs; returns as `applyAll`. */
export const changeJobs = (store: JobStore, ids: readonly number[], event: JobEvent, nowMs: number) =>
  event.kind === 'retry'
    ? retryJobs(store, ids, nowMs)
    : store.applyAll(
        ids.map((id) => ({ id, event })),
        nowMs,
      )

/**
 * Ended jobs run again; trials of a study with --at-once as soon as it has room for them. Returns for each whether it changed anything;
 * undefined: no such job.
 */
export function retryJobs(store: JobStore, ids: readonly number[], nowMs: number): readonly (boolean | undefined)[] {
  return store.together(() => {
    const later = new Set<number>()
    for (const [id, own] of store.studies.ofJobs(ids)) {
      const study = store.studies.get(id)
      const ended = own.filter((job) => isOver(store.get(job)))
      if (study === undefined || ended.length === 0) continue
      const { retries = 0 } = study.state
      store.studies.setState(id, { ...study.state, retries: retries + 1 })
      for (const job of ended.slice(roomIn(store, study))) later.add(job)
    }
    return store.applyAll(
      ids.map((id) => ({ id, event: { kind: 'retry', isInLine: later.has(id) } })),
      nowMs,
    )
  })
}

/** For so many trials that run again. */
function roomIn({ studies }: JobStore, study: Study): number {
  if (!isBounded(study)) return Number.POSITIVE_INFINITY
  const open = studies.open(study.id).filter(({ job }) => job !== undefined && !isFinal(job.state))
  return Math.max(0, (study.spec.atOnce ?? 0) - open.length)
}

const isOver = (job: Job | undefined): boolean => job !== undefined && isFinal(job.state)

/**
 * It starts no more trials; those that wait are cancelled. `now`: those that run, too. Returns how many trials that stopped, and
 * how many still run. One that runs elsewhere is followed no more.
 * @throws MusterError 'usage' for `now` when it runs elsewhere.
 */
export function stopStudy(
  store: JobStore,
  { id, name }: Study,
  { now }: { readonly now: boolean },
  nowMs: number,
): { readonly stopped: number; readonly running: number } {
  const { studies } = store
  return store.together(() => {
    const study = studies.get(id)
    if (study === undefined) return { stopped: 0, running: 0 }
    const { state } = study
    const isElsewhere = study.spec.source !== undefined
    if (isElsewhere && now) throw elsewhere(name, 'Stop its trials where they were started.')
    const reason = isElsewhere ? 'no longer followed' : 'stopped by its user'
    if (state.kind === 'running') studies.setState(id, { ...state, kind: 'stopped', reason, endedMs: nowMs })
    const open = studies.open(id).flatMap(({ job }) => (job === undefined || isFinal(job.state) ? [] : [job]))
    const toStop = open.filter(({ state: { kind } }) => kind === 'queued' || kind === 'held' || now)
    store.applyAll(
      toStop.map((job) => ({ id: job.id, event: { kind: 'stop', reason: 'cancelled' } })),
      nowMs,
    )
    return { stopped: toStop.length, running: open.length - toStop.length }
  })
}

/**
 * It runs again, with so many trials more if given; those that were cancelled start again first. Returns how many of these there
 * are, and how many trials it has at most. One that runs elsewhere is followed again.
 * @throws MusterError 'usage' for more trials when it runs elsewhere, or when it has nothing left to run.
 */
export function continueStudy(
  store: JobStore,
  { id, name }: Study,
  more: number | undefined,
  nowMs: number,
): { readonly again: number; readonly most: number | undefined } {
  const { studies } = store
  return store.together(() => {
    const study = studies.get(id)
    if (study === undefined) return { again: 0, most: undefined }
    const { state, spec } = study
    if (spec.source !== undefined) {
      if (more !== undefined) throw elsewhere(name, 'Add trials where it was started.')
      const { reason: _, endedMs: __, ...rest } = state
      studies.setState(id, { ...rest, kind: 'running', beganMs: nowMs })
      return { again: 0, most: undefined }
    }
    const count = studies.nextNumber(id)
    const trials = more === undefined ? state.trials : (state.trials ?? count) + more
    const { reason: _, endedMs: __, beganMs: ___, ...rest } = state
    const next = { ...rest, kind: 'running' as const, failuresFrom: count, ...(trials !== undefined && { trials }) }
    const most = mostTrials({ spec, state: next })
    const stopped = studies.trials(id).flatMap(({ job, end, stopping }) => {
      // The scheduler may not have noticed yet that it was stopped.
      const isStopped = end === undefined ? stopping === undefined : isWithoutResult(end)
      const own = job === undefined || !isStopped ? undefined : store.get(job)
      return own?.state.kind === 'cancelled' ? [own.id] : []
    })
    const isOver = state.kind !== 'running' && stopped.length === 0
    // A member that has ended trains no more, and new ones begin only as the study does.
    const isPopulation = spec.pbt !== undefined
    const haveEnded = isPopulation && count > 0 && studies.trials(id).every(({ end }) => end !== undefined)
    if (isOver && (haveEnded || (most !== undefined && count >= most)))
      throw new MusterError('usage', `${name} has nothing left to run: ${state.reason ?? counted(count, 'trial')}`, {
        hint: haveEnded
          ? 'Create another study, whose members train for longer.'
          : state.trials !== undefined && count >= state.trials
            ? `Say how many more trials to run: muster study more ${name} --trials 10`
            : 'All points of its space are tried. Create another study, with more values or with --repeat.',
      })
    studies.setState(id, next)
    retryJobs(store, stopped, nowMs)
    return { again: stopped.length, most }
  })
}
