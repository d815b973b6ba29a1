/**
 * Programs that loop themselves: which of them wait for a point, and which has which trial. A trial whose program has gone is
 * given to the next one that asks. What must outlive the scheduler is in the rows of trials.
 */
import { randomBytes } from 'node:crypto'
import { hasPassed } from '../../base/clock.ts'
import { defined } from '../../base/defined.ts'
import { printable } from '../../base/printable.ts'
import { bestTrials, metricValue } from '../study/front.ts'
import { areSame, MOST_BEST, type ProgramAnswer, type ProgramRequest, valuesOf } from '../study/program-lines.ts'
import { type Study, spaceOf, stepMetricOf, type Trial, type TrialAsker, type TrialEnd } from '../study/study.ts'
import type { MetricValues } from './metric.ts'
import type { StudyRows } from './study-rows.ts'

/** One connection of a program. */
export type ProgramLine = symbol

/** What the server of programs' connections needs. */
export type ProgramDesk = {
  /** Settles when the answer is on disk; a program that waits for a point may wait long. */
  request(request: ProgramRequest, line: ProgramLine): Promise<ProgramAnswer>
  /** The connection was closed. */
  leave(line: ProgramLine): void
}

export type DeskOptions = {
  readonly studies: StudyRows
  settle(study: Study, trial: Trial, end: TrialEnd): void
  /** Notes what a trial has reached, as if it had printed it; returns why it should stop. */
  judgeStep(study: Study, trial: Trial, values: MetricValues): string | undefined
  /** What it reached last. */
  lastValues(study: Study, trial: Trial): MetricValues
  /** A pass is worth while. */
  onRequest(): void
}

type Queued = {
  readonly request: ProgramRequest
  readonly line: ProgramLine
  readonly answer: (answer: ProgramAnswer) => void
}
type WaitingProgram = Queued & { readonly request: Extract<ProgramRequest, { kind: 'ask' }> }

/** Of an open trial. `leftMs`: since when no connection has it. */
type Hold = {
  readonly lines: Set<ProgramLine>
  leftMs: number | undefined
  /** Those that want to hear when the trial is over. */
  readonly watchers: ((answer: ProgramAnswer) => void)[]
}

/** A program that was disconnected comes back within this time, or its trial is given to another one. */
export const RETURN_MS = 5_000
/** The same after a restart of the scheduler, when all programs have to come back. */
export const RESTART_MS = 30_000

export class StudyDesk implements ProgramDesk {
  readonly #options: DeskOptions
  #queued: Queued[] = []
  readonly #waiting = new Map<number, WaitingProgram[]>()
  /** By study and number of the trial. */
  readonly #holds = new Map<string, Hold>()
  #sinceMs: number | undefined

  constructor(options: DeskOptions) {
    this.#options = options
  }

  get hasWork(): boolean {
    return this.#queued.length + this.#waiting.size > 0
  }

  request(request: ProgramRequest, line: ProgramLine): Promise<ProgramAnswer> {
    const { promise, resolve } = Promise.withResolvers<ProgramAnswer>()
    this.#queued.push({ request, line, answer: resolve })
    this.#options.onRequest()
    return promise
  }

