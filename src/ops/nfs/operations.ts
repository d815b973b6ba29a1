/** What the plans of server and clients share: names of operations, and facts that may be unknown. */
import { type KnownFacts, knownValue } from '../kernel/fact.ts'
import { operationId, type Verdict } from '../kernel/operation.ts'
import type { NfsFacts } from './facts.ts'

export type HostFactsOfNfs = KnownFacts<NfsFacts>

export const AREA = 'nfs'

export const exportsId = (server: string): string => operationId(AREA, 'exports', server)
export const serviceId = (server: string): string => operationId(AREA, 'server', server)
export const mountId = (host: string, point: string): string => operationId(AREA, `mount ${point}`, host)

const TITLES: Readonly<Record<string, string>> = {
  mounts: 'the mounts',
  fstab: '/etc/fstab',
  hasSystemd: 'whether systemd runs',
  ownExports: 'the exports of Muster',
  foreignExports: 'the other exports',
  active: 'the active exports',
  localPoints: 'the exported directories',
  service: 'the NFS server',
}

/** The values of these facts, or the verdict that one is unknown. */
export function allKnown<K extends keyof NfsFacts>(
  host: string,
  own: HostFactsOfNfs,
  names: readonly K[],
): { readonly [N in K]: NfsFacts[N] } | Extract<Verdict, { kind: 'blocked' }> {
  for (const name of names) {
    const fact = own[name]
    if (fact.kind === 'unknown') {
      const cause = `cannot determine ${TITLES[String(name)] ?? name.replace('unit', 'the unit of')}: ${fact.because}`
      return { kind: 'blocked', findings: [{ host, gravity: 'blocker', id: 'unknown', cause }] }
    }
  }
  return Object.fromEntries(names.map((name) => [name, knownValue(own[name])])) as { readonly [N in K]: NfsFacts[N] }
}
