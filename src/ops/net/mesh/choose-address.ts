/** At which of its addresses a host is measured. Pure. */
import { BlockList, isIP } from 'node:net'
import type { HostAddress, MeshFacts, NetworkCard } from './host-facts.ts'

export type AddressWish = {
  /** A card's name, as `eth1`. */
  readonly interface?: string
  /** `10.0.0.0/24` */
  readonly network?: string
  /** All hosts are this machine. */
  readonly isThisMachineOnly: boolean
}

export type Place = { readonly address: string; readonly card?: NetworkCard }

/** The address that the login came to, unless another is wished for; or why there is none, in words. */
export function chooseAddress(facts: MeshFacts, wish: AddressWish): Place | { readonly reason: string } {
  const { loginAddress, addresses, cards } = facts
  const placeOf = (address: string): Place => {
    const name = addresses.find((each) => each.address === address)?.card
    const card = cards.find((each) => each.name === name)
    return { address, ...(card === undefined ? {} : { card }) }
  }
  if (wish.interface !== undefined) {
    const there = addresses.filter(({ card }) => card === wish.interface)
    const best = there.find(({ address }) => isIP(address) === 4) ?? there[0]
    return best === undefined ? { reason: `it has no address on ${wish.interface}` } : placeOf(best.address)
  }
  if (wish.network !== undefined) {
    const inside = addresses.find(isIn(wish.network))
    return inside === undefined ? { reason: `it has no address in ${wish.network}` } : placeOf(inside.address)
  }
  if (wish.isThisMachineOnly) return placeOf('127.0.0.1')
  if (loginAddress !== undefined) return placeOf(loginAddress)
  const own = addresses.find(({ address }) => isIP(address) === 4 && !address.startsWith('127.'))
  return own === undefined ? { reason: 'it has only loopback addresses' } : placeOf(own.address)
}

/** Undefined: it is no network. */
export function parseNetwork(text: string): string | undefined {
  const [address = '', bits = ''] = text.split('/')
  const family = isIP(address)
  return family !== 0 && /^\d+$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128) ? text : undefined
}

function isIn(network: string): (address: HostAddress) => boolean {
  const [base = '', bits = ''] = network.split('/')
  const family = isIP(base) === 4 ? 'ipv4' : 'ipv6'
  const list = new BlockList()
  list.addSubnet(base, Number(bits), family)
  return ({ address }) => list.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6')
}
