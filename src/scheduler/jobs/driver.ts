/**
 * The scheduler's loop: applies what hosts and engines report, plans, and sends orders. All of its state is in the store or on
 * the hosts, so it may stop at any moment and another scheduler carries on.
 */
import { type Clock, hasPassed } from '../../base/clock.ts'
import { defined } from '../../base/defined.ts'
import type { Study } from '../study/study.ts'
import { ElapsedTimes } from './elapsed-times.ts'
import { HostRounds, pollSoon, type RoundsOptions, UNDECLARED } from './host-rounds.ts'
import { type BundleState, isActive, isFinal, type Job, type JobEvent, overdue, type SeenBundle } from './job.ts'
import { type BundleName, isOfAttempt, parseBundleKey } from './orders.ts'
import { type LinkSpeeds, PlanPass } from './plan-jobs.ts'
import type { CheckpointPort } from './population.ts'
import type { LeaseToken } from './queue-file.ts'
import type { JobStore, SchedulerReport } from './store.ts'
import type { ProgramDesk } from './study-desk.ts'
import { type OpenSampler, StudyPass } from './study-pass.ts'
import { type ReadSource, StudySources } from './study-sources.ts'
import { WriteWatch } from './write-watch.ts'

export type DriverOptions = RoundsOptions & {
  readonly lease: LeaseToken
  readonly isPreempting: boolean
  /** Ends when nothing waits and nothing runs; held jobs do not count. */
  readonly isUntilEmpty: boolean
  onEvent?(event: DriverEvent): void
  /** For the order of ranks; called when a job with a launcher is placed. */
  readonly linkSpeeds?: LinkSpeeds
  /** For populations: without it their members are not replaced. */
  readonly checkpoints?: CheckpointPort
  /** For studies whose method is a sampler that runs elsewhere; without it they wait. */
  readonly openSampler?: OpenSampler
  /** For studies that run elsewhere; without it they are not followed. */
  readonly readSource?: ReadSource
  /** Lets programs ask for points of studies; without it they cannot. */
  servePrograms?(desk: ProgramDesk): Disposable
  /** Calls back asynchronously when somebody may have written to the queue. */
  watchStore?(onWrite: () => void): Disposable
}

export type DriverEvent =
  | { readonly kind: 'job'; readonly job: Job }
  | { readonly kind: 'host'; readonly host: string; readonly trouble: string | undefined }

export const LEASE_MS = 20_000
const RENEW_MS = 5_000
/** How soon it notices writes of others where nothing reports them. */
const TICK_MS = 50
/** It rests as long as the last tick took, within these bounds, so that what arrives meanwhile is handled together. */
const LEAST_REST_MS = 4
const MOST_REST_MS = 50
const REPORT_MS = 1_000
/** At first gangs, and all jobs whose turn is later, wait this long for hosts to answer or fail. */
const GATHER_MS = 2_000

export async function driveJobs(options: DriverOptions): Promise<void> {
  await new JobDriver(options).run()
}

/** Held jobs do not count, nor studies that only programs and other tools go on with. */
export function isEmpty(store: JobStore): boolean {
  const isOver = ({ spec }: Study) => spec.isAsked === true || spec.source !== undefined
  return store.active().length === 0 && store.queued(1).length === 0 && store.studies.unfinished().every(isOver)
}

class JobDriver {
  readonly #options: DriverOptions
  readonly #rounds: HostRounds
  readonly #pass: PlanPass
  readonly #studies: StudyPass
  readonly #sources: StudySources | undefined
  readonly #pace = new PlanPace(REPORT_MS)
  readonly #pause: Pause
  readonly #times = new ElapsedTimes()
  readonly #beganMs: number
  #isDirty = true
  #renewedMs = 0
  #reportedMs = 0
  #orphansMs = 0
  /** Whether something ended that is not done, so that jobs that wait for it must be cancelled. */
  #mayOrphan = true
  #version = -1
  #failure: unknown

