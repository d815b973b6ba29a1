/** The driver's part in studies that run elsewhere: reads them again and again, and stores what is new. */
import { hasPassed } from '../../base/clock.ts'
import { getOrMake } from '../../base/collections.ts'
import { printable } from '../../base/printable.ts'
import { fromOptuna } from '../study/from-optuna.ts'
import { fromRay } from '../study/from-ray.ts'
import {
  type SourceKnown,
  type SourceReading,
  type SourceRequest,
  sourceRequest,
  sourceSentence,
} from '../study/source.ts'
import type { Study, StudySource, StudySpec, StudyState } from '../study/study.ts'
import { knownTrials, lastEndMs, mirrorTrials } from './mirror-rows.ts'
import type { LeaseToken } from './queue-file.ts'
import type { JobStore } from './store.ts'

/** Lines of JSON as the program printed them; else why it could not be asked. Never rejects. */
export type ReadSource = (
  source: StudySource,
  request: SourceRequest,
  signal: AbortSignal,
) => Promise<{ readonly lines: readonly unknown[] } | { readonly trouble: string }>

export const NOTHING_KNOWN: SourceKnown = { done: [], steps: {} }

/** One reading of a study, of which so much is known. `spec` has a source. */
export async function readStudy(
  read: ReadSource,
  spec: StudySpec & { readonly source: StudySource },
  known: SourceKnown,
  nowMs: number,
  signal: AbortSignal,
  from = 0,
): Promise<SourceReading> {
  const { source } = spec
  const answer = await read(source, sourceRequest(source, known, from), signal)
  if ('trouble' in answer) return { kind: 'trouble', problem: 'failed', message: printable(answer.trouble), names: [] }
  return (source.kind === 'ray' ? fromRay : fromOptuna)(answer.lines, spec, nowMs)
}

type Refresh = {
  readonly store: JobStore
  readonly read: ReadSource
  readonly signal: AbortSignal
  now(): number
  /** As the scheduler. */
  readonly lease?: LeaseToken
}

export type Refreshed =
  | { readonly kind: 'same' | 'new'; readonly total?: number }
  | { readonly kind: 'trouble'; readonly reason: string; readonly hint?: string }

/** In pages; a source that grows faster than it can be read is left for the next time. */
const MOST_PAGES = 50

/** Reads what is new and stores it. Undefined: the study is gone, or it is no longer followed. */
export async function refreshStudy(
  { store, read, signal, now, lease }: Refresh,
  id: number,
): Promise<Refreshed | undefined> {
  let result: Refreshed = { kind: 'same' }
  let isOther = false
  let from = 0
  for (let page = 0; page < MOST_PAGES; page++) {
    const study = store.studies.get(id)
    const source = study?.spec.source
    if (study === undefined || source === undefined || signal.aborted) return undefined
    const known = isOther ? NOTHING_KNOWN : knownTrials(store, study)
    const spec = isOther ? { ...study.spec, source: fresh(source), parameters: [] } : { ...study.spec, source }
    const reading = await readStudy(read, spec, known, now(), signal, from)
    if (reading.kind === 'trouble') return { kind: 'trouble', ...sourceSentence(source, reading) }
    if (reading.kind === 'same') return result
    const isFewer = reading.kind === 'read' && !reading.isWhole && reading.total < countOf(known)
    if (reading.kind === 'other' || isFewer) {
      if (isOther) return result
      isOther = true
      from = 0
      continue
    }
    const isNew = store.together(() => {
      if (lease !== undefined) store.lease.check(lease)
      const present = store.studies.get(id)
      return present !== undefined && mirrorTrials(store, present, isOther ? { ...reading, isWhole: true } : reading)
    })
    if (isNew || result.kind === 'new') result = { kind: 'new', total: reading.total }
    else result = { kind: 'same', total: reading.total }
    isOther = false
    if (!reading.hasMore) return result
    from = reading.trials.reduce((most, { number }) => Math.max(most, number + 1), from)
  }
  return result
}

/** As if nothing had ever been read. */
const fresh = ({ names: _, beganMs: __, mark: ___, ...source }: StudySource): StudySource => source

const countOf = ({ done }: SourceKnown): number => done.reduce((sum, [first, last]) => sum + last - first + 1, 0)

export type StudySourcesOptions = Omit<Refresh, 'signal'> & {
  readonly lease: LeaseToken
  /** The store cannot be written any more. */
  onFailure(error: unknown): void
}

