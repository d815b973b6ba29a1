/** Nodes that are not on one network, as far as their addresses tell it: what would not work, and what would. Pure. */
import { foldHostSet } from '../../inventory/host-set.ts'
import { knownValue } from '../kernel/fact.ts'
import type { Finding } from '../kernel/finding.ts'
import { apartFrom, ipOf, isPublic } from './addresses.ts'
import type { FactsOfHosts } from './facts.ts'
import { nodesOf, type RayNode, type RayWanted } from './wanted.ts'

export const WHAT_JOINS_NETWORKS = 'a bridge into their network, a public address for all, or a tunnel (a VPN)'

export function findingsOfNetworks(wanted: RayWanted, node: RayNode, facts: FactsOfHosts): Finding[] {
  return [...publicAmongPrivate(wanted, node, facts), ...untriedWays(wanted, node, facts)]
}

/** Every node connects to every other: from outside nobody gets at a private address. */
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
  const cause = `its node would announce ${ip}, a public address, and ${others} private ones (${example}), which nobody reaches from outside`
  const hint = `Nodes connect to each other in both directions. ${node.host} needs an address that the others share: ${WHAT_JOINS_NETWORKS}; ray.node_ips in hosts.yaml says which one it announces. Whoever reaches the ports of Ray at a public address may run programs there.`
  return [{ host: node.host, gravity: 'risk', id: 'public-ip', cause, hint }]
}

/** What was tried is told by what came of it. */
function untriedWays(wanted: RayWanted, { host }: RayNode, facts: FactsOfHosts): Finding[] {
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
  const cause = `it has no network in common with ${others} (${networks}), and no way to there was tried: ${why}`
  const hint = `A router between them is enough where both directions are open; otherwise it takes ${WHAT_JOINS_NETWORKS}.`
  return [{ host, gravity: 'risk', id: 'untried-way', cause, hint }]
}
