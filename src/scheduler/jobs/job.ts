/**
 * The life of a job as one pure function of state and event. What has to be done on hosts follows from the state alone (orders.ts).
 *
 *   held ⇄ queued → starting or pending → running → (ending) → done | failed | timed-out | lost | cancelled
 *            ↑______________________________|  retried, requeued or preempted
 */
import { defined } from '../../base/defined.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import { HOST_ROLE, type LaunchSpec, REFUSED, type Role, type Said } from '../launch/launcher.ts'
import { type LostRank, parseLost, parseNoticed, type RankEnd } from '../launch/rank.ts'
import { rankBounds } from '../launch/rank-bounds.ts'
import type { Ring } from '../launch/ring.ts'
import { type Failure, formatFirstFailure, isPortTaken, isStoppedAfter, rankFailures } from '../launch/verdict.ts'
import type { ResourceRequest, Strategy } from '../model/resources.ts'
import type { Needs } from '../plans/needs.ts'
import type { ElapsedTimes } from './elapsed-times.ts'
import { formatLeft, type LeftRunning } from './left-running.ts'
import type { Metric } from './metric.ts'

export type JobSpec = {
  readonly name: string
  /** For `sh -c` in each bundle. */
  readonly command: string
  /** For people: the command without what enters its environment, and the word for that. */
  readonly typed?: { readonly command: string; readonly fromEnv: string }
  readonly environment: Readonly<Record<string, string>>
  /** On the host; undefined: the home directory. */
  readonly directory?: string
  /** Of each bundle. */
  readonly request: ResourceRequest
  readonly bundles: number
  readonly strategy: Strategy
  readonly maxBundlesPerHost?: number
  /** Expected run time; not enforced. */
  readonly estimateS?: number
  /** Maximum run time; enforced. */
  readonly limitS?: number
  /** Undefined: it looks stuck after ten minutes, and is left alone. */
  readonly silence?: SilenceSpec
  /** Its memory is not limited to what it asked for. */
  readonly isUnlimited?: boolean
  readonly retries: number
  readonly isPreemptible: boolean
  /** The name of the engine that places and runs it (engine.ts); undefined: Muster itself. */
  readonly engine?: string
  /** The container image that its engine runs it in; undefined: the engine's own. */
  readonly image?: string
  /** What it will ask its engine for: it waits in the queue until there is room for that (plans/needs.ts). */
  readonly needs?: Needs
  /** A directory that must be the same on all hosts of its engine; proved before it is handed over. */
  readonly storage?: string
  /** Read from the output of its first bundle. */
  readonly metrics?: readonly Metric[]
  /** How often they are read while it runs; undefined: every ten seconds. */
  readonly metricsEveryS?: number
  /** Its launcher: the command is what the launcher starts. */
  readonly launch?: LaunchSpec
  /** Bundles with requests of their own, in the order of ranks; undefined: `bundles` times `request`. */
  readonly roles?: readonly Role[]
  /** The job is done when these bundles are; the others are stopped then. Undefined: when all are. */
  readonly leaders?: readonly number[]
}

/**
 * It looks stuck when no rank has written anything for so long. `stop`: it is stopped then, `idle`: if none has used its processor
 * either, `always`: also if they have.
 */
export type SilenceSpec = { readonly seconds: number; readonly stop?: 'idle' | 'always' }

export type BundlePlace = {
  readonly host: string
  readonly devices: readonly number[]
  /** Of its host, as declared when it was placed: a host may get another one, or its name may become that of another machine. */
  readonly address?: string
}

/**
 * `barred`: it can no longer begin; `unable`: its place could not start it; `refused`: it must not start; `gone`: no exit code. `isCancelled`: in its
 * engine. `isTimedOut`: by a limit of its engine. `isUnwritten`: the disk was full. `why`: what a launcher in an engine told (`inGang`).
 */
export type BundleEnd =
  | {
      readonly kind: 'exit'
      readonly code: number
      readonly isUnwritten?: boolean
      readonly isOutOfMemory?: boolean
      readonly why?: string
    }
  | { readonly kind: 'barred' }
  | { readonly kind: 'unable'; readonly reason?: string }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'gone'; readonly reason: string; readonly isCancelled?: boolean; readonly isTimedOut?: boolean }

/** As its host says, in milliseconds of this machine's clock. */
export type BundleTimes = { readonly beganMs?: number; readonly ranMs?: number }

/** What a launcher's bundle told of itself; `ranks`: in the order in which their ends were heard. */
type BundleSaid = { readonly said?: Said; readonly ranks?: readonly RankEnd[] }

