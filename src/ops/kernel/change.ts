/**
 * A whole change: gather facts, plan, show and ask, lock, gather again, apply, gather again, verify. Without a question (`--yes`)
 * hosts are locked first. The handlers show the plan and ask; nothing is written except on the hosts and in the journal.
 */
import { timeText } from '../../base/time-text.ts'
import { type ApplyEvent, type ApplyResult, applyPlan } from './apply.ts'
import type { Area, ChangeDirection } from './area.ts'
import { type AreaFactsOptions, type AreaFinding, type FactsByArea, gatherAreaFacts, verifyAreas } from './bring-up.ts'
import { type Away, awayBy } from './fact.ts'
import type { Journal } from './journal.ts'
import { HostLocks, type Lock } from './lock.ts'
import { changesText, type Operation, type Step } from './operation.ts'
import { canStart, makePlan, type Plan } from './plan.ts'

export type ChangeOptions = AreaFactsOptions & {
  readonly direction: ChangeDirection
  readonly areas: readonly Area[]
  /** Hosts at work at once. */
  readonly fanOut: number
  /** Shown to another Muster that finds a host locked. */
  readonly owner: string
  /** Stops after the plan. */
  readonly isDryRun?: boolean
  /** The plan is applied without a question. */
  readonly isAgreed?: boolean
  /** Hosts that may be changed; facts are gathered from the others too. */
  isSelected(host: string): boolean
  /** Opened before the first step. */
  openJournal(): Journal
}

export type ChangePhase = 'check' | 'lock' | 'apply' | 'verify'

export interface ChangeHandlers {
  onPhase?(phase: ChangePhase): void
  /** `isAgain`: the hosts have changed since it was shown, and this is the plan now. */
  onPlan(plan: Plan, isAgain: boolean): void
  /** Whether to apply it. */
  confirm(plan: Plan): Promise<boolean>
  onEvent(event: ApplyEvent): void
  /** A printable message about a host's lock. `isDetail`: it is no problem. */
  onSay(text: string, isDetail: boolean): void
}

export type Checked = { readonly factsByArea: FactsByArea; readonly plan: Plan }

export type ChangeEnd =
  /** There is nothing to do, nothing of it can start, or it was a dry run. */
  | ({ readonly kind: 'unchanged' } & Checked)
  | { readonly kind: 'declined' }
  /** Another Muster is at work, or a host cannot be locked; reported already. */
  | { readonly kind: 'locked' }
  /** `applied`: once steps were running. */
  | { readonly kind: 'cancelled'; readonly applied?: Checked & { readonly result: ApplyResult } }
  /** The lock of a host was lost during the steps or right before: everything was stopped. */
  | ({ readonly kind: 'lost'; readonly result?: ApplyResult } & Checked)
  /** `plan`: what is left to do. */
  | ({ readonly kind: 'done'; readonly result: ApplyResult; readonly findings: readonly AreaFinding[] } & Checked)

export async function changeHosts(options: ChangeOptions, handlers: ChangeHandlers): Promise<ChangeEnd> {
  const { signal, hosts, isDryRun = false, isAgreed = false, isSelected } = options
  using locks = new HostLocks(hosts, options)
  handlers.onPhase?.('check')
  // Facts gathered while the host is locked need not be gathered again.
  const isLockedFirst = isAgreed && !isDryRun
  const shown = await check(
    isLockedFirst
      ? { ...options, before: async (host) => (isSelected(host) ? await awayOrTried(locks, host) : undefined) }
      : options,
  )
  if (signal.aborted) return { kind: 'cancelled' }
  handlers.onPlan(shown.plan, false)
  // Nothing to do: skip verification, which is slow (a login between every pair of hosts) and which status does.
  if (isDryRun || !canStart(shown.plan)) return { kind: 'unchanged', ...shown }
  if (!(await handlers.confirm(shown.plan))) return { kind: 'declined' }
  handlers.onPhase?.('lock')
  const known = hostsToLock(shown.plan)
  locks.keepOnly(known)
  const isBehindLocks = known.every((host) => locks.isHeld(host))
  if (!(await lockAll(known, locks, options, handlers))) return { kind: 'locked' }
  // While the user read the plan, another Muster may have changed the hosts: the plan is made again.
  const now = isBehindLocks ? shown : await check(options)
  if (signal.aborted) return { kind: 'cancelled' }
  if (stepsOf(now.plan) !== stepsOf(shown.plan)) {
    handlers.onPlan(now.plan, true)
    if (canStart(now.plan) && !(await handlers.confirm(now.plan))) return { kind: 'declined' }
    const others = hostsToLock(now.plan).filter((host) => !known.includes(host))
    if (!(await lockAll(others, locks, options, handlers))) return { kind: 'locked' }
  }
  const lost = locks.watch()
  if (lost.aborted) return endOfLost(now, locks, handlers)
  const journal = options.openJournal()
  handlers.onPhase?.('apply')
  const result = await applyPlan(now.plan, {
    ...options,
    hosts: locks.guarded(),
    signal: AbortSignal.any([signal, lost]),
    onEvent: (event) => {
      try {
        journal.write(event)
      } catch (error) {
        // A step that is not in the journal does not start.
        const isBegin = event.type === 'begin'
        handlers.onEvent(isBegin ? { ...event, type: 'end', end: { kind: 'cancelled' }, durationMs: 0 } : event)
        throw error
      }
      handlers.onEvent(event)
    },
  })
  if (signal.aborted) return { kind: 'cancelled', applied: { ...now, result } }
  if (lost.aborted) return endOfLost({ ...now, result }, locks, handlers)
  handlers.onPhase?.('verify')
  const after = await check(options)
  const findings = await verify(after.factsByArea, options)
  // Hosts that were no longer asked are not away.
  if (signal.aborted) return { kind: 'cancelled', applied: { ...now, result } }
  return { kind: 'done', ...after, result, findings: [...neededAgain(now.plan, result, after.plan), ...findings] }
}

