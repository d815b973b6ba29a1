/**
 * ClusterShell: local groups files (`name: node[1-9],@other`) and YAML groups files (a source, its groups), as
 * groups.conf(5) describes them. Group sources that run a command are not run, but reported as skipped.
 */
import { existsSync, globSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { configurationDirectory } from '../../base/user-directories.ts'
import { isExplicitSpec } from '../host-name.ts'
import { expandHostSet, piecesOf } from '../host-set.ts'
import { type ImportFormat, type ImportSource, inEtc, readSource, sourcesOf } from './format.ts'
import type { ImportedInventory, SourceFile } from './imported-inventory.ts'
import { entriesOf, isTree, readYaml } from './read-yaml.ts'

/** One group's definition. `source` is empty for groups of the default source. */
type Definition = {
  readonly source: string
  readonly name: string
  readonly set: string
  readonly path: string
  readonly line: number
}

const groupKey = (source: string, name: string): string => (source === '' ? name : `${source}:${name}`)

/** `name: set` lines; skips comments, and lines that ClusterShell would not read either. */
function readLocalGroups({ path, text }: SourceFile): Definition[] {
  return text.split(/\r?\n/).flatMap((raw, index) => {
    const match = /^\s*([^#\s:][^:]*?)\s*:\s*([^#]*)/.exec(raw)
    const set = match?.[2]?.trim() ?? ''
    return match && set !== '' ? [{ source: '', name: match[1] ?? '', set, path, line: index + 1 }] : []
  })
}

/** A YAML groups file: `source: { group: set, … }`, a set being text, a list of texts or a number. */
function readYamlGroups(
  file: SourceFile,
  defaultSource: string | undefined,
  inventory: ImportedInventory,
): Definition[] {
  const yaml = readYaml(file)
  if (typeof yaml === 'string') {
    inventory.note(file.path, 0, `left out: ${yaml}`)
    return []
  }
  const sources = entriesOf(yaml.tree)
  const plain = sources.length === 1 && defaultSource === undefined ? sources[0]?.[0] : defaultSource
  return sources.flatMap(([source, groups]) => {
    if (!isTree(groups)) {
      inventory.note(file.path, yaml.lineOf(source), `${printable(source)} is not a group source`)
      return []
    }
    return entriesOf(groups).flatMap(([name, value]) => {
      const sets: readonly unknown[] = Array.isArray(value) ? value : [value ?? '']
      const line = yaml.lineOf(source, name)
      if (sets.some((set) => typeof set === 'object')) {
        inventory.note(file.path, line, `group ${printable(name)} is left out: it is not a host set`)
        return []
      }
      return [{ source: source === plain ? '' : source, name, set: sets.map(String).join(','), path: file.path, line }]
    })
  })
}

/** groups.conf itself: the places of groups. `directory` is the value of `$CFGDIR`. */
function readGroupsConf({ path, text }: SourceFile, directory: string, inventory: ImportedInventory) {
  let section = ''
  let defaultSource: string | undefined
  /** Of further groups.conf files and of YAML groups files; variables of ClusterShell replaced. */
  const directories: string[] = []
  /** Local groups files that the shipped commands of a source read. */
  const files: string[] = []
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const header = /^\[([^\]]+)\]/.exec(raw)
    if (header) section = header[1] ?? ''
    const [, key = '', value = ''] = /^(\w+)\s*[:=]\s*(.*)$/.exec(raw) ?? []
    const filled = value.replace(/\$CFGDIR|\$\{CFGDIR\}/g, directory)
    if (section.toLowerCase() === 'main') {
      if (key === 'default') defaultSource = value.trim()
      if (['autodir', 'confdir', 'groupsdir'].includes(key)) directories.push(...filled.split(/[\s,]+/).filter(Boolean))
    } else if (key === 'map') {
      const file = /(\/[^\s'"|;]+\.cfg)\b/.exec(filled)?.[1]
      if (file !== undefined) files.push(file)
      else
        inventory.note(path, index + 1, `source ${printable(section)} is a command and is not run: ${printable(value)}`)
    }
  }
  return { defaultSource, directories, files }
}

/** Reads the definitions of all files together, because they refer to each other. */
function importGroups(definitions: readonly Definition[], inventory: ImportedInventory): void {
  const byKey = new Map(definitions.map((definition) => [groupKey(definition.source, definition.name), definition]))
  const find = (reference: string, from: Definition): Definition | undefined =>
    byKey.get(groupKey(from.source, reference)) ?? byKey.get(reference)
  const members = (definition: Definition, trail: readonly Definition[]): string[] => {
    if (trail.includes(definition)) throw new Error('its groups form a loop')
    return expandHostSet(separate(definition.set), {
      group: (reference) => {
        const other = find(reference, definition)
        return other && members(other, [...trail, definition])
      },
    })
  }
  for (const definition of byKey.values()) {
    const { path, line, set } = definition
    const group = inventory.group(groupKey(definition.source, definition.name), path, line)
    try {
      // A set with other operators than the union's is one operand.
      for (const operand of /[!&^]/.test(set) ? [separate(set)] : piecesOf(separate(set))) {
        const reference = /^@([^[\]*?]+)$/.exec(operand)?.[1]
        const other = reference === undefined ? undefined : find(reference, definition)
        if (other && other !== definition) {
          members(other, [definition])
          group.groups.add(inventory.groupName(groupKey(other.source, other.name), path, line))
          continue
        }
        for (const host of members({ ...definition, set: operand }, [definition])) {
          if (isExplicitSpec(host)) inventory.addSpec(host, path, line, group)
          else {
            const name = inventory.addHost(host, {}, path, line)
            if (name !== undefined) group.hosts.add(name)
          }
        }
      }
    } catch (error) {
      inventory.note(path, line, `group ${printable(definition.name)}: ${messageOf(error)}`)
    }
  }
}

/** ClusterShell also takes white space between names. */
const separate = (set: string): string =>
  set
    .trim()
    .replace(/\s*([,!&^])\s*/g, '$1')
    .replace(/\s+/g, ',')

function read(source: ImportSource, inventory: ImportedInventory): void {
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
    'clush',
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

/** groups.conf, `name: set` lines, or YAML of group sources: mappings whose values are host sets. */
function recognises({ path, text }: SourceFile): boolean {
  if (basename(path) === 'groups.conf' || /^\[Main\]/im.test(text)) return true
  if (/\.cfg$/.test(path)) return /^\s*[^#\s:[][^:]*:\s*\S/m.test(text)
  const yaml = /\.ya?ml$/.test(path) ? readYaml({ text }) : ''
  const isSet = (value: unknown): boolean => typeof value === 'string' || Array.isArray(value)
  return (
    typeof yaml !== 'string' &&
    [...yaml.tree.values()].every((source) => isTree(source) && source.size > 0 && [...source.values()].every(isSet))
  )
}

export const clush: ImportFormat = {
  name: 'clush',
  about: 'groups of ClusterShell (groups.conf, .cfg or .yaml)',
  recognises,
  read,
}
