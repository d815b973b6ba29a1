/** The network between the hosts of a gang: the card of each host in it, and its address there. IPv4 only, as MPI's options are. */
import { shellQuote } from '../../base/shell-quote.ts'
import type { LaunchedGang, LaunchOption, LaunchSpec } from './launcher.ts'

export const NETWORK_OPTIONS: readonly LaunchOption[] = [
  {
    flags: 'network <cidr>',
    summary: 'use this network between the hosts: 10.0.0.0/24 (default: that of their addresses)',
    values: /^((25[0-5]|2[0-4]\d|1?\d?\d)(\.(?!\/)|(?=\/))){4}\/(3[0-2]|[12]?\d)$/,
  },
  {
    flags: 'interface <name>',
    summary: 'use the network of this network card, which has the same name on all hosts',
    values: /^[\w.:-]{1,15}$/,
  },
]

/** Facts `card` and `inet` (10.81.0.1/16), of the network that was asked for or of the host's address. */
export function askInet({ network, interface: card }: LaunchSpec['options'], address: string): string {
  const chosen = network ?? card
  const which =
    card !== undefined && network === undefined ? `dev ${shellQuote(card)}` : `to ${shellQuote(network ?? address)}`
  const missing =
    network === undefined
      ? `the network card ${card} does not exist, is down or has no IPv4 address`
      : `no network card that is up has an address in ${network}`
  return [
    ...(chosen === undefined ? [] : ["command -v ip >/dev/null || refuse 'ip is not in PATH (iproute2)'"]),
    `c=$(ip -o -4 addr show up ${which} 2>/dev/null | head -n 1)`,
    `if [ -n "$c" ]; then set -- $c; tell card "\${2%%@*}"; tell inet "$4"${chosen === undefined ? '' : `; else refuse ${shellQuote(missing)}`}; fi`,
  ].join('\n')
}

type Network = { readonly base: number; readonly length: number }

/** Undefined: not an address with the length of its network. */
function parseNetwork(text: string | undefined): (Network & { readonly address: string }) | undefined {
  const [, address = '', length = ''] = /^((?:\d{1,3}\.){3}\d{1,3})\/(\d{1,2})$/.exec(text ?? '') ?? []
  const bytes = address.split('.').map(Number)
  if (address === '' || Number(length) > 32 || bytes.some((byte) => byte > 255)) return undefined
  return { address, base: baseOf(address, Number(length)), length: Number(length) }
}

function baseOf(address: string, length: number): number {
  const value = address.split('.').reduce((sum, byte) => sum * 256 + Number(byte), 0)
  const size = 2 ** (32 - length)
  return Math.floor(value / size) * size
}

const textOf = ({ base, length }: Network): string =>
  `${[24, 16, 8, 0].map((shift) => Math.floor(base / 2 ** shift) % 256).join('.')}/${length}`

export type InnerGang = { readonly gang: LaunchedGang; readonly network?: string }

/**
 * The gang with the addresses of the network that was asked for, which each host told of itself, once all have; and the network if
 * all of them are in the same one. A reason: they are not in the one that was asked for.
 */
export function innerGang(gang: LaunchedGang): InnerGang | string {
  const { network: asked, interface: card } = gang.spec.options
  const own = gang.bundles.map(({ said }) => parseNetwork(said.inet))
  const networks = new Set(own.map((one) => (one === undefined ? '' : textOf(one))))
  if (asked === undefined && card === undefined) {
    const [network = ''] = networks
    return networks.size === 1 && network !== '' ? { gang, network } : { gang }
  }
  if (gang.bundles.some(({ said }) => said.inet === undefined)) return { gang }
  const within = parseNetwork(asked)
  const outside = gang.bundles.find((_, index) => {
    const one = own[index]
    return one === undefined || (within !== undefined && baseOf(one.address, within.length) !== within.base)
  })
  if (outside !== undefined) return `${outside.host} told no address in ${asked ?? `the network of ${card}`}`
  if (within === undefined && networks.size > 1) {
    const words = gang.bundles.map(({ host }, index) => `${own[index] ? textOf(own[index]) : ''} on ${host}`)
    return `${card} is in different networks: ${words.join(', ')}`
  }
  for (const [index, { host }] of gang.bundles.entries()) {
    const address = own[index]?.address
    const other = gang.bundles.find(
      (each, at) => each.host !== host && (each.address === address || own[at]?.address === address),
    )
    if (other !== undefined) return `${host} gives ${address} as its address, which is also that of ${other.host}`
  }
  const bundles = gang.bundles.map((bundle, index) => ({ ...bundle, address: own[index]?.address ?? bundle.address }))
  const network = within === undefined ? [...networks][0] : textOf(within)
  return { gang: { ...gang, bundles }, ...(network === undefined ? {} : { network }) }
}
