/**
 * The driver's part in studies: settles trials whose jobs have ended, stops those that are not worth going on, and fills up with
 * new ones. It alone adds trials, and keeps nothing that is not in rows but what can be asked again.
 */

import { hasPassed } from '../../base/clock.ts'
import { getOrMake } from '../../base/collections.ts'
import { counted } from '../../base/counted.ts'
import { defined } from '../../base/defined.ts'
import { printable } from '../../base/printable.ts'
import { askNext, METHODS, untriedNear } from '../study/ask.ts'
import { pruneReason } from '../study/prune.ts'
import { canonicalPoint, type Point, pointKey, type Space, sizeOf } from '../study/space.ts'
import {
  isWithoutResult,
  type Study,
  type StudySpec,
  type StudyState,
  spaceOf,
  stepMetricOf,
  type Trial,
  type TrialEnd,
  type TrialStep,
} from '../study/study.ts'
import { ElapsedTimes } from './elapsed-times.ts'
import { isActive, isFinal, isInLine, type JobEvent } from './job.ts'
import { type MetricValues, metricNumber, stepNumber } from './metric.ts'
import { Population, type PopulationOptions } from './population.ts'
import type { OwnJob } from './store.ts'
import { overText, StudyDesk } from './study-desk.ts'
import type { NewTrial, OpenTrial } from './study-rows.ts'

/** A sampler that runs elsewhere. Nothing of what it says is believed but that it suggests a point. */
export interface Sampler extends Disposable {
  /**
   * Asks for suggestions until `count` are here or on their way. `raw`: texts of the first one by the names of parameters, and how
   * often it was repeated; it waits for `repeat` or `take`.
   */
  poll(
    count?: number,
  ):
    | { readonly kind: 'raw'; readonly values: Readonly<Record<string, string>>; readonly repeats: number }
    | { readonly kind: 'wait' }
    | { readonly kind: 'trouble'; readonly reason: string }
  /** The suggestion was tried already, with these values (undefined: it failed): it makes another one. */
  repeat(values: readonly number[] | undefined): void
  /** The suggestion, or this point in its place, is now this trial. */
  take(trial: Trial): void
  tell(trial: Trial & { readonly end: TrialEnd }): void
}

/** `history`: all trials, when the sampler begins or has to begin again. `onAnswer`: `poll` has something new. */
export type OpenSampler = (study: Study, history: () => readonly Trial[], onAnswer: () => void) => Sampler

export type StudyPassOptions = Omit<PopulationOptions, 'onAnswer'> & {
  readonly openSampler?: OpenSampler
  /** Something has come for which a pass is worth while. */
  onAnswer(): void
}

type StudyEvent = { readonly id: number; readonly event: JobEvent }

/** How often a sampler is asked again, before another point is taken. */
const MOST_REPEATS = 10
/** Without --at-once so many trials wait or run at most. */
const MOST_AT_ONCE = 256
/** The next point does not wait longer than this for the metrics of a trial that has ended: its host may not answer. */
const MOST_READING_MS = 5_000
/** In one pass, so that other jobs are not kept waiting. */
const MOST_ADDED = 64

export class StudyPass implements Disposable {
  readonly #options: StudyPassOptions
  readonly #samplers = new Map<number, Sampler>()
  readonly #times = new ElapsedTimes()
  /** Keys of the points of running studies; only this adds to them. */
  readonly #tried = new Map<number, Set<string>>()
  /** What trials that did not fail have printed on the way, by study and trial. */
  readonly #steps = new Map<number, Map<number, readonly TrialStep[]>>()
  /** Of studies whose sampler suggests points that run already. */
  readonly #means = new Map<number, readonly number[] | undefined>()
  readonly #population: Population
  /** For programs that loop themselves. */
  readonly desk: StudyDesk

  constructor(options: StudyPassOptions) {
    this.#options = options
    this.#population = new Population(options)
    this.desk = new StudyDesk({
      studies: options.store.studies,
      settle: (study, trial, end) => this.#settle(study, trial, end),
      judgeStep: (study, trial, values) => this.#judgeStep(study, trial, values, true),
      lastValues: (study, trial) => this.#lastValues(study, trial),
      onRequest: () => options.onAnswer(),
    })
  }

