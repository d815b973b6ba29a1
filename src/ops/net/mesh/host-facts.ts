/** What is read from a host before a measurement (addresses, cards, programs), and the choice of its address. */

import { BlockList, isIP } from 'node:net'
import { defined } from '../../../base/defined.ts'

export type NetworkCard = {
  readonly name: string
  readonly mtuBytes?: number
  /** The negotiated speed; virtual cards have none. */
  readonly linkBitsPerSecond?: number
  readonly isHalfDuplex?: boolean
}

export type HostAddress = { readonly card: string; readonly address: string; readonly prefixBits: number }

export type MeshFacts = {
  /** The host's own address that this login came to; undefined: no login over SSH. */
  readonly loginAddress?: string
  readonly addresses: readonly HostAddress[]
  readonly cards: readonly NetworkCard[]
  /** First words of `--version`: `3.12`. */
  readonly iperf3?: string
  readonly iperf2?: string
  readonly hasPing: boolean
  readonly hasTimeout: boolean
}

export const MESH_FACTS = `export LC_ALL=C PATH="$PATH:/usr/local/bin:/usr/sbin:/sbin:/usr/local/sbin"
set -- \${SSH_CONNECTION:-}
echo "login \${3:-}"
echo "iperf3 $(iperf3 --version 2>/dev/null | head -n 1)"
echo "iperf2 $(iperf --version 2>&1 | head -n 1)"
for p in ping timeout; do command -v $p >/dev/null 2>&1 && echo "has $p"; done
for d in /sys/class/net/*; do
  [ -e "$d/mtu" ] || continue
  echo "card \${d##*/} $(cat "$d/mtu" 2>/dev/null || echo -) $(cat "$d/speed" 2>/dev/null || echo -) $(cat "$d/duplex" 2>/dev/null || echo -)"
done
if command -v ip >/dev/null 2>&1; then
  ip addr show 2>/dev/null | sed -n 's/^[0-9]*: \\([^:@ ]*\\).*/if \\1/p; s/^ *inet6* \\([^ ]*\\).*scope \\([a-z]*\\).*/addr \\1 \\2/p'
else
  ifconfig -a 2>/dev/null | sed -n 's/^\\([^ :]*\\).*flags.*/if \\1/p; s/^\\([^ :]*\\) *Link encap.*/if \\1/p; s/^[[:space:]]*inet \\(addr:\\)\\{0,1\\}\\([0-9.]*\\).*/addr \\2 -/p'
fi
:`

export function parseMeshFacts(text: string): MeshFacts {
  const cards: NetworkCard[] = []
  const addresses: HostAddress[] = []
  const programs = new Set<string>()
  let loginAddress: string | undefined
  let iperf3: string | undefined
  let iperf2: string | undefined
  let card = ''
  for (const line of text.split('\n')) {
    const [key, first = '', second = '', third = '', fourth = ''] = line.trim().split(/\s+/)
    if (key === 'login' && isAddress(first)) loginAddress = first.replace(/^::ffff:/, '')
    // `iperf 3.12 (cJSON 1.7.15)`, `iperf version 2.1.8 (12 August 2022) pthreads`
    if (key === 'iperf3' && /^3\./.test(second)) iperf3 = second
    if (key === 'iperf2' && second === 'version' && /^2\./.test(third)) iperf2 = third
    if (key === 'has') programs.add(first)
    if (key === 'card') cards.push(cardOf(first, second, third, fourth))
    if (key === 'if') card = first
    if (key === 'addr') {
      const [address = '', bits] = first.split('/')
      const isUsable = second !== 'link' && isAddress(address)
      if (isUsable) addresses.push({ card, address, prefixBits: Number(bits ?? (address.includes(':') ? 128 : 32)) })
    }
  }
  const has = { hasPing: programs.has('ping'), hasTimeout: programs.has('timeout') }
  return { addresses, cards, ...has, ...defined({ loginAddress, iperf3, iperf2 }) }
}

function cardOf(name: string, mtu: string, speed: string, duplex: string): NetworkCard {
  const megabits = Number(speed)
  return {
    name,
    ...(Number(mtu) > 0 ? { mtuBytes: Number(mtu) } : {}),
    // A card without a link says -1, or 65535 and more in old kernels.
    ...(megabits > 0 && megabits !== 65_535 && megabits < 2 ** 31 ? { linkBitsPerSecond: megabits * 1e6 } : {}),
    ...(duplex === 'half' ? { isHalfDuplex: true } : {}),
  }
}

/** Only IP addresses: no names, and nothing that a shell or program could misread. */
function isAddress(text: string): boolean {
  return /^\d{1,3}(\.\d{1,3}){3}$/.test(text) || (/^[\da-f:.]+$/i.test(text) && text.includes(':'))
}

export type AddressWish = {
  /** A card's name, as `eth1`. */
  readonly interface?: string
  /** `10.0.0.0/24` */
  readonly network?: string
  /** All hosts are this machine. */
  readonly isThisMachineOnly: boolean
}

export type ChosenAddress = { readonly address: string; readonly card?: NetworkCard }

/** The address that the login used, unless another is requested; or why there is none. */
export function chooseAddress(facts: MeshFacts, wish: AddressWish): ChosenAddress | { readonly reason: string } {
  const { loginAddress, addresses, cards } = facts
  const placeOf = (address: string): ChosenAddress => {
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