  /** What the program has told still counts. */
  leave(line: ProgramLine): void {
    this.#queued = this.#queued.filter((one) => one.line !== line || !['ask', 'hold'].includes(one.request.kind))
    for (const [study, waiting] of this.#waiting)
      this.#setWaiting(
        study,
        waiting.filter((one) => one.line !== line),
      )
    for (const { lines } of this.#holds.values()) lines.delete(line)
  }

  /** Inside a transaction. Answers go out with `after`, when that is on disk. */
  run(nowMs: number, after: (() => void)[]): void {
    this.#sinceMs ??= nowMs
    const queued = this.#queued
    this.#queued = []
    for (const one of queued) {
      const answer = this.#answer(one, nowMs, after)
      if (answer !== undefined) after.push(() => one.answer(answer))
    }
    for (const hold of this.#holds.values()) hold.leftMs = hold.lines.size > 0 ? undefined : (hold.leftMs ?? nowMs)
  }

  waitingCount(study: number): number {
    return this.#waiting.get(study)?.length ?? 0
  }

  /** Studies for whose points programs wait. */
  get waitingStudies(): readonly number[] {
    return [...this.#waiting.keys()]
  }

  /** Open trials whose programs have gone go to programs that wait. */
  giveAgain(study: Study, open: readonly Trial[], nowMs: number, after: (() => void)[]): void {
    for (const trial of open) {
      if (!this.#isFree(study, trial, nowMs)) continue
      const asker = this.askerOf(study, nowMs)
      if (asker === undefined) return
      this.#options.studies.noteAsker(study.id, trial, asker)
      this.give(study, { ...trial, asker }, after)
    }
  }

  /** For the program that has waited longest. */
  askerOf({ id }: Study, nowMs: number): TrialAsker | undefined {
    const [first] = this.#waiting.get(id) ?? []
    if (first === undefined) return undefined
    const { isKept, expiresS } = first.request
    return {
      token: randomBytes(12).toString('hex'),
      sinceMs: nowMs,
      ...(isKept ? { isKept } : {}),
      ...defined({ untilMs: expiresS === undefined ? undefined : nowMs + expiresS * 1000 }),
    }
  }

  /** The trial, whose asker is that of `askerOf`, goes to the program that has waited longest. */
  give(study: Study, { number, point, asker }: Trial, after: (() => void)[]): void {
    const [first, ...others] = this.#waiting.get(study.id) ?? []
    if (first === undefined || asker === undefined) return
    this.#setWaiting(study.id, others)
    this.#end(study, number, { gone: goneText(number) }, after)
    const isHeld = asker.isKept !== true && asker.untilMs === undefined
    if (isHeld) this.#holds.set(keyOf(study, number), { lines: new Set([first.line]), leftMs: undefined, watchers: [] })
    const answer = { trial: number, token: asker.token, parameters: point, space: spaceOf(study.spec) }
    after.push(() => first.answer(answer))
  }

  /** Programs that wait for a point of this study get none. */
  dismiss(study: number, done: string, after: (() => void)[]): void {
    const waiting = this.#waiting.get(study) ?? []
    this.#waiting.delete(study)
    for (const { answer } of waiting) after.push(() => answer({ done }))
  }

  #setWaiting(study: number, waiting: WaitingProgram[]): void {
    if (waiting.length > 0) this.#waiting.set(study, waiting)
    else this.#waiting.delete(study)
  }

  /** Undefined: it waits. */
  #answer(queued: Queued, nowMs: number, after: (() => void)[]): ProgramAnswer | undefined {
    const { studies } = this.#options
    const { request } = queued
    const study = studies.find(request.study)
    const name = printable(request.study)
    if (study === undefined) return { error: `there is no study ${name}` }
    if (study.spec.isAsked !== true)
      return { error: `the scheduler runs the trials of ${name}: programs ask for those of a study made with --ask` }
    if (request.kind === 'ask') {
      if (study.state.kind !== 'running') return { done: overText(study) }
      this.#setWaiting(study.id, [...(this.#waiting.get(study.id) ?? []), { ...queued, request }])
      return undefined
    }
    if (request.kind === 'best') return bestAnswer(study, studies.trials(study.id))
    const trial = studies.trial(study.id, request.trial)
    if (trial === undefined) return { error: `${name} has no trial ${request.trial}` }
    if (request.token !== undefined && request.token !== trial.asker?.token) return { gone: goneText(trial.number) }
    if (request.kind === 'tell') return this.#tell(study, trial, request, nowMs, after)
    if (trial.end !== undefined) return { over: trial.end.kind }
    if (request.kind === 'hold') return this.#hold(study, trial, queued)
    if (request.kind === 'again') {
      const asker = { token: randomBytes(12).toString('hex'), sinceMs: nowMs, untilMs: 0 }
      studies.noteAsker(study.id, trial, asker)
      this.#end(study, trial.number, { gone: goneText(trial.number) }, after)
      return {}
    }
    const [stepMetric, metric] = [stepMetricOf(study.spec), study.spec.metrics[0]?.name]
    if (stepMetric === undefined || metric === undefined) return {}
    const values = { [stepMetric]: String(request.step), [metric]: String(request.value) }
    return defined({ stop: trial.stopping ?? this.#options.judgeStep(study, trial, values) })
  }

  #hold(study: Study, { number, asker }: Trial, { request, line, answer }: Queued): ProgramAnswer | undefined {
    if (!('token' in request)) return { error: '"token" is missing: it came with the trial' }
    if (asker?.isKept === true || asker?.untilMs !== undefined) return { error: `trial ${number} needs no hold` }
    const key = keyOf(study, number)
    const hold = this.#holds.get(key) ?? { lines: new Set(), leftMs: undefined, watchers: [] }
    this.#holds.set(key, hold)
    hold.lines.add(line)
    hold.watchers.push(answer)
    return undefined
  }

  #tell(
    study: Study,
    trial: Trial,
    { told, host }: Extract<ProgramRequest, { kind: 'tell' }>,
    nowMs: number,
    after: (() => void)[],
  ): ProgramAnswer {
    const found = told.kind === 'values' ? valuesOf(told.values, study.spec.metrics) : told
    if ('wrong' in found) return { error: found.wrong }
    const own = { ...defined({ host, startedMs: trial.asker?.sinceMs }), endedMs: nowMs }
    const end: TrialEnd =
      'values' in found
        ? { kind: 'done', values: found.values, ...own }
        : 'failed' in found
          ? { kind: 'failed', values: {}, reason: found.failed, ...own }
          : found.kind === 'failed'
            ? { kind: 'failed', values: {}, reason: found.reason, ...own }
            : {
                kind: 'pruned',
                values: this.#options.lastValues(study, trial),
                reason: trial.stopping ?? 'its program stopped it',
                ...own,
              }
    const before = trial.end
    if (before === undefined) {
      this.#options.settle(study, trial, end)
      this.#end(study, trial.number, { over: end.kind }, after)
      return {}
    }
    if (before.kind === end.kind && (end.kind !== 'done' || areSame(before.values, end.values))) return {}
    const was = Object.entries(before.values).map(([name, value]) => `${name}=${value}`)
    const words = before.kind === 'done' && was.length > 0 ? was.join(' ') : before.kind
    return { error: `trial ${trial.number} already has a result: ${printable(words)}` }
  }

  /** Nobody has the trial now. */
  #end(study: Study, number: number, answer: ProgramAnswer, after: (() => void)[]): void {
    const key = keyOf(study, number)
    for (const watcher of this.#holds.get(key)?.watchers ?? []) after.push(() => watcher(answer))
    this.#holds.delete(key)
  }

  #isFree(study: Study, { number, asker }: Trial, nowMs: number): boolean {
    if (asker?.untilMs !== undefined) return nowMs >= asker.untilMs
    if (asker?.isKept === true) return false
    const hold = this.#holds.get(keyOf(study, number))
    if (hold === undefined) return hasPassed(this.#sinceMs ?? nowMs, RESTART_MS, nowMs)
    return hold.leftMs !== undefined && hasPassed(hold.leftMs, RETURN_MS, nowMs)
  }
}

function bestAnswer(study: Study, trials: readonly Trial[]): ProgramAnswer {
  const { metrics } = study.spec
  return {
    best: bestTrials(trials, metrics)
      .slice(0, MOST_BEST)
      .map((trial) => ({
        trial: trial.number,
        parameters: trial.point,
        values: metrics.flatMap((metric) => metricValue(trial, metric) ?? []),
      })),
    directions: metrics.map(({ isMost = false }) => (isMost ? 'maximize' : 'minimize')),
    space: spaceOf(study.spec),
  }
}

const keyOf = ({ id }: Study, number: number): string => `${id} ${number}`
const goneText = (number: number): string => `another program has trial ${number} now`

/** Why a study has no more points. */
export const overText = ({ state }: Study): string => state.reason ?? 'the study is over'