  [Symbol.dispose](): void {
    for (const sampler of this.#samplers.values()) sampler[Symbol.dispose]()
    this.#population[Symbol.dispose]()
  }

  get hasWork(): boolean {
    const isBusy = this.desk.hasWork || this.#tried.size + this.#samplers.size > 0
    return isBusy || this.#options.store.studies.hasUnfinished()
  }

  /** Inside one transaction. `after`: to be called when that is on disk. */
  run(nowMs: number): { readonly events: readonly StudyEvent[]; readonly after: readonly (() => void)[] } {
    const { studies } = this.#options.store
    const after: (() => void)[] = []
    this.desk.run(nowMs, after)
    const unfinished = studies.unfinished()
    this.#times.beginRound()
    for (const study of unfinished) this.#lastedMs(study, nowMs)
    const events = unfinished.flatMap((study) => this.#advance(study, nowMs, after))
    this.#forget(new Set(unfinished.map(({ id }) => id)), after)
    return { events, after }
  }

  #forget(known: ReadonlySet<number>, after: (() => void)[]): void {
    for (const id of [...this.#tried.keys()]) if (!known.has(id)) this.#tried.delete(id)
    for (const id of [...this.#steps.keys()]) if (!known.has(id)) this.#steps.delete(id)
    for (const id of [...this.#means.keys()]) if (!known.has(id)) this.#means.delete(id)
    for (const [id, sampler] of [...this.#samplers])
      if (!known.has(id)) {
        this.#samplers.delete(id)
        sampler[Symbol.dispose]()
      }
    for (const id of this.desk.waitingStudies)
      if (!known.has(id)) {
        const study = this.#options.store.studies.get(id)
        this.desk.dismiss(id, study === undefined ? 'the study was deleted' : overText(study), after)
      }
  }

  #advance(study: Study, nowMs: number, after: (() => void)[]): readonly StudyEvent[] {
    const { studies } = this.#options.store
    const open: OpenTrial[] = []
    for (const one of studies.open(study.id)) {
      const end = this.#endOf(study, one, nowMs)
      if (end === undefined) open.push(one)
      else this.#settle(study, one.trial, end)
    }
    if (study.spec.isAsked === true && study.state.kind === 'running')
      this.desk.giveAgain(
        study,
        open.map(({ trial }) => trial),
        nowMs,
        after,
      )
    const stops: StudyEvent[] = []
    const state =
      study.spec.pbt === undefined
        ? this.#refill(study, open, nowMs, after)
        : this.#replaceMembers(study, open, stops, nowMs)
    if (state !== study.state) studies.setState(study.id, state)
    if (state.kind !== 'running') this.desk.dismiss(study.id, overText({ ...study, state }), after)
    return [...stops, ...this.#judge(study, open)]
  }

  /** Undefined: it is not over. A trial that begins with a checkpoint that is trained to the end has nothing to print. */
  #endOf(study: Study, open: OpenTrial, nowMs: number): TrialEnd | undefined {
    const end = endOf(study, open, nowMs)
    const { parent } = open.trial
    if (end?.kind !== 'failed' || open.job?.state.kind !== 'done' || parent === undefined) return end
    const reached = this.#options.store.studies.trial(study.id, parent)?.end
    if (reached?.kind !== 'done' || study.spec.metrics.some(({ name }) => end.values[name] !== undefined)) return end
    const reason = `trial ${parent} had trained its checkpoint to the end`
    return { ...end, kind: 'done', values: { ...reached.values, ...end.values }, reason }
  }

  /** Notes what running trials have printed, and stops those that are not worth going on. */
  #judge(study: Study, open: readonly OpenTrial[]): readonly StudyEvent[] {
    if (stepMetricOf(study.spec) === undefined) return []
    return open.flatMap(({ trial, job, values }): StudyEvent[] => {
      const reason = this.#judgeStep(study, trial, values, job !== undefined && isActive(job.state))
      return job === undefined || reason === undefined ? [] : [{ id: job.id, event: prunedFor(reason) }]
    })
  }

  /** Notes a step, if it is new; returns why the trial is not worth going on. */
  #judgeStep({ id, spec }: Study, trial: Trial, values: MetricValues, mayStop: boolean): string | undefined {
    const [objective] = spec.metrics
    const { prune } = spec
    const known = this.#stepsOf(id)
    const judgedTo = known.get(trial.number)?.at(-1)?.step
    const steps = this.#noteStep({ id, spec }, trial, values)
    if (steps === undefined || prune === undefined || objective === undefined) return undefined
    if (!mayStop || trial.stopping !== undefined) return undefined
    const others = [...known].flatMap(([number, own]) => (number === trial.number ? [] : [own]))
    const reason = pruneReason(prune, objective, steps, others, judgedTo)
    if (reason !== undefined) this.#options.store.studies.noteStopping(id, trial, reason)
    return reason
  }

  #stepsOf(id: number): Map<number, readonly TrialStep[]> {
    return getOrMake(this.#steps, id, () => new Map(this.#options.store.studies.steps(id)))
  }

  /** As if the trial had printed them. */
  #lastValues({ id, spec }: Study, { number }: Trial): MetricValues {
    const [stepMetric, metric] = [stepMetricOf(spec), spec.metrics[0]?.name]
    const last = this.#stepsOf(id).get(number)?.at(-1)
    if (last === undefined || stepMetric === undefined || metric === undefined) return {}
    return { [stepMetric]: String(last.step), [metric]: String(last.value) }
  }

  /** All steps of the trial; undefined: there is no new one. */
  #noteStep(
    { id, spec }: Pick<Study, 'id' | 'spec'>,
    { number }: Trial,
    values: MetricValues,
  ): readonly TrialStep[] | undefined {
    const step = stepNumber(values[stepMetricOf(spec) ?? ''])
    const value = metricNumber(values[spec.metrics[0]?.name ?? ''])
    const before = this.#stepsOf(id).get(number) ?? []
    if (step === undefined || value === undefined || step <= (before.at(-1)?.step ?? Number.NEGATIVE_INFINITY))
      return undefined
    const steps = [...before, { step, value }]
    this.#stepsOf(id).set(number, steps)
    this.#options.store.studies.noteStep(id, number, { step, value })
    return steps
  }

  #settle(study: Study, trial: Trial, end: TrialEnd): void {
    this.#options.store.studies.settle(study.id, trial, end)
    this.#means.delete(study.id)
    if (isWithoutResult(end)) this.#steps.get(study.id)?.delete(trial.number)
    // A short trial may have ended before it was read for the first time; the others are compared with it.
    else if (stepMetricOf(study.spec) !== undefined) this.#noteStep(study, trial, end.values)
    this.#samplers.get(study.id)?.tell({ ...trial, end })
  }

  /** The state after this; the same object if nothing has changed. */
  #refill(study: Study, open: readonly OpenTrial[], nowMs: number, after: (() => void)[]): StudyState {
    let { state } = study
    if (study.spec.source !== undefined || this.#begin(study, open, nowMs) || state.kind !== 'running') return state
    const why = this.#whyNoMore(study, nowMs)
    if (why !== undefined) return open.length > 0 ? state : ended(state, why, nowMs)
    const wanted = this.#wanted(study, open, nowMs)
    for (let count = 0; count < wanted; count++) {
      const next = this.#next(study, wanted - count)
      if (next.kind === 'wait') return state
      if (next.kind === 'trouble') return next.reason === state.trouble ? state : { ...state, trouble: next.reason }
      if (next.kind === 'all-tried') return open.length + count > 0 ? state : ended(state, allTried(study), nowMs)
      const asker = study.spec.isAsked === true ? this.desk.askerOf(study, nowMs) : undefined
      const trial = this.#add(study, { ...next.trial, ...defined({ asker }) }, nowMs)
      next.onTaken?.(trial)
      this.desk.give(study, trial, after)
      const { trouble: _, ...rest } = state
      const replaced = state.replaced + (trial.isReplaced ? 1 : 0)
      if (next.repeated > 0 || replaced > state.replaced || state.trouble !== undefined || state.beganMs === undefined)
        state = { ...rest, beganMs: state.beganMs ?? nowMs, repeated: state.repeated + next.repeated, replaced }
      if (this.#whyNoMore({ ...study, state }, nowMs) !== undefined) break
    }
    return state
  }

  /** Trials that run again begin before new ones, as many as may run now. Returns whether there were any. */
  #begin(study: Study, open: readonly OpenTrial[], nowMs: number): boolean {
    const inLine = open.flatMap(({ job }) => (job !== undefined && isInLine(job) ? [job.id] : []))
    this.#options.store.applyAll(
      inLine.slice(0, Math.max(0, this.#wanted(study, open, nowMs))).map((id) => ({ id, event: { kind: 'release' } })),
      nowMs,
    )
    return inLine.length > 0
  }

  /** Of a population; the state after this. */
  #replaceMembers(study: Study, open: readonly OpenTrial[], stops: StudyEvent[], nowMs: number): StudyState {
    const { store } = this.#options
    const { state } = study
    const why = this.#whyNoMore(study, nowMs)
    const mostNew =
      why === undefined ? (state.trials ?? Number.POSITIVE_INFINITY) - store.studies.nextNumber(study.id) : 0
    const tried = this.#triedOf(study)
    const step = this.#population.step(study, open, { mostNew, tried }, nowMs)
    for (const { trial, ...own } of step.adds) this.#add(study, trial, nowMs, own)
    for (const { job, spec } of step.binds) store.bindTrial(study, job, spec)
    for (const { trial, job, reason } of step.stops) {
      if (trial.stopping === undefined) store.studies.noteStopping(study.id, trial, reason)
      stops.push({ id: job, event: prunedFor(reason) })
    }
    const isOver = open.length + step.adds.length + step.state.replacements.length === 0
    if (state.kind === 'running' && isOver && state.population !== undefined)
      return ended({ ...state, population: step.state }, why ?? 'all members have ended', nowMs)
    const { trouble, ...rest } = state
    // What went wrong is shown until a member was replaced.
    const isBetter = step.adds.length > 0 || state.population?.marks.length === 0
    const last = step.trouble ?? (isBetter ? undefined : trouble)
    if (step.state === state.population && last === trouble) return state
    return { ...rest, ...defined({ trouble: last }), beganMs: state.beganMs ?? nowMs, population: step.state }
  }

  #add(study: Study, trial: NewTrial, nowMs: number, own?: OwnJob): Trial {
    const added = this.#options.store.addTrial(study, trial, nowMs, own)
    this.#triedOf(study).add(pointKey(trial.point))
    return added
  }

  #triedOf({ id }: Study): Set<string> {
    const known = this.#tried.get(id) ?? new Set(this.#options.store.studies.tried(id))
    this.#tried.set(id, known)
    return known
  }

  /** How many trials may be added now. */
  #wanted({ id, spec }: Study, open: readonly OpenTrial[], nowMs: number): number {
    if (spec.isAsked === true)
      return Math.min(MOST_ADDED, this.desk.waitingCount(id), (spec.atOnce ?? MOST_AT_ONCE) - open.length)
    // A sampler learns what a trial has reached before it is asked for the next one.
    const learnsWithinMs = methodOf(spec) === undefined ? MOST_READING_MS : 0
    const busy = open.filter(
      ({ job }) =>
        job !== undefined &&
        !isInLine(job) &&
        (!isFinal(job.state) || !hasPassed(job.state.endedMs, learnsWithinMs, nowMs)),
    )
    if (spec.atOnce !== undefined) return Math.min(MOST_ADDED, spec.atOnce - busy.length)
    const waits = busy.some(({ job }) => job?.state.kind === 'queued' || job?.state.kind === 'held')
    return waits || busy.length >= MOST_AT_ONCE ? 0 : 1
  }