  constructor(options: DriverOptions) {
    this.#options = options
    this.#beganMs = options.clock.now()
    this.#pass = new PlanPass(options.store, options.linkSpeeds)
    this.#pause = new Pause(options.clock)
    this.#studies = new StudyPass({
      store: options.store,
      signal: options.signal,
      ...defined({ openSampler: options.openSampler, port: options.checkpoints, prove: options.proveStorage }),
      onAnswer: () => {
        this.#isDirty = true
        this.#pause.wake()
      },
    })
    const { store, lease, clock, readSource } = options
    this.#sources =
      readSource &&
      new StudySources({
        store,
        lease,
        read: readSource,
        now: () => clock.now(),
        onFailure: (error) => this.#fail(error),
      })
    this.#rounds = new HostRounds(options, {
      onAnswer: () => this.#pause.wake(),
      onTrouble: (host, trouble) => {
        this.#isDirty = true
        options.onEvent?.({ kind: 'host', host, trouble })
      },
      onFailure: (error) => this.#fail(error),
    })
  }

  async run(): Promise<void> {
    const { signal, clock, store, isUntilEmpty } = this.#options
    const stop = () => this.#pause.end()
    signal.addEventListener('abort', stop)
    using _rounds = this.#rounds
    using _studies = this.#studies
    using _sources = this.#sources
    using _programs = this.#options.servePrograms?.(this.#studies.desk)
    using writes = new WriteWatch(clock, () => this.#findNews())
    using _watch = this.#options.watchStore?.(() => writes.note())
    for (const host of this.#rounds.undeclared()) this.#options.onEvent?.({ kind: 'host', host, trouble: UNDECLARED })
    try {
      while (!signal.aborted) {
        const sinceMs = clock.now()
        this.#pause.isAwake = false
        this.#tick()
        if (isUntilEmpty && this.#rounds.isAtRest && isEmpty(store))
          return store.together(() => this.#report(clock.now(), {}))
        await this.#pause.take(Math.min(MOST_REST_MS, Math.max(LEAST_REST_MS, clock.now() - sinceMs)), TICK_MS)
        if (this.#failure !== undefined) throw this.#failure
      }
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  #fail(error: unknown): void {
    this.#failure = error
    this.#pause.wake()
  }

  /** Its own writes do not count. */
  #findNews(): boolean {
    if (this.#pause.isAwake) return false
    try {
      const hasNews = this.#options.store.file.version() !== this.#version
      if (hasNews) this.#pause.wake()
      return hasNews
    } catch (error) {
      this.#fail(error)
      return true
    }
  }

  #tick(): void {
    const { store, lease, clock } = this.#options
    const nowMs = clock.now()
    if (hasPassed(this.#renewedMs, RENEW_MS, nowMs)) {
      store.file.requireInPlace()
      store.lease.renew(lease, nowMs, LEASE_MS)
      this.#renewedMs = nowMs
    }
    this.#sources?.poll(nowMs)
    const version = store.file.version()
    const hasNews = version !== this.#version
    if (hasNews) {
      this.#version = version
      this.#pace.noteNews()
      this.#mayOrphan = true
    }
    const isDue = this.#isDirty || this.#rounds.hasAnswers || this.#pace.isDue(nowMs)
    if (isDue) this.#advance(nowMs)
    // What others cancelled is stopped at once, whenever the next plan is due.
    if (isDue || hasNews || this.#rounds.hasDue(nowMs)) this.#rounds.send(nowMs)
  }

  #advance(nowMs: number): void {
    const changed = new Map<number, Job>()
    const { store } = this.#options
    store.together(() => {
      this.#note(changed)
      const late = overdue(store.active(), nowMs, this.#times)
      this.#apply(
        late.map(({ id }) => ({ id, event: { kind: 'stop', reason: 'timed-out' } })),
        changed,
      )
      this.#apply(this.#rounds.stuck(nowMs), changed)
    })
    if (this.#isDirty || this.#pace.isDue(nowMs)) {
      this.#advanceStudies(nowMs, changed)
      this.#plan(nowMs, changed)
    }
    // Only now is it on disk.
    for (const job of changed.values()) {
      this.#rounds.noteEnd(job, nowMs)
      this.#options.onEvent?.({ kind: 'job', job })
    }
  }

  #advanceStudies(nowMs: number, changed: Map<number, Job>): void {
    const { store, lease } = this.#options
    if (!this.#studies.hasWork) return
    const { after } = store.together(() => {
      store.lease.check(lease)
      const pass = this.#studies.run(nowMs)
      this.#apply(pass.events, changed)
      return pass
    })
    for (const settle of after) settle()
  }

  #plan(nowMs: number, changed: Map<number, Job>): void {
    const { store, lease, clock, isPreempting } = this.#options
    if (this.#mayOrphan && hasPassed(this.#orphansMs, REPORT_MS, nowMs)) {
      // Jobs that wait for the cancelled ones are found in the next pass.
      this.#mayOrphan = store.cancelOrphans(nowMs, lease) > 0
      this.#orphansMs = nowMs
    }
    const { events, expectedS, wantsRoom } = this.#pass.plan({
      nowMs,
      hosts: this.#rounds.specs(),
      engines: this.#rounds.engines(),
      isPreempting,
      isGathering: !hasPassed(this.#beganMs, GATHER_MS, nowMs) && this.#rounds.isGathering,
    })
    this.#rounds.wantRoom(wantsRoom, nowMs)
    // Planning does not lock the queue. Jobs that changed meanwhile stay as they are.
    store.together(() => {
      this.#apply(
        events.map(({ id, event }) => ({ id, event: this.#rounds.withAddresses(event) })),
        changed,
      )
      if (hasPassed(this.#reportedMs, REPORT_MS, nowMs)) this.#report(nowMs, expectedS)
    })
    // Its own events need no new plan.
    this.#isDirty = false
    this.#pace.notePlan(nowMs, clock.now())
  }

  #report(nowMs: number, expectedS: SchedulerReport['expectedS']): void {
    const { store, lease, isPreempting } = this.#options
    this.#reportedMs = nowMs
    store.writeReport({ atMs: nowMs, ...this.#rounds.report(store.report()?.hosts), expectedS, isPreempting }, lease)
  }

  /** Where a poll found something that was not reported, there may be more: it is polled again soon. */
  #note(changed: Map<number, Job>): void {
    const { clock, store, lease } = this.#options
    const seen = new Map<string, { readonly id: number; readonly event: Extract<JobEvent, { kind: 'seen' }> }>()
    const answers = this.#rounds.takeAnswers()
    const readings = answers.flatMap((answer) => answer.readings)
    store.noteResults(readings, lease)
    // A trial is over, or may be stopped.
    if (readings.length > 0) this.#isDirty = true
    const facts: { readonly id: number; readonly event: JobEvent }[] = []
    for (const { place, record, bundles, said = new Map() } of answers) {
      let hasNews = false
      for (const [key, { facts: own, ranks }] of said) {
        const name = parseBundleKey(store.id, key)
        const job = name && store.get(name.id)
        if (!job || !isOfAttempt(name, job) || !isActive(job.state)) continue
        if (job.state.places[name.rank]?.host !== place) continue
        facts.push({ id: name.id, event: { kind: 'said', rank: name.rank, said: own, ranks } })
      }
      for (const [key, bundle] of bundles) {
        const name = parseBundleKey(store.id, key)
        if (!name || seen.get(key)?.event.bundle.kind === 'ended' || !this.#isNews(place, name, bundle)) continue
        const address = this.#rounds.newAddress(store.get(name.id), name.rank)
        seen.set(key, { id: name.id, event: { kind: 'seen', rank: name.rank, bundle, ...defined({ address }) } })
        hasNews = true
      }
      if (hasNews && record !== undefined && record.trouble === undefined) pollSoon(record, clock.now())
    }
    this.#apply([...facts, ...seen.values()], changed)
    if (facts.length > 0) this.#apply(this.#rounds.launchEvents(), changed)
  }

  /** A place reports on its own bundles alone, and on the present attempt alone. */
  #isNews(place: string, name: BundleName, bundle: SeenBundle): boolean {
    const { rank } = name
    const job = this.#options.store.get(name.id)
    if (job === undefined || !isOfAttempt(name, job) || !isActive(job.state)) return false
    if (job.state.places[rank]?.host !== place) return false
    const before = job.state.bundles[rank]
    if (before === undefined || before.kind === 'ended') return false
    // It may run on where its host was.
    if (this.#rounds.newAddress(job, rank) !== undefined) return bundle.kind !== 'missing'
    if (bundle.kind === 'missing') return before.kind === 'begun'
    return before.kind !== bundle.kind || isElsewhere(before, bundle)
  }

  #apply(events: readonly { readonly id: number; readonly event: JobEvent }[], changed: Map<number, Job>): void {
    if (events.length === 0) return
    const { store, clock, lease } = this.#options
    const onChange = (job: Job) => {
      changed.set(job.id, job)
      if (isFinal(job.state) && job.state.kind !== 'done') this.#mayOrphan = true
    }
    store.applyAll(events, clock.now(), { lease, onChange })
    for (const { event } of events) {
      // A job that begins where it was placed frees nothing, so nothing has to be planned.
      if (event.kind !== 'said' && (event.kind !== 'seen' || event.bundle.kind !== 'begun')) this.#isDirty = true
    }
  }
}

/** An engine has started it on other nodes, or says only now on which. */
const isElsewhere = (before: BundleState, now: SeenBundle): boolean =>
  before.kind === 'begun' && now.kind === 'begun' && now.nodes !== undefined && now.nodes !== before.nodes

/** The pause between two ticks: a rest that only `end` cuts short, then a wait that `wake` ends too. */
class Pause {
  /** Something has come that ends the next pause. */
  isAwake = false
  readonly #clock: Clock
  #isResting = false
  #resume = () => {}

  constructor(clock: Clock) {
    this.#clock = clock
  }

  wake(): void {
    if (this.isAwake) return
    this.isAwake = true
    if (!this.#isResting) this.#resume()
  }

  /** Ends the first part of the pause as well. */
  end(): void {
    this.isAwake = true
    this.#resume()
  }

  async take(restMs: number, thenMs: number): Promise<void> {
    this.#isResting = true
    await this.#wait(restMs)
    this.#isResting = false
    if (!this.isAwake) await this.#wait(thenMs)
  }

  async #wait(forMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#resume = resolve
    using _ = this.#clock.after(forMs, resolve)
    await promise
  }
}

/** Plans for others' writes take at most a fifth of the driver's time, so that many small writes do not keep it busy. */
const SHARE = 5

export class PlanPace {
  readonly #mostMs: number
  #hasNews = false
  #plannedMs = 0
  #tookMs = 0

  /** `mostMs`: the longest time between two plans. */
  constructor(mostMs: number) {
    this.#mostMs = mostMs
  }

  noteNews(): void {
    this.#hasNews = true
  }

  notePlan(fromMs: number, toMs: number): void {
    this.#hasNews = false
    this.#plannedMs = fromMs
    this.#tookMs = Math.max(0, toMs - fromMs)
  }

  isDue(nowMs: number): boolean {
    const restMs = this.#hasNews ? Math.min(this.#mostMs, this.#tookMs * SHARE) : this.#mostMs
    return hasPassed(this.#plannedMs, restMs, nowMs)
  }
}
