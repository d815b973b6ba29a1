/**
 * The members of a population (study/pbt.ts) on their hosts: whose checkpoint is copied where, which job is stopped, and which trial
 * begins. What is decided is in the study's state before anything is done, and every step may be done again, so a scheduler may be
 * killed at any moment: another one goes on from the rows.
 */
import { randomBytes } from 'node:crypto'
import { hasPassed } from '../../base/clock.ts'
import { getOrMake } from '../../base/collections.ts'
import { JOBS_DIRECTORY } from '../../base/left.ts'
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { askNext, random } from '../study/ask.ts'
import { type Decision, decide, markOfReplaced, type PopulationMember } from '../study/pbt.ts'
import { canonicalPoint, type Point, pointKey } from '../study/space.ts'
import {
  type PbtSpec,
  type PopulationState,
  type Replacement,
  type Study,
  spaceOf,
  type Trial,
} from '../study/study.ts'
import {
  CHECKPOINT,
  type CheckpointPlace,
  checkpointValue,
  copyName,
  formatArrival,
  formatCheck,
  formatDrop,
  formatMove,
  formatSnapshot,
  parseCheckpointAnswer,
  studyDirectory,
  type WholeCopy,
} from './checkpoint.ts'
import type { ProveStorage } from './engine.ts'
import { isActive, type Job, type JobSpec } from './job.ts'
import { metricNumber, stepNumber } from './metric.ts'
import { asQuestion } from './orders.ts'
import { cannotProve } from './storage-gate.ts'
import type { JobStore } from './store.ts'
import type { NewTrial, OpenTrial } from './study-rows.ts'

/** `reason`: of a script that failed. */
export type CheckpointResult =
  | { readonly kind: 'ok'; readonly text: string }
  | { readonly kind: 'failed'; readonly reason: string }

/** Scripts and copies of checkpoints on hosts. Nothing rejects. */
export interface CheckpointPort {
  /** Runs a program of POSIX sh; `text` is the beginning of what it prints. */
  run(host: string, program: string, signal: AbortSignal): Promise<CheckpointResult>
  /** Copies what is in a directory of one host into one of another. */
  copy(
    from: { readonly host: string; readonly path: string },
    to: { readonly host: string; readonly path: string },
    signal: AbortSignal,
  ): Promise<CheckpointResult>
}

export type PopulationOptions = {
  readonly store: JobStore
  /** Undefined: nothing can be copied, and no member is replaced. */
  readonly port?: CheckpointPort | undefined
  /** For a directory that all hosts share. */
  readonly prove?: ProveStorage | undefined
  readonly signal: AbortSignal
  /** A copy has ended: another pass is worth while. */
  onAnswer(): void
}

export type PopulationStep = {
  readonly state: PopulationState
  /** Trials to be stopped, and why. */
  readonly stops: readonly { readonly trial: Trial; readonly job: number; readonly reason: string }[]
  readonly adds: readonly PopulationTrial[]
  /** Jobs that wait to run again, and that have to do so where their checkpoint is. */
  readonly binds: readonly { readonly job: number; readonly spec: JobSpec }[]
  /** Why a member could not be replaced. */
  readonly trouble: string | undefined
}

type StepOptions = {
  /** So many trials the study's budget allows. */
  readonly mostNew: number
  /** Keys of points. */
  readonly tried: ReadonlySet<string>
}

/** `spec`: of its job, where it differs from the study's. */
export type PopulationTrial = {
  readonly trial: NewTrial
  readonly spec: JobSpec | undefined
  readonly environment: Readonly<Record<string, string>>
}

/** What has come of something that was begun on hosts. */
type Outcome =
  | { readonly kind: 'explored'; readonly point: Point }
  | { readonly kind: 'copied'; readonly copy: WholeCopy }
  | { readonly kind: 'moved' | 'missing' | 'dropped' }
  | { readonly kind: 'failed'; readonly reason: string }

/** Without `next` it is over, or nothing is left of one that was given up. */
type Advanced = { readonly next?: Replacement; readonly isOver?: true; readonly trouble?: string }

type Task = { outcome: Outcome | undefined; seenMs: number | undefined; readonly stop: AbortController }

const NOTHING = { stops: [], adds: [], binds: [], trouble: undefined }
const NONE: PopulationState = { marks: [], hosts: {}, replacements: [] }
/** Copies under way at the same time. */
const MOST_AT_ONCE = 4
const AGAIN_MS = 10_000
const EXPLORE_S = 60
const EXPLORE_BYTES = 64 * 1024
const MOST_REASON = 300

