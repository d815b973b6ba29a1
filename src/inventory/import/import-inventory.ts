/** Finds the files of another tool, and converts them to hosts.yaml. */

import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { parseHostsYaml } from '../hosts-yaml.ts'
import { didYouMean } from '../nearest-word.ts'
import { formatHostsYaml } from '../new-hosts-yaml.ts'
import { type ImportFormat, type ImportSource, readSource } from './format.ts'
import { FORMATS } from './formats.ts'
import { ImportedInventory, type ImportNote } from './imported-inventory.ts'

export const IMPORT_KINDS: readonly string[] = FORMATS.map(({ name }) => name)

const howTo = (kinds: readonly string[]): string =>
  `Name the format: muster import FORMAT FILE, where FORMAT is ${kinds.slice(0, -1).join(', ')} or ${kinds.at(-1)}`

/** The format that a file looks like. @throws MusterError `configuration` if it is none or several */
function recognise({ file, text, cwd }: ImportSource, kinds: readonly string[]): ImportFormat {
  const hint = howTo(kinds)
  if (file === undefined) throw new MusterError('usage', 'the file is missing', { hint })
  const path = resolve(cwd, file)
  const status = text === undefined ? statSync(path, { throwIfNoEntry: false }) : undefined
  if (text === undefined && status === undefined && !/[/.]/.test(file))
    throw new MusterError('usage', `${printable(file)} is no format and no file${didYouMean(file, kinds)}`, { hint })
  // Only inventories of Ansible are directories.
  if (status?.isDirectory()) return formatOf('ansible')
  const source = text === undefined ? readSource(path) : { path: file, text }
  const found = FORMATS.filter((format) => format.recognises?.(source))
  const [only] = found
  if (only !== undefined && found.length === 1) return only
  const what =
    only === undefined ? 'no format is recognised in it' : `it may be ${found.map(({ name }) => name).join(' or ')}`
  throw new MusterError('configuration', `cannot import ${printable(file)}: ${what}`, { hint })
}

function formatOf(kind: string): ImportFormat {
  const format = FORMATS.find(({ name }) => name === kind)
  if (format === undefined)
    throw new MusterError('usage', `unknown format: ${printable(kind)}`, { hint: howTo(IMPORT_KINDS) })
  return format
}

/**
 * Converts another tool's files to the text of a valid hosts.yaml. Without `kind` the format of the file is recognised.
 * `others`: formats that `muster import` converts to something else, for messages.
 * @throws MusterError `configuration` if there is nothing to read, no host in it, or what it has cannot be read without guessing
 */
export async function importInventory({
  kind,
  others = [],
  ...source
}: Omit<ImportSource, 'isRecognised'> & { readonly kind?: string; readonly others?: readonly string[] }) {
  const inventory = new ImportedInventory()
  const format = kind === undefined ? recognise(source, [...IMPORT_KINDS, ...others]) : formatOf(kind)
  if (kind === undefined) inventory.note(source.file ?? '', 0, `read as ${format.name}`)
  const read: string[] = []
  await format.read({ ...source, isRecognised: kind === undefined, onRead: (path) => read.push(path) }, inventory)
  inventory.settle()
  if (inventory.hosts.size === 0) {
    const where = read.length === 0 ? '' : ` in ${read.map(printable).join(', ')}`
    const notes = foldNotes(inventory.notes).map((note) => `\n${formatNote(note)}`)
    throw new MusterError('configuration', `no host was found${where}${notes.join('')}`, {
      hint: `Name another file: muster import ${format.name} FILE. Or make hosts.yaml from names: muster init m1 m2`,
    })
  }
  const text = formatHostsYaml(inventory, `Imported from ${format.name}: review it before use.`)
  const { hosts } = parseHostsYaml(text, 'hosts.yaml', [])
  return { text, hosts: hosts.length, notes: foldNotes(inventory.notes) }
}

const MAX_NOTES = 200

/** In the order of the files; equal notes of a file are one with their number, and only the first `MAX_NOTES` are listed. */
function foldNotes(notes: readonly ImportNote[]): ImportNote[] {
  const sorted = notes.toSorted((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : a.line - b.line))
  const groups = Map.groupBy(sorted, ({ path, text }) => JSON.stringify([path, text]))
  const folded = Array.from(groups.values(), ([first, ...others]) => ({
    ...(first as ImportNote),
    count: others.length + 1,
  }))
  const shown = folded.slice(0, MAX_NOTES)
  const more = folded.length - shown.length
  return more === 0 ? shown : [...shown, { path: shown.at(-1)?.path ?? '', line: 0, text: `and ${more} more notes` }]
}

/** `FILE:LINE: what was skipped (30 lines)`. */
export function formatNote({ path, line, text, count = 1 }: ImportNote): string {
  return `${printable(path)}${line === 0 ? '' : `:${line}`}: ${text}${count === 1 ? '' : ` (${count} times, first here)`}`
}
