/** Ansible: hosts and groups with children, and the variables that say how a host is reached. */
import { printable } from '../../base/printable.ts'
import type { AnsibleInventory, Variables } from './ansible-files.ts'
import type { ImportedHost, ImportedInventory } from './imported-inventory.ts'

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