/** Where its engine runs or ran it, as a set of nodes such as `n[1-2]`. */
type BundleNodes = { readonly nodes?: string }

/** `sent`: it may have begun or not. `isUnlimited`: its host could not limit its memory. */
export type BundleState =
  | ({ readonly kind: 'sent' } & BundleSaid)
  | ({ readonly kind: 'begun'; readonly isUnlimited?: boolean } & BundleTimes & BundleNodes & BundleSaid)
  | ({
      readonly kind: 'ended'
      readonly end: BundleEnd
      readonly isUnlimited?: boolean
      /** Of a launched bundle; undefined: its host could not look. */
      readonly left?: LeftRunning
    } & BundleTimes &
      BundleNodes &
      BundleSaid)

/** What a place says of a bundle; `missing`: a host has nothing of it. */
export type SeenBundle = BundleState | { readonly kind: 'missing' }

/** Why a job is stopped. */
export type StopReason = 'cancelled' | 'timed-out' | 'preempted' | 'requeued' | 'finished'

/** The ring that the order of its places follows. */
export type PlacedRing = Ring & { /** When its links were measured. */ readonly measuredMs: number }

type Active = {
  readonly places: readonly BundlePlace[]
  readonly ring?: PlacedRing
  /** By rank, as places. */
  readonly bundles: readonly BundleState[]
  /** When its first bundle began; until that is known, when it was placed. */
  readonly startedMs: number
  /** When it was placed, if that is not `startedMs`. */
  readonly placedMs?: number
  /** Of a service that is ready: where it answers. */
  readonly endpoint?: string
  /** Of the services after which it was submitted. */
  readonly endpoints?: readonly string[]
} & Waited

type Waited = {
  /** When its wait began, if not at its submission: the time of earlier attempts does not count. */
  readonly waitsFromMs?: number | undefined
  /** Attempts in a row that a launcher could not start because its port had been taken meanwhile. */
  readonly portsTaken?: number | undefined
}

export type JobState =
  /** `isInLine`: its study lets it run again as soon as others have ended. */
  | ({ readonly kind: 'held'; readonly isInLine?: true } & Waited)
  | ({ readonly kind: 'queued'; readonly notBeforeMs?: number; readonly last?: string } & Waited)
  /** `pending`: it was handed to its engine, which has not started it. */
  | ({ readonly kind: 'starting' | 'pending' | 'running' } & Active)
  /** `cause`: the end of the bundle that caused it, if one did. `failed`: that bundle; it may not have ended yet if its command failed. */
  | ({
      readonly kind: 'ending'
      readonly stop: StopReason | undefined
      readonly sinceMs: number
      readonly cause?: BundleEnd
      /** Why it was cancelled. */
      readonly because?: string
    } & Fallen &
      Active)
  | ({ readonly kind: FinalKind; readonly endedMs: number; readonly reason?: string } & Fallen & Partial<Active>)

/**
 * `failed`: the bundle whose failure Muster saw first. Undefined: none failed before the stop, or an earlier version ended the job.
 * `failedMs`: when Muster heard of it, if the bundle told it before its end; the others are stopped from then on.
 */
type Fallen = { readonly failed?: number; readonly failedMs?: number }

export type FinalKind = 'done' | 'failed' | 'timed-out' | 'lost' | 'cancelled'

export type ActiveState = Extract<JobState, { kind: 'starting' | 'pending' | 'running' | 'ending' }>

export type JobEvent =
  | {
      readonly kind: 'placed'
      readonly endpoints?: readonly string[]
      readonly places: readonly BundlePlace[]
      readonly ring?: PlacedRing | undefined
    }
  /** `address`: where its host has moved with it. */
  | { readonly kind: 'seen'; readonly rank: number; readonly bundle: SeenBundle; readonly address?: string }
  /** What a bundle of a launcher told: kept, so that the next steps of all follow from it. */
  | { readonly kind: 'said'; readonly rank: number; readonly said: Said; readonly ranks: readonly RankEnd[] }
  /** It is a service, and answers. */
  | { readonly kind: 'ready'; readonly endpoint: string }
  /** Its launcher cannot start it, or it looks stuck. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** `because`: why a job is cancelled. */
  | { readonly kind: 'stop'; readonly reason: StopReason; readonly because?: string }
  /** `requeue`: stops a running job and queues it again. */
  | { readonly kind: 'hold' | 'release' | 'requeue' }
  /** `isInLine`: when it is its turn. */
  | { readonly kind: 'retry'; readonly isInLine?: boolean }
  /** Does not wait for these hosts: what runs there is left alone, what runs elsewhere is stopped. */
  | { readonly kind: 'forget'; readonly hosts: readonly string[] }

