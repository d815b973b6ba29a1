/** Changes hosts.yaml as a careful person would: one entry more, every other byte as it was. */
import { isDeepStrictEqual } from 'node:util'
import { isMap, isNode, isScalar, type Pair, type YAMLMap } from 'yaml'
import { MusterError, messageOf } from '../base/errors.ts'
import { printable } from '../base/printable.ts'
import { readBoundedSync } from '../base/read-bounded.ts'
import { isGroupName, isHostName } from './host-name.ts'
import { parseHostsYaml } from './hosts-yaml.ts'
import type { Inventory } from './inventory.ts'
import { parseYaml } from './parse-yaml.ts'
import { keepAliasedValues, replaceInText } from './replace-value.ts'
import { writeFileAtomically } from './write-file.ts'
import { formatHostKeys, formatScalar, type HostKeys } from './yaml-text.ts'

type Section = 'hosts' | 'groups'

const keyOf = ({ key }: Pair): string =>
  isScalar(key) ? (typeof key.value === 'string' ? key.value : (key.source ?? '')) : ''

const splice = (text: string, from: number, to: number, inserted: string): string =>
  text.slice(0, from) + inserted + text.slice(to)

/** The end of the line, or of the text, on which an offset lies. */
function lineEnd(text: string, offset: number): number {
  const newline = text.indexOf('\n', offset)
  return newline < 0 ? text.length : newline
}

function insertIntoFlow(text: string, map: YAMLMap, entry: string): string {
  const brace = (map.range?.[1] ?? 0) - 1
  const inside = text.slice(map.range?.[0] ?? 0, brace)
  const isEmpty = map.items.length === 0
  const endsInComma = /,\s*(?:#[^\n]*)?\s*$/.test(inside)
  const space = /\s$/.test(inside) ? '' : ' '
  return splice(text, brace - (space === '' ? 1 : 0), brace, `${isEmpty || endsInComma ? '' : ','} ${entry} `)
}

function insertIntoBlock(text: string, map: YAMLMap, entry: string): string {
  const first = map.items[0]
  const start = isScalar(first?.key) ? (first.key.range?.[0] ?? 0) : 0
  const indent = start - (text.lastIndexOf('\n', start - 1) + 1)
  // The map's range ends behind what follows its last value: go back over empty lines and comments of the next section.
  const last = map.items.at(-1)
  const value = last?.value as { range?: [number, number, number] | null } | null
  const key = last?.key as { range?: [number, number, number] | null }
  const end = Math.max(value?.range?.[1] ?? 0, key?.range?.[1] ?? 0)
  const from = text[end - 1] === '\n' ? end - 1 : lineEnd(text, end)
  return splice(text, from, from, `\n${' '.repeat(indent)}${entry}`)
}

/** One more entry of a section; an entry of the same key is replaced. Undefined: not possible without rewriting. */
function insertEntry(text: string, section: Section, key: string, value: string): string | undefined {
  const entry = value === '' ? `${formatScalar(key)}:` : `${formatScalar(key)}: ${value}`
  const document = parseYaml(text)
  const root = document.contents
  if (root === null) return `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${section}:\n  ${entry}\n`
  if (!isMap(root)) return undefined
  const pair = root.items.find((item) => keyOf(item) === section)
  if (!pair) {
    if (root.flow) return insertIntoFlow(text, root, `${section}: { ${entry} }`)
    return `${text.trimEnd()}\n${section}:\n  ${entry}\n`
  }
  const map = pair.value
  if (!isMap(map)) return undefined
  const known = map.items.find((item) => keyOf(item) === key)
  if (!known) return map.flow ? insertIntoFlow(text, map, entry) : insertIntoBlock(text, map, entry)
  return isNode(known.value) ? replaceInText(text, document, known.value, value) : undefined
}

/** What cannot be inserted by hand goes through the library, which keeps comments but may lay lines out anew. */
function setEntry(text: string, section: Section, key: string, value: string): string {
  const document = parseYaml(text)
  keepAliasedValues(document, document.getIn([section, key], true))
  document.setIn([section, key], document.createNode(parseYaml(value).toJS()))
  return document.toString({ lineWidth: 0 })
}

function inventoryOf(text: string, file: string): Inventory | MusterError {
  try {
    return parseHostsYaml(text, file)
  } catch (error) {
    if (error instanceof MusterError) return error
    throw error
  }
}

/** What a text says besides one entry. */
function restOf(text: string, section: Section, key: string): unknown {
  const { [section]: entries, ...rest } = Object(parseYaml(text).toJS({ maxAliasCount: -1 }))
  const { [key]: _, ...others } = Object(entries)
  return [rest, others]
}

/** The entry is there, and everything else means what it meant before. */
function isExtended(before: string, after: string, section: Section, key: string, file: string): boolean {
  const [old, inventory] = [inventoryOf(before, file), inventoryOf(after, file)]
  if (inventory instanceof MusterError) return false
  if (!(section === 'groups' ? inventory.groups.has(key) : inventory.hosts.some(({ name }) => name === key)))
    return false
  return old instanceof MusterError || isDeepStrictEqual(restOf(before, section, key), restOf(after, section, key))
}

function edited(text: string, section: Section, key: string, value: string, file: string): string {
  // Text that is not YAML can only be mended by hand.
  if (parseYaml(text).errors.length > 0) parseHostsYaml(text, file)
  const inserted = insertEntry(text, section, key, value)
  if (inserted !== undefined && isExtended(text, inserted, section, key, file)) return inserted
  const rewritten = setEntry(text, section, key, value)
  parseHostsYaml(rewritten, file)
  if (isExtended(text, rewritten, section, key, file)) return rewritten
  throw new MusterError('configuration', `${printable(file)}: setting ${printable(key)} would change other entries`, {
    hint: 'Edit the file by hand: aliases or ranges in it share what this entry has.',
  })
}

/**
 * The text with one more host.
 * @throws MusterError `usage` for a name that cannot be, InventoryError when the file is or would become wrong
 */
export function withHost(text: string, name: string, keys: HostKeys, file = 'hosts.yaml'): string {
  if (!isHostName(name)) throw new MusterError('usage', `${printable(name)} is not a host name`)
  return edited(text, 'hosts', name, formatHostKeys(keys), file)
}

/** The text with one more group, or the group with another host set. Errors as of `withHost`. */
export function withGroup(text: string, name: string, expression: string, file = 'hosts.yaml'): string {
  if (!isGroupName(name)) throw new MusterError('usage', `${printable(name)} is not a group name`)
  return edited(text, 'groups', name, formatScalar(expression), file)
}

async function editFile(path: string, edit: (text: string) => string): Promise<void> {
  let text = ''
  try {
    text = readBoundedSync(path).toString('utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      throw new MusterError('configuration', `${printable(path)} cannot be read: ${printable(messageOf(error))}`, {
        cause: error,
      })
    }
  }
  await writeFileAtomically(path, edit(text), { isOverwriting: true })
}

/** Adds a host to a hosts.yaml, which is made when it is not there. */
export async function addHost(path: string, name: string, keys: HostKeys): Promise<void> {
  await editFile(path, (text) => withHost(text, name, keys, path))
}

/** Saves a host set under a name. */
export async function addGroup(path: string, name: string, expression: string): Promise<void> {
  await editFile(path, (text) => withGroup(text, name, expression, path))
}
