/** The events of `muster net mesh --json` (docs/schema/net.schema.json). What is not known is left out. */
import type { NetFinding } from '../../ops/net/mesh/failures.ts'
import type { LinkResult } from '../../ops/net/mesh/link.ts'
import type { MeshHost, MeshReport } from '../../ops/net/mesh/measure-mesh.ts'
import type { PingResult } from '../../ops/net/mesh/ping.ts'

export function hostEvent(host: MeshHost): object {
  const { name } = host
  if (!('facts' in host)) {
    const outcome = host.cause === 'no-address' ? 'no-address' : host.isRefused === true ? 'refused' : 'unreachable'
    return { type: 'host', host: name, outcome, reason: host.reason }
  }
  const { place, facts } = host
  const { address, card } = place
  return {
    type: 'host',
    host: name,
    outcome: 'ok',
    address,
    interface: card?.name,
    mtuBytes: card?.mtuBytes,
    linkBitsPerSecond: card?.linkBitsPerSecond,
    iperf3: facts.iperf3,
    iperf2: facts.iperf2,
  }
}

export function pingEvent(ping: PingResult): object {
  return { type: 'ping', ...ping }
}

export function portEvent(host: string, port: number): object {
  return { type: 'port-taken', host, port }
}

export function linkEvent({ from, to, outcome }: LinkResult): object {
  const { kind, ...rest } = outcome
  if (outcome.kind === 'measured') return { type: 'link', from, to, outcome: kind, ...rest }
  return { type: 'link', from, to, outcome: outcome.cause, reason: outcome.reason }
}

export function findingEvent(finding: NetFinding): object {
  return { type: 'finding', ...finding }
}

export function summaryEvent(
  { hosts, links }: MeshReport,
  counts: {
    readonly measured: number
    readonly failed: number
    readonly cancelled: number
    readonly medianBitsPerSecond: number | undefined
  },
): object {
  return {
    type: 'summary',
    hosts: hosts.length,
    unreachable: hosts.filter((host) => 'cause' in host && host.cause === 'away').length,
    links: links.length,
    ...counts,
  }
}
