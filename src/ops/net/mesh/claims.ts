/** Which addresses that hosts give as their own are not believed: a measurement sends data there, also to hosts that were not asked. Pure. */
import { BlockList, isIP, isIPv6, SocketAddress } from 'node:net'

export type AddressClaim = { readonly name: string; readonly address: string }

/** Loopback, multicast, broadcast and reserved: no single other host. */
const NO_HOST = new BlockList()
for (const [base, bits] of [
  ['0.0.0.0', 8],
  ['127.0.0.0', 8],
  ['224.0.0.0', 3],
] as const)
  NO_HOST.addSubnet(base, bits, 'ipv4')
NO_HOST.addSubnet('::', 127, 'ipv6')
NO_HOST.addSubnet('ff00::', 8, 'ipv6')

/** Undefined: it is no IP address. */
export function canonicalAddress(text: string): string | undefined {
  if (isIP(text) === 0) return undefined
  if (!isIPv6(text)) return text
  return new SocketAddress({ address: text, family: 'ipv6' }).address.replace(/^::ffff:(?=[\d.]+$)/, '')
}

/** `declared`: of each host of the inventory, where hosts.yaml or ssh_config says that it is (a name or an address). */
export function isDeclared({ name, address }: AddressClaim, declared: ReadonlyMap<string, string>): boolean {
  const canonical = canonicalAddress(address)
  return canonical !== undefined && canonicalAddress(declared.get(name) ?? '') === canonical
}

/** By host, why it is not measured at the address that it gives. */
export function refusedClaims(
  claims: readonly AddressClaim[],
  declared: ReadonlyMap<string, string>,
): ReadonlyMap<string, string> {
  const owners = Map.groupBy(declared.keys(), (name) => canonicalAddress(declared.get(name) ?? ''))
  const claimers = Map.groupBy(claims, ({ address }) => canonicalAddress(address))
  return new Map(
    claims.flatMap((claim): [string, string][] => {
      const { name, address } = claim
      // Also where several hosts are declared at one address: they are one machine, or have different ports of it.
      if (isDeclared(claim, declared)) return []
      const canonical = canonicalAddress(address)
      if (canonical === undefined || NO_HOST.check(canonical, isIPv6(canonical) ? 'ipv6' : 'ipv4'))
        return [[name, `it gives ${address} as its address, where other hosts cannot reach it`]]
      const [owner] = owners.get(canonical) ?? []
      if (owner !== undefined) return [[name, `it gives ${address} as its address, which is declared for ${owner}`]]
      const same = (claimers.get(canonical) ?? []).map((other) => other.name)
      const places = new Set(same.map((each) => canonicalAddress(declared.get(each) ?? '') ?? each))
      // Those that are declared at one address are one machine.
      if (places.size < 2) return []
      const words = `${same.slice(0, -1).join(', ')} and ${same.at(-1)}`
      return [[name, `${words} give the same address, ${address}. Set their addresses in hosts.yaml`]]
    }),
  )
}