export class Population implements Disposable {
  readonly #options: PopulationOptions
  /** By study, replacement and phase; what is lost here is done again. */
  readonly #tasks = new Map<number, Map<string, Task>>()

  readonly #ended = new AbortController()
  readonly #signal: AbortSignal

  constructor(options: PopulationOptions) {
    this.#options = options
    this.#signal = AbortSignal.any([options.signal, this.#ended.signal])
  }

  /** Another scheduler may take over: nothing more is begun. */
  [Symbol.dispose](): void {
    this.#ended.abort()
  }

  /**
   * Of a study whose state is on disk. `open`: its trials that wait or run. The answer is to be stored in one transaction.
   */
  step(study: Study, open: readonly OpenTrial[], { mostNew, tried }: StepOptions, nowMs: number): PopulationStep {
    const { population } = study.state
    const spec = study.spec.pbt
    const stops: PopulationStep['stops'][number][] = open.flatMap(({ trial, job }) =>
      job !== undefined && isTaken(trial, open, population?.replacements ?? [])
        ? [{ trial, job: job.id, reason: `another trial continues member ${trial.member}` }]
        : [],
    )
    if (spec === undefined || study.state.kind !== 'running') return { ...NOTHING, stops, state: population ?? NONE }
    if (population === undefined) return { ...NOTHING, state: NONE, adds: this.#firstTrials(study, spec, tried) }
    const { timeAttr } = spec
    const own = getOrMake(this.#tasks, study.id, () => new Map<string, Task>())
    let { marks } = population
    const objective = study.spec.metrics[0]?.name ?? ''
    const isSilent = ({ values }: OpenTrial) => values[objective] !== undefined && values[timeAttr] === undefined
    let trouble = open.some(isSilent) ? `its members print no ${timeAttr}=NUMBER, so none is replaced` : undefined
    const adds: PopulationTrial[] = []
    const replacements = population.replacements.flatMap((before): readonly Replacement[] => {
      const trial = open.find((one) => one.trial.number === before.victim)
      const { next, isOver = false, trouble: why } = this.#advance(study, spec, before, trial, own, nowMs)
      trouble = why ?? trouble
      if (isOver) {
        marks = markOfReplaced(marks, before.member, before.source)
        adds.push(this.#trialOf(study, spec, before, adds))
      } else if (next?.phase === 'stopping' && trial?.job !== undefined)
        stops.push({ trial: trial.trial, job: trial.job.id, reason: next.reason })
      return next === undefined ? [] : [next]
    })
    for (const [key, { outcome }] of own)
      if (outcome !== undefined && !replacements.some((one) => key === keyOf(one))) own.delete(key)
    const pending = new Set(replacements.map(({ point }) => pointKey(point)))
    const decided = decide(this.#membersOf(study, spec, open, replacements), marks, {
      ...{ spec, space: spaceOf(study.spec), isMost: study.spec.metrics[0]?.isMost ?? false, seed: study.spec.seed },
      isTried: (key) => pending.has(key) || adds.some(({ trial }) => pointKey(trial.point) === key) || tried.has(key),
    })
    const fresh = decided.decisions
      .slice(0, this.#options.port === undefined ? 0 : Math.max(0, mostNew - replacements.length - adds.length))
      .flatMap((one) => newReplacement(spec, one, open))
    const hosts = spec.checkpoints === undefined ? hostsNow(population.hosts, open) : population.hosts
    const binds = open.flatMap(({ trial: { member = -1 }, job }) => this.#bound(study, job, population.hosts[member]))
    const state = { marks: decided.marks, hosts, replacements: [...replacements, ...fresh] }
    return { state: isSame(state, population) ? population : state, stops, adds, binds, trouble }
  }

  #advance(
    study: Study,
    spec: PbtSpec,
    one: Replacement,
    trial: OpenTrial | undefined,
    own: Map<string, Task>,
    nowMs: number,
  ): Advanced {
    const { studies } = this.#options.store
    if (one.phase === 'dropping')
      return this.#task(study, spec, one, own, nowMs)?.outcome === undefined ? { next: one } : {}
    // It came to its own end before it could be stopped.
    if (trial === undefined && studies.trial(study.id, one.victim)?.end?.kind !== 'pruned')
      return { next: { ...one, phase: 'dropping' } }
    if (one.phase === 'stopping') return { next: trial === undefined ? { ...one, phase: 'moving' } : one }
    const outcome = this.#task(study, spec, one, own, nowMs)?.outcome
    switch (outcome?.kind) {
      case undefined:
      case 'dropped':
        return { next: one }
      case 'explored':
        return { next: { ...one, phase: 'copying', point: outcome.point } }
      case 'copied':
        return { next: { ...one, phase: 'stopping', copy: outcome.copy } }
      case 'moved':
        return { isOver: true }
      case 'missing':
        return { next: { ...one, phase: 'copying' } }
      case 'failed': {
        const trouble = `member ${one.member} was not replaced: ${outcome.reason}`
        // Once its trial was stopped, it goes on as soon as its hosts answer.
        return { next: trial === undefined ? one : { ...one, phase: 'dropping' }, trouble }
      }
    }
  }

  #task(study: Study, spec: PbtSpec, one: Replacement, own: Map<string, Task>, nowMs: number): Task | undefined {
    const known = own.get(keyOf(one))
    if (known?.outcome !== undefined) known.seenMs ??= nowMs
    const isAgain = known?.outcome?.kind === 'failed' && hasPassed(known.seenMs ?? nowMs, AGAIN_MS, nowMs)
    if (known !== undefined && !isAgain) return known
    const { port, onAnswer } = this.#options
    const tasks = [...this.#tasks.values()].flatMap((some) => [...some.values()])
    if (port === undefined || tasks.filter(({ outcome }) => outcome === undefined).length >= MOST_AT_ONCE)
      return undefined
    const earlier = [...own].filter(([key]) => key.endsWith(` ${one.member} ${one.victim}`)).map(([, task]) => task)
    for (const { stop } of earlier) stop.abort()
    // What is still copied would be left.
    if (earlier.some(({ outcome }) => outcome === undefined)) return undefined
    const task: Task = { outcome: undefined, seenMs: undefined, stop: new AbortController() }
    own.set(keyOf(one), task)
    void this.#carryOut(port, study, spec, one, AbortSignal.any([this.#signal, task.stop.signal])).then((outcome) => {
      if (this.#signal.aborted) return
      task.outcome = outcome
      onAnswer()
    })
    return task
  }

  async #carryOut(
    port: CheckpointPort,
    study: Study,
    spec: PbtSpec,
    one: Replacement,
    signal: AbortSignal,
  ): Promise<Outcome> {
    if (one.phase === 'exploring')
      return await explored(port, study, spec, one, this.#options.store.studies.specOf(study), signal)
    const place = this.#placeOf(study, spec)
    if (one.phase === 'dropping') {
      const hosts = [...new Set([one.from, one.to])]
      await Promise.all(hosts.map((host) => port.run(host, formatDrop(place, one.member), signal)))
      return { kind: 'dropped' }
    }
    if (one.phase === 'moving') {
      if (one.copy === undefined) return { kind: 'missing' }
      const answer = await asked(port, one.to, formatMove(place, one.member, one.copy), signal)
      if (answer.kind === 'missing') return { kind: 'missing' }
      if (answer.kind !== 'done') return failed(one.to, answer)
      // A scheduler that was killed may have left copies.
      if (one.from !== one.to) void port.run(one.from, formatDrop(place, one.member), signal)
      return { kind: 'moved' }
    }
    const { checkpoints } = spec
    if (checkpoints !== undefined && one.from !== one.to) {
      const [problem] = await (this.#options.prove ?? cannotProve)(checkpoints, [one.from, one.to], signal)
      if (problem !== undefined) return { kind: 'failed', reason: problem.words }
    }
    const name = copyName(one.member, randomBytes(6).toString('hex'))
    const from = await asked(port, one.from, formatSnapshot(place, one.source, name), signal)
    if (from.kind === 'none') return { kind: 'failed', reason: `member ${one.source} has no checkpoint on ${one.from}` }
    if (from.kind !== 'done' || from.digest === undefined) return failed(one.from, from)
    const copy = { name, digest: from.digest }
    const copied: Outcome = { kind: 'copied', copy }
    if (one.from === one.to || checkpoints !== undefined) return copied
    const to = await asked(port, one.to, formatArrival(place, name), signal)
    if (to.kind === 'here') return copied
    if (to.kind !== 'done' || to.path === undefined || from.path === undefined) return failed(one.to, to)
    const result = await port.copy({ host: one.from, path: from.path }, { host: one.to, path: to.path }, signal)
    // Before its trial is stopped: the host may have sent something else.
    const whole = result.kind === 'ok' ? await asked(port, one.to, formatCheck(place, copy), signal) : result
    const isWhole = whole.kind === 'done'
    const dropped = isWhole ? [one.from] : [one.from, one.to]
    if (!signal.aborted) await Promise.all(dropped.map((host) => port.run(host, formatDrop(place, one.member), signal)))
    if (isWhole) return copied
    if (whole.kind !== 'missing') return failed(one.to, whole)
    return { kind: 'failed', reason: `the copy of ${one.from} on ${one.to} is not its whole checkpoint` }
  }

  #placeOf(study: Study, { checkpoints }: PbtSpec): CheckpointPlace {
    return { study: studyDirectory(this.#options.store.id, study), shared: checkpoints }
  }

  #firstTrials(study: Study, spec: PbtSpec, already: ReadonlySet<string>): readonly PopulationTrial[] {
    const space = spaceOf(study.spec)
    const tried = new Set<string>()
    const points: Point[] = []
    for (let member = 0; member < spec.population; member++) {
      const next = askNext(space, random, member, study.spec.seed, (key) => tried.has(key) || already.has(key))
      // A small space: some begin with the same parameters.
      const point = next.kind === 'point' ? next.point : points[member % Math.max(1, points.length)]
      if (point === undefined) break
      tried.add(pointKey(point))
      points.push(point)
    }
    return points.map((point, member) => ({
      trial: { point, repetition: this.#timesOf(study, point, points.slice(0, member)), member },
      spec: undefined,
      environment: this.#environmentOf(study, spec, member),
    }))
  }

  /** `others`: trials that are stored before it. */
  #trialOf(
    study: Study,
    spec: PbtSpec,
    { member, parent, step, point, to }: Replacement,
    others: readonly PopulationTrial[],
  ): PopulationTrial {
    const repetition = this.#timesOf(
      study,
      point,
      others.map(({ trial }) => trial.point),
    )
    return {
      trial: { point, repetition, member, parent, parentStep: step },
      // Its checkpoint is on that host.
      spec: spec.checkpoints === undefined ? this.#specOn(study, to) : undefined,
      environment: this.#environmentOf(study, spec, member),
    }
  }

  #bound(study: Study, job: Job | undefined, host: string | undefined): PopulationStep['binds'] {
    if (job?.state.kind !== 'queued' || job.attempt === 1 || host === undefined) return []
    const isBound = job.spec.request.selectors?.some(
      (one) => one.label === 'host' && one.is === 'in' && one.values.length === 1 && one.values[0] === host,
    )
    const spec = isBound ? undefined : this.#specOn(study, host)
    return spec === undefined ? [] : [{ job: job.id, spec }]
  }

  #specOn(study: Study, host: string): JobSpec | undefined {
    const own = this.#options.store.studies.specOf(study)
    const selector = { label: 'host', is: 'in', values: [host] } as const
    return own && { ...own, request: { ...own.request, selectors: [...(own.request.selectors ?? []), selector] } }
  }

