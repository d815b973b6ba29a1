/** A plain list: one host or host set a line, such as `[user@]host[:port]` or `gpu[01-16]`. */
import { printable } from '../../base/printable.ts'
import { isExplicitSpec, parseHostSpec } from '../host-name.ts'
import { expandHostSet } from '../host-set.ts'
import { contentLines, type ImportFormat, type ImportSource, refuse, sourcesOf } from './format.ts'
import type { ImportedInventory } from './imported-inventory.ts'

/** A word of a list that is not a word of something else: a name with a digit or a dot, a login, or a set of names. */
const SURE = /[\d.@[]/
const NAMES = /^[\w[][\w.[\],-]*$/
/** A section of another format. */
const SECTION = /^\[[^\]:]*\]$/

/** `n1:4` may be 4 processes in a hostfile of MPICH. */
function isCount(line: string): boolean {
  const { user, port = Number.POSITIVE_INFINITY } = parseHostSpec(line) ?? {}
  return user === undefined && port < 1000
}

function namesOf(line: string): string[] {
  if (parseHostSpec(line)) return [line]
  return expandHostSet(line)
}

function read(source: ImportSource, inventory: ImportedInventory): void {
  for (const { path, text } of sourcesOf(source, 'list', [])) {
    if (text.startsWith('#!')) refuse(path, 1, 'it is a program, not a list of hosts')
    for (const { number, line } of contentLines(text)) {
      if (/\s/.test(line))
        refuse(
          path,
          number,
          `${printable(line)} is more than one word`,
          'A list has one host or host set on each line: m8, root@m9:22, gpu[01-16]',
        )
      for (const name of inventory.expand(line, namesOf, path, number)) {
        if (isExplicitSpec(name)) inventory.addSpec(name, path, number)
        else inventory.addHost(name, {}, path, number)
      }
    }
  }
}

export const list: ImportFormat = {
  name: 'list',
  about: 'one host or host set on each line',
  recognises({ text }) {
    const lines = contentLines(text)
    return (
      !text.startsWith('#!') &&
      lines.length > 0 &&
      lines.some(({ line }) => SURE.test(line)) &&
      lines.every(({ line }) => !SECTION.test(line) && (parseHostSpec(line) ? !isCount(line) : NAMES.test(line)))
    )
  },
  read,
}