  #lastedMs({ id, state: { beganMs } }: Pick<Study, 'id' | 'state'>, nowMs: number): number {
    return beganMs === undefined ? 0 : this.#times.of(`${id}`, beganMs, nowMs)
  }

  #whyNoMore({ id, spec, state }: Study, nowMs: number): string | undefined {
    const { studies } = this.#options.store
    const count = studies.nextNumber(id)
    if (state.trials !== undefined && count >= state.trials) return counted(count, 'trial')
    if (spec.pbt === undefined && count >= sizeOf(spaceOf(spec)) * spec.repeat) return allTried({ spec })
    if (spec.limitS !== undefined && this.#lastedMs({ id, state }, nowMs) > spec.limitS * 1000)
      return `its time is up (${spec.limitS} s)`
    const failed = studies.failuresInARow(id, state.failuresFrom)
    return failed >= spec.failures ? `the last ${failed} trials failed` : undefined
  }

  /** The next point to try. */
  #next(study: Study, wanted: number): Next {
    const { store } = this.#options
    const { id, spec } = study
    const last = store.studies.last(id)
    if (last !== undefined && last.repetition + 1 < spec.repeat)
      return { kind: 'point', trial: { point: last.point, repetition: last.repetition + 1 }, repeated: 0 }
    const space = spaceOf(spec)
    const tried = this.#triedOf(study)
    const isTried = (key: string) => tried.has(key)
    const method = methodOf(spec)
    // Of the point: a method counts points, not their repetitions.
    const number = Math.floor(store.studies.nextNumber(id) / spec.repeat)
    if (method === undefined) return this.#suggested(study, space, number, wanted, isTried)
    const asked = askNext(space, method, number, spec.seed, isTried)
    if (asked.kind === 'all-tried') return asked
    const { point, repeated, isSubstitute } = asked
    return { kind: 'point', trial: { point, repetition: 0, ...(isSubstitute && { isReplaced: true }) }, repeated }
  }

  /** By a sampler that runs elsewhere. */
  #suggested(study: Study, space: Space, number: number, wanted: number, isTried: (key: string) => boolean): Next {
    const { store, openSampler, onAnswer } = this.#options
    if (openSampler === undefined)
      return { kind: 'trouble', reason: `there is no method ${printable(study.spec.method)}` }
    const { id, spec } = study
    const sampler = getOrMake(this.#samplers, id, () => openSampler(study, () => store.studies.trials(id), onAnswer))
    const left = (study.state.trials ?? Number.POSITIVE_INFINITY) - store.studies.nextNumber(id)
    for (;;) {
      const answer = sampler.poll(Math.min(wanted, left))
      if (answer.kind !== 'raw') return answer.kind === 'wait' ? { kind: 'wait' } : answer
      const { values, repeats: repeated } = answer
      const suggested = canonicalPoint(space, values)
      const isNew = suggested !== undefined && !isTried(pointKey(suggested))
      if (!isNew && repeated < MOST_REPEATS) {
        sampler.repeat(suggested === undefined ? undefined : this.#knownValues(study, suggested))
        continue
      }
      const point = isNew ? suggested : untriedNear(space, suggested, number, spec.seed, isTried)
      if (point === undefined) return { kind: 'all-tried' }
      return {
        kind: 'point',
        trial: { point, repetition: 0, ...(!isNew && { isReplaced: true }) },
        repeated,
        onTaken: (trial) => sampler.take(trial),
      }
    }
  }

  /** Of a trial that runs: the mean of those that are done. */
  #knownValues({ id, spec }: Study, point: Point): readonly number[] | undefined {
    const { studies } = this.#options.store
    const end = studies.ofPoint(id, point)?.end
    if (isWithoutResult(end)) return undefined
    const values = spec.metrics.map(({ name }) => metricNumber(end?.values[name]))
    if (end !== undefined && values.every((value) => value !== undefined)) return values
    if (!this.#means.has(id)) this.#means.set(id, studies.means(id, spec.metrics))
    return this.#means.get(id)
  }
}

