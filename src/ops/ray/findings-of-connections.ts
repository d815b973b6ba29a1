/** Nodes that cannot connect to each other, and why: networks, names, routes or firewalls. Pure. */
import { foldHostSet } from '../../inventory/host-set.ts'
import { knownValue } from '../kernel/fact.ts'
import type { Finding } from '../kernel/finding.ts'
import { apartFrom, ipOf, isPublic } from './addresses.ts'
import type { FactsOfHosts, Hindrance } from './facts.ts'
import { takenBy } from './processes.ts'
import { nodesOf, portsOf, type RayNode, type RayWanted } from './wanted.ts'

export const WHAT_JOINS_NETWORKS = 'a bridge into their network, a public address for all, or a tunnel (a VPN)'

export function findingsOfConnections(wanted: RayWanted, node: RayNode, facts: FactsOfHosts): Finding[] {
  return [
    ...publicAmongPrivate(wanted, node, facts),
    ...untriedConnections(wanted, node, facts),
    ...closedConnections(wanted, node, facts),
  ]
}

/** Every node connects to every other, and a private address cannot be reached from outside. */
function publicAmongPrivate(wanted: RayWanted, node: RayNode, facts: FactsOfHosts): Finding[] {
  const ip = ipOf(node, facts)
  if (ip === undefined || !isPublic(ip)) return []
  const inside = nodesOf(wanted).filter((other) => {
    const address = ipOf(other, facts)
    return address !== undefined && !address.startsWith('127.') && !isPublic(address)
  })
  const [first] = inside
  if (first === undefined) return []
  const others = foldHostSet(inside.map(({ host }) => host))
  const example = `${ipOf(first, facts)}${inside.length > 1 ? ', …' : ''}`
  const cause = `its node would announce the public address ${ip}, but ${others} private ones (${example}), which cannot be reached from outside`
  const hint = `Nodes connect to each other in both directions. ${node.host} needs an address that the others share: ${WHAT_JOINS_NETWORKS}; ray.node_ips in hosts.yaml says which one it announces. Anyone who can reach the ports of Ray at a public address can run programs there.`
  return [{ host: node.host, gravity: 'risk', id: 'public-ip', cause, hint }]
}

/** Findings from connections that were tried. */
function untriedConnections(wanted: RayWanted, { host }: RayNode, facts: FactsOfHosts): Finding[] {
  const unreached = facts.get(host)?.facts.unreached
  if (unreached === undefined || knownValue(unreached) !== undefined) return []
  const why = unreached.kind === 'unknown' ? unreached.because : ''
  const apart = nodesOf(wanted).flatMap((other) => {
    const networks = other.host === host ? undefined : apartFrom(facts, host, other.host)
    return networks === undefined ? [] : [{ other: other.host, ...networks }]
  })
  const [first] = apart
  if (first === undefined) return []
  const others = foldHostSet(apart.map(({ other }) => other))
  const networks = `${first.here.join(', ')} here, ${first.there.join(', ')} on ${first.other}`
  const cause = `it has no network in common with ${others} (${networks}), and no connection was tried: ${why}`
  const hint = `A router between them is enough if it passes both directions; otherwise they need ${WHAT_JOINS_NETWORKS}.`
  return [{ host, gravity: 'risk', id: 'untried-way', cause, hint }]
}

function closedConnections(wanted: RayWanted, { host }: RayNode, facts: FactsOfHosts): Finding[] {
  const unreached = knownValue(facts.get(host)?.facts.unreached)
  return nodesOf(wanted).flatMap((other): Finding[] => {
    const ports = [...(unreached?.get(other.host) ?? [])]
    // A host that is away has a finding of its own.
    const listeners = facts.get(other.host)?.facts.listeners
    if (listeners === undefined) return []
    const of = (how: Hindrance) => ports.flatMap(([port, hindrance]) => (hindrance === how ? [port] : []))
    if (of('unknown').length > 0) {
      const hint = 'Use an IP address in hosts.yaml or in ray.node_ips.'
      const cause = `cannot resolve ${other.address}, the name of ${other.host}`
      return [{ host, gravity: 'blocker', id: 'no-name', cause, hint }]
    }
    // A port on which nothing listens yet is refused by the host itself, and so within reach.
    const refused = of('refused').filter(
      (port) => takenBy(knownValue(listeners) ?? [], port, other.ip ?? '0.0.0.0') !== undefined,
    )
    const isWithinReach = of('silent').length + of('noroute').length < portsOf(wanted, other).length
    const closed = (blocked: readonly number[], why: string, hint: string): Finding[] => {
      if (blocked.length === 0) return []
      const places = `${other.address}, port${blocked.length > 1 ? 's' : ''} ${blocked.join(', ')}`
      const cause = `cannot connect to ${other.host}: ${places}: ${why}`
      const gravity = other.isHead && blocked.includes(wanted.port) ? 'blocker' : 'risk'
      return [{ host, gravity, id: 'no-way', cause, hint }]
    }
    const open = `Let ${host} reach all ports of ${other.host} (to open only a few, set ray.ports)`
    const remedy = `${open}, or set an address that it can reach in ray.node_ips; hosts on different networks need ${WHAT_JOINS_NETWORKS}.`
    const networks = apartFrom(facts, host, other.host)
    const apart = networks && ` (${networks.here.join(', ')} here, ${networks.there.join(', ')} there)`
    const silent = `A firewall may drop the packets, the hosts may be on different networks${apart ?? ''}, or the address is translated on the path. ${remedy}`
    const noroute = `A route is missing, a firewall rejects the packets, or the hosts are on different networks${apart ?? ''}. ${remedy}`
    return [
      ...(isWithinReach
        ? closed(of('silent'), 'a firewall drops the packets', `${open}.`)
        : closed(of('silent'), 'no answer', silent)),
      ...closed(of('noroute'), 'a router or firewall answers that it is unreachable', noroute),
      ...closed(refused, 'the port is open there, but a firewall rejects the connection', `${open}.`),
    ]
  })
}
