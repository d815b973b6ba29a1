/**
 * ClusterSSH: `clusters` files (`tag host user@host2:port other-tag`) and `tags` files (`host tag tag`), both with
 * comments, a backslash at the end of a continued line, and {a,b} and {1..9} as a shell expands them (cssh(1), FILES).
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

/** `a,b`, `1..9`, `01..20..2`, `a..c`; undefined: the braces are text. */
function alternatives(inside: string): string[] | undefined {
  const [, first, last, stepText] = /^(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.-?(\d+))?$/.exec(inside) ?? []
  if (first === undefined || last === undefined) return inside.includes(',') ? inside.split(',') : undefined
  const isNumber = /\d/.test(first)
  if (isNumber !== /\d/.test(last)) return undefined
  const codeOf = (text: string): number => (isNumber ? Number(text) : (text.codePointAt(0) ?? 0))
  const [from, to, step] = [codeOf(first), codeOf(last), Math.max(1, Number(stepText ?? 1))]
  const count = Math.floor(Math.abs(to - from) / step) + 1
  if (count > MAX_NAMES) throw tooMany()
  const width = [first, last].some((text) => /^-?0./.test(text)) ? Math.max(first.length, last.length) : 0
  return Array.from({ length: count }, (_, index) => {
    const value = from + index * (from <= to ? step : -step)
    return isNumber ? String(value).padStart(width, '0') : String.fromCodePoint(value)
  })
}

type Line = { readonly number: number; readonly words: readonly string[] }

function linesOf({ text, path }: SourceFile, inventory: ImportedInventory): Line[] {
  const lines: Line[] = []
  let pending = ''
  let start = 0
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.replace(/(?:^|\s)#.*$/, '').trimEnd()
    if (pending === '') start = index + 1
    if (line.endsWith('\\')) {
      pending += `${line.slice(0, -1)} `
      continue
    }
    const words = `${pending}${line}`.split(/\s+/).filter((word) => word !== '')
    pending = ''
    const [first] = words
    if (first === undefined) continue
    if (words[1] === '=') inventory.note(path, start, `${printable(first)} is a setting of ClusterSSH`)
    else
      lines.push({ number: start, words: words.flatMap((word) => inventory.expand(word, expandBraces, path, start)) })
  }
  return lines
}

/** A tag that is defined again replaces the one before, as in ClusterSSH. */
function importClusters(files: readonly SourceFile[], inventory: ImportedInventory): void {
  const clusters = new Map<string, Line & { readonly path: string }>()
  for (const file of files) {
    for (const line of linesOf(file, inventory)) {
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
      if (clusters.has(member) && member !== tag) group.groups.add(inventory.groupName(member, path, number))
      else inventory.addSpec(member, path, number, group)
    }
  }
}

/** The further files that ClusterSSH's own configuration names. */
function readExtraFiles({ text }: SourceFile, home: string): { clusters: string[]; tags: string[] } {
  const named = (key: string): string[] =>
    (new RegExp(`^\\s*${key}\\s*=\\s*([^#\\n]*)`, 'm').exec(text)?.[1] ?? '')
      .split(',')
      .map((name) => name.trim().replace(/^(?:~|\$HOME)(?=\/)/, home))
      .filter((name) => name.startsWith('/'))
  return { clusters: named('extra_cluster_file'), tags: named('extra_tag_file') }
}

function importTags(file: SourceFile, inventory: ImportedInventory): void {
  for (const { number, words } of linesOf(file, inventory)) {
    const [host = '', ...tags] = words
    const name = inventory.addSpec(host, file.path, number)
    for (const tag of tags) if (name !== undefined) inventory.group(tag, file.path, number).hosts.add(name)
  }
}

/** The files that ClusterSSH itself reads, if they exist. */
function filesOf(source: Pick<ImportSource, 'home' | 'etc'>): { clusterFiles: string[]; tagFiles: string[] } {
  const directory = join(source.home, '.clusterssh')
  const configuration = join(directory, 'config')
  const extra = existsSync(configuration)
    ? readExtraFiles(readSource(configuration), source.home)
    : { clusters: [], tags: [] }
  return {
    tagFiles: [inEtc(source, 'tags'), join(directory, 'tags'), ...extra.tags],
    clusterFiles: [inEtc(source, 'clusters'), join(directory, 'clusters'), ...extra.clusters],
  }
}

/** The file of ClusterSSH where the word names a cluster; undefined: in none, or they cannot be read. */
export function clusterFileOf(word: string, source: Pick<ImportSource, 'home' | 'etc'>): string | undefined {
  try {
    const { clusterFiles, tagFiles } = filesOf(source)
    const names = (path: string) => {
      const lines = existsSync(path) ? linesOf(readSource(path), new ImportedInventory()) : []
      return lines.flatMap(({ words }) => (tagFiles.includes(path) ? words.slice(1) : words.slice(0, 1)))
    }
    return [...clusterFiles, ...tagFiles].find((path) => names(path).includes(word))
  } catch {
    return undefined
  }
}

function read(source: ImportSource, inventory: ImportedInventory): void {
  const { clusterFiles, tagFiles } = filesOf(source)
  const files = sourcesOf(source, 'clusterssh', [...clusterFiles, ...tagFiles])
  const isTags = ({ path }: SourceFile): boolean => tagFiles.includes(path) || basename(path) === 'tags'
  const [clusters, tags] = [files.filter((file) => !isTags(file)), files.filter(isTags)]
  importClusters(clusters, inventory)
  for (const file of tags) importTags(file, inventory)
}

export const clusterssh: ImportFormat = {
  name: 'clusterssh',
  about: 'clusters or tags of ClusterSSH',
  // Words on lines could be anything; only the name of the file tells.
  recognises: ({ path }) => basename(dirname(path)) === '.clusterssh' || basename(path) === 'clusters',
  read,
}
