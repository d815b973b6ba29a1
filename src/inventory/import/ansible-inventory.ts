/** An inventory as Ansible sees it, and what of it hosts.yaml can have. */
import { getOrMake } from '../../base/collections.ts'
import { defined } from '../../base/defined.ts'
import { printable } from '../../base/printable.ts'
import { refuse } from './format.ts'
import type { ImportedHost, ImportedInventory } from './imported-inventory.ts'
import { jumpOfArguments } from './proxy-command.ts'
import { splitShellWords } from './shell-words.ts'

/** `value` as YAML or JSON has it; `line` 0: unknown. */
type Variables = Map<string, { readonly value: unknown; readonly line: number }>

type AnsibleHost = { readonly variables: Variables; readonly line: number }
type AnsibleGroup = {
  readonly hosts: Set<string>
  readonly children: Set<string>
  readonly variables: Variables
  readonly line: number
}

const SSH_CONNECTIONS = ['local', 'ssh', 'smart', 'paramiko', 'paramiko_ssh']
const ARGUMENTS = ['ansible_ssh_common_args', 'ansible_ssh_extra_args', 'ansible_ssh_args']
const SECRET = /pass|secret|token/i
/** A template within a template within … */
const MAX_TEMPLATES = 5
const MAX_DEPTH = 100