/**
 * Steps that are done, and are needed as before: they do not do what they are for, or what they do was there in another way. Where
 * another step of the area did not get done, that is the reason, and it was reported.
 */
function neededAgain(before: Plan, { ends }: ApplyResult, after: Plan): readonly AreaFinding[] {
  const isOpen = ({ id }: Step) => !['done', 'unneeded'].includes(ends.get(id)?.kind ?? 'unneeded')
  const placeOf = ({ area, host }: Operation) => JSON.stringify([area, host])
  const incomplete = new Set(
    before.operations.filter(({ verdict }) => verdict.kind === 'steps' && verdict.steps.some(isOpen)).map(placeOf),
  )
  const left = new Map(after.operations.map(({ id, verdict }) => [id, verdict.kind === 'steps' ? verdict : undefined]))
  return before.operations.flatMap((operation) => {
    const { id, area, host, title, verdict } = operation
    const again = incomplete.has(placeOf(operation)) ? undefined : left.get(id)
    const tried = new Set(verdict.kind === 'steps' ? verdict.steps.map((step) => step.id) : [])
    const needed = again?.steps.filter((step) => tried.has(step.id) && ends.has(step.id)) ?? []
    if (again === undefined || needed.length === 0) return []
    const how = again.state === 'missing' ? 'is still missing' : `still differs${changesText(again.steps)}`
    const finding = { area, host, gravity: 'blocker', id: 'needed-again' } as const
    if (needed.some((step) => ends.get(step.id)?.kind === 'done')) {
      return [{ ...finding, cause: `${title} ${how}, though its steps are done` }]
    }
    const held = needed.map((step) => `“${step.title}”`).join(' and ')
    const cause = `${title} ${how}, though ${held} ${needed.length === 1 ? 'was' : 'were'} already done`
    const hint = `Something else may do the same in another way: end that or complete it by hand, then run muster status ${area}`
    return [{ ...finding, cause, hint }]
  })
}

export function hostsWithSteps({ operations }: Plan): string[] {
  return [...new Set(operations.flatMap(({ host, verdict }) => (verdict.kind === 'steps' ? [host] : [])))]
}

/** All hosts that share a changed home: another Muster could change it through any of them. */
function hostsToLock(plan: Plan): string[] {
  const changed = hostsWithSteps(plan)
  const besides = (plan.sharedHomes ?? []).flatMap(({ hosts }) =>
    hosts.some((host) => changed.includes(host)) ? hosts : [],
  )
  return [...new Set([...changed, ...besides])]
}

/** The steps of a plan, to compare plans: the reasons of blocked operations vary. */
function stepsOf({ operations }: Plan): string {
  return JSON.stringify(operations.filter(({ verdict }) => verdict.kind === 'steps'))
}

async function check(options: ChangeOptions): Promise<Checked> {
  const { areas, direction, isSelected } = options
  const factsByArea = await gatherAreaFacts(areas, options)
  return { factsByArea, plan: makePlan(direction, areas, factsByArea, { isSelected }) }
}

/** Hosts that are not selected are verified only if they need no steps: it is no failure of the others that they are not up yet. */
async function verify(factsByArea: FactsByArea, options: ChangeOptions): Promise<readonly AreaFinding[]> {
  const { areas, direction } = options
  if (direction === 'down') return []
  return await verifyAreas(areas, factsByArea, makePlan(direction, areas, factsByArea), options, 'check')
}

/** A host that cannot be reached is away, without a second attempt. */
async function awayOrTried(locks: HostLocks, host: string): Promise<Away | undefined> {
  const lock = await locks.tryOnce(host)
  if (lock.kind !== 'failed' || ['cancelled', 'timeout'].includes(lock.outcome.kind)) return undefined
  return awayBy(host, lock.outcome)
}

/** The owner of a lock writes its time in UTC, because it may be in another time zone. */
const withLocalTime = (owner: string, nowMs: number): string =>
  owner.replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, (time) => {
    const ms = Date.parse(time)
    return Number.isNaN(ms) ? time : timeText(ms, nowMs)
  })

async function lockAll(
  names: readonly string[],
  locks: HostLocks,
  { now }: ChangeOptions,
  { onSay }: ChangeHandlers,
): Promise<boolean> {
  const taken = await Promise.all(
    names.map(async (host) => {
      const lock = await locks.take(host)
      const words = wordsOf(host, lock, now())
      if (words !== undefined) onSay(words, lock.kind === 'held')
      return lock
    }),
  )
  return taken.every(({ kind }) => kind === 'held')
}

function endOfLost(
  known: Checked & { readonly result?: ApplyResult },
  locks: HostLocks,
  { onSay }: ChangeHandlers,
): ChangeEnd {
  for (const [host, reason] of locks.lost) {
    onSay(
      `the lock of ${host} is gone: ${reason}. Everything was stopped, as another Muster may be changing it now`,
      false,
    )
  }
  return { kind: 'lost', ...known }
}

function wordsOf(host: string, lock: Lock, nowMs: number): string | undefined {
  switch (lock.kind) {
    case 'busy':
      return `${host} is being changed by another Muster (${withLocalTime(lock.owner, nowMs)})`
    case 'failed':
      return `${host} cannot be locked: ${lock.reason}`
    case 'held':
      return lock.isReal ? undefined : `${host} has no flock: another Muster could change it at the same time`
  }
}
