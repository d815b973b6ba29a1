/** The outcome of a command on a host, and the summary of a run. Pure. */

import { getOrMake } from '../../base/collections.ts'
import { counted } from '../../base/counted.ts'

export type RunOutcome =
  | { readonly kind: 'exit'; readonly code: number }
  /** `SIGKILL` */
  | { readonly kind: 'signal'; readonly signal: string }
  /** It exceeded its time limit and was stopped. */
  | { readonly kind: 'timeout' }
  /** The user stopped the run, before or while it ran. */
  | { readonly kind: 'cancelled' }
  /** No connection, or it was lost; the reason is one printable line. */
  | { readonly kind: 'unreachable' | 'refused'; readonly reason: string }

export type RunSummary = {
  readonly hosts: number
  readonly exit0: number
  /** Another exit code, or a signal. */
  readonly failed: number
  readonly timeout: number
  readonly cancelled: number
  readonly unreachable: number
  readonly refused: number
}

/** A command that exits while it is being stopped counts as stopped, unless its host was lost. */
export function outcomeOf(
  end: Exclude<RunOutcome, { kind: 'timeout' }>,
  cause: 'timeout' | 'cancelled' | undefined,
): RunOutcome {
  if (end.kind === 'unreachable' || end.kind === 'refused') return end
  return cause === undefined ? end : { kind: cause }
}

export function isSuccess(outcome: RunOutcome): boolean {
  return outcome.kind === 'exit' && outcome.code === 0
}

export function summarize(outcomes: Iterable<RunOutcome>): RunSummary {
  const summary = { hosts: 0, exit0: 0, failed: 0, timeout: 0, cancelled: 0, unreachable: 0, refused: 0 }
  for (const outcome of outcomes) {
    summary.hosts += 1
    if (isSuccess(outcome)) summary.exit0 += 1
    else if (outcome.kind === 'exit' || outcome.kind === 'signal') summary.failed += 1
    else summary[outcome.kind] += 1
  }
  return summary
}

/** `50 hosts: 47 ok, 1 failed, 2 unreachable`. */
export function formatSummary({ hosts, exit0, failed, timeout, cancelled, unreachable, refused }: RunSummary): string {
  const parts: readonly (readonly [number, string])[] = [
    [exit0, 'ok'],
    [failed, 'failed'],
    [timeout, 'timed out'],
    [cancelled, 'cancelled'],
    [unreachable, 'unreachable'],
    [refused, 'refused'],
  ]
  const words = parts.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`)
  return `${counted(hosts, 'host')}: ${words.join(', ') || 'nothing was run'}`
}

/** `exit 1`, `SIGKILL`, `timed out`, `unreachable: connection refused`. */
export function formatOutcome(outcome: RunOutcome): string {
  switch (outcome.kind) {
    case 'exit':
      return `exit ${outcome.code}`
    case 'signal':
      return outcome.signal
    case 'timeout':
      return 'timed out'
    case 'cancelled':
      return 'cancelled'
    case 'unreachable':
    case 'refused':
      return `${outcome.kind}: ${outcome.reason}`
  }
}

export type FoldedHost = { readonly host: string; readonly outcome: RunOutcome; readonly digest: string }

export type FoldedGroup = { readonly hosts: readonly string[]; readonly outcome: RunOutcome }

/** The largest group first; among equals the order of the hosts. */
export function foldHosts(hosts: Iterable<FoldedHost>): readonly FoldedGroup[] {
  const groups = new Map<string, { hosts: string[]; outcome: RunOutcome }>()
  for (const { host, outcome, digest } of hosts) {
    const newGroup = () => ({ hosts: [], outcome })
    getOrMake(groups, `${formatOutcome(outcome)}\n${digest}`, newGroup).hosts.push(host)
  }
  return [...groups.values()].sort((a, b) => b.hosts.length - a.hosts.length)
}
