/** A command on many hosts: the state of each host, groups of equal output, the selection. Pure. */
import { nearest } from '../../base/collections.ts'
import { FixedMap } from '../../base/fixed-map.ts'
import { type FoldedGroup, foldHosts, isSuccess, type RunOutcome } from '../../ops/run/outcome.ts'
import type { RunEvent } from '../../ops/run/run-hosts.ts'

export type RunHost =
  /** The command has not started yet. */
  | { readonly kind: 'waiting' }
  | { readonly kind: 'running'; readonly sinceMs: number }
  | { readonly kind: 'ended'; readonly outcome: RunOutcome; readonly durationMs: number }

const WAITING: RunHost = { kind: 'waiting' }

export type RunGroup = {
  readonly hosts: readonly string[]
  readonly state: RunHost
  /** Of the output so far. */
  readonly digest: string
}

export type RunView = {
  readonly kind: 'run'
  /** A job of Ray keeps running after the console is closed. */
  readonly by: 'hosts' | 'ray'
  /** As typed, before `%h` becomes a name. */
  readonly command: string
  readonly hosts: FixedMap<string, RunHost>
  readonly groups: readonly RunGroup[]
  readonly isStopping: boolean
  /** The group of this host is selected. */
  readonly selected?: string | undefined
  /** Only the group of this host is shown, with its whole output. */
  readonly opened?: string | undefined
  /** The other groups show their differences from the largest one. */
  readonly isDiff: boolean
  readonly needle: string
  /** The last match of the needle. */
  readonly hit?: { readonly host: string; readonly line: number } | undefined
  /** It is the `at`th of so many; undefined: not counted, or output has come since. */
  readonly matches?: { readonly at: number; readonly of: number } | undefined
}

export function startRun(command: string, hosts: readonly string[], by: RunView['by'] = 'hosts'): RunView {
  const waiting = FixedMap.of(hosts.map((host) => [host, WAITING]))
  return { kind: 'run', by, command, hosts: waiting, groups: [], isStopping: false, isDiff: false, needle: '' }
}

/** Starts again on these hosts; the results of the others stay. */
export function restartRun(view: RunView, hosts: readonly string[]): RunView {
  const again = hosts.reduce((known, host) => known.with(host, WAITING), view.hosts)
  return { ...view, hosts: again, isStopping: false, hit: undefined, matches: undefined }
}

/** Output is kept elsewhere. */
export function reduceRun(view: RunView, event: RunEvent, nowMs: number): RunView {
  if (!view.hosts.has(event.host)) return view
  if (event.type === 'begin') return setHost(view, event.host, { kind: 'running', sinceMs: nowMs })
  if (event.type !== 'end') return view
  const { outcome, durationMs } = event
  return setHost(view, event.host, { kind: 'ended', outcome, durationMs })
}

const setHost = (view: RunView, host: string, state: RunHost): RunView => ({
  ...view,
  hosts: view.hosts.with(host, state),
})

/** Failures first, then running, waiting and successful hosts; within each the largest group first. */
export function foldRun(view: RunView, digestOf: (host: string) => string): RunView {
  const fold = (isActive: (state: RunHost) => boolean): RunGroup[] =>
    foldHosts(
      [...view.hosts].flatMap(([host, state]) =>
        isActive(state)
          ? [{ host, outcome: state.kind === 'ended' ? state.outcome : NO_OUTCOME, digest: digestOf(host) }]
          : [],
      ),
    ).map((group) => toGroup(view, group, digestOf))
  return {
    ...view,
    groups: [
      ...fold((state) => state.kind === 'ended' && !isOk(state)),
      ...fold((state) => state.kind === 'running'),
      ...fold((state) => state.kind === 'waiting'),
      ...fold(isOk),
    ],
  }
}

/** For hosts that have not ended: they are folded separately. */
const NO_OUTCOME: RunOutcome = { kind: 'cancelled' }

/** With the longest time of its hosts. */
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

export const isOk = (state: RunHost): boolean => state.kind === 'ended' && isSuccess(state.outcome)

export const isRunning = (view: RunView): boolean => [...view.hosts.values()].some(({ kind }) => kind !== 'ended')

export const failedHosts = (view: RunView): string[] =>
  [...view.hosts].flatMap(([host, state]) => (state.kind === 'ended' && !isOk(state) ? [host] : []))

export const groupOf = (view: RunView, host: string | undefined): RunGroup | undefined =>
  host === undefined ? undefined : view.groups.find(({ hosts }) => hosts.includes(host))

export const selectedGroup = (view: RunView): RunGroup | undefined => groupOf(view, view.selected) ?? view.groups[0]

/** The others are compared with it: the largest group that has ended; of equal ones one that succeeded. */
export function majority(view: RunView): RunGroup | undefined {
  const weight = ({ hosts, state }: RunGroup): number => hosts.length * 2 + (isOk(state) ? 1 : 0)
  const ended = view.groups.filter(({ state }) => state.kind === 'ended')
  return ended.sort((a, b) => weight(b) - weight(a))[0]
}

/** Groups down from the selected one, at most to the last. */
export function selectGroup(view: RunView, by: number): RunView {
  const selected = selectedGroup(view)
  const at = selected === undefined ? 0 : view.groups.indexOf(selected)
  const next = nearest(view.groups, at + by)
  return { ...view, selected: next?.hosts[0] }
}
