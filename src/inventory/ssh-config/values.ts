/** The settings of ssh_config for one host, in the output format of `ssh -G`: a keyword and its value per line. */
import { getOrMake } from '../../base/collections.ts'

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