export type Job = {
  readonly id: number
  readonly user: string
  readonly submittedMs: number
  /** Part of the names of its bundles; undefined: an earlier version submitted it. */
  readonly stamp?: string | undefined
  readonly priority: number
  /** From 1 on; requeued and preempted attempts count as well. */
  readonly attempt: number
  /** Attempts that failed by themselves. */
  readonly failures: number
  readonly spec: JobSpec
  readonly state: JobState
  /** Jobs that must be done first. */
  readonly after: readonly number[]
}

export const FINAL_KINDS: readonly FinalKind[] = ['done', 'failed', 'timed-out', 'lost', 'cancelled']
export const FAILED_KINDS: readonly FinalKind[] = ['failed', 'timed-out', 'lost']
export const ACTIVE_KINDS = ['starting', 'pending', 'running', 'ending'] as const
export const UNFINISHED_KINDS = ['held', 'queued', ...ACTIVE_KINDS] as const

/** The states of the jobs that each change is meant for. */
export const CHANGED_KINDS: Readonly<
  Record<'cancel' | 'hold' | 'release' | 'retry' | 'requeue', readonly JobState['kind'][]>
> = {
  cancel: UNFINISHED_KINDS,
  hold: ['queued'],
  release: ['held'],
  retry: FINAL_KINDS.filter((kind) => kind !== 'done'),
  requeue: ACTIVE_KINDS,
}

/** Before the first retry; doubled with each failure. */
const BACK_OFF_MS = 2000
const MAX_BACK_OFF_MS = 600_000

/** Its study lets it run again as soon as others have ended. */
export const isInLine = ({ state }: Pick<Job, 'state'>): boolean => state.kind === 'held' && state.isInLine === true

export function isFinal(state: JobState): state is Extract<JobState, { kind: FinalKind }> {
  return FINAL_KINDS.some((kind) => kind === state.kind)
}

export function isActive(state: JobState): state is ActiveState {
  return isPlaced(state) || state.kind === 'running' || state.kind === 'ending'
}

/** Why the place of this rank does not answer, so that what is known of the rank is old; undefined: it does, or the rank has ended. */
export function silenceOf(state: JobState, rank: number, down: Readonly<Record<string, string>>): string | undefined {
  if (!isActive(state) || state.bundles[rank]?.kind === 'ended') return undefined
  return down[state.places[rank]?.host ?? '']
}

/** It has a place, and has not begun there as a whole. */
export function isPlaced({ kind }: JobState): boolean {
  return kind === 'starting' || kind === 'pending'
}

/** Whether anything of it has begun, as far as its places have told. */
export function hasBegun({ bundles = [] }: Partial<Active>): boolean {
  return bundles.some(
    (one) => one.kind !== 'sent' && (one.beganMs !== undefined || one.kind === 'begun' || one.end.kind === 'exit'),
  )
}

const placedKind = ({ engine }: JobSpec) => (engine === undefined ? 'starting' : 'pending')

/** Unchanged where the event has no meaning. */
export function transition(job: Job, event: JobEvent, nowMs: number): Job {
  const { state, attempt } = job
  const to = (next: JobState): Job => ({ ...job, state: next })
  switch (event.kind) {
    case 'placed': {
      if (state.kind !== 'queued') return job
      const bundles = event.places.map((): BundleState => ({ kind: 'sent' }))
      const { places, ring, endpoints } = event
      return to({
        kind: placedKind(job.spec),
        places,
        ...defined({ ring, endpoints }),
        bundles,
        startedMs: nowMs,
        waitsFromMs: state.waitsFromMs,
        ...defined({ portsTaken: state.portsTaken }),
      })
    }
    case 'seen':
      return isActive(state) ? seen(job, movedTo(state, event), event.rank, event.bundle, nowMs) : job
    case 'said':
      return isActive(state) ? said(job, state, event, nowMs) : job
    case 'ready':
      return state.kind === 'running' && state.endpoint === undefined ? to({ ...state, endpoint: event.endpoint }) : job
    case 'refused': {
      if (!isActive(state) || state.kind === 'ending') return job
      const cause: BundleEnd = { kind: 'refused', reason: event.reason }
      return to({ ...state, kind: 'ending', stop: undefined, sinceMs: nowMs, cause })
    }
    case 'stop': {
      const { reason: stop, because } = event
      if (isFinal(state) || (stop !== 'cancelled' && (!isActive(state) || state.kind === 'ending'))) return job
      if (!isActive(state)) return to({ kind: 'cancelled', endedMs: nowMs, ...defined({ reason: because }) })
      if (state.kind === 'ending' && state.stop === 'cancelled') return job
      return to({ ...state, kind: 'ending', stop, sinceMs: nowMs, ...defined({ because }) })
    }
    case 'forget':
      return forgotten(job, event.hosts, nowMs)
    case 'hold':
      return state.kind === 'queued' ? to({ kind: 'held', waitsFromMs: state.waitsFromMs }) : job
    case 'release':
      return state.kind === 'held' ? to({ kind: 'queued', waitsFromMs: state.waitsFromMs }) : job
    case 'requeue':
      return isActive(state) ? transition(job, { kind: 'stop', reason: 'requeued' }, nowMs) : job
    case 'retry':
      if (!isFinal(state)) return job
      return {
        ...job,
        ...{ attempt: attempt + 1, failures: 0 },
        state: event.isInLine
          ? { kind: 'held', isInLine: true, waitsFromMs: nowMs }
          : { kind: 'queued', waitsFromMs: nowMs },
      }
  }
}

