/** A foreign YAML file as plain values; nothing is printed, aliases cannot multiply without bound. */
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { parseYaml } from '../parse-yaml.ts'
import type { ImportedInventory, SourceFile } from './imported-inventory.ts'

export type Tree = Readonly<Record<string, unknown>>

export function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The mapping that the file holds; an empty one, with a note, when it holds none. */
export function readTree({ path, text }: SourceFile, inventory: ImportedInventory): Tree {
  try {
    const document = parseYaml(text, { prettyErrors: true })
    const [error] = document.errors
    if (error) throw error
    const value: unknown = document.toJS({ maxAliasCount: 100 })
    if (isTree(value)) return value
    inventory.note(path, 0, 'left out: it is not a mapping')
  } catch (error) {
    inventory.note(path, 0, `left out: ${printable(messageOf(error).split('\n')[0] ?? '')}`)
  }
  return {}
}
