/** What a client of SOCKS 5 (RFC 1928) says, read strictly: CONNECT without authentication, and nothing else. Pure. */
import { isAddress } from '../../inventory/host-name.ts'
import type { SocketAddress } from './forward-spec.ts'

/** `more`: not all of it is here. `refused`: what to answer before hanging up. */
export type SocksRead<T> =
  | { readonly kind: 'more' }
  | { readonly kind: 'refused'; readonly answer: Uint8Array }
  | { readonly kind: 'read'; readonly value: T; readonly usedBytes: number }

const VERSION = 5
const CONNECT = 1
const WITHOUT_AUTHENTICATION = 0
/** Both messages together are shorter. */
export const MOST_SOCKS_BYTES = 2 + 255 + 4 + 256 + 2

const MORE = { kind: 'more' } as const

/** Codes of RFC 1928, section 6. */
export const SOCKS_REPLIES = {
  succeeded: 0,
  failed: 1,
  notAllowed: 2,
  hostUnreachable: 4,
  refused: 5,
  commandUnknown: 7,
  addressUnknown: 8,
} as const

export type SocksReply = keyof typeof SOCKS_REPLIES

/** The address that it names says nothing: the host does not tell. */
export const socksReply = (reply: SocksReply): Uint8Array =>
  Uint8Array.of(VERSION, SOCKS_REPLIES[reply], 0, 1, 0, 0, 0, 0, 0, 0)

export const METHOD_CHOSEN = Uint8Array.of(VERSION, WITHOUT_AUTHENTICATION)
const NO_METHOD = Uint8Array.of(VERSION, 0xff)

const refused = (answer: Uint8Array) => ({ kind: 'refused', answer }) as const

/** The first message: which methods of authentication the client knows. */
export function readGreeting(bytes: Uint8Array): SocksRead<undefined> {
  const [version, count] = bytes
  if (version === undefined) return MORE
  // SOCKS 4 and HTTP have no answer that their client would understand from here.
  if (version !== VERSION) return refused(new Uint8Array())
  if (count === undefined) return MORE
  if (count === 0) return refused(NO_METHOD)
  if (bytes.length < 2 + count) return MORE
  const usedBytes = 2 + count
  if (!bytes.subarray(2, usedBytes).includes(WITHOUT_AUTHENTICATION)) return refused(NO_METHOD)
  return { kind: 'read', value: undefined, usedBytes }
}

/** The second message: where to. A name stays a name. */
export function readRequest(bytes: Uint8Array): SocksRead<SocketAddress> {
  const [version, command, reserved, type, nameLength] = bytes
  if (version !== undefined && version !== VERSION) return refused(socksReply('failed'))
  if (command !== undefined && command !== CONNECT) return refused(socksReply('commandUnknown'))
  if (reserved !== undefined && reserved !== 0) return refused(socksReply('failed'))
  if (type !== undefined && type !== 1 && type !== 3 && type !== 4) return refused(socksReply('addressUnknown'))
  if (nameLength === undefined) return MORE
  if (type === 3 && nameLength === 0) return refused(socksReply('addressUnknown'))
  const start = type === 3 ? 5 : 4
  const length = type === 1 ? 4 : type === 4 ? 16 : nameLength
  const usedBytes = start + length + 2
  if (bytes.length < usedBytes) return MORE
  const address = addressOf(type === 3, bytes.subarray(start, start + length))
  const port = (bytes[usedBytes - 2] ?? 0) * 256 + (bytes[usedBytes - 1] ?? 0)
  if (address === undefined) return refused(socksReply('addressUnknown'))
  if (port === 0) return refused(socksReply('failed'))
  return { kind: 'read', value: { address, port }, usedBytes }
}

function addressOf(isName: boolean, bytes: Uint8Array): string | undefined {
  if (isName) {
    const name = Buffer.from(bytes).toString('latin1')
    return /^[\x21-\x7e]+$/.test(name) && isAddress(name) ? name : undefined
  }
  if (bytes.length === 4) return bytes.join('.')
  return Array.from({ length: 8 }, (_, at) =>
    ((bytes[2 * at] ?? 0) * 256 + (bytes[2 * at + 1] ?? 0)).toString(16),
  ).join(':')
}