const endsOf = (bundles: readonly BundleState[]) => bundles.flatMap((one) => (one.kind === 'ended' ? [one.end] : []))

function forgotten(job: Job, hosts: readonly string[], nowMs: number): Job {
  const { state } = job
  const cancel = { kind: 'stop', reason: 'cancelled' } as const
  if (!isActive(state)) return transition(job, cancel, nowMs)
  const bundles = state.bundles.map((bundle, rank): BundleState => {
    const isGivenUp = bundle.kind !== 'ended' && hosts.includes(state.places[rank]?.host ?? '')
    return isGivenUp ? { kind: 'ended', end: GIVEN_UP } : bundle
  })
  if (bundles.every((bundle, rank) => bundle === state.bundles[rank])) return transition(job, cancel, nowMs)
  const next = transition({ ...job, state: { ...state, bundles } }, cancel, nowMs)
  const ends = endsOf(bundles)
  return isActive(next.state) && ends.length === bundles.length ? ended(job, next.state, ends, nowMs) : next
}

/** mpirun's host tells a line for each other host. */
const MOST_SAID = 512
const MOST_SAID_CHARACTERS = 4096
/**
 * A launched bundle tells that its command failed before it has ended what that left, so that the others are stopped at once. Its
 * command may tell it too, and go on.
 */
const FAILED = 'failed'
const MOST_RANK_ENDS = 2048

/** What is known stays: a question that was asked twice changes nothing. */
function said(
  job: Job,
  state: ActiveState,
  { rank, said, ranks }: Extract<JobEvent, { kind: 'said' }>,
  nowMs: number,
): Job {
  const bundle = state.bundles[rank]
  if (bundle === undefined || job.spec.launch === undefined) return job
  const { said: known = {}, ranks: ended = [] } = bundle
  const facts = Object.entries(said).filter(
    ([name, value]) => !Object.hasOwn(known, name) && value.length <= MOST_SAID_CHARACTERS,
  )
  const ends = ranks.filter((one) => !ended.some((old) => old.rank === one.rank && old.restart === one.restart))
  if (facts.length + ends.length === 0 || ended.length + ends.length > MOST_RANK_ENDS) return job
  const isTooMuch = Object.keys(known).length + facts.length > MOST_SAID
  if (isTooMuch && Object.hasOwn(known, REFUSED)) return job
  if (isTooMuch) facts.splice(0, facts.length, [REFUSED, `it told more than the ${MOST_SAID} facts that a job keeps`])
  const next: BundleState = { ...bundle, said: { ...known, ...Object.fromEntries(facts) }, ranks: [...ended, ...ends] }
  const bundles = state.bundles.with(rank, next)
  if (!facts.some(([name]) => name === FAILED) || bundle.kind === 'ended' || state.kind === 'ending')
    return { ...job, state: { ...state, bundles } }
  const fallen = { failed: rank, failedMs: nowMs }
  return { ...job, state: { ...state, kind: 'ending', stop: undefined, sinceMs: nowMs, bundles, ...fallen } }
}

function movedTo(
  state: ActiveState,
  { rank, address }: { readonly rank: number; readonly address?: string },
): ActiveState {
  const place = state.places[rank]
  if (address === undefined || place === undefined) return state
  return { ...state, places: state.places.with(rank, { ...place, address }) }
}

