/** Hosts with equal ends and equal output as groups. Pure but for reading the output. */
import type { RunOutcome } from './outcome.ts'
import { formatOutcome } from './outcome.ts'

export type FoldedHost = { readonly host: string; readonly outcome: RunOutcome; readonly digest: string }

export type FoldedGroup = { readonly hosts: readonly string[]; readonly outcome: RunOutcome }

/** The largest group first; among equals the order of the hosts. */
export function foldHosts(hosts: Iterable<FoldedHost>): readonly FoldedGroup[] {
  const groups = new Map<string, { hosts: string[]; outcome: RunOutcome }>()
  for (const { host, outcome, digest } of hosts) {
    const key = `${formatOutcome(outcome)}\n${digest}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, { hosts: [host], outcome })
    else group.hosts.push(host)
  }
  return [...groups.values()].sort((a, b) => b.hosts.length - a.hosts.length)
}
