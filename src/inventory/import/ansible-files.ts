/** Ansible's inventory files, INI and YAML, as Ansible sees them. */
import { getOrMake } from '../../base/collections.ts'
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { expandHostSet } from '../host-set.ts'
import type { ImportedInventory, SourceFile } from './imported-inventory.ts'
import { isTree, readTree } from './plain-yaml.ts'

export type Variables = Map<string, { readonly value: string; readonly line: number }>
type AnsibleGroup = {
  readonly hosts: Set<string>
  readonly children: Set<string>
  readonly variables: Variables
  readonly line: number
}

/** An inventory as Ansible sees it, before it is turned into ours. */
export class AnsibleInventory {
  readonly hosts = new Map<string, { readonly variables: Variables; readonly line: number }>()
  readonly groups = new Map<string, AnsibleGroup>()

  host(name: string, line: number): { readonly variables: Variables } {
    return getOrMake(this.hosts, name, () => ({ variables: new Map(), line }))
  }

  group(name: string, line: number): AnsibleGroup {
    return getOrMake(this.groups, name, () => ({ hosts: new Set(), children: new Set(), variables: new Map(), line }))
  }
}

const MAX_NAMES = 100_000

/** `web[01:50]`, `db-[a:f]`, `n[1:9:2]` (Ansible: Adding ranges of hosts). */
export function expandAnsiblePattern(pattern: string): string[] {
  const match = /^(.*?)\[([^\]:]*):([^\]:]*)(?::(\d+))?\](.*)$/.exec(pattern)
  if (!match) return [pattern]
  const [, before = '', first = '', last = '', step = '1', after = ''] = match
  let items: string[]
  if (/^[A-Za-z]$/.test(first) && /^[A-Za-z]$/.test(last)) {
    const start = first.charCodeAt(0)
    const count = Math.max(0, Math.floor((last.charCodeAt(0) - start) / Math.max(1, Number(step))) + 1)
    items = Array.from({ length: count }, (_, index) => String.fromCharCode(start + index * Number(step)))
  } else if (/^\d*$/.test(first) && /^\d+$/.test(last)) {
    const isPadded = first.length > 1 && first.startsWith('0')
    items = expandHostSet(`[${Number(first)}-${Number(last)}/${step}]`)
    // As in Ansible, all are as wide as the first one.
    if (isPadded) items = items.map((number) => number.padStart(first.length, '0'))
  } else throw new Error(`[${first}:${last}] is not a range`)
  const names = expandAnsiblePattern(after).flatMap((rest) => items.map((item) => before + item + rest))
  if (names.length > MAX_NAMES) throw new Error(`it names more than ${MAX_NAMES} hosts`)
  return names
}

/** Words as a shell splits them; `#` outside quotes ends the line. */
function shellWords(line: string): string[] {
  const words: string[] = []
  for (const match of line.matchAll(/#.*$|((?:[^\s"'#\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*'|(?<=\S)#)+)/g)) {
    if (match[1] === undefined) break
    words.push(
      match[1].replace(
        /"((?:[^"\\]|\\.)*)"|'([^']*)'|\\(.)/g,
        (_, double, single, escaped) => double ?? single ?? escaped ?? '',
      ),
    )
  }
  return words
}

function setVariable(variables: Variables, assignment: string, line: number): boolean {
  const equals = assignment.indexOf('=')
  if (equals <= 0) return false
  const value = assignment.slice(equals + 1).trim()
  variables.set(assignment.slice(0, equals).trim(), { value: value.replace(/^(["'])(.*)\1$/, '$2'), line })
  return true
}

export function readAnsibleIni({ path, text }: SourceFile, imported: ImportedInventory): AnsibleInventory {
  const inventory = new AnsibleInventory()
  let section = { group: 'ungrouped', kind: 'hosts' }
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const number = index + 1
    const line = raw.trim()
    if (line === '' || line.startsWith('#') || line.startsWith(';')) continue
    const header = /^\[([^:\]]+)(?::(\w+))?\]\s*(?:[#;].*)?$/.exec(line)
    if (header) {
      section = { group: header[1] ?? '', kind: header[2] ?? 'hosts' }
      inventory.group(section.group, number)
      if (!['hosts', 'children', 'vars'].includes(section.kind))
        imported.note(path, number, `${printable(line)} is not a section`)
    } else if (section.kind === 'children') {
      inventory.group(section.group, number).children.add(shellWords(line)[0] ?? '')
    } else if (section.kind === 'vars') {
      setVariable(inventory.group(section.group, number).variables, line, number)
    } else if (section.kind === 'hosts') readHostLine(line, number, section.group, inventory, path, imported)
  }
  return inventory
}

function readHostLine(
  line: string,
  number: number,
  group: string,
  inventory: AnsibleInventory,
  path: string,
  imported: ImportedInventory,
): void {
  const [pattern = '', ...assignments] = shellWords(line)
  for (const name of namesOf(pattern, path, number, imported)) {
    const port = /^([^:]+):(\d+)$/.exec(name)
    const host = inventory.host(port?.[1] ?? name, number)
    if (port?.[2] !== undefined) host.variables.set('ansible_port', { value: port[2], line: number })
    inventory.group(group, number).hosts.add(port?.[1] ?? name)
    for (const assignment of assignments) setVariable(host.variables, assignment, number)
  }
}

function namesOf(pattern: string, path: string, line: number, imported: ImportedInventory): string[] {
  try {
    return expandAnsiblePattern(pattern)
  } catch (error) {
    imported.note(path, line, `${printable(pattern)} is left out: ${messageOf(error)}`)
    return []
  }
}

export function readAnsibleYaml(file: SourceFile, imported: ImportedInventory): AnsibleInventory {
  const inventory = new AnsibleInventory()
  const addVariables = (variables: Variables, tree: unknown): void => {
    if (!isTree(tree)) return
    for (const [key, value] of Object.entries(tree)) {
      variables.set(key, { value: typeof value === 'object' ? JSON.stringify(value) : String(value), line: 0 })
    }
  }
  const addGroup = (name: string, tree: unknown): void => {
    const group = inventory.group(name, 0)
    if (!isTree(tree)) return
    addVariables(group.variables, tree.vars)
    if (isTree(tree.hosts)) {
      for (const [pattern, variables] of Object.entries(tree.hosts)) {
        for (const host of namesOf(pattern, file.path, 0, imported)) {
          group.hosts.add(host)
          addVariables(inventory.host(host, 0).variables, variables)
        }
      }
    }
    if (isTree(tree.children)) {
      for (const [child, inner] of Object.entries(tree.children)) {
        group.children.add(child)
        addGroup(child, inner)
      }
    }
  }
  for (const [name, tree] of Object.entries(readTree(file, imported))) addGroup(name, tree)
  return inventory
}