function seen(job: Job, state: ActiveState, rank: number, bundle: SeenBundle, nowMs: number): Job {
  const before = state.bundles[rank]
  if (before === undefined || before.kind === 'ended' || (bundle.kind === 'missing' && before.kind === 'sent'))
    return job
  const isUnlimited = before.kind === 'begun' && before.isUnlimited === true
  // It ran, at least in part: this attempt must not begin again.
  const isFirst = state.kind === 'ending' && state.failed === rank
  const now: BundleState =
    bundle.kind === 'missing' ? { kind: 'ended', end: NOTHING_LEFT } : isFirst ? bundle : withKiller(state, bundle)
  const timed = withTimes(before, now, state.placedMs ?? state.startedMs, nowMs)
  const nodes = now.kind === 'sent' ? undefined : (now.nodes ?? nodesOf(before))
  const kept = { ...timed, ...defined({ said: before.said, ranks: before.ranks, nodes }) }
  const bundles = state.bundles.with(rank, isUnlimited && kept.kind === 'ended' ? { ...kept, isUnlimited } : kept)
  state = { ...state, ...startOf(state, bundles) }
  const ends = endsOf(bundles)
  // When one bundle of a gang fails, the others are stopped.
  if (state.kind !== 'ending' && now.kind === 'ended' && !isWell(now.end)) {
    const fallen = now.end.kind === 'exit' || now.end.kind === 'gone' ? { failed: rank } : {}
    state = { ...state, kind: 'ending', stop: undefined, sinceMs: nowMs, cause: now.end, ...fallen }
  }
  if (ends.length === bundles.length) return ended(job, { ...state, bundles }, ends, nowMs)
  if (state.kind === 'ending') return { ...job, state: { ...state, bundles } }
  const { leaders } = job.spec
  if (leaders?.every((leader) => bundles[leader]?.kind === 'ended'))
    return { ...job, state: { ...state, kind: 'ending', stop: 'finished', sinceMs: nowMs, bundles } }
  const kind = bundles.some((one) => one.kind === 'sent') ? placedKind(job.spec) : 'running'
  return { ...job, state: { ...state, kind, bundles } }
}

const nodesOf = (bundle: BundleState): string | undefined => (bundle.kind === 'sent' ? undefined : bundle.nodes)

/** Where its engine runs or ran it; undefined: it has none, or the engine has not said it. */
export const engineNodes = (state: JobState): string | undefined =>
  'bundles' in state ? state.bundles?.map(nodesOf).find((nodes) => nodes !== undefined) : undefined

/** How many outputs its engine has of it: one of each rank that it, or the program that runs once for all bundles, starts. */
export const engineRanks = ({ bundles, launch }: Pick<JobSpec, 'bundles' | 'launch'>): number =>
  bundles * (launch?.ownRanks ?? 1)

/** `bundle 2`. An engine tells of all bundles of a gang together, and not which of its nodes has which: `bundles 0-3`. */
export const bundleTitle = ({ engine, bundles }: JobSpec, rank: number): string =>
  engine !== undefined && bundles > 1 ? `bundles 0-${bundles - 1}` : `bundle ${rank}`

export const ENDED_SILENTLY = 'its process ended without an exit code'
export const REBOOTED = 'the host rebooted'

const KILLED: Readonly<Record<StopReason, string>> = {
  cancelled: 'killed when the job was cancelled',
  'timed-out': 'killed at the time limit',
  preempted: 'killed to make room for another job',
  requeued: 'killed to be requeued',
  finished: 'killed when the job was done',
}
const KILLED_WITH_OTHERS = 'killed when another bundle ended'

/** A process that Muster killed cannot write its exit code. */
function withKiller(state: ActiveState, bundle: BundleState): BundleState {
  if (state.kind !== 'ending' || bundle.kind !== 'ended') return bundle
  if (bundle.end.kind !== 'gone' || bundle.end.reason !== ENDED_SILENTLY) return bundle
  const reason = state.stop === undefined ? KILLED_WITH_OTHERS : KILLED[state.stop]
  return { ...bundle, end: { kind: 'gone', reason } }
}

const GIVEN_UP = { kind: 'gone', reason: 'abandoned: its host did not answer' } as const
const STOPPED: ReadonlySet<string> = new Set([...Object.values(KILLED), KILLED_WITH_OTHERS, GIVEN_UP.reason])

