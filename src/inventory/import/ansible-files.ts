/** Reads INI and YAML inventories without Ansible, as its plugins `ini` and `yaml` do: what they refuse is refused here, too. */
import { readdirSync } from 'node:fs'
import { dirname, extname, join, parse } from 'node:path'
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { parseHostSpec } from '../host-name.ts'
import { MAX_NAMES } from '../host-set.ts'
import { AnsibleInventory } from './ansible-inventory.ts'
import { refuse } from './format.ts'
import type { ImportedInventory, SourceFile } from './imported-inventory.ts'
import { entriesOf, isTree, readYaml, type YamlSource } from './read-yaml.ts'
import { splitShellWords } from './shell-words.ts'

const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'

/** What to do where only Ansible can read a file. */
const withAnsible = (path: string): string =>
  `Install Ansible and import again. Or run this where it is installed, and import the result:
  ansible-inventory -i ${shellQuote(printable(path))} --list > list.json
  muster import ansible list.json`

/** The numbers or letters of `first:last:step`. */
function rangeOf(range: string): string[] {
  const bounds = range.split(':')
  const [first = '', last = '', stepText = '1'] = bounds
  if (bounds.length < 2 || bounds.length > 3) throw new Error(`[${range}] is not a range: write it like [01:50]`)
  if (last === '') throw new Error(`[${range}] has no end`)
  if (first.length > 1 && first.startsWith('0') && first.length !== last.length)
    throw new Error(`the ends of [${range}] are padded to different widths`)
  const step = Number(/^[1-9]\d{0,8}$/.test(stepText) ? stepText : Number.NaN)
  const [from, to] = [LETTERS.indexOf(first), LETTERS.indexOf(last)]
  if (first.length === 1 && last.length === 1 && from >= 0 && to >= 0 && step > 0) {
    if (from > to) throw new Error(`the range [${range}] runs backwards`)
    return [...LETTERS.slice(from, to + 1)].filter((_, index) => index % step === 0)
  }
  if (!/^\d{0,15}$/.test(first) || !/^\d{1,15}$/.test(last) || !(step > 0)) throw new Error(`[${range}] is not a range`)
  const width = first.length > 1 && first.startsWith('0') ? first.length : 0
  const count = Math.max(0, Math.floor((Number(last) - Number(first)) / step) + 1)
  if (count > MAX_NAMES) throw new Error(`it names more than ${MAX_NAMES} hosts`)
  return Array.from({ length: count }, (_, index) => String(Number(first) + index * step).padStart(width, '0'))
}

/** `web[01:50]`, `db-[a:f]`, `n[1:9:2]` (Ansible: Adding ranges of hosts). */
export function expandAnsiblePattern(pattern: string): string[] {
  const [before = '', ...rest] = pattern.split('[')
  let names = [before]
  for (const part of rest) {
    const close = part.indexOf(']')
    if (close < 0) throw new Error('[ without ] after it')
    const items = rangeOf(part.slice(0, close))
    if (names.length * items.length > MAX_NAMES) throw new Error(`it names more than ${MAX_NAMES} hosts`)
    names = names.flatMap((name) => items.map((item) => name + item + part.slice(close + 1)))
  }
  return names
}

/** Names, and the port after the last colon; brackets around all of it are those of an address, not of a range. */
function hostsOf(pattern: string): { names: string[]; port?: number } {
  const address = /^\[(.+)\]:(\d+)$/.exec(pattern)
  if (address && (parseHostSpec(pattern) || !/^[^:]*:[^:]*(?::\d+)?$/.test(address[1] ?? '')))
    return { names: [address[1] ?? ''], port: Number(address[2]) }
  if (parseHostSpec(pattern)?.host === pattern && pattern.includes(':')) return { names: [pattern] }
  const [, host = pattern, port] = /^((?:[^:[\]]|\[[^\]]*\])*):(\d+)$/.exec(pattern) ?? []
  if (port === undefined && /:$/.test(pattern.trim())) throw new Error('a port is missing after :')
  const names = expandAnsiblePattern(host)
  return port === undefined ? { names } : { names, port: Number(port) }
}

class FileReader {
  readonly #file: SourceFile
  readonly #inventory: AnsibleInventory
  readonly #imported: ImportedInventory

  constructor(file: SourceFile, inventory: AnsibleInventory, imported: ImportedInventory) {
    this.#file = file
    this.#inventory = inventory
    this.#imported = imported
  }

