/** What a port forward is, and its texts: `8265`, `9000:db:5432`, and those of ssh's -L, -R and -D. Pure. */
import { isIP } from 'node:net'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { isAddress, isPort } from '../../inventory/host-name.ts'

export type SocketAddress = { readonly address: string; readonly port: number }

/** `listen`: on this machine, or on the host (`remote`), where port 0 is the host's own choice. */
export type ForwardSpec =
  | {
      readonly kind: 'local'
      readonly listen: SocketAddress
      /** As the host sees it. */
      readonly to: SocketAddress
      /** Another port is no substitute if this one is in use. */
      readonly isExact: boolean
    }
  | {
      readonly kind: 'remote'
      readonly listen: SocketAddress
      /** As this machine sees it. */
      readonly to: SocketAddress
    }
  | { readonly kind: 'dynamic'; readonly listen: SocketAddress; readonly isExact: boolean }

const LOOPBACK = '127.0.0.1'
const EVERYWHERE = '0.0.0.0'

/** `8265`, `9000:8265`, `9000:db:5432` or `127.0.0.2:9000:db:5432`: another local port may be taken if that one is in use. */
export const parsePlainForward = (text: string): ForwardSpec => localForward(text, false)

/** As ssh's -L: `[BIND:]PORT:HOST:HOSTPORT`. */
export const parseLocalForward = (text: string): ForwardSpec => localForward(text, true)

/** As ssh's -R: `[BIND:]PORT:HOST:HOSTPORT`. */
export function parseRemoteForward(text: string): ForwardSpec {
  const wrong = problemWith('-R', text, '-R 9000:localhost:80')
  const [to, listen, rest] = ends(fieldsOf(text, wrong), wrong)
  if (to === undefined) throw wrong('the address on this machine is missing')
  if (rest.length > 1) throw wrong('it has too many parts')
  const [bind = 'localhost'] = rest
  const address = bind === '*' ? '' : bind
  if (address !== '' && !isAddress(address)) throw wrong(`“${printable(bind)}” is not an address`)
  return { kind: 'remote', listen: { address, port: portOf(listen, wrong, true) }, to }
}

/** As ssh's -D: `[BIND:]PORT`. */
export function parseDynamicForward(text: string): ForwardSpec {
  const wrong = problemWith('-D', text, '-D 1080')
  const fields = fieldsOf(text, wrong)
  if (fields.length > 2) throw wrong('it has too many parts')
  return { kind: 'dynamic', isExact: true, listen: localListen(fields.at(-2), fields.at(-1) ?? '', wrong) }
}

function localForward(text: string, isExact: boolean): ForwardSpec {
  const name = isExact ? '-L' : ''
  const wrong = problemWith(name, text, isExact ? '-L 9000:localhost:80' : '8265, 9000:80 or 9000:other:80')
  const fields = fieldsOf(text, wrong)
  if (!isExact && fields.length <= 2) {
    const [first = '', second = first] = fields
    return {
      kind: 'local',
      isExact,
      listen: localListen(undefined, first, wrong),
      to: { address: 'localhost', port: portOf(second, wrong) },
    }
  }
  const [to, listen, rest] = ends(fields, wrong)
  if (to === undefined) throw wrong('the address to connect to is missing')
  if (rest.length > 1) throw wrong('it has too many parts')
  return { kind: 'local', isExact, listen: localListen(rest[0], listen, wrong), to }
}

/** Where it leads to, the port before that, and what is before that. */
function ends(
  fields: readonly string[],
  wrong: Wrong,
): readonly [to: SocketAddress | undefined, listen: string, rest: readonly string[]] {
  if (fields.length < 3) return [undefined, '', []]
  const [listen = '', address = '', port = ''] = fields.slice(-3)
  if (!isAddress(address)) throw wrong(`“${printable(address)}” is not the name or address of a host`)
  return [{ address, port: portOf(port, wrong) }, listen, fields.slice(0, -3)]
}

/** A listener of this machine: no name is resolved, and nothing but loopback is taken unless it is asked for. */
function localListen(bind: string | undefined, port: string, wrong: Wrong): SocketAddress {
  const address =
    bind === undefined || bind === 'localhost' ? LOOPBACK : bind === '*' || bind === '' ? EVERYWHERE : bind
  if (isIP(address) === 0)
    throw wrong(`“${printable(bind ?? '')}” is not an IP address of this machine, localhost or *`)
  return { address, port: portOf(port, wrong) }
}

function portOf(text: string, wrong: Wrong, isOrZero = false): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (isPort(port) || (isOrZero && port === 0)) return port
  throw wrong(`“${printable(text)}” is not a port from 1 to 65535`)
}

/** Separated by colons, with IPv6 addresses in brackets. */
function fieldsOf(text: string, wrong: Wrong): readonly string[] {
  if (text.includes('/')) throw wrong('sockets with a path cannot be forwarded')
  const field = /(?:\[([^[\]]*)\]|([^:[\]]*))(:|$)/y
  const fields: string[] = []
  for (;;) {
    const match = field.exec(text)
    if (match === null) throw wrong('an IPv6 address needs brackets')
    fields.push(match[1] ?? match[2] ?? '')
    if (match[3] === '') return fields
  }
}

type Wrong = (problem: string) => MusterError

const problemWith =
  (option: string, text: string, example: string): Wrong =>
  (problem) =>
    new MusterError('usage', `cannot forward ${option === '' ? '' : `${option} `}${printable(text)}: ${problem}`, {
      hint: `Examples: ${example}`,
    })

/** `127.0.0.1:8265`, `[::1]:8265`, `*:8265`. */
export const formatSocketAddress = ({ address, port }: SocketAddress): string =>
  `${address === '' || address === EVERYWHERE ? '*' : address.includes(':') ? `[${address}]` : address}:${port}`

/** Whether only this machine reaches the address. */
export const isLoopback = (address: string): boolean => address.startsWith('127.') || address === '::1'

/** Whether it stands for all addresses of a machine. */
export const isEverywhere = (address: string): boolean => ['', EVERYWHERE, '::'].includes(address)

/** For a browser on this machine; `listen` as it is. */
export function urlOf({ address, port }: SocketAddress, path = '/'): string {
  const host = isEverywhere(address) ? LOOPBACK : address
  return `http://${formatSocketAddress({ address: host, port })}${path}`
}
