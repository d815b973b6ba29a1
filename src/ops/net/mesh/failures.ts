/** What was not measured, in words. Pure. */
import { foldHostSet } from '../../../inventory/host-set.ts'
import type { Gravity } from '../../kernel/finding.ts'
import type { MeshReport } from './measure-mesh.ts'

export type NetFinding = {
  readonly gravity: Gravity
  /** A stable word for scripts: `slow-host`, `slow-link`. */
  readonly id: string
  /** Whom it is about; of a link the sender first. */
  readonly hosts: readonly string[]
  /** Printable only when the reasons of failures in it are made so. */
  readonly text: string
}

/** One for each host that is away; else one for each reason and receiver. */
export function failures({ hosts, links }: MeshReport): readonly NetFinding[] {
  const failed = links.flatMap(({ from, to, outcome }) =>
    outcome.kind === 'failed' && outcome.cause !== 'cancelled' ? [{ from, to, ...outcome }] : [],
  )
  const aways = hosts.flatMap((host): NetFinding[] =>
    'facts' in host
      ? []
      : [
          {
            gravity: 'blocker',
            id: host.cause,
            hosts: [host.name],
            text: `${host.name} was not measured: ${host.reason}`,
          },
        ],
  )
  const known = new Set(aways.flatMap((finding) => finding.hosts))
  const lost = Map.groupBy(
    failed.filter(({ cause, from, to }) => cause === 'away' && !known.has(from) && !known.has(to)),
    ({ reason }) => reason,
  )
  const pairs = Map.groupBy(
    failed.filter(({ cause, from, to }) => cause !== 'away' && !known.has(from) && !known.has(to)),
    // Rates that are not known differ from sender to sender.
    ({ cause, to, from }) => (cause === 'unsteady' ? `${cause} ${to} ${from}` : `${cause} ${to}`),
  )
  return [
    ...aways,
    ...[...lost].map(
      ([reason, each]): NetFinding => ({
        gravity: 'blocker',
        id: 'lost',
        hosts: [...new Set(each.flatMap(({ from, to }) => [from, to]))].filter((name) => reason.startsWith(`${name}:`)),
        text: `lost while it was measured: ${reason} (${each.length} ${each.length === 1 ? 'link' : 'links'} not measured)`,
      }),
    ),
    ...[...pairs.values()].map((each): NetFinding => {
      const [first] = each
      const froms = each.map(({ from }) => from)
      const text = `${foldHostSet(froms)} → ${first?.to}: ${first?.reason}`
      const gravity = first?.cause === 'unsteady' ? 'risk' : 'blocker'
      return { gravity, id: first?.cause ?? 'broken', hosts: [...froms, first?.to ?? ''], text }
    }),
  ]
}
