/** Percent tokens, `~` and `${NAME}` in values of ssh_config (ssh_config(5), TOKENS and ENVIRONMENT VARIABLES). */
import { createHash } from 'node:crypto'
import { join } from 'node:path'

/** The values of the tokens on this machine. */
export type LocalUser = {
  readonly name: string
  readonly uid: number
  readonly home: string
  /** This machine's name, with its domain if it has one. */
  readonly hostName: string
}

export type TokenValues = {
  readonly alias: string
  readonly address: string
  readonly port: number
  readonly user: string
  readonly hostKeyAlias?: string
  readonly jump?: string
  readonly local: LocalUser
}

export function expandTokens(text: string, values: TokenValues): string {
  if (!text.includes('%')) return text
  const { alias, address, port, user, hostKeyAlias, jump = '', local } = values
  const texts: Readonly<Record<string, string>> = {
    '%': '%',
    d: local.home,
    h: address,
    i: String(local.uid),
    j: jump,
    k: hostKeyAlias ?? alias,
    L: local.hostName.replace(/\..*/s, ''),
    l: local.hostName,
    n: alias,
    p: String(port),
    r: user,
    u: local.name,
  }
  const hashed = () => createHash('sha1').update(`${local.hostName}${address}${port}${user}${jump}`).digest('hex')
  return text.replace(/%(.)/g, (token, letter: string) => (letter === 'C' ? hashed() : (texts[letter] ?? token)))
}

/** A file name with everything expanded. An unset variable, or another user's `~name`, stays as it is. */
export function expandPath(
  path: string,
  values: TokenValues,
  env: Readonly<Record<string, string | undefined>>,
): string {
  const home = values.local.home
  const absolute = path === '~' ? home : path.startsWith('~/') ? join(home, path.slice(2)) : path
  return expandTokens(
    absolute.replace(/\$\{(\w+)\}/g, (written, name: string) => env[name] ?? written),
    values,
  )
}