  #environmentOf(study: Study, { checkpoints }: PbtSpec, member: number): Readonly<Record<string, string>> {
    return { [CHECKPOINT]: checkpointValue(this.#options.store.id, study, member, checkpoints) }
  }

  /** How often a point was tried. `pending`: those of trials that are stored before it. */
  #timesOf({ id }: Study, point: Point, pending: readonly Point[]): number {
    const key = pointKey(point)
    const last = this.#options.store.studies.ofPoint(id, point)
    return (last === undefined ? 0 : last.repetition + 1) + pending.filter((one) => pointKey(one) === key).length
  }

  #membersOf(
    study: Study,
    spec: PbtSpec,
    open: readonly OpenTrial[],
    replacements: readonly Replacement[],
  ): readonly PopulationMember[] {
    const objective = study.spec.metrics[0]?.name ?? ''
    return open.flatMap(({ trial: { member, number, point }, values, job }): readonly PopulationMember[] => {
      if (member === undefined || job === undefined || !isActive(job.state)) return []
      const step = stepNumber(values[spec.timeAttr])
      const printed = values[objective]
      const value = printed === undefined ? undefined : (metricNumber(printed) ?? Number.NaN)
      const isReplaced = job.state.kind === 'ending' || replacements.some((one) => one.member === member)
      return [{ member, trial: number, point, step, value, isReplaced }]
    })
  }
}