/** A host's times count between the order and the report; a time that it does not report is that of the report. */
function withTimes(before: BundleState, bundle: BundleState, sentMs: number, nowMs: number): BundleState {
  if (bundle.kind === 'sent') return bundle
  const within = (ms: number, leastMs: number) => Math.max(leastMs, Math.min(ms, nowMs))
  const toldMs = (before.kind === 'begun' ? before.beganMs : undefined) ?? bundle.beganMs
  if (bundle.kind === 'begun') return { ...bundle, beganMs: within(toldMs ?? nowMs, sentMs) }
  if (['barred', 'unable', 'refused'].includes(bundle.end.kind)) return { kind: 'ended', end: bundle.end }
  // Nothing has told that it began.
  if (bundle.end.kind === 'gone' && before.kind === 'sent' && toldMs === undefined)
    return { kind: 'ended', end: bundle.end }
  // A clock may be off by more than what a host measured itself.
  const beganMs = within(Math.min(toldMs ?? sentMs, nowMs - (bundle.ranMs ?? 0)), sentMs)
  return { ...bundle, beganMs, ranMs: within(beganMs + (bundle.ranMs ?? nowMs - beganMs), beganMs) - beganMs }
}

function startOf({ startedMs, placedMs }: ActiveState, bundles: readonly BundleState[]) {
  const begun = bundles.flatMap((one) => (one.kind !== 'sent' && one.beganMs !== undefined ? [one.beganMs] : []))
  return begun.length === 0 ? {} : { startedMs: Math.min(...begun), placedMs: placedMs ?? startedMs }
}

const NOTHING_LEFT: BundleEnd = {
  kind: 'gone',
  reason: 'no trace of it on its host: the host was reset or its files were deleted',
}

function ended(job: Job, state: ActiveState, ends: readonly BundleEnd[], nowMs: number): Job {
  const stop = state.kind === 'ending' ? state.stop : undefined
  const { places, ring, bundles, startedMs, placedMs = startedMs } = state
  const waitsFromMs = nowMs - Math.max(0, startedMs - waitsFrom(job))
  const endsMs = bundles.flatMap((one) =>
    one.kind === 'ended' && one.beganMs !== undefined && one.ranMs !== undefined ? [one.beganMs + one.ranMs] : [],
  )
  const endedMs = endsMs.length === 0 ? nowMs : Math.max(...endsMs)
  const { failed: fallen, failedMs } = state.kind === 'ending' ? state : {}
  const base = { places, ...defined({ ring, failed: fallen, failedMs }), bundles, startedMs, placedMs, endedMs }
  const over = (kind: FinalKind, reason?: string): Job => ({ ...job, state: { ...base, kind, ...defined({ reason }) } })
  type Again = { readonly notBeforeMs?: number; readonly last: string; readonly portsTaken?: number }
  const again = (own: Again, failures = job.failures): Job => ({
    ...job,
    attempt: job.attempt + 1,
    failures,
    state: { kind: 'queued', ...own, waitsFromMs },
  })
  // What ended well before it was told to stop has succeeded; a program that saves and ends well when it is told to has not.
  // An engine's times come from clocks that are too far off to tell which came first.
  const isAfter = state.kind === 'ending' && (job.spec.engine !== undefined || endedMs > state.sinceMs)
  const wasTold = stop !== undefined && endsMs.length > 0 && isAfter
  if (stop === 'finished' || (ends.every(isWell) && !wasTold && fallen === undefined)) return over('done')
  if (stop === 'cancelled') {
    const isGivenUp = ends.some((end) => end.kind === 'gone' && end.reason === GIVEN_UP.reason)
    const because = state.kind === 'ending' ? state.because : undefined
    return over('cancelled', isGivenUp ? 'abandoned on hosts that did not answer' : because)
  }
  if (stop === 'preempted') return again({ last: 'stopped for a job of higher priority' })
  if (stop === 'requeued') return again({ last: 'requeued' })
  const failed = fallen === undefined ? undefined : bundles[fallen]
  const cause = state.kind === 'ending' ? state.cause : undefined
  const first =
    cause ??
    (failed?.kind === 'ended' ? failed.end : undefined) ??
    ends.find((end) => !isWell(end) && end.kind !== 'barred') ??
    (ends[0] as BundleEnd)
  if (stop === undefined && first.kind === 'unable')
    return again({ notBeforeMs: nowMs + BACK_OFF_MS, last: formatEnd(first) })
  if (stop === undefined && first.kind === 'gone' && first.isCancelled) return over('cancelled', first.reason)
  const isNamed =
    bundles.length > 1 ? first.kind === 'exit' || first.kind === 'gone' : first.kind === 'exit' && job.spec.launch
  const named = isNamed ? failuresOf(job.spec, base) : []
  const { portsTaken = 0 } = state
  const words = first.kind === 'refused' ? [first.reason] : named.map(({ text = '' }) => text)
  if (stop === undefined && portsTaken < MOST_PORTS_TAKEN && words.some(isPortTaken))
    return again({ last: formatFirstFailure(named) ?? formatEnd(first), portsTaken: portsTaken + 1 })
  const isTimedOut = stop === 'timed-out' || (first.kind === 'gone' && first.isTimedOut === true)
  const kind = isTimedOut ? 'timed-out' : first.kind === 'exit' || first.kind === 'refused' ? 'failed' : 'lost'
  const reason =
    stop === 'timed-out'
      ? `ran longer than its limit of ${job.spec.limitS} s`
      : (formatFirstFailure(named) ?? formatEnd(first, job.spec.request.memoryBytes))
  if (job.failures >= job.spec.retries) return over(kind, reason)
  const notBeforeMs = nowMs + Math.min(MAX_BACK_OFF_MS, BACK_OFF_MS * 2 ** job.failures)
  return again({ notBeforeMs, last: `${kind}: ${reason}` }, job.failures + 1)
}

