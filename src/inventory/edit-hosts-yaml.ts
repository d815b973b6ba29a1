/** Writes hosts.yaml: as a whole, or with a new entry and every other byte kept. */
import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { link, open, realpath, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { type Alias, type Document, isAlias, isMap, isNode, isScalar, type Node, visit, type YAMLMap } from 'yaml'
import { fileReason, MusterError } from '../base/errors.ts'
import { printable } from '../base/printable.ts'
import { readBoundedSync } from '../base/read-bounded.ts'
import { isGroupName } from './host-name.ts'
import { parseHostsYaml } from './hosts-yaml.ts'
import type { Section } from './hosts-yaml-schema.ts'
import type { Inventory } from './inventory.ts'
import { keyText, parseYaml } from './yaml-reader.ts'

// Words that YAML, of this version or an older one, takes for something else than text.
const NOT_TEXT = /^(?:true|false|null|yes|no|on|off|y|n|~|[-+.]?\d.*)$/i

/** A scalar: plain where that is safe everywhere, else in double quotes (JSON's strings are YAML's, and so are printable's escapes). */
export function formatScalar(text: string): string {
  const isAddress = /^\d+\.\d+\.\d+\.\d+$/.test(text)
  const isPlain = /^[A-Za-z_/~][\w./~-]*$/.test(text) && !NOT_TEXT.test(text)
  return isAddress || isPlain ? text : printable(JSON.stringify(text))
}

/** The name of an inventory's file, and the areas' sections of it. */
type Origin = { readonly file: string; readonly sections: readonly Section[] }

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
  // The map's range includes what follows its last value: go back over empty lines and comments of the next section.
  const last = map.items.at(-1)
  const end = Math.max(...[last?.value, last?.key].map((node) => (node as Node | undefined)?.range?.[1] ?? 0))
  const from = text[end - 1] === '\n' ? end - 1 : lineEnd(text, end)
  return splice(text, from, from, `\n${' '.repeat(indent)}${entry}`)
}

/** One more group; one of the same name is replaced. Undefined: not possible without rewriting. */
function insertEntry(text: string, key: string, value: string): string | undefined {
  const entry = `${formatScalar(key)}: ${value}`
  const document = parseYaml(text)
  const root = document.contents
  if (root === null) return `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}groups:\n  ${entry}\n`
  if (!isMap(root)) return undefined
  const pair = root.items.find((item) => keyText(item.key) === 'groups')
  if (!pair) {
    if (root.flow) return insertIntoFlow(text, root, `groups: { ${entry} }`)
    return `${text.trimEnd()}\ngroups:\n  ${entry}\n`
  }
  const map = pair.value
  if (!isMap(map)) return undefined
  const known = map.items.find((item) => keyText(item.key) === key)
  if (!known) return map.flow ? insertIntoFlow(text, map, entry) : insertIntoBlock(text, map, entry)
  return isNode(known.value) ? replaceInText(text, document, known.value, value) : undefined
}

/** What cannot be inserted directly goes through the library, which keeps comments but may reformat lines. */
function setEntry(text: string, key: string, value: string): string {
  const document = parseYaml(text)
  keepAliasedValues(document, document.getIn(['groups', key], true))
  document.setIn(['groups', key], document.createNode(parseYaml(value).toJS()))
  return document.toString({ lineWidth: 0 })
}

function groupsOf(text: string, { file, sections }: Origin): Inventory['groups'] | undefined {
  try {
    return parseHostsYaml(text, file, sections).groups
  } catch (error) {
    if (error instanceof MusterError) return undefined
    throw error
  }
}

/** The content of a text without one group. */
function restOf(text: string, key: string): unknown {
  const { groups, ...rest } = Object(parseYaml(text).toJS({ maxAliasCount: -1 }))
  const { [key]: _, ...others } = Object(groups)
  return [rest, others]
}

/** Checks that the group is there, and that everything else means the same as before. */
function isExtended(before: string, after: string, key: string, origin: Origin): boolean {
  if (!groupsOf(after, origin)?.has(key)) return false
  return groupsOf(before, origin) === undefined || isDeepStrictEqual(restOf(before, key), restOf(after, key))
}

/**
 * The text with a new group, or with another host set for an existing group.
 * @throws MusterError `usage` for an invalid name, InventoryError if the file is or would become invalid
 */
export function withGroup(text: string, name: string, expression: string, origin: Origin): string {
  const { file, sections } = origin
  if (!isGroupName(name)) throw new MusterError('usage', `${printable(name)} is not a group name`)
  const value = formatScalar(expression)
  // Text that is not YAML can only be repaired by hand.
  if (parseYaml(text).errors.length > 0) parseHostsYaml(text, file, sections)
  const inserted = insertEntry(text, name, value)
  if (inserted !== undefined && isExtended(text, inserted, name, origin)) return inserted
  const rewritten = setEntry(text, name, value)
  // Mistakes of the file itself are reported with the lines that it has.
  if (groupsOf(rewritten, origin) === undefined) parseHostsYaml(text, file, sections)
  parseHostsYaml(rewritten, file, sections)
  if (isExtended(text, rewritten, name, origin)) return rewritten
  throw new MusterError('configuration', `${printable(file)}: setting ${printable(name)} would change other entries`, {
    hint: 'Edit the file by hand: aliases or ranges in it share what this entry has.',
  })
}

