/** Ansible: hosts, groups with children, and the variables for connecting to a host. */

import { getOrMake } from '../../base/collections.ts'
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { expandHostSet } from '../host-set.ts'
import { type ImportedHost, type ImportedInventory, isTree, readTree, type SourceFile } from './imported-inventory.ts'

type Variables = Map<string, { readonly value: string; readonly line: number }>
type AnsibleGroup = {
  readonly hosts: Set<string>
  readonly children: Set<string>
  readonly variables: Variables
  readonly line: number
}

/** An inventory as Ansible sees it, before it is turned into ours. */
class AnsibleInventory {
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

/** Ansible's names for one thing, the newer first. */
const CONNECTION_VARIABLES = {
  address: ['ansible_host', 'ansible_ssh_host'],
  port: ['ansible_port', 'ansible_ssh_port'],
  user: ['ansible_user', 'ansible_ssh_user'],
  identity_file: ['ansible_ssh_private_key_file', 'ansible_private_key_file'],
  connection: ['ansible_connection'],
  arguments: ['ansible_ssh_common_args', 'ansible_ssh_extra_args'],
} as const

const SECRET = /pass|secret|token/i

function jumpOf(sshArguments: string): string | undefined {
  return /(?:^|\s)-J\s*([^\s"']+)/.exec(sshArguments)?.[1] ?? /ProxyJump[= ]\s*([^\s"']+)/i.exec(sshArguments)?.[1]
}

/** Undefined: the host is not reached over SSH. */
function hostFrom(
  variables: Variables,
  name: string,
  line: number,
  path: string,
  imported: ImportedInventory,
): ImportedHost | undefined {
  const used = new Set<string>()
  const take = (key: keyof typeof CONNECTION_VARIABLES): string | undefined => {
    for (const variable of CONNECTION_VARIABLES[key]) {
      const found = variables.get(variable)
      if (found === undefined) continue
      if (found.value.includes('{{')) continue
      used.add(variable)
      return found.value
    }
    return undefined
  }
  const address = take('address')
  const port = take('port')
  const user = take('user')
  const identityFile = take('identity_file')
  const connection = take('connection')
  const jump = jumpOf(take('arguments') ?? '')
  if (jump === undefined) for (const variable of CONNECTION_VARIABLES.arguments) used.delete(variable)
  if (connection !== undefined && !['local', 'ssh', 'smart', 'paramiko', 'paramiko_ssh'].includes(connection)) {
    imported.note(path, line, `${printable(name)} is left out: its connection ${printable(connection)} is not SSH`)
    return undefined
  }
  for (const [variable, { value, line: at }] of variables) {
    if (used.has(variable)) continue
    if (SECRET.test(variable))
      imported.note(path, at, `${printable(variable)} is not copied: secrets have no place in hosts.yaml`)
    else if (value.includes('{{')) imported.note(path, at, `${printable(variable)} is a template: ${printable(value)}`)
    else imported.note(path, at, `variable ${printable(variable)} has no counterpart`)
  }
  return {
    ...(address === undefined || address === name ? {} : { address }),
    ...(port === undefined ? {} : { port: Number(port) }),
    ...(user === undefined ? {} : { user }),
    ...(connection === 'local' ? { transport: 'local' as const } : {}),
    ...(jump === undefined ? {} : { jump }),
    ...(identityFile === undefined ? {} : { identity_file: identityFile }),
  }
}

/** Groups in the order in which their variables apply: `all` first, then from the outermost to the innermost, by name. */
function groupOrder(inventory: AnsibleInventory): string[] {
  const depths = new Map<string, number>()
  const visit = (name: string, depth: number, trail: readonly string[]): void => {
    if (trail.includes(name) || (depths.get(name) ?? -1) >= depth) return
    depths.set(name, depth)
    for (const child of inventory.groups.get(name)?.children ?? []) visit(child, depth + 1, [...trail, name])
  }
  for (const name of inventory.groups.keys()) visit(name, name === 'all' ? 0 : 1, [])
  return [...depths].sort(([a, x], [b, y]) => x - y || (a < b ? -1 : 1)).map(([name]) => name)
}

function membersOf(name: string, inventory: AnsibleInventory, seen = new Set<string>()): Set<string> {
  if (seen.has(name)) return new Set()
  seen.add(name)
  const group = inventory.groups.get(name)
  if (name === 'all') return new Set(inventory.hosts.keys())
  return new Set([
    ...(group?.hosts ?? []),
    ...[...(group?.children ?? [])].flatMap((child) => [...membersOf(child, inventory, seen)]),
  ])
}

export function importAnsible(inventory: AnsibleInventory, path: string, imported: ImportedInventory): void {
  const variablesOf = new Map<string, Variables>([...inventory.hosts.keys()].map((name) => [name, new Map()]))
  for (const group of groupOrder(inventory)) {
    const variables = inventory.groups.get(group)?.variables
    if (!variables || variables.size === 0) continue
    for (const host of membersOf(group, inventory)) {
      for (const [key, value] of variables) variablesOf.get(host)?.set(key, value)
    }
  }
  const names = new Map<string, string>()
  for (const [host, { variables, line }] of inventory.hosts) {
    const merged = new Map([...(variablesOf.get(host) ?? []), ...variables])
    const keys = hostFrom(merged, host, line, path, imported)
    const name = keys && imported.addHost(host, keys, path, line)
    if (name !== undefined) names.set(host, name)
  }
  for (const [name, { hosts, children, line }] of inventory.groups) {
    if (name === 'all' || name === 'ungrouped') continue
    const group = imported.group(name, path, line)
    for (const host of hosts) {
      const known = names.get(host)
      if (known !== undefined) group.hosts.add(known)
    }
    for (const child of children) {
      if (membersOf(child, inventory).size > 0) group.groups.add(imported.groupName(child, path, line))
      else imported.note(path, line, `group ${printable(child)} has no hosts`)
    }
  }
}
