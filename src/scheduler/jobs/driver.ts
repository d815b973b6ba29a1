/**
 * Drives a queue: hears and looks what became of what was sent to hosts, plans, sends more. It keeps nothing that is not in the
 * store or on the hosts, so that it may end at any moment and another one carries on. Bundles tell when they begin and end;
 * looks find what nobody told.
 */
import { hasPassed } from '../../base/clock.ts'
import type { LeaseToken } from './driver-lease.ts'
import { HostRounds, type RoundsOptions } from './host-rounds.ts'
import { isActive, type Job, type JobEvent, overdue, type SeenBundle } from './job.ts'
import { parseBundleKey } from './orders.ts'
import { Pause, PlanPace } from './pause.ts'
import { pollSoon } from './place-record.ts'
import { PlanPass } from './plan-pass.ts'
import type { JobStore, SchedulerReport } from './store.ts'

export type DriverOptions = RoundsOptions & {
  readonly lease: LeaseToken
  readonly isPreempting: boolean
  /** Ends when nothing waits and nothing runs; held ones do not count. */
  readonly isUntilEmpty: boolean
  onEvent?(event: DriverEvent): void
  /** Calls back, later only, when somebody may have written to the queue. */
  watchStore?(onWrite: () => void): Disposable
}

export type DriverEvent =
  | { readonly kind: 'job'; readonly job: Job }
  | { readonly kind: 'host'; readonly host: string; readonly trouble: string | undefined }

export const LEASE_MS = 20_000
const RENEW_MS = 5_000
/** How soon it notices what others write to the queue, where nobody tells it. */
const TICK_MS = 50
/** What comes meanwhile is seen together: it rests as long as the last tick took, within these. */
const LEAST_REST_MS = 4
const MOST_REST_MS = 50
const REPORT_MS = 1_000
/** At first gangs, and with them all whose turn is later, wait so long for hosts to answer or to fail. */
const GATHER_MS = 2_000

export async function driveJobs(options: DriverOptions): Promise<void> {
  await new JobDriver(options).run()
}

/** Whether nothing runs and nothing waits but held ones. */
export function isEmpty(store: JobStore): boolean {
  return store.active().length === 0 && store.queued(1).length === 0
}

class JobDriver {
  readonly #options: DriverOptions
  readonly #rounds: HostRounds
  readonly #pass: PlanPass
  readonly #pace = new PlanPace(REPORT_MS)
  readonly #pause: Pause
  readonly #beganMs: number
  #isDirty = true
  #renewedMs = 0
  #reportedMs = 0
  #orphansMs = 0
  /** Whether something ended that is not done, and others may have waited for it. */
  #mayOrphan = true
  #version = -1
  #failure: unknown