/** None where a host is not known: it is decided again after the next interval. */
function newReplacement(
  spec: PbtSpec,
  { victim, source, point, reason }: Decision,
  open: readonly OpenTrial[],
): readonly Replacement[] {
  const hostOf = (number: number): string | undefined => {
    const state = open.find(({ trial }) => trial.number === number)?.job?.state
    return state !== undefined && isActive(state) ? state.places[0]?.host : undefined
  }
  const [from, to] = [hostOf(source.trial), hostOf(victim.trial)]
  if (from === undefined || to === undefined) return []
  const phase = spec.explore === undefined ? 'copying' : 'exploring'
  const own = {
    member: victim.member,
    victim: victim.trial,
    source: source.member,
    parent: source.trial,
    step: source.step ?? 0,
  }
  return [{ phase, ...own, from, to, point, reason }]
}

/** Its job was tried again after it had been replaced: two trials must not write one checkpoint. */
const isTaken = (
  { member, number }: Trial,
  open: readonly OpenTrial[],
  replacements: readonly Replacement[],
): boolean =>
  open.some(({ trial }) => trial.member === member && trial.number > number) ||
  replacements.some((one) => one.phase === 'moving' && one.member === member)

/** With those of the members that run now. */
function hostsNow(before: PopulationState['hosts'], open: readonly OpenTrial[]): PopulationState['hosts'] {
  const now = open.flatMap(({ trial: { member }, job }) => {
    const host = job !== undefined && isActive(job.state) ? job.state.places[0]?.host : undefined
    return member === undefined || host === undefined ? [] : [[member, host] as const]
  })
  return { ...before, ...Object.fromEntries(now) }
}