/** An attempt that failed as its port was taken is no fault of the job's; but a port may be taken by the job itself. */
const MOST_PORTS_TAKEN = 3

/** Ended by INT, KILL or TERM. */
const SIGNALLED = [130, 137, 143]
export const isSignalled = (code: number): boolean => SIGNALLED.includes(code)

/**
 * Ranks and launchers that failed, were lost or were stopped. Without a launcher, each bundle is a rank, and the one whose failure
 * Muster saw first failed first, whatever its exit code: nothing had stopped it. With a launcher, ranks may end before their bundle
 * tells Muster, so this order proves nothing.
 */
export function failuresOf(
  spec: JobSpec,
  { places = [], bundles = [], failed: fallen, failedMs = Infinity }: Fallen & Partial<Active>,
): readonly Failure[] {
  const { launch, roles, engine } = spec
  if (engine !== undefined) return []
  const requests = requestsOf(spec)
  const names = namesOf(roles, bundles.length)
  const bounds = rankBounds(spec, bundles.length)
  const all = bundles.flatMap((bundle, index): readonly Failure[] => {
    const { said } = bundle
    const ranks = (bundle.ranks ?? []).filter(({ rank }) => bounds.canHave(index, rank))
    const host = places[index]?.host ?? ''
    const last = Math.max(...ranks.map(({ restart }) => restart))
    const failed = ranks
      .filter(({ code, restart }) => code !== 0 && restart === last)
      .map(({ rank, ...end }) => {
        const isStopped = isSignalled(end.code)
        return { ...end, title: `rank ${rank}`, bundle: index, host, isLauncher: false, isStopped }
      })
    if (bundle.kind !== 'ended') return failed
    const { beganMs, ranMs, end } = bundle
    const own = {
      title: launch?.ranks === undefined ? (names[index] ?? '') : `the ${launch.kind} launcher`,
      bundle: index,
      host,
      isLauncher: launch?.ranks !== undefined,
      isSeenFirst: fallen === index && (launch === undefined || end.kind === 'gone'),
    }
    // Muster does not know when it ended.
    if (end.kind === 'gone') return STOPPED.has(end.reason) ? failed : [...failed, { ...own, text: end.reason }]
    if (end.kind !== 'exit') return failed
    const endedMs = beganMs === undefined || ranMs === undefined ? undefined : beganMs + ranMs
    // Its host tells the exit code of a command that has ended; anything else is what the command told.
    if (fallen === index && said?.[FAILED] !== undefined && said[FAILED] !== String(end.code)) {
      const text = [REPORTED, ...(said.why ? [said.why] : [])].join(': ')
      return [...failed, { ...own, endedMs: Math.min(failedMs, endedMs ?? Infinity), text, hasReported: true }]
    }
    if (end.code === 0) return failed
    const exit = {
      code: end.code,
      endedMs,
      text: end.isOutOfMemory
        ? formatEnd(end, requests[index]?.memoryBytes)
        : said?.why || (end.isUnwritten ? UNWRITTEN : undefined),
      isStopped: !own.isSeenFirst && !end.isOutOfMemory && isSignalled(end.code),
    }
    return [...failed, { ...own, ...exit }]
  })
  const reported = all.find(({ hasReported }) => hasReported)
  if (reported !== undefined) return all.filter((one) => !isStoppedAfter(one, reported))
  const [first] = fallen === undefined ? [] : rankFailures(all)
  if (first?.code === undefined || !first.isLauncher) return all
  const { said: own = {} } = bundles[first.bundle] ?? {}
  // Under another launcher, a program may print such a line.
  const noticed = own.mpi === 'openmpi' ? parseNoticed(own.noticed) : undefined
  const lost = bundles.flatMap(({ said }, bundle) => {
    // What Muster stops with its launcher may have no time to tell its end.
    if (all.some((one) => one !== first && one.isLauncher && one.isStopped && one.bundle === bundle)) return []
    const ranks = parseLost(said?.lost).filter((rank) => bounds.canHave(bundle, rank))
    const host = places[bundle]?.host ?? ''
    return ranks.map((rank) => ({ bundle, host, ...(noticed?.rank === rank ? noticed : { rank }) }))
  })
  if (lost.length === 0) return all
  const isNamed = ({ rank }: LostRank) => Number(rank === noticed?.rank)
  const sorted = lost.toSorted((one, other) => isNamed(other) - isNamed(one) || one.rank - other.rank)
  return all.map((one) => (one === first ? { ...one, lost: sorted } : one))
}

