/**
 * ClusterSSH: `clusters` files (`tag host user@host2:port other-tag`), `tags` files (`host tag tag`), and its configuration
 * (`KEY = VALUE`, which may define clusters). All have comments, a backslash at the end of a continued line, and braces: {a,b}
 * and {1..9} as a shell expands them, and ranges in a list: {4..6,9} (cssh(1), FILES; lib/App/ClusterSSH/Range.pm and Config.pm).
 */
import { existsSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { printable } from '../../base/printable.ts'
import { MAX_NAMES } from '../host-set.ts'
import { type ImportFormat, type ImportSource, inEtc, readSource, sourcesOf } from './format.ts'
import { ImportedInventory, type SourceFile } from './imported-inventory.ts'

const tooMany = () => new RangeError(`it names more than ${MAX_NAMES} hosts`)

/** Expands the last braces of a word, then the rest; a word without braces is itself. */
export function expandBraces(word: string): string[] {
  const results: string[] = []
  const pending = [word]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const match = /^(.*)\{([^{}]*)\}(.*)$/s.exec(next)
    const [, before = '', inside = '', after = ''] = match ?? []
    const items = match ? alternatives(inside) : undefined
    if (items === undefined) results.push(next)
    else for (const item of items.toReversed()) pending.push(before + item + after)
    if (results.length + pending.length > MAX_NAMES) throw tooMany()
  }
  return [...new Set(results)]
}

/** `a,b`, `1..9`, `4..6,9`; undefined: the braces are text. */
function alternatives(inside: string): string[] | undefined {
  if (!inside.includes(',')) return rangeOf(inside)
  const items: string[] = []
  for (const item of inside.split(',')) {
    for (const name of rangeOf(item) ?? [item]) items.push(name)
    if (items.length > MAX_NAMES) throw tooMany()
  }
  return items
}

/** `1..9`, `01..20..2`, `a..c`; undefined: something else. */
function rangeOf(text: string): string[] | undefined {
  const [, first, last, stepText] = /^(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.-?(\d+))?$/.exec(text) ?? []
  if (first === undefined || last === undefined) return undefined
  const isNumber = /\d/.test(first)
  if (isNumber !== /\d/.test(last)) return undefined
  const codeOf = (end: string): number => (isNumber ? Number(end) : (end.codePointAt(0) ?? 0))
  const [from, to, step] = [codeOf(first), codeOf(last), Math.max(1, Number(stepText ?? 1))]
  const count = Math.floor(Math.abs(to - from) / step) + 1
  if (count > MAX_NAMES) throw tooMany()
  const width = [first, last].some((end) => /^-?0./.test(end)) ? Math.max(first.length, last.length) : 0
  return Array.from({ length: count }, (_, index) => {
    const value = from + index * (from <= to ? step : -step)
    return isNumber ? String(value).padStart(width, '0') : String.fromCodePoint(value)
  })
}

type Line = { readonly number: number; readonly words: readonly string[] }

/** Without comments and empty lines; continued lines are one, with the number of the first. */
function wholeLinesOf(text: string): { readonly number: number; readonly line: string }[] {
  const lines: { number: number; line: string }[] = []
  let pending = ''
  let start = 0
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.replace(/(?:^|\s)#.*$/, '').trimEnd()
    if (pending === '') start = index + 1
    if (line.endsWith('\\')) {
      pending += `${line.slice(0, -1)} `
      continue
    }
    const whole = `${pending}${line}`.trim()
    pending = ''
    if (whole !== '') lines.push({ number: start, line: whole })
  }
  return lines
}

function linesOf({ text, path }: SourceFile, inventory: ImportedInventory): Line[] {
  return wholeLinesOf(text).flatMap(({ number, line }) => {
    const words = line.split(/\s+/)
    if (words[1] === '=') {
      inventory.note(path, number, `${printable(words[0] ?? '')} is a setting of ClusterSSH`)
      return []
    }
    return [{ number, words: words.flatMap((word) => inventory.expand(word, expandBraces, path, number)) }]
  })
}

/** A tag that is defined again replaces the one before, as in ClusterSSH. */
function importClusters(
  files: readonly SourceFile[],
  configurations: readonly Configuration[],
  inventory: ImportedInventory,
): void {
  const clusters = new Map<string, Line & { readonly path: string }>()
  for (const file of files) {
    for (const line of clusterLinesOf(file, configurations, inventory)) {
      const tag = line.words[0] ?? ''
      const before = clusters.get(tag)
      if (before) inventory.note(before.path, before.number, `cluster ${printable(tag)} is defined again later`)
      clusters.set(tag, { ...line, path: file.path })
    }
  }
  for (const [tag, { number, words, path }] of clusters) {
    const group = inventory.group(tag, path, number)
    const members = words.slice(1)
    if (members.length === 0) inventory.note(path, number, `cluster ${printable(tag)} has no hosts`)
    for (const member of members) {
      if (clusters.has(member) && member !== tag) inventory.addGroup(member, path, number, group)
      else inventory.addSpec(member, path, number, group)
    }
  }
}

type Configuration = {
  readonly path: string
  readonly settings: ReadonlyMap<string, Line & { readonly value: string }>
}