const LOOK_MS = 1_000
/** Between two readings of a study that changes, and of one that does not. */
const SOON_MS = 10_000
const LATE_MS = 10 * 60_000
/** The pause is this part of the time that nothing has changed. */
const SHARE = 30
/** Where nothing changes for so long, the study is over: with no trial that runs, and with one. */
const OVER_MS = 60 * 60_000
const LOST_MS = 24 * 60 * 60_000

type Followed = { changedMs: number; readMs: number | undefined; tookMs: number; isReading: boolean }

/** Readings take at most this part of the time of a host. */
const SHARE_OF_HOST = 20
const MOST_AT_ONCE = 4

export class StudySources implements Disposable {
  readonly #options: StudySourcesOptions
  readonly #followed = new Map<number, Followed>()
  readonly #end = new AbortController()
  #lookedMs: number | undefined

  constructor(options: StudySourcesOptions) {
    this.#options = options
  }

  [Symbol.dispose](): void {
    this.#end.abort()
  }

  /** Begins the readings that are due. */
  poll(nowMs: number): void {
    if (this.#lookedMs !== undefined && !hasPassed(this.#lookedMs, LOOK_MS, nowMs)) return
    this.#lookedMs = nowMs
    const { store } = this.#options
    const running = store.studies
      .unfinished()
      .filter(({ spec, state }) => spec.source !== undefined && state.kind === 'running')
    const ids = new Set(running.map(({ id }) => id))
    for (const id of this.#followed.keys()) if (!ids.has(id)) this.#followed.delete(id)
    const due = running
      .map((study) => ({ study, followed: getOrMake(this.#followed, study.id, () => this.#begin(study, nowMs)) }))
      .filter(({ followed }) => !followed.isReading && isDue(followed, nowMs))
      .toSorted((one, other) => (one.followed.readMs ?? 0) - (other.followed.readMs ?? 0))
    const busy = [...this.#followed.values()].filter(({ isReading }) => isReading).length
    for (const { study, followed } of due.slice(0, Math.max(0, MOST_AT_ONCE - busy))) {
      followed.isReading = true
      this.#read(study.id, followed).catch((error: unknown) => {
        if (!this.#end.signal.aborted) this.#options.onFailure(error)
      })
    }
  }

  #begin(study: Study, nowMs: number): Followed {
    const { createdMs, state } = study
    const lastMs = Math.max(createdMs, state.beganMs ?? 0, lastEndMs(this.#options.store, study))
    return { changedMs: Math.min(nowMs, lastMs), readMs: undefined, tookMs: 0, isReading: false }
  }

  async #read(id: number, followed: Followed): Promise<void> {
    const { store, lease, now } = this.#options
    const sinceMs = now()
    const refreshed = await refreshStudy({ ...this.#options, signal: this.#end.signal }, id)
    if (refreshed === undefined || this.#end.signal.aborted) return
    const nowMs = now()
    followed.isReading = false
    followed.readMs = nowMs
    followed.tookMs = Math.max(0, nowMs - sinceMs)
    if (refreshed.kind === 'new') followed.changedMs = nowMs
    store.together(() => {
      store.lease.check(lease)
      const study = store.studies.get(id)
      if (study?.state.kind !== 'running') return
      const state = stateAfter(
        study.state,
        refreshed,
        nowMs - followed.changedMs,
        nowMs,
        store.studies.open(id).length > 0,
      )
      if (state !== study.state) store.studies.setState(id, state)
    })
  }
}

function isDue({ changedMs, readMs, tookMs }: Followed, nowMs: number): boolean {
  const pauseMs = Math.max(SOON_MS, tookMs * SHARE_OF_HOST, (nowMs - changedMs) / SHARE)
  return readMs === undefined || hasPassed(readMs, Math.min(LATE_MS, pauseMs), nowMs)
}

function stateAfter(
  state: StudyState,
  refreshed: Refreshed,
  quietMs: number,
  nowMs: number,
  isOpen: boolean,
): StudyState {
  if (refreshed.kind === 'trouble')
    return refreshed.reason === state.trouble ? state : { ...state, trouble: refreshed.reason }
  const { trouble, ...rest } = state
  if (refreshed.kind === 'same' && quietMs >= (isOpen ? LOST_MS : OVER_MS))
    return {
      ...rest,
      kind: 'done',
      reason: `nothing has changed there for ${isOpen ? 'a day' : 'an hour'}`,
      endedMs: nowMs,
    }
  return trouble === undefined ? state : rest
}
