/** Between which nodes no connection would come about, and why: a name, a route, a firewall that drops or that says no. Pure. */
import { knownValue } from '../kernel/fact.ts'
import type { Finding } from '../kernel/finding.ts'
import { apartFrom } from './addresses.ts'
import type { FactsOfHosts, Hindrance } from './facts.ts'
import { WHAT_JOINS_NETWORKS } from './findings-of-networks.ts'
import { takenBy } from './listeners.ts'
import { nodesOf, portsOf, type RayNode, type RayWanted } from './wanted.ts'

export function findingsOfWays(wanted: RayWanted, { host }: RayNode, facts: FactsOfHosts): Finding[] {
  const own = facts.get(host)?.facts
  const unreached = own === undefined ? undefined : knownValue(own.unreached)
  return nodesOf(wanted).flatMap((other): Finding[] => {
    const ports = [...(unreached?.get(other.host) ?? [])]
    // Where a host is away nothing comes back, and that is said of the host itself.
    const listeners = facts.get(other.host)?.facts.listeners
    if (listeners === undefined) return []
    const of = (how: Hindrance) => ports.flatMap(([port, hindrance]) => (hindrance === how ? [port] : []))
    if (of('unknown').length > 0) {
      const hint = 'An IP address in hosts.yaml, or in ray.node_ips, needs no name.'
      const cause = `does not know the name ${other.address} of ${other.host}`
      return [{ host, gravity: 'blocker', id: 'no-name', cause, hint }]
    }
    // A port at which nobody listens yet is refused by the host itself, and so within reach.
    const refused = of('refused').filter(
      (port) => takenBy(knownValue(listeners) ?? [], port, other.ip ?? '0.0.0.0') !== undefined,
    )
    const isWithinReach = of('silent').length + of('noroute').length < portsOf(wanted, other).length
    const way = (closed: readonly number[], why: string, hint: string): Finding[] => {
      if (closed.length === 0) return []
      const places = `${other.address}, port${closed.length > 1 ? 's' : ''} ${closed.join(', ')}`
      const cause = `no connection to ${other.host} comes about: ${places}: ${why}`
      const gravity = other.isHead && closed.includes(wanted.port) ? 'blocker' : 'risk'
      return [{ host, gravity, id: 'no-way', cause, hint }]
    }
    const open = `Let ${host} reach all ports of ${other.host} (those that ray.ports names, where it has to be few)`
    const declare = 'or declare the address at which it can (ray.node_ips)'
    const apart = apartWords(facts, host, other.host)
    return [
      ...(isWithinReach
        ? way(of('silent'), 'a firewall drops what is sent there', `${open}.`)
        : way(
            of('silent'),
            'nothing comes back',
            `A firewall that drops, another network${apart}, or an address that is translated on the way. ${open}, ${declare}; hosts that are apart need ${WHAT_JOINS_NETWORKS}.`,
          )),
      ...way(
        of('noroute'),
        'it is said on the way that it leads nowhere',
        `A route is missing, a firewall says no, or they are on different networks${apart}. ${open}, ${declare}; hosts that are apart need ${WHAT_JOINS_NETWORKS}.`,
      ),
      ...way(refused, 'it listens there, and a firewall says no', `${open}.`),
    ]
  })
}

/** ` (10.0.0.8/24 here, 192.168.1.9/24 there)`. */
function apartWords(facts: FactsOfHosts, host: string, other: string): string {
  const apart = apartFrom(facts, host, other)
  return apart === undefined ? '' : ` (${apart.here.join(', ')} here, ${apart.there.join(', ')} there)`
}