  constructor(options: DriverOptions) {
    this.#options = options
    this.#beganMs = options.clock.now()
    this.#pass = new PlanPass(options.store)
    this.#pause = new Pause(options.clock)
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
    const { signal, clock, store } = this.#options
    const stop = () => this.#pause.end()
    signal.addEventListener('abort', stop)
    using _rounds = this.#rounds
    using _watch = this.#options.watchStore?.(() => this.#noticeWrite())
    try {
      while (!signal.aborted) {
        const sinceMs = clock.now()
        this.#pause.reset()
        this.#tick()
        if (this.#isDone()) return store.together(() => this.#report(clock.now(), {}))
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

  /** Its own writes are none for it. */
  #noticeWrite(): void {
    if (this.#pause.isAwake) return
    try {
      if (this.#options.store.file.version() !== this.#version) this.#pause.wake()
    } catch (error) {
      this.#fail(error)
    }
  }

  #isDone(): boolean {
    const { store, isUntilEmpty } = this.#options
    return isUntilEmpty && this.#rounds.isAtRest && isEmpty(store)
  }

  #tick(): void {
    const { store, lease, clock } = this.#options
    const nowMs = clock.now()
    if (hasPassed(this.#renewedMs, RENEW_MS, nowMs)) {
      store.lease.renew(lease, nowMs, LEASE_MS)
      this.#renewedMs = nowMs
    }
    const version = store.file.version()
    const hasNews = version !== this.#version
    if (hasNews) {
      this.#version = version
      this.#pace.noteNews()
      this.#mayOrphan = true
    }
    const isDue = this.#isDirty || this.#rounds.hasAnswers || this.#pace.isDue(nowMs)
    if (isDue) this.#advance(nowMs)
    // What others cancelled ends at once, whenever the next plan is.
    if (isDue || hasNews || this.#rounds.hasDue(nowMs)) this.#rounds.send(nowMs)
  }

  #advance(nowMs: number): void {
    const changed = new Map<number, Job>()
    this.#options.store.together(() => {
      this.#note(changed)
      this.#endOverdue(nowMs, changed)
    })
    if (this.#isDirty || this.#pace.isDue(nowMs)) this.#plan(nowMs, changed)
    // After it is on disk.
    for (const job of changed.values()) {
      this.#rounds.noteEnd(job)
      this.#options.onEvent?.({ kind: 'job', job })
    }
  }

  #endOverdue(nowMs: number, changed: Map<number, Job>): void {
    this.#apply(
      overdue(this.#options.store.active(), nowMs).map(({ id }) => ({
        id,
        event: { kind: 'stop', reason: 'timed-out' },
      })),
      changed,
    )
  }

  #plan(nowMs: number, changed: Map<number, Job>): void {
    const { store, lease, clock, isPreempting } = this.#options
    if (this.#mayOrphan && hasPassed(this.#orphansMs, REPORT_MS, nowMs)) {
      // Those that wait for the cancelled ones are found in the next look.
      this.#mayOrphan = store.cancelOrphans(nowMs, lease) > 0
      this.#orphansMs = nowMs
    }
    const { events, expectedS } = this.#pass.plan({
      nowMs,
      hosts: this.#rounds.specs(),
      engines: this.#rounds.engines(),
      isPreempting,
      isGathering: !hasPassed(this.#beganMs, GATHER_MS, nowMs) && this.#rounds.isGathering,
    })
    // Nobody has to wait for the plan to write; what it finds changed meanwhile stays as it is.
    store.together(() => {
      this.#apply(events, changed)
      if (hasPassed(this.#reportedMs, REPORT_MS, nowMs)) this.#report(nowMs, expectedS)
    })
    // What was planned is no news for the next plan.
    this.#isDirty = false
    this.#pace.notePlan(nowMs, clock.now())
  }

  #report(nowMs: number, expectedS: SchedulerReport['expectedS']): void {
    const { store, lease, isPreempting } = this.#options
    this.#reportedMs = nowMs
    store.writeReport({ atMs: nowMs, ...this.#rounds.report(store.report()?.hosts), expectedS, isPreempting }, lease)
  }

  /** A place where a poll found what nobody had told is polled again soon. */
  #note(changed: Map<number, Job>): void {
    const { clock, store, lease } = this.#options
    const seen = new Map<string, SeenBundle>()
    const answers = this.#rounds.takeAnswers()
    store.noteResults(
      answers.flatMap(({ readings }) => readings),
      lease,
    )
    for (const { place, record, bundles } of answers) {
      const news = [...bundles].filter(
        ([key, bundle]) => seen.get(key)?.kind !== 'ended' && this.#isNews(place, key, bundle),
      )
      for (const [key, bundle] of news) seen.set(key, bundle)
      if (news.length > 0 && record !== undefined && record.trouble === undefined) pollSoon(record, clock.now())
    }
    const events = [...seen].flatMap(([key, bundle]) => {
      const parsed = parseBundleKey(store.id, key)
      return parsed === undefined
        ? []
        : [{ id: parsed.id, event: { kind: 'seen', rank: parsed.rank, bundle } as const }]
    })
    this.#apply(events, changed)
  }

  /** A place reports on its own bundles alone, and on the present attempt alone. */
  #isNews(place: string, key: string, bundle: SeenBundle): boolean {
    const { store } = this.#options
    const parsed = parseBundleKey(store.id, key)
    const job = parsed && store.get(parsed.id)
    if (job === undefined || job.attempt !== parsed?.attempt || !isActive(job.state)) return false
    if (job.state.places[parsed.rank]?.host !== place) return false
    const before = job.state.bundles[parsed.rank]
    if (bundle.kind === 'missing') return before?.kind === 'begun'
    return before !== undefined && before.kind !== 'ended' && before.kind !== bundle.kind
  }

  #apply(events: readonly { readonly id: number; readonly event: JobEvent }[], changed: Map<number, Job>): void {
    if (events.length === 0) return
    const { store, clock, lease } = this.#options
    const onChange = (job: Job) => void changed.set(job.id, job)
    store.applyAll(events, clock.now(), { lease, onChange })
    for (const { event } of events) {
      // Who begins where he was placed frees nothing, and nobody has to be placed anew.
      if (event.kind !== 'seen' || event.bundle.kind !== 'begun') this.#isDirty = true
      if (event.kind !== 'seen' || event.bundle.kind !== 'ended') continue
      const { end } = event.bundle
      if (end.kind !== 'exit' || end.code !== 0) this.#mayOrphan = true
    }
  }
}