/** Of two lines with the same key, the later one counts. */
function configurationOf({ path, text }: SourceFile): Configuration {
  const settings = new Map<string, Line & { value: string }>()
  for (const { number, line } of wholeLinesOf(text)) {
    const [, key, value = ''] = /^([^\s=]+)\s*=\s*(.*)$/s.exec(line) ?? []
    if (key !== undefined) settings.set(key, { number, value, words: value.split(/\s+/).filter((word) => word !== '') })
  }
  return { path, settings }
}

/** A configuration defines the clusters that it names: `clusters = web db` and `web = m1 m2`. */
function clusterLinesOf(
  file: SourceFile,
  configurations: readonly Configuration[],
  inventory: ImportedInventory,
): readonly Line[] {
  const configuration = configurations.find(({ path }) => path === file.path)
  if (configuration === undefined) return linesOf(file, inventory)
  const { settings } = configuration
  return (settings.get('clusters')?.words ?? []).flatMap((tag) => {
    const { number, words } = settings.get(tag) ?? {}
    if (number === undefined || words === undefined) return []
    return [
      { number, words: [tag, ...words.flatMap((word) => inventory.expand(word, expandBraces, file.path, number))] },
    ]
  })
}

const IN_SSH_CONFIG = ': write it to ~/.ssh/config'
/** The settings that decide which hosts are reached, and how; the others are about windows, keys and menus. */
const OF_HOSTS: Readonly<Record<string, string>> = {
  ssh: '',
  ssh_args: IN_SSH_CONFIG,
  user: IN_SSH_CONFIG,
  external_cluster_command: '',
}

function noteSettings(configurations: readonly Configuration[], inventory: ImportedInventory): void {
  for (const [key, what] of Object.entries(OF_HOSTS)) {
    const configuration = configurations.findLast(({ settings }) => settings.has(key))
    const { number, value } = configuration?.settings.get(key) ?? {}
    if (configuration === undefined || number === undefined) continue
    // ClusterSSH writes all its defaults to a new configuration.
    if (value === undefined || value === '' || (key === 'ssh' && basename(value) === key)) continue
    inventory.note(configuration.path, number, `${key} = ${value} is left out${what}`)
  }
}

/** The further files that ClusterSSH's own configuration names. */
function extraFiles(configurations: readonly Configuration[], key: string, home: string): string[] {
  const value = configurations.findLast(({ settings }) => settings.has(key))?.settings.get(key)?.value ?? ''
  return value
    .split(',')
    .map((name) => name.trim().replace(/^(?:~|\$HOME)(?=\/)/, home))
    .filter((name) => name.startsWith('/'))
}

function importTags(file: SourceFile, inventory: ImportedInventory): void {
  for (const { number, words } of linesOf(file, inventory)) {
    const [host = '', ...tags] = words
    const name = inventory.addSpec(host, file.path, number)
    for (const tag of tags) if (name !== undefined) inventory.group(tag, file.path, number).hosts.add(name)
  }
}

type Files = {
  /** A later one counts for more. */
  readonly configurations: readonly Configuration[]
  readonly clusterFiles: readonly string[]
  readonly tagFiles: readonly string[]
}

/** The files that ClusterSSH itself reads; of the configurations, those that exist. */
function filesOf(source: Pick<ImportSource, 'home' | 'etc'>): Files {
  const { home } = source
  const directory = join(home, '.clusterssh')
  const configurations = [inEtc(source, 'csshrc'), join(home, '.csshrc'), join(directory, 'config')]
    .filter((path) => existsSync(path))
    .map((path) => configurationOf(readSource(path)))
  const extra = (key: string) => extraFiles(configurations, key, home)
  return {
    configurations,
    tagFiles: [inEtc(source, 'tags'), join(directory, 'tags'), ...extra('extra_tag_file')],
    clusterFiles: [
      ...configurations.map(({ path }) => path),
      inEtc(source, 'clusters'),
      join(directory, 'clusters'),
      ...extra('extra_cluster_file'),
    ],
  }
}

/** The file of ClusterSSH where the word names a cluster; undefined: in none, or they cannot be read. */
export function clusterFileOf(word: string, source: Pick<ImportSource, 'home' | 'etc'>): string | undefined {
  try {
    const { configurations, clusterFiles, tagFiles } = filesOf(source)
    const names = (path: string) => {
      const file = existsSync(path) ? readSource(path) : { path, text: '' }
      return clusterLinesOf(file, configurations, new ImportedInventory()).flatMap(({ words }) =>
        tagFiles.includes(path) ? words.slice(1) : words.slice(0, 1),
      )
    }
    return [...clusterFiles, ...tagFiles].find((path) => names(path).includes(word))
  } catch {
    return undefined
  }
}

function read(source: ImportSource, inventory: ImportedInventory): void {
  const { configurations, clusterFiles, tagFiles } = filesOf(source)
  const files = sourcesOf(source, 'clusterssh', [...clusterFiles, ...tagFiles])
  noteSettings(configurations, inventory)
  const isTags = ({ path }: SourceFile): boolean => tagFiles.includes(path) || basename(path) === 'tags'
  const [clusters, tags] = [files.filter((file) => !isTags(file)), files.filter(isTags)]
  importClusters(clusters, configurations, inventory)
  for (const file of tags) importTags(file, inventory)
}

export const clusterssh: ImportFormat = {
  name: 'clusterssh',
  about: 'clusters or tags of ClusterSSH',
  // Words on lines could be anything; only the name of the file tells.
  recognises: ({ path }) => basename(dirname(path)) === '.clusterssh' || basename(path) === 'clusters',
  read,
}