const REPORTED = 'it had reported a failure'

/** `rank 3`, or `ps 0` where bundles have roles. */
export function namesOf(roles: JobSpec['roles'], bundles: number): readonly string[] {
  if (roles === undefined || roles.every(({ name }) => name === HOST_ROLE))
    return Array.from({ length: bundles }, (_, rank) => `rank ${rank}`)
  return roles.flatMap(({ name, count }) => Array.from({ length: count }, (_, index) => `${name} ${index}`))
}

/** What its bundles ask for, one by one. */
export function requestsOf({ bundles, request, roles }: JobSpec): readonly ResourceRequest[] {
  return (roles ?? [{ count: bundles, request }]).flatMap((role) =>
    Array.from({ length: role.count }, () => role.request),
  )
}

export function waitsFrom({ state, submittedMs }: Pick<Job, 'state' | 'submittedMs'>): number {
  return isFinal(state) ? submittedMs : (state.waitsFromMs ?? submittedMs)
}

function isWell(end: BundleEnd): boolean {
  return end.kind === 'exit' && end.code === 0
}

/** What is left on the hosts of a launched job that has ended, in sentences. */
export function leftWords({ spec, state }: Job): readonly string[] {
  if (spec.launch === undefined || spec.engine !== undefined || !isFinal(state)) return []
  const { places = [], bundles = [] } = state
  return formatLeft(
    bundles.map((bundle, rank) => ({
      host: places[rank]?.host ?? '',
      left: bundle.kind === 'ended' ? bundle.left : undefined,
      hasBegun: bundle.kind !== 'ended' || !isWithoutProcesses(bundle.end),
    })),
  )
}

const isWithoutProcesses = (end: BundleEnd): boolean =>
  end.kind === 'barred' || end.kind === 'unable' || (end.kind === 'gone' && end.reason === REBOOTED)

export function missedWords(id: number, kind: FinalKind): string {
  const words = {
    done: 'is done',
    failed: 'failed',
    'timed-out': 'timed out',
    lost: 'was lost',
    cancelled: 'was cancelled',
  }
  return `it needs job ${id}, which ${words[kind]}`
}

export function formatBundle(bundle: BundleState, askedBytes?: number): string {
  if (bundle.kind === 'ended') return formatEnd(bundle.end, askedBytes)
  return bundle.kind === 'begun' ? 'started' : bundle.kind
}

function formatEnd(end: BundleEnd, askedBytes = 0): string {
  if (end.kind === 'gone' || end.kind === 'refused') return end.reason
  if (end.kind === 'barred') return 'never started'
  if (end.kind === 'unable') return end.reason ?? 'its host could not start it'
  if (end.isOutOfMemory) return `killed by the kernel: more memory than it asked for (${formatBytes(askedBytes)})`
  if (end.why !== undefined) return `exit ${end.code}: ${end.why}`
  return `exit ${end.code}${end.isUnwritten ? `; ${UNWRITTEN}` : ''}`
}

const UNWRITTEN = 'the disk was full, so output may be missing'

/**
 * Jobs that exceed their --limit, which counts from the first bundle: a host that does not answer must not keep a gang
 * running.
 */
export function overdue(active: readonly Job[], nowMs: number, times: ElapsedTimes): readonly Job[] {
  times.beginRound()
  return active.filter(({ id, state, spec: { limitS } }) => {
    if (limitS === undefined || !isActive(state) || state.kind === 'ending') return false
    if (state.bundles.every(({ kind }) => kind === 'sent')) return false
    return times.of(`${id}`, state.startedMs, nowMs) > limitS * 1000
  })
}
