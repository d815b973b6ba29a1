/** The settings of ssh_config for hosts: questions and answers (`ssh -G` if OpenSSH is installed, otherwise a library), and how values are read. */
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { getOrMake } from '../../base/collections.ts'

/** A question to ssh about a host; everything except `alias` was already set by hosts.yaml or the target. */
export type SshConfigQuestion = {
  readonly alias: string
  readonly address?: string
  readonly port?: number
  readonly user?: string
  readonly identityFiles?: readonly string[]
}

export type SshConfigAnswer =
  | { readonly ok: true; readonly values: SshConfigValues }
  /** Printable: the message of ssh, usually with file and line. */
  | { readonly ok: false; readonly reason: string }

export const NO_ANSWER: SshConfigAnswer = { ok: false, reason: 'ssh -G did not answer' }

export interface SshConfigSource {
  /** One answer per question, in their order. */
  ask(questions: readonly SshConfigQuestion[], signal?: AbortSignal): Promise<readonly SshConfigAnswer[]>
}

/** The same as options of ssh, which win over every file. A path with a quote never gets here: the schema refuses it. */
export function optionsOf({ address, port, user, identityFiles }: SshConfigQuestion): string[] {
  const quoted = (path: string): string => (/\s/.test(path) ? `"${path}"` : path)
  return [
    ...(address === undefined ? [] : [`-oHostName=${address.replaceAll('%', '%%')}`]),
    ...(port === undefined ? [] : [`-oPort=${port}`]),
    ...(user === undefined ? [] : [`-oUser=${user}`]),
    ...(identityFiles ?? []).map((path) => `-oIdentityFile=${quoted(path)}`),
  ]
}

/** Keywords in lower case to their values, in order (several for `identityfile` and the like). */
export type SshConfigValues = ReadonlyMap<string, readonly string[]>

export function parseSshConfigValues(output: string): SshConfigValues {
  const values = new Map<string, string[]>()
  for (const line of output.split('\n')) {
    const space = line.indexOf(' ')
    if (space <= 0) continue
    const keyword = line.slice(0, space).toLowerCase()
    getOrMake(values, keyword, (): string[] => []).push(line.slice(space + 1).trimEnd())
  }
  return values
}

/** The single value of a keyword; undefined if it is absent or `none`. */
export function settingOf(values: SshConfigValues, keyword: string): string | undefined {
  const value = values.get(keyword)?.[0]
  return value === undefined || value === '' || value === 'none' ? undefined : value
}

export function isYes(values: SshConfigValues, keyword: string, fallback: boolean): boolean {
  const value = settingOf(values, keyword)
  return value === undefined ? fallback : ['yes', 'true', 'always'].includes(value)
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { '': 1, s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }

/** Seconds in ssh_config's time format (`90`, `1m30s`; sshd_config(5), TIME FORMATS); undefined if invalid. */
export function parseSeconds(text: string): number | undefined {
  if (!/^(?:\d+[smhdw]?)+$/i.test(text)) return undefined
  let seconds = 0
  for (const [, count = '0', unit = ''] of text.matchAll(/(\d+)([smhdw]?)/gi)) {
    seconds += Number(count) * (UNIT_SECONDS[unit.toLowerCase()] ?? 1)
  }
  return seconds
}

/** File names of one line. `ssh -G` prints no quotes: a word that does not begin like a path belongs to the name before it. */
export function splitPaths(line: string | undefined): string[] {
  const paths: string[] = []
  for (const word of (line ?? '').split(/\s+/)) {
    if (word === '' || word === 'none') continue
    const last = paths.length - 1
    if (/^[~/$%]/.test(word) || last < 0) paths.push(word)
    else paths[last] += ` ${word}`
  }
  return paths
}

/** A line of a file: its keyword in lower case ('' for comments and empty lines), its value, and the words of that. */
export function splitLine(line: string) {
  const [, keyword = '', value = ''] = /^\s*([A-Za-z][A-Za-z0-9]*)(?:\s*=\s*|\s+)(.*?)\s*$/.exec(line) ?? []
  const words = [...value.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '')
  return { keyword: keyword.toLowerCase(), value, words }
}

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
