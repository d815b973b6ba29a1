/** Finds the files of another tool, and converts them to hosts.yaml. */

import { existsSync, globSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { fileReason, MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { readBoundedSync } from '../../base/read-bounded.ts'
import { configurationDirectory } from '../../base/user-directories.ts'
import { formatScalar } from '../edit-hosts-yaml.ts'
import { foldHostSet, piecesOf } from '../host-set.ts'
import { parseHostsYaml } from '../hosts-yaml.ts'
import { splitLine } from '../ssh-config/source.ts'
import { importAnsible } from './ansible.ts'
import { importGroups, readGroupsConf, readLocalGroups, readYamlGroups } from './clush.ts'
import { importClusters, importTags, readExtraFiles } from './clusterssh.ts'
import { type ImportedHost, ImportedInventory, type ImportNote, type SourceFile } from './imported-inventory.ts'

export const IMPORT_KINDS = ['clusterssh', 'clush', 'ansible', 'ssh'] as const
export type ImportKind = (typeof IMPORT_KINDS)[number]

type ImportSource = {
  readonly kind: ImportKind
  /** A file instead of the ones that the tool itself reads. */
  readonly file?: string
  /** The text of `file` if it is not on disk. */
  readonly text?: string
  readonly cwd: string
  readonly home: string
  /** The directory of the machine's files; `/etc` unless given. */
  readonly etc?: string
  readonly env: Readonly<Record<string, string | undefined>>
}

const MAX_INCLUDED_FILES = 1000

const inEtc = ({ etc = '/etc' }: ImportSource, name: string): string => join(etc, name)

/** @throws MusterError 'configuration' */
export function readSource(path: string): SourceFile {
  try {
    return { path, text: readBoundedSync(path).toString('utf8') }
  } catch (error) {
    throw new MusterError('configuration', `${printable(path)} cannot be read: ${fileReason(error)}`, {
      cause: error,
    })
  }
}

/** The files to read: the one that was given, or those of the tool that exist. */
function sourcesOf(source: ImportSource, usual: readonly string[]): SourceFile[] {
  const { kind, file, text, cwd } = source
  if (file !== undefined) return [text === undefined ? readSource(resolve(cwd, file)) : { path: file, text }]
  const found = usual.filter((path) => existsSync(path))
  if (found.length > 0) return found.map(readSource)
  throw new MusterError('configuration', `there is nothing to import: no ${usual.map(printable).join(', no ')}`, {
    hint: `Name the file: muster import ${kind} FILE`,
  })
}

function importClusterSsh(source: ImportSource, inventory: ImportedInventory): void {
  const directory = join(source.home, '.clusterssh')
  const configuration = join(directory, 'config')
  const extra = existsSync(configuration)
    ? readExtraFiles(readSource(configuration), source.home)
    : { clusters: [], tags: [] }
  const tagFiles = [inEtc(source, 'tags'), join(directory, 'tags'), ...extra.tags]
  const clusterFiles = [inEtc(source, 'clusters'), join(directory, 'clusters'), ...extra.clusters]
  const files = sourcesOf(source, [...clusterFiles, ...tagFiles])
  const isTags = ({ path }: SourceFile): boolean => tagFiles.includes(path) || basename(path) === 'tags'
  const [clusters, tags] = [files.filter((file) => !isTags(file)), files.filter(isTags)]
  importClusters(clusters, inventory)
  for (const file of tags) importTags(file, inventory)
}

function importClush(source: ImportSource, inventory: ImportedInventory): void {
  const { env, home } = source
  const directories = [
    env.CLUSTERSHELL_CFGDIR,
    join(configurationDirectory({ ...env, HOME: home }), 'clustershell'),
    join(home, '.local/etc/clustershell'),
    inEtc(source, 'clustershell'),
  ].filter((directory) => directory !== undefined)
  // As in ClusterShell, the first groups.conf that exists is used.
  const [main] = sourcesOf(
    source,
    directories.map((directory) => join(directory, 'groups.conf')),
  )
  if (!main) return
  const readGroups = (file: SourceFile, defaultSource?: string) =>
    /\.ya?ml$/.test(file.path) ? readYamlGroups(file, defaultSource, inventory) : readLocalGroups(file)
  if (!/^\[[^\]]+\]/m.test(main.text)) return importGroups(readGroups(main), inventory)
  const conf = readGroupsConf(main, dirname(main.path), inventory)
  const files = [
    ...conf.files.filter((path) => existsSync(path)),
    ...conf.directories.flatMap((directory) => globSync(join(directory, '*.yaml')).sort()),
  ]
  for (const path of conf.files.filter((file) => !existsSync(file)))
    inventory.note(main.path, 0, `${printable(path)} does not exist`)
  importGroups(
    files.flatMap((path) => readGroups(readSource(path), conf.defaultSource ?? '')),
    inventory,
  )
}

function importAnsibleFiles(source: ImportSource, inventory: ImportedInventory): void {
  for (const file of sourcesOf(source, [inEtc(source, 'ansible/hosts')])) {
    importAnsible(file, inventory)
    for (const name of ['group_vars', 'host_vars']) {
      const directory = join(dirname(file.path), name)
      if (existsSync(directory)) inventory.note(directory, 0, 'variables of this directory are not read')
    }
  }
}

type Block = { readonly aliases: readonly string[]; readonly line: number; hostName?: string }

function importSsh(source: ImportSource, inventory: ImportedInventory): void {
  const directory = join(source.home, '.ssh')
  let included = 0
  const include = (word: string): void => {
    const name = word.startsWith('~/') ? join(source.home, word.slice(2)) : word
    for (const path of globSync(resolve(directory, name)).sort()) {
      included += 1
      if (included <= MAX_INCLUDED_FILES) importFile(readSource(path))
      else inventory.note(path, 0, 'left out: too many files, or they include each other')
    }
  }
  const importFile = ({ path, text }: SourceFile): void => {
    let block: Block | undefined
    // Several aliases with one HostName are one machine; without it, or with `%h` in it, they are several.
    const finish = (): void => {
      const { aliases = [], line = 0, hostName = '%h' } = block ?? {}
      const [first = '', ...others] = aliases
      const isOneMachine = !hostName.includes('%h')
      if (isOneMachine && others.length > 0)
        inventory.note(path, line, `${printable(others.join(' '))}: other names of ${printable(first)}`)
      for (const alias of isOneMachine ? aliases.slice(0, 1) : aliases) inventory.addHost(alias, {}, path, line)
      block = undefined
    }
    for (const [index, raw] of text.split(/\r?\n/).entries()) {
      const { keyword, words } = splitLine(raw)
      if (keyword === 'host') {
        finish()
        block = { aliases: words.filter((word) => !/[*?!]/.test(word)), line: index + 1 }
      } else if (keyword === 'match') {
        finish()
        inventory.note(path, index + 1, `Match ${printable(words.join(' '))} names no host`)
      } else if (keyword === 'include') words.forEach(include)
      else if (keyword === 'hostname' && block) block.hostName ??= words[0] ?? ''
    }
    finish()
  }
  for (const file of sourcesOf(source, [join(directory, 'config')])) importFile(file)
}

const IMPORTERS: Readonly<Record<ImportKind, (source: ImportSource, inventory: ImportedInventory) => void>> = {
  clusterssh: importClusterSsh,
  clush: importClush,
  ansible: importAnsibleFiles,
  ssh: importSsh,
}

/**
 * Converts another tool's files to the text of a valid hosts.yaml.
 * @throws MusterError `configuration` if there is nothing to read, no host in it, or its groups form a loop
 */
export function importInventory(source: ImportSource) {
  const inventory = new ImportedInventory()
  IMPORTERS[source.kind](source, inventory)
  if (inventory.hosts.size === 0) {
    const notes = sortNotes(inventory.notes).map(formatNote).join('\n')
    throw new MusterError('configuration', `no host was found${notes === '' ? '' : `\n${notes}`}`)
  }
  const text = formatHostsYaml(inventory, `Imported from ${source.kind}: review it before use.`)
  const { hosts } = parseHostsYaml(text, 'hosts.yaml', [])
  return { text, hosts: hosts.length, notes: sortNotes(inventory.notes) }
}

function sortNotes(notes: readonly ImportNote[]): ImportNote[] {
  return notes.toSorted((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : a.line - b.line))
}

/** `FILE:LINE: what was skipped`. */
export function formatNote({ path, line, text }: ImportNote): string {
  return `${printable(path)}${line === 0 ? '' : `:${line}`}: ${text}`
}

/** The names of groups with hosts: hosts.yaml has no empty groups, and no groups of only empty groups. */
function withoutEmpty(groups: ImportedInventory['groups']): ReadonlySet<string> {
  const names = new Set(groups.keys())
  for (let before = Number.POSITIVE_INFINITY; names.size < before; ) {
    before = names.size
    for (const [name, group] of groups) {
      if (group.hosts.size === 0 && ![...group.groups].some((other) => names.has(other))) names.delete(name)
    }
  }
  return names
}

/** ` { address: …, port: … }`, or nothing. */
function formatHostKeys(host: ImportedHost): string {
  const entries = Object.entries(host).map(([key, value]) => {
    // A percent sign begins a token in an address.
    const written = key === 'address' ? String(value).replaceAll('%', '%%') : value
    return `${key}: ${typeof written === 'number' ? written : formatScalar(String(written))}`
  })
  return entries.length === 0 ? '' : ` { ${entries.join(', ')} }`
}

/** Hosts with equal entries share a line; groups name their hosts folded and their groups as `@group`. */
function formatHostsYaml({ hosts, groups }: ImportedInventory, heading: string): string {
  const byEntry = Map.groupBy(hosts, ([, host]) => formatHostKeys(host))
  const hostLines = [...byEntry].flatMap(([entry, members]) =>
    piecesOf(foldHostSet(members.map(([name]) => name))).map((piece) => `  ${formatScalar(piece)}:${entry}`),
  )
  const isWritten = withoutEmpty(groups)
  const groupLines = [...groups].flatMap(([name, group]) => {
    if (!isWritten.has(name)) return []
    const others = [...group.groups].filter((other) => isWritten.has(other)).map((other) => `@${other}`)
    const members = [...others, foldHostSet(group.hosts)].filter(Boolean)
    return [`  ${formatScalar(name)}: ${formatScalar(members.join(','))}`]
  })
  if (groupLines.length > 0) groupLines.unshift('groups:')
  return [`# ${heading}`, 'hosts:', ...hostLines, ...groupLines, ''].join('\n')
}