  #refuse(line: number, reason: string): never {
    refuse(
      this.#file.path,
      line,
      `${reason}; Ansible would not read this inventory`,
      'Correct the line, or name the format of the file: muster import FORMAT FILE',
    )
  }

  #hostsOf(pattern: string, line: number): { names: string[]; port?: number } {
    let hosts: ReturnType<typeof hostsOf>
    try {
      hosts = hostsOf(pattern)
    } catch (error) {
      this.#refuse(line, `${printable(pattern)}: ${(error as Error).message}`)
    }
    this.#imported.countExpanded(hosts.names.length, this.#file.path)
    return hosts
  }

  readIni(): void {
    const inventory = this.#inventory
    const { text } = this.#file
    let section = { group: 'ungrouped', kind: 'hosts' }
    /** Groups that children or vars name, with the line, before they are declared. */
    const pending = new Map<string, number>()
    const declared = new Set(['all', 'ungrouped'])
    for (const [index, raw] of text.split(/\r\n|\n|\r/).entries()) {
      const number = index + 1
      const line = raw.trim()
      if (/^(?:$|[#;])/.test(line)) continue
      const [, group, kind = 'hosts'] = /^\[([^:\]\s]+)(?::(\w+))?\]\s*(?:#.*)?$/.exec(line) ?? []
      if (group !== undefined) {
        if (!['hosts', 'children', 'vars'].includes(kind)) this.#refuse(number, `${printable(line)} is not a section`)
        section = { group, kind }
        inventory.group(group, number)
        if (kind !== 'vars') declared.add(group)
        else if (!pending.has(group)) pending.set(group, number)
      } else if (/^\[.*\]$/.test(line)) this.#refuse(number, `${printable(line)} is not a section`)
      else if (section.kind === 'children') {
        const child = /^([^:\]\s]+)\s*(?:#.*)?$/.exec(line)?.[1]
        if (child === undefined) this.#refuse(number, `${printable(line)} is not the name of a group`)
        inventory.group(section.group, number).children.add(child)
        if (!pending.has(child)) pending.set(child, number)
      } else if (section.kind === 'vars') {
        if (!line.includes('=')) this.#refuse(number, `${printable(line)} is not NAME=VALUE`)
        this.#set(inventory.group(section.group, number).variables, line, number)
      } else this.#readHostLine(line, number, section.group)
    }
    for (const [name, line] of pending)
      if (!declared.has(name)) this.#refuse(line, `there is no group ${printable(name)}`)
  }

  #readHostLine(line: string, number: number, group: string): void {
    const words = splitShellWords(line, true)
    if (words === undefined) this.#refuse(number, 'a quote is not closed')
    const [pattern = '', ...assignments] = words
    const wrong = assignments.find((assignment) => !assignment.includes('='))
    if (wrong !== undefined) this.#refuse(number, `${printable(wrong)} is not NAME=VALUE`)
    if (pattern === '---') this.#refuse(number, '--- begins a YAML file')
    const { names, port } = this.#hostsOf(pattern, number)
    for (const name of names) {
      const variables = this.#addHost(name, port, number)
      this.#inventory.group(group, number).hosts.add(name)
      for (const assignment of assignments) this.#set(variables, assignment, number)
    }
  }

  /** The variables of a host; its first line alone can give it a port after a colon. */
  #addHost(name: string, port: number | undefined, line: number): ReturnType<AnsibleInventory['host']> {
    const isNew = !this.#inventory.hosts.has(name)
    const variables = this.#inventory.host(name, line)
    if (isNew && port !== undefined) variables.set('ansible_port', { value: port, line })
    return variables
  }

  #set(variables: ReturnType<AnsibleInventory['host']>, assignment: string, line: number): void {
    const equals = assignment.indexOf('=')
    const value = assignment.slice(equals + 1).trim()
    // A literal of Python, of which only text matters here.
    variables.set(assignment.slice(0, equals).trim(), { value: value.replace(/^(["'])(.*)\1$/s, '$2'), line })
  }

  readYaml(yaml: YamlSource): void {
    for (const [name, group] of yaml.tree) this.#readGroup(name, group, [], yaml)
    this.#imported.countExpanded(0, this.#file.path)
  }

  #readGroup(key: unknown, content: unknown, above: readonly string[], yaml: YamlSource): string {
    const name = String(key)
    const keys = [...above, name]
    const line = yaml.lineOf(...keys)
    const group = this.#inventory.group(name, line)
    if (typeof key !== 'string') this.#refuse(line, `the name of a group must be text: write "${printable(name)}"`)
    if (content !== null && !isTree(content)) {
      this.#inventory.note(line, `${printable(name)} is not a group`)
      return name
    }
    for (const [part, value] of entriesOf(content)) {
      const at = yaml.lineOf(...keys, part)
      if (!['vars', 'children', 'hosts'].includes(part)) {
        this.#inventory.note(at, `${printable(part)} is left out: a group has hosts, children and vars`)
        continue
      }
      const entries = typeof value === 'string' ? new Map([[value, null]]) : (value ?? new Map())
      if (!isTree(entries)) this.#refuse(at, `${part} of ${printable(name)} must be a mapping`)
      for (const [entry, inner] of entries) {
        const place = yaml.lineOf(...keys, part, String(entry))
        if (part === 'vars') group.variables.set(String(entry), { value: inner, line: place })
        else if (part === 'children') group.children.add(this.#readGroup(entry, inner, [...keys, part], yaml))
        else this.#readHosts(entry, inner, group.hosts, [...keys, part], yaml)
      }
    }
    return name
  }

  #readHosts(pattern: unknown, values: unknown, group: Set<string>, above: readonly string[], yaml: YamlSource): void {
    const line = yaml.lineOf(...above, String(pattern))
    if (typeof pattern !== 'string')
      this.#refuse(line, `the name of a host must be text: write "${printable(String(pattern))}"`)
    const { names, port } = this.#hostsOf(pattern, line)
    // As in Python, nothing, 0 and an empty list are empty.
    if (!isTree(values) && values && !(Array.isArray(values) && values.length === 0))
      this.#refuse(line, `the variables of ${printable(pattern)} must be a mapping`)
    for (const name of names) {
      const variables = this.#addHost(name, port, line)
      group.add(name)
      for (const [key, value] of entriesOf(values))
        variables.set(key, { value, line: yaml.lineOf(...above, pattern, key) })
    }
  }
}

/** Variables beside the file, which only Ansible combines in its order. */
function refuseDirectories({ path }: SourceFile, { hosts, groups }: AnsibleInventory): void {
  for (const [directory, names] of [
    ['group_vars', groups],
    ['host_vars', hosts],
  ] as const) {
    const place = join(dirname(path), directory)
    let found: string[]
    try {
      found = readdirSync(place)
    } catch {
      continue
    }
    const known = found.find((file) => {
      const { name, ext } = parse(file)
      return (
        names.has(file) ||
        file === 'all' ||
        (['.yml', '.yaml', '.json'].includes(ext) && (names.has(name) || name === 'all'))
      )
    })
    if (known === undefined) continue
    refuse(
      join(place, known),
      0,
      'variables in this directory can only be read by Ansible',
      `${withAnsible(path)}\nWithout these variables: muster import ansible - < ${shellQuote(printable(path))}`,
    )
  }
}

/** @throws MusterError `configuration` for what is no INI or YAML inventory, or needs Ansible; `isAlone`: the text is all there is */
export function readAnsibleFile(file: SourceFile, imported: ImportedInventory, isAlone: boolean): AnsibleInventory {
  const { path, text } = file
  const needsAnsible = (what: string): never =>
    refuse(path, 0, `${what}, which only Ansible can read`, withAnsible(path))
  const extension = extname(path)
  if (text.startsWith('#!')) needsAnsible('it is an inventory script')
  if (text.startsWith('$ANSIBLE_VAULT;')) needsAnsible('it is encrypted with ansible-vault')
  if (extension === '.toml' || /^\[[\w.-]+\.(?:hosts|vars|children)[\].]/m.test(text)) needsAnsible('it is TOML')

  const inventory = new AnsibleInventory(path, imported)
  const reader = new FileReader(file, inventory, imported)
  const isNamedYaml = ['.yaml', '.yml', '.json'].includes(extension)
  const yaml = isNamedYaml || extension === '' ? readYaml(file, '1.1') : ''
  if (typeof yaml !== 'string' && yaml.tree.size > 0) {
    if (yaml.tree.get('plugin')) needsAnsible('it configures an inventory plugin')
    reader.readYaml(yaml)
  } else if (isNamedYaml && typeof yaml === 'string')
    refuse(
      path,
      0,
      `it is not an inventory of Ansible: ${yaml}`,
      'Name the format of the file: muster import FORMAT FILE',
    )
  else reader.readIni()
  if (!isAlone) refuseDirectories(file, inventory)
  inventory.inheritVariables()
  return inventory
}

/** The output of `ansible-inventory --list`; undefined: the text is something else. */
export function readAnsibleList(path: string, text: string, imported: ImportedInventory): AnsibleInventory | undefined {
  let list: unknown
  try {
    list = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isRecord(list) || !isRecord(list._meta) || !isRecord(list._meta.hostvars)) return undefined
  const inventory = new AnsibleInventory(path, imported)
  const namesIn = (value: unknown): string[] =>
    Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []
  for (const [name, content] of Object.entries(list)) {
    if (name === '_meta' || !isRecord(content)) continue
    const group = inventory.group(name, 0)
    for (const child of namesIn(content.children)) group.children.add(child)
    for (const host of namesIn(content.hosts)) {
      inventory.host(host, 0)
      group.hosts.add(host)
    }
    imported.countExpanded(group.hosts.size, path)
  }
  for (const [host, values] of Object.entries(list._meta.hostvars)) {
    const variables = inventory.host(host, 0)
    for (const [key, value] of Object.entries(isRecord(values) ? values : {})) variables.set(key, { value, line: 0 })
  }
  return inventory
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