const isTemplate = (value: unknown): boolean => typeof value === 'string' && /\{\{|\{%/.test(value)

/** Of ansible-vault, as it is written in files and in the output of `ansible-inventory --list`. */
const isEncrypted = (value: unknown): boolean =>
  (typeof value === 'string' && value.startsWith('$ANSIBLE_VAULT;')) ||
  (typeof value === 'object' && value !== null && '__ansible_vault' in value)

/** The text of a value that is one. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'object' && value !== null && '__ansible_unsafe' in value) return String(value.__ansible_unsafe)
  // As Python writes it.
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined
}

export class AnsibleInventory {
  readonly path: string
  readonly hosts = new Map<string, AnsibleHost>()
  readonly groups = new Map<string, AnsibleGroup>()
  readonly #imported: ImportedInventory

  constructor(path: string, imported: ImportedInventory) {
    this.path = path
    this.#imported = imported
  }

  /** The variables of a host, added if new. */
  host(name: string, line: number): Variables {
    return getOrMake(this.hosts, name, () => ({ variables: new Map(), line })).variables
  }

  group(name: string, line: number): AnsibleGroup {
    return getOrMake(this.groups, name, () => ({ hosts: new Set(), children: new Set(), variables: new Map(), line }))
  }

  note(line: number, text: string): void {
    this.#imported.note(this.path, line, text)
  }

  /** Gives hosts the variables of their groups. @throws MusterError `configuration` if groups contain each other */
  inheritVariables(): void {
    const inherited = new Map<string, Variables>()
    for (const group of this.#groupOrder()) {
      const variables = this.groups.get(group)?.variables
      if (!variables || variables.size === 0) continue
      for (const name of this.#membersOf(group)) {
        const own = getOrMake(inherited, name, (): Variables => new Map())
        for (const [key, value] of variables) own.set(key, value)
      }
    }
    for (const [name, variables] of inherited) {
      const own = this.host(name, 0)
      for (const [key, value] of variables) if (!own.has(key)) own.set(key, value)
    }
  }

  /** Groups in the order in which their variables apply: `all` first, then from the outermost to the innermost, by priority and name. */
  #groupOrder(): string[] {
    const depths = new Map<string, number>()
    const visit = (name: string, depth: number, trail: readonly string[]): void => {
      const line = this.groups.get(name)?.line ?? 0
      if (trail.includes(name))
        refuse(
          this.path,
          line,
          `groups form a loop: ${[...trail.slice(trail.indexOf(name)), name].map(printable).join(' → ')}`,
        )
      if (trail.length > MAX_DEPTH) refuse(this.path, line, `groups are nested more than ${MAX_DEPTH} deep`)
      if ((depths.get(name) ?? -1) >= depth) return
      depths.set(name, depth)
      const { children = [] } = this.groups.get(name) ?? {}
      // Ansible moves their hosts to other groups.
      if (name === 'ungrouped' && new Set(children).size > 0)
        refuse(this.path, line, 'group ungrouped cannot have groups')
      const special = ['all', 'ungrouped'].find((each) => new Set(children).has(each))
      if (special === 'all' || (special !== undefined && name !== 'all'))
        refuse(this.path, line, `group ${special} cannot be in group ${printable(name)}`)
      for (const child of children) visit(child, depth + 1, [...trail, name])
    }
    for (const name of this.groups.keys()) visit(name, name === 'all' ? 0 : 1, [])
    const priorityOf = (name: string): number =>
      Number(this.groups.get(name)?.variables.get('ansible_group_priority')?.value ?? 1)
    return [...depths]
      .sort(([a, x], [b, y]) => x - y || priorityOf(a) - priorityOf(b) || (a < b ? -1 : 1))
      .map(([name]) => name)
  }

  #membersOf(name: string): ReadonlySet<string> {
    if (name === 'all') return new Set(this.hosts.keys())
    const members = new Set<string>()
    const seen = new Set<string>()
    const visit = (group: string): void => {
      if (seen.has(group)) return
      seen.add(group)
      const { hosts = [], children = [] } = this.groups.get(group) ?? {}
      for (const host of group === 'ungrouped' ? this.#hostsWithoutGroup() : hosts) members.add(host)
      for (const child of children) visit(child)
    }
    visit(name)
    return members
  }

  #hostsWithoutGroup(): string[] {
    const grouped = new Set<string>()
    for (const [name, { hosts }] of this.groups)
      if (name !== 'all' && name !== 'ungrouped') for (const host of hosts) grouped.add(host)
    return [...this.hosts.keys()].filter((host) => !grouped.has(host))
  }

  /** Adds everything to the inventory that is being imported. */
  import(): void {
    const names = new Map<string, string>()
    for (const [host, { variables, line }] of this.hosts) {
      const keys = this.#keysOf(variables, host, line)
      const name = keys && this.#imported.addHost(host, keys, this.path, line)
      if (name !== undefined) names.set(host, name)
    }
    for (const [name, { hosts, children, line }] of this.groups) {
      if (name === 'all' || name === 'ungrouped') continue
      const group = this.#imported.group(name, this.path, line)
      for (const host of hosts) {
        const known = names.get(host)
        if (known !== undefined) group.hosts.add(known)
      }
      for (const child of children) {
        if (this.#membersOf(child).size > 0) this.#imported.addGroup(child, this.path, line, group)
        else this.note(line, `group ${printable(child)} has no hosts`)
      }
    }
  }

  /** Undefined: the host is left out, and a note says why. */
  #keysOf(variables: Variables, name: string, line: number): ImportedHost | undefined {
    const used = new Set<string>()
    /** The value under Ansible's names for one thing: the last that is set. */
    const take = (...names: readonly string[]): string | undefined => {
      const found = names.findLast((each) => variables.has(each))
      const value = found === undefined ? undefined : this.#resolve(variables.get(found)?.value, name, variables)
      if (found === undefined || value === undefined) return undefined
      for (const each of names) used.add(each)
      return value
    }
    const leaveOut = (reason: string): undefined =>
      this.note(line, `${printable(name)} is left out: ${reason}`) as undefined

    const address = take('ansible_host', 'ansible_ssh_host')
    const port = take('ansible_port', 'ansible_ssh_port')
    const user = take('ansible_user', 'ansible_ssh_user')
    const identityFile = take('ansible_private_key_file', 'ansible_ssh_private_key_file')
    const connection = take('ansible_connection')?.replace(/^ansible\.builtin\./, '')
    const jump = this.#jumpOf(variables, take, used)
    if (connection !== undefined && !SSH_CONNECTIONS.includes(connection))
      return leaveOut(`its connection ${printable(connection)} is not SSH`)
    // Without them it would be another machine.
    for (const place of ['ansible_host', 'ansible_ssh_host', 'ansible_port', 'ansible_ssh_port']) {
      const value = used.has(place) ? undefined : variables.get(place)?.value
      if (isEncrypted(value)) return leaveOut(`its ${place} is encrypted with ansible-vault`)
      if (value !== undefined) return leaveOut(`its ${place} is a template: ${printable(String(value))}`)
    }
    for (const [variable, { value, line: at }] of variables) {
      if (used.has(variable) || variable === 'ansible_group_priority') continue
      if (SECRET.test(variable) || isEncrypted(value))
        this.note(at, `${printable(variable)} is not copied: secrets have no place in hosts.yaml`)
      else if (isTemplate(value)) this.note(at, `${printable(variable)} is a template: ${printable(String(value))}`)
      else this.note(at, `variable ${printable(variable)} has no counterpart`)
    }
    return defined({
      address: address === name ? undefined : address,
      port: port === undefined ? undefined : Number(port),
      user,
      transport: connection === 'local' ? connection : undefined,
      jump,
      identity_file: identityFile,
    })
  }

  #jumpOf(variables: Variables, take: (name: string) => string | undefined, used: Set<string>): string | undefined {
    for (const variable of ARGUMENTS) {
      const found = jumpOfArguments(splitShellWords(take(variable) ?? '') ?? [])
      if (found === undefined) {
        used.delete(variable)
        continue
      }
      const { jump, leftOut } = found
      if (leftOut.length > 0)
        this.note(
          variables.get(variable)?.line ?? 0,
          `${variable}: the jump host ${printable(jump)} is kept without ${printable(leftOut.join(' '))}`,
        )
      return jump
    }
    return undefined
  }

  /** Text, with the templates in it that are only the name of a variable; undefined: no text, or another template. */
  #resolve(value: unknown, name: string, variables: Variables): string | undefined {
    let text = textOf(value)
    for (let round = 0; text !== undefined && isTemplate(text); round += 1) {
      if (round === MAX_TEMPLATES || text.length > 1000) return undefined
      let isUnknown = false
      text = text.replace(/\{\{\s*(\w+)\s*\}\}/g, (written, variable: string) => {
        const found =
          variable === 'inventory_hostname'
            ? name
            : variable === 'inventory_hostname_short'
              ? name.replace(/\..*/s, '')
              : textOf(variables.get(variable)?.value)
        isUnknown ||= found === undefined || isEncrypted(found)
        return found ?? written
      })
      if (isUnknown || !/\{\{\s*\w+\s*\}\}/.test(text)) break
    }
    return text === undefined || isTemplate(text) || isEncrypted(text) ? undefined : text
  }
}
