/** A command on many hosts as the console shows it: who is where with it, groups of equal output, what is selected. Pure. */
import { type FoldedGroup, foldHosts } from '../../ops/run/fold.ts'
import { isSuccess, type RunOutcome } from '../../ops/run/outcome.ts'
import type { RunEvent } from '../../ops/run/run-hosts.ts'

export type RunHost =
  /** Its turn has not come, or the command has not begun yet. */
  | { readonly kind: 'waiting' }
  | { readonly kind: 'running'; readonly sinceMs: number }
  | { readonly kind: 'ended'; readonly outcome: RunOutcome; readonly durationMs: number }

export type RunGroup = {
  readonly hosts: readonly string[]
  readonly state: RunHost
  /** What all of them printed so far. */
  readonly digest: string
}

export type RunView = {
  readonly kind: 'run'
  /** What runs it; a job of Ray goes on when nobody looks. */
  readonly by: 'hosts' | 'ray'
  /** As it was typed, before `%h` became a name. */
  readonly command: string
  readonly hosts: ReadonlyMap<string, RunHost>
  readonly groups: readonly RunGroup[]
  readonly isStopping: boolean
  /** The group of this host is selected. */
  readonly selected: string | undefined
  /** The group of this host is shown whole, and alone. */
  readonly opened: string | undefined
  /** Every group but the largest shows what differs from that. */
  readonly isDiff: boolean
  readonly needle: string
  /** Where the needle was found last. */
  readonly hit: { readonly host: string; readonly line: number } | undefined
}

export function startRun(command: string, hosts: readonly string[], by: RunView['by'] = 'hosts'): RunView {
  return {
    kind: 'run',
    by,
    command,
    hosts: new Map(hosts.map((host) => [host, { kind: 'waiting' }])),
    groups: [],
    isStopping: false,
    selected: undefined,
    opened: undefined,
    isDiff: false,
    needle: '',
    hit: undefined,
  }
}

/** The command begins anew on these hosts; the ends of the others stay. */
export function restartRun(view: RunView, hosts: readonly string[]): RunView {
  const again = new Map(view.hosts)
  for (const host of hosts) again.set(host, { kind: 'waiting' })
  return { ...view, hosts: again, isStopping: false, hit: undefined }
}

/** What a run tells, but for output, which is kept elsewhere. */
export function reduceRun(view: RunView, event: RunEvent, nowMs: number): RunView {
  if (!view.hosts.has(event.host)) return view
  if (event.type === 'begin') return setHost(view, event.host, { kind: 'running', sinceMs: nowMs })
  if (event.type !== 'end') return view
  const { outcome, durationMs } = event
  return setHost(view, event.host, { kind: 'ended', outcome, durationMs })
}

const setHost = (view: RunView, host: string, state: RunHost): RunView => ({
  ...view,
  hosts: new Map(view.hosts).set(host, state),
})

/** Failures first, then who is still at it, then all that is well; in each the largest group first. */
export function foldRun(view: RunView, digestOf: (host: string) => string): RunView {
  const fold = (isMeant: (state: RunHost) => boolean): RunGroup[] =>
    foldHosts(
      [...view.hosts].flatMap(([host, state]) =>
        isMeant(state)
          ? [{ host, outcome: state.kind === 'ended' ? state.outcome : NO_OUTCOME, digest: digestOf(host) }]
          : [],
      ),
    ).map((group) => toGroup(view, group, digestOf))
  return {
    ...view,
    groups: [
      ...fold((state) => state.kind === 'ended' && !isWell(state)),
      ...fold((state) => state.kind === 'running'),
      ...fold((state) => state.kind === 'waiting'),
      ...fold(isWell),
    ],
  }
}

/** Stands for the end of a host that has none yet: such hosts are folded by themselves. */
const NO_OUTCOME: RunOutcome = { kind: 'cancelled' }

/** Of times that differ the longest. */
function toGroup(view: RunView, { hosts }: FoldedGroup, digestOf: (host: string) => string): RunGroup {
  const states = hosts.flatMap((host) => view.hosts.get(host) ?? [])
  const [first = { kind: 'waiting' as const }] = states
  const state = states.reduce((longest, next) => (isLonger(next, longest) ? next : longest), first)
  return { hosts, state, digest: digestOf(hosts[0] ?? '') }
}

function isLonger(a: RunHost, b: RunHost): boolean {
  if (a.kind === 'running' && b.kind === 'running') return a.sinceMs < b.sinceMs
  return a.kind === 'ended' && b.kind === 'ended' && a.durationMs > b.durationMs
}

export const isWell = (state: RunHost): boolean => state.kind === 'ended' && isSuccess(state.outcome)

export const isRunning = (view: RunView): boolean => [...view.hosts.values()].some(({ kind }) => kind !== 'ended')

export const failedHosts = (view: RunView): string[] =>
  [...view.hosts].flatMap(([host, state]) => (state.kind === 'ended' && !isWell(state) ? [host] : []))

export const groupOf = (view: RunView, host: string | undefined): RunGroup | undefined =>
  host === undefined ? undefined : view.groups.find(({ hosts }) => hosts.includes(host))

export const selectedGroup = (view: RunView): RunGroup | undefined => groupOf(view, view.selected) ?? view.groups[0]

/** What the others are compared with: the largest group that has come to an end, of equal ones one that succeeded. */
export function majority(view: RunView): RunGroup | undefined {
  const weight = ({ hosts, state }: RunGroup): number => hosts.length * 2 + (isWell(state) ? 1 : 0)
  const ended = view.groups.filter(({ state }) => state.kind === 'ended')
  return ended.sort((a, b) => weight(b) - weight(a))[0]
}

/** Stays at the ends. */
export function selectGroup(view: RunView, by: number): RunView {
  const selected = selectedGroup(view)
  const at = selected === undefined ? 0 : view.groups.indexOf(selected)
  const next = view.groups[Math.max(0, Math.min(view.groups.length - 1, at + by))]
  return { ...view, selected: next?.hosts[0] }
}