/** Undefined: a sampler that runs elsewhere. */
const methodOf = ({ method }: StudySpec) => METHODS.find(({ name }) => name === method)

type Next =
  | { readonly kind: 'point'; readonly trial: NewTrial; readonly repeated: number; onTaken?(trial: Trial): void }
  | { readonly kind: 'all-tried' }
  | { readonly kind: 'wait' }
  | { readonly kind: 'trouble'; readonly reason: string }

function allTried({ spec }: Pick<Study, 'spec'>): string {
  const space = spaceOf(spec)
  const size = sizeOf(space)
  if (Number.isFinite(size)) return size === 1 ? 'its only point tried' : `all ${size} points tried`
  return `found no untried point; numbers are rounded to ${space.significantDigits} significant digits`
}

const prunedFor = (reason: string): JobEvent => ({ kind: 'stop', reason: 'cancelled', because: `pruned: ${reason}` })

function ended({ trouble: _, ...state }: StudyState, reason: string, nowMs: number): StudyState {
  return { ...state, kind: 'done', reason, endedMs: nowMs }
}

/** Undefined: it is not over, or its last metrics are still to be read. */
function endOf({ spec }: Study, { trial, job, isRead, values }: OpenTrial, nowMs: number): TrialEnd | undefined {
  if (trial.job === undefined) return undefined
  if (job === undefined) return { kind: 'failed', values, reason: 'its job was deleted', endedMs: nowMs }
  const { state } = job
  if (!isFinal(state) || (state.kind === 'done' && !isRead)) return undefined
  const { endedMs, startedMs, places = [], reason } = state
  const own = {
    values,
    endedMs,
    ...(startedMs === undefined ? {} : { startedMs }),
    ...(places[0] === undefined ? {} : { host: places[0].host, devices: places[0].devices }),
  }
  // A member that saves and ends well when it is stopped was stopped all the same.
  const isPruned = trial.stopping !== undefined && (state.kind !== 'done' || trial.member !== undefined)
  if (isPruned) return { kind: 'pruned', ...own, ...defined({ reason: trial.stopping }) }
  // What was cancelled elsewhere, such as by scancel, would only be cancelled again and again.
  const isCancelled = state.kind === 'cancelled' && reason === undefined
  if (state.kind !== 'done') return { kind: isCancelled ? 'cancelled' : 'failed', ...own, reason: reason ?? state.kind }
  const missing = spec.metrics.find(({ name }) => metricNumber(values[name]) === undefined)
  if (missing === undefined) return { kind: 'done', ...own }
  const last = values[missing.name]
  const why =
    last === undefined ? `no ${missing.name}=NUMBER found in its output` : `its last ${missing.name} is ${last}`
  return { kind: 'failed', ...own, reason: why }
}
