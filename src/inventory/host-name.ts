/** Valid names of machines, and the parser of `user@host:port`. Excludes what ssh or a shell could treat as an option or a command. */
import { isIPv6 } from 'node:net'
import { defined } from '../base/defined.ts'

export type HostSpec = { readonly user?: string; readonly host: string; readonly port?: number }

const MAX_NAME_LENGTH = 255
const HOST_NAME = /^[\p{L}\p{N}_][\p{L}\p{N}\p{M}_.-]*$/u
const ADDRESS = /^[\p{L}\p{N}_:][\p{L}\p{N}\p{M}_.:-]*(?:%[\w.-]+)?$/u
const GROUP_NAME = /^[\p{L}\p{N}_][\p{L}\p{N}\p{M}_.:/-]*$/u
// The same as ssh's check of user names, and no white space, because a shell or `ssh -l` could misinterpret it.
const USER_NAME = /^[^\s\p{C}'"`;&<>|(){}$,!^*?[\]-][^\s\p{C}'"`;&<>|(){}$,!^*?[\]]*$/u

/** Words of the host set language, which cannot be names of hosts. */
export const RESERVED_NAMES: readonly string[] = ['all']

/** The YAML reader refuses it as a key. */
const NO_KEY = '__proto__'

const isName = (text: string, pattern: RegExp): boolean => text.length <= MAX_NAME_LENGTH && pattern.test(text)

const isKey = (text: string, pattern: RegExp): boolean =>
  isName(text, pattern) && !RESERVED_NAMES.includes(text) && text !== NO_KEY

/** A key of hosts.yaml's `hosts`: letters, digits, `_`, `.`, `-`. */
export const isHostName = (text: string): boolean => isKey(text, HOST_NAME)

/** A DNS name, an IPv4 or an IPv6 address (with `%zone`), without brackets. */
export const isAddress = (text: string): boolean => isName(text, ADDRESS) && (!text.includes(':') || isIPv6(text))

export const isGroupName = (text: string): boolean => isKey(text, GROUP_NAME)

export const isUserName = (text: string): boolean => isName(text, USER_NAME) && !text.endsWith('\\')

export const isPort = (port: number): boolean => Number.isInteger(port) && port >= 1 && port <= 65_535

/** Reads `[user@]host[:port]`, also `[::1]:22` and a bare IPv6 address; undefined when it is none of these. */
export function parseHostSpec(text: string): HostSpec | undefined {
  const at = text.lastIndexOf('@')
  const user = at < 0 ? undefined : text.slice(0, at)
  const rest = text.slice(at + 1)
  const match = /^\[([^[\]]+)\](?::(\d{1,5}))?$/.exec(rest) ?? /^([^:[\]]+)(?::(\d{1,5}))?$/.exec(rest)
  const host = match?.[1] ?? rest
  const port = match?.[2] === undefined ? undefined : Number(match[2])
  if (!isAddress(host) || (user !== undefined && !isUserName(user)) || (port !== undefined && !isPort(port))) {
    return undefined
  }
  return { host, ...defined({ user, port }) }
}

/** The text that `parseHostSpec` reads as this. */
export function formatHostSpec({ user, host, port }: HostSpec): string {
  const address =
    port !== undefined && host.includes(':') ? `[${host}]:${port}` : port === undefined ? host : `${host}:${port}`
  return user === undefined ? address : `${user}@${address}`
}

/** True for `user@host`, `host:port` and the like, which name a machine directly and not by an alias. */
export function isExplicitSpec(text: string): boolean {
  return /[@:]/.test(text)
}

/** Globs of host names: `*` any run of characters, `?` one. Linear in practice, because only the last star is tried again. */
export function matchesGlob(glob: string, name: string): boolean {
  let g = 0
  let n = 0
  let star = -1
  let resume = 0
  while (n < name.length) {
    if (glob[g] === '*') {
      star = g
      resume = n
      g += 1
    } else if (glob[g] === '?' || glob[g] === name[n]) {
      g += 1
      n += 1
    } else if (star >= 0) {
      g = star + 1
      resume += 1
      n = resume
    } else return false
  }
  while (glob[g] === '*') g += 1
  return g === glob.length
}
