/** Ansible: hosts, groups with children, and the variables for connecting to a host. */
import { getOrMake } from '../../base/collections.ts'
import { defined } from '../../base/defined.ts'
import { printable } from '../../base/printable.ts'
import { expandHostSet, MAX_NAMES } from '../host-set.ts'
import { type ImportedHost, type ImportedInventory, isTree, readTree, type SourceFile } from './imported-inventory.ts'

type Variables = Map<string, { readonly value: string; readonly line: number }>
type AnsibleGroup = {
  readonly hosts: Set<string>
  readonly children: Set<string>
  readonly variables: Variables
  readonly line: number
}

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

function setVariable(variables: Variables, assignment: string, line: number): void {
  const equals = assignment.indexOf('=')
  if (equals <= 0) return
  const value = assignment.slice(equals + 1).trim()
  variables.set(assignment.slice(0, equals).trim(), { value: value.replace(/^(["'])(.*)\1$/, '$2'), line })
}

/** The first line with content decides: a YAML inventory begins with `---` or with `group:`. */
function isYaml({ path, text }: SourceFile): boolean {
  const first = text.split('\n').find((line) => line.trim() !== '' && !line.trimStart().startsWith('#')) ?? ''
  return /\.ya?ml$/.test(path) || /^(?:---|[\w.-]+:\s*$)/.test(first)
}

const SSH_CONNECTIONS = ['local', 'ssh', 'smart', 'paramiko', 'paramiko_ssh']
const ARGUMENTS = ['ansible_ssh_common_args', 'ansible_ssh_extra_args']
const SECRET = /pass|secret|token/i

function jumpOf(sshArguments: string): string | undefined {
  return /(?:^|\s)-J\s*([^\s"']+)/.exec(sshArguments)?.[1] ?? /ProxyJump[= ]\s*([^\s"']+)/i.exec(sshArguments)?.[1]
}

/** One file as Ansible sees it, before it is turned into ours. */
class AnsibleInventory {
  readonly #hosts = new Map<string, { readonly variables: Variables; readonly line: number }>()
  readonly #groups = new Map<string, AnsibleGroup>()
  readonly #file: SourceFile
  readonly #imported: ImportedInventory

  constructor(file: SourceFile, imported: ImportedInventory) {
    this.#file = file
    this.#imported = imported
    if (!isYaml(file)) this.#readIni()
    else for (const [name, tree] of Object.entries(readTree(file, imported))) this.#readTree(name, tree)
  }

  #host(name: string, line: number): Variables {
    return getOrMake(this.#hosts, name, () => ({ variables: new Map(), line })).variables
  }

  #group(name: string, line: number): AnsibleGroup {
    return getOrMake(this.#groups, name, () => ({ hosts: new Set(), children: new Set(), variables: new Map(), line }))
  }

  #note(line: number, text: string): void {
    this.#imported.note(this.#file.path, line, text)
  }

  #namesOf(pattern: string, line: number): string[] {
    return this.#imported.expand(pattern, expandAnsiblePattern, this.#file.path, line)
  }

  #readIni(): void {
    let section = { group: 'ungrouped', kind: 'hosts' }
    for (const [index, raw] of this.#file.text.split(/\r?\n/).entries()) {
      const number = index + 1
      const line = raw.trim()
      if (/^(?:$|[#;])/.test(line)) continue
      const header = /^\[([^:\]]+)(?::(\w+))?\]\s*(?:[#;].*)?$/.exec(line)
      if (header) {
        section = { group: header[1] ?? '', kind: header[2] ?? 'hosts' }
        this.#group(section.group, number)
        if (!['hosts', 'children', 'vars'].includes(section.kind))
          this.#note(number, `${printable(line)} is not a section`)
      } else if (section.kind === 'children') {
        this.#group(section.group, number).children.add(shellWords(line)[0] ?? '')
      } else if (section.kind === 'vars') {
        setVariable(this.#group(section.group, number).variables, line, number)
      } else if (section.kind === 'hosts') this.#readHostLine(line, number, section.group)
    }
  }

  #readHostLine(line: string, number: number, group: string): void {
    const [pattern = '', ...assignments] = shellWords(line)
    for (const name of this.#namesOf(pattern, number)) {
      const [, host = name, port] = /^([^:]+):(\d+)$/.exec(name) ?? []
      const variables = this.#host(host, number)
      if (port !== undefined) variables.set('ansible_port', { value: port, line: number })
      this.#group(group, number).hosts.add(host)
      for (const assignment of assignments) setVariable(variables, assignment, number)
    }
  }

  #readTree(name: string, tree: unknown): void {
    const group = this.#group(name, 0)
    if (!isTree(tree)) return
    const setAll = (variables: Variables, values: unknown): void => {
      for (const [key, value] of Object.entries(isTree(values) ? values : {}))
        variables.set(key, { value: typeof value === 'object' ? JSON.stringify(value) : String(value), line: 0 })
    }
    setAll(group.variables, tree.vars)
    for (const [pattern, variables] of Object.entries(isTree(tree.hosts) ? tree.hosts : {})) {
      for (const host of this.#namesOf(pattern, 0)) {
        group.hosts.add(host)
        setAll(this.#host(host, 0), variables)
      }
    }
    for (const [child, inner] of Object.entries(isTree(tree.children) ? tree.children : {})) {
      group.children.add(child)
      this.#readTree(child, inner)
    }
  }

  /** Undefined: the host is not reached over SSH. */
  #hostFrom(variables: Variables, name: string, line: number): ImportedHost | undefined {
    const used = new Set<string>()
    /** The value under Ansible's names for one thing, the newer first; templates have none. */
    const take = (...names: readonly string[]): string | undefined => {
      const found = names.find((each) => variables.get(each)?.value.includes('{{') === false)
      if (found === undefined) return undefined
      used.add(found)
      return variables.get(found)?.value
    }
    const address = take('ansible_host', 'ansible_ssh_host')
    const port = take('ansible_port', 'ansible_ssh_port')
    const user = take('ansible_user', 'ansible_ssh_user')
    const identityFile = take('ansible_ssh_private_key_file', 'ansible_private_key_file')
    const connection = take('ansible_connection')
    const jump = jumpOf(take(...ARGUMENTS) ?? '')
    if (jump === undefined) for (const variable of ARGUMENTS) used.delete(variable)
    if (connection !== undefined && !SSH_CONNECTIONS.includes(connection)) {
      this.#note(line, `${printable(name)} is left out: its connection ${printable(connection)} is not SSH`)
      return undefined
    }
    for (const [variable, { value, line: at }] of variables) {
      if (used.has(variable)) continue
      if (SECRET.test(variable))
        this.#note(at, `${printable(variable)} is not copied: secrets have no place in hosts.yaml`)
      else if (value.includes('{{')) this.#note(at, `${printable(variable)} is a template: ${printable(value)}`)
      else this.#note(at, `variable ${printable(variable)} has no counterpart`)
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

  /** Groups in the order in which their variables apply: `all` first, then from the outermost to the innermost, by name. */
  #groupOrder(): string[] {
    const depths = new Map<string, number>()
    const visit = (name: string, depth: number, trail: readonly string[]): void => {
      if (trail.includes(name) || (depths.get(name) ?? -1) >= depth) return
      depths.set(name, depth)
      for (const child of this.#groups.get(name)?.children ?? []) visit(child, depth + 1, [...trail, name])
    }
    for (const name of this.#groups.keys()) visit(name, name === 'all' ? 0 : 1, [])
    return [...depths].sort(([a, x], [b, y]) => x - y || (a < b ? -1 : 1)).map(([name]) => name)
  }

  #membersOf(name: string, seen = new Set<string>()): Set<string> {
    if (seen.has(name)) return new Set()
    seen.add(name)
    if (name === 'all') return new Set(this.#hosts.keys())
    const { hosts = [], children = [] } = this.#groups.get(name) ?? {}
    return new Set([...hosts, ...[...children].flatMap((child) => [...this.#membersOf(child, seen)])])
  }

  import(): void {
    const { path } = this.#file
    const inherited = new Map<string, Variables>()
    for (const group of this.#groupOrder()) {
      const variables = this.#groups.get(group)?.variables
      if (!variables || variables.size === 0) continue
      for (const host of this.#membersOf(group)) {
        const own = getOrMake(inherited, host, (): Variables => new Map())
        for (const [key, value] of variables) own.set(key, value)
      }
    }
    const names = new Map<string, string>()
    for (const [host, { variables, line }] of this.#hosts) {
      const keys = this.#hostFrom(new Map([...(inherited.get(host) ?? []), ...variables]), host, line)
      const name = keys && this.#imported.addHost(host, keys, path, line)
      if (name !== undefined) names.set(host, name)
    }
    for (const [name, { hosts, children, line }] of this.#groups) {
      if (name === 'all' || name === 'ungrouped') continue
      const group = this.#imported.group(name, path, line)
      for (const host of hosts) {
        const known = names.get(host)
        if (known !== undefined) group.hosts.add(known)
      }
      for (const child of children) {
        if (this.#membersOf(child).size > 0) group.groups.add(this.#imported.groupName(child, path, line))
        else this.#note(line, `group ${printable(child)} has no hosts`)
      }
    }
  }
}

export function importAnsible(file: SourceFile, imported: ImportedInventory): void {
  new AnsibleInventory(file, imported).import()
}