/** Saves a host set under a name. Errors as of `withGroup`. */
export async function addGroup(
  path: string,
  name: string,
  expression: string,
  sections: readonly Section[],
): Promise<void> {
  let text: string
  try {
    text = readBoundedSync(path).toString('utf8')
  } catch (error) {
    throw new MusterError('configuration', `cannot read ${printable(path)}: ${fileReason(error)}`, {
      cause: error,
    })
  }
  await writeFileAtomically(path, withGroup(text, name, expression, { file: path, sections }), { isOverwriting: true })
}

/** Anchors and tags in front of a value, on its line or the one before. */
const PROPERTIES = /(?:[&!][^\s,[\]{}]*\s+)+$/

/** Every alias outside a value that refers to it, or to something in it. */
function aliasesInto(document: Document, value: Node): readonly { readonly alias: Alias; readonly target: Node }[] {
  const inside = new Set<unknown>()
  visit(value, { Node: (_, node) => void inside.add(node) })
  const found: { alias: Alias; target: Node }[] = []
  visit(document, {
    Alias(_, alias) {
      const target = inside.has(alias) ? undefined : alias.resolve(document)
      if (target !== undefined && inside.has(target)) found.push({ alias, target })
    },
  })
  return found
}

const anchorsIn = (node: Node): readonly string[] => {
  const anchors: string[] = []
  visit(node, { Value: (_, { anchor }) => void (anchor !== undefined && anchors.push(anchor)) })
  return anchors
}

/** Where a value begins in the text, with its anchor and tag. */
const startOf = (text: string, { range }: Node): number => {
  const start = range?.[0] ?? 0
  return start - (PROPERTIES.exec(text.slice(0, start))?.[0].length ?? 0)
}

/** Changes no other byte. Undefined: not possible, as for a moved value of several lines. */
function replaceInText(text: string, document: Document, value: Node, wanted: string): string | undefined {
  if (!value.range) return undefined
  const edits = [{ from: startOf(text, value), to: value.range[1], inserted: wanted }]
  const moved = new Set<string>()
  for (const { alias, target } of aliasesInto(document, value)) {
    if (moved.has(alias.source)) continue
    if (!target.range || !alias.range) return undefined
    const source = text.slice(startOf(text, target), target.range[1])
    if (source.includes('\n')) return undefined
    for (const anchor of anchorsIn(target)) moved.add(anchor)
    edits.push({ from: alias.range[0], to: alias.range[1], inserted: source })
  }
  return edits
    .toSorted((a, b) => b.from - a.from)
    .reduce((sum, { from, to, inserted }) => splice(sum, from, to, inserted), text)
}

/** The same within a document, for `document.toString()`: aliases get the value they refer to. Call it before the value is replaced. */
function keepAliasedValues(document: Document, value: unknown): void {
  if (!isNode(value) || isAlias(value)) return
  const nodes = new Map<Alias, Node>()
  const moved = new Set<string>()
  for (const { alias, target } of aliasesInto(document, value)) {
    if (moved.has(alias.source)) continue
    const node = document.createNode(target.toJS(document, { maxAliasCount: -1 }))
    node.anchor = alias.source
    moved.add(alias.source)
    nodes.set(alias, node)
  }
  visit(document, { Alias: (_, alias) => nodes.get(alias) })
}

/**
 * Writes a file so that readers see the old or the new text, never a part. A link is followed, the mode is kept.
 * Resolves to false, with nothing written, when the file exists and may not be overwritten.
 * @throws MusterError `configuration`
 */
export async function writeFileAtomically(
  path: string,
  text: string,
  options: { readonly isOverwriting: boolean },
): Promise<boolean> {
  let temporary: string | undefined
  try {
    const existing = statSync(path, { throwIfNoEntry: false })
    if (existing && !options.isOverwriting) return false
    const target = existing ? await realpath(path) : path
    temporary = `${target}.${randomBytes(6).toString('hex')}.tmp`
    const mode = existing === undefined ? 0o644 : existing.mode & 0o7777
    {
      await using file = await open(temporary, 'wx', mode)
      // The process's umask does not apply to a mode that existed before.
      if (existing) await file.chmod(mode)
      await file.writeFile(text)
      await file.sync()
    }
    // Unlike rename, link fails if the file exists by now.
    await (options.isOverwriting ? rename : link)(temporary, target)
    if (!options.isOverwriting) await rm(temporary)
    return true
  } catch (error) {
    if (temporary !== undefined) await rm(temporary, { force: true })
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw new MusterError('configuration', `${printable(path)} cannot be written: ${fileReason(error)}`, {
      cause: error,
      hint: `Check that ${printable(dirname(path))} exists and may be written.`,
    })
  }
}
