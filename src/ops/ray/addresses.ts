/** IPv4 addresses: what a node announces, which are public, and whether two hosts share a network. Pure. */
import { BlockList } from 'node:net'
import { knownValue } from '../kernel/fact.ts'
import type { FactsOfHosts } from './facts.ts'
import type { RayNode } from './wanted.ts'

/** The address that the node announces to the others; undefined: unknown. */
export function ipOf({ ip, host }: RayNode, facts: FactsOfHosts): string | undefined {
  return ip ?? knownValue(facts.get(host)?.facts.addresses)?.ssh
}

/** Private, shared by carriers (and VPNs), this host, link-local: RFC 1918, 6598, 1122, 3927. */
const INNER = '10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16'

const inner = new BlockList()
for (const [, network = '', prefix] of INNER.matchAll(/(\S+)\/(\d+)/g)) inner.addSubnet(network, Number(prefix))

/** An address that can be reached, and is known, across the Internet. */
export const isPublic = (ip: string): boolean => !inner.check(ip)

/** The networks of two hosts where none is common to both. */
export function apartFrom(
  facts: FactsOfHosts,
  host: string,
  other: string,
): { readonly here: readonly string[]; readonly there: readonly string[] } | undefined {
  const [here = [], there = []] = [host, other].map((name) => {
    const { networks = [] } = knownValue(facts.get(name)?.facts.addresses) ?? {}
    return networks.filter((network) => !network.startsWith('127.'))
  })
  const known = new Set(here.map(networkOf))
  if (here.length === 0 || there.length === 0 || there.some((network) => known.has(networkOf(network))))
    return undefined
  return { here, there }
}

/** `10.0.0.8/24` → the number of its network and the length of its prefix. */
function networkOf(address: string): string {
  const [ip = '', prefix = '32'] = address.split('/')
  const number = ip.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0)
  return `${Math.floor(number / 2 ** (32 - Number(prefix)))}/${prefix}`
}
