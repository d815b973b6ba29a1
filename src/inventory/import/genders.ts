/** genders of LLNL: `node[1-4],login attribute,attribute=value`. Each attribute is a group, and each of its values (libgenders(3)). */
import { basename } from 'node:path'
import { printable } from '../../base/printable.ts'
import { expandHostSet } from '../host-set.ts'
import { contentLines, type ImportFormat, type ImportSource, inEtc, refuse, sourcesOf } from './format.ts'
import type { ImportedInventory } from './imported-inventory.ts'

function read(source: ImportSource, inventory: ImportedInventory): void {
  for (const { path, text } of sourcesOf(source, 'genders', [inEtc(source, 'genders')])) {
    for (const { number, line } of contentLines(text)) {
      const [nodes = '', attributes = '', ...others] = line.split(/\s+/)
      if (others.length > 0)
        refuse(
          path,
          number,
          `${printable(others[0] ?? '')} is a third word`,
          'A line of genders has nodes, white space, and attributes between commas without white space.',
        )
      const names = inventory
        .expand(nodes, expandHostSet, path, number)
        .map((node) => inventory.addHost(node, {}, path, number))
        .filter((name) => name !== undefined)
      for (const attribute of attributes.split(',').filter((each) => each !== '')) {
        const [, key = '', value] = /^([^=]*)(?:=(.*))?$/s.exec(attribute) ?? []
        // A value with the name of the node differs on each.
        const groups = value === undefined || /%n/.test(value) ? [key] : [key, `${key}:${value.replaceAll('%%', '%')}`]
        if (groups.length === 1 && value !== undefined)
          inventory.note(path, number, `${printable(key)}: its value ${printable(value)} has no counterpart`)
        for (const group of groups) for (const name of names) inventory.group(group, path, number).hosts.add(name)
      }
    }
  }
}

const LINE = /^[\w.[\],-]+\s+[\w.%:/-]+(?:=[^\s,]*)?(?:,[\w.%:/-]+(?:=[^\s,]*)?)*$/

export const genders: ImportFormat = {
  name: 'genders',
  about: 'nodes and attributes of genders (default: /etc/genders)',
  recognises({ path, text }) {
    const lines = contentLines(text)
    // Lines of two words may be anything; attributes between commas are not.
    const isGenders = lines.every(({ line }) => LINE.test(line)) && lines.some(({ line }) => /\s\S+,\S/.test(line))
    return basename(path) === 'genders' || isGenders
  },
  read,
}