const keyOf = ({ phase, member, victim }: Replacement): string => `${phase} ${member} ${victim}`

function isSame(one: PopulationState, other: PopulationState): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

type Answered = ReturnType<typeof parseCheckpointAnswer> | { readonly kind: 'failed'; readonly reason: string }

async function asked(port: CheckpointPort, host: string, program: string, signal: AbortSignal): Promise<Answered> {
  if (signal.aborted) return { kind: 'failed', reason: 'stopped' }
  const result = await port.run(host, program, signal)
  return result.kind === 'ok' ? parseCheckpointAnswer(result.text) : result
}

function failed(host: string, answer: Answered | CheckpointResult): Outcome {
  const reason = 'reason' in answer ? answer.reason : 'could not parse its answer'
  return { kind: 'failed', reason: `${host}: ${printable(reason).slice(0, MOST_REASON)}` }
}

/** The command of --explore, where the job of the trial runs and with its environment. It is believed only within the space. */
async function explored(
  port: CheckpointPort,
  study: Study,
  { explore = '' }: PbtSpec,
  { to, point }: Replacement,
  spec: JobSpec | undefined,
  signal: AbortSignal,
): Promise<Outcome> {
  if (spec === undefined) return { kind: 'failed', reason: 'the study has no jobs' }
  const limited = `command -v timeout >/dev/null && t='timeout ${EXPLORE_S}' || t=; $t sh -c ${shellQuote(explore)}`
  const question = `printf '%s\\n' ${shellQuote(JSON.stringify(point))} | { ${limited}; } | head -c ${EXPLORE_BYTES}\n`
  const result = await port.run(
    to,
    `cd ${JOBS_DIRECTORY} 2>/dev/null || cd || exit\n${asQuestion(spec, question)}`,
    signal,
  )
  if (result.kind === 'failed') return failed(to, result)
  const answer = parseExplored(result.text, study)
  return typeof answer === 'string'
    ? { kind: 'failed', reason: `--explore on ${to}: ${answer}` }
    : { kind: 'explored', point: answer }
}

/** What is wrong with it as a string. */
function parseExplored(text: string, { spec }: Study): Point | string {
  const [first, last] = [text.indexOf('{'), text.lastIndexOf('}')]
  let values: unknown
  try {
    values = JSON.parse(text.slice(first, last + 1))
  } catch {
    return `it printed no JSON object: ${printable(text.trim().slice(0, MOST_REASON)) || 'nothing'}`
  }
  const space = spaceOf(spec)
  const raw: Record<string, string> = {}
  for (const [name, value] of Object.entries(Object(values))) {
    if (!space.parameters.some((parameter) => parameter.name === name))
      return `the study has no parameter ${printable(name.slice(0, MOST_REASON))}`
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') raw[name] = String(value)
  }
  const missing = canonicalPoint(space, raw)
  return missing ?? `not in the search space of the study: ${printable(JSON.stringify(raw).slice(0, MOST_REASON))}`
}
