/** hosts.yaml: text → inventory, or every problem of the file at once. */
import { defined } from '../base/defined.ts'
import { MusterError } from '../base/errors.ts'
import { printable } from '../base/printable.ts'
import type { Host } from './host.ts'
import { isAddress, isGroupName, isHostName } from './host-name.ts'
import { expandHostSet, foldHostSet, type HostSetContext, HostSetError } from './host-set.ts'
import { hostsYamlSchema, type Section, type SectionContext } from './hosts-yaml-schema.ts'
import { type Inventory, unknownHost } from './inventory.ts'
import { type Located, offsetOf, problemList, textOffsetOf, type YamlProblem, YamlReader } from './yaml-reader.ts'

/** The message has a line `FILE:LINE:COLUMN: what is wrong` for each problem. */
export class InventoryError extends MusterError {
  readonly file: string
  readonly problems: readonly YamlProblem[]

  constructor(file: string, problems: readonly YamlProblem[]) {
    const lines = problems.map(({ line, column, message }) => `${printable(file)}:${line}:${column}: ${message}`)
    super('configuration', problemList(lines), { hint: 'docs/hosts-yaml.md lists every key.' })
    this.file = file
    this.problems = problems
  }
}

type HostsFile = NonNullable<ReturnType<ReturnType<typeof hostsYamlSchema>['read']>>
type HostEntry = NonNullable<HostsFile['hosts']>[number]
type GroupEntry = NonNullable<HostsFile['groups']>[number]
type ConnectionKeys = NonNullable<HostsFile['defaults']>

const recordOf = <T>(entries: readonly { readonly key: string; readonly value: T }[]): Record<string, T> =>
  Object.fromEntries(entries.map(({ key, value }) => [key, value]))

/** Expands `%n` (last number in the name), `%h` (name) and `%%`; `wrong`: what follows the key and the template in an error message. */
export function expandAddress(template: string, name: string): { address: string } | { wrong: string } {
  const number = /(\d+)\D*$/.exec(name)?.[1]?.replace(/^0+(?=\d)/, '')
  let wrong: string | undefined
  const address = template.replace(/%(.?)/gsu, (token, letter: string) => {
    if (letter === '%') return '%'
    if (letter === 'h') return name
    if (letter === 'n' && number !== undefined) return number
    wrong ??=
      letter === 'n'
        ? `has %n, but the name ${name} has no number`
        : `has ${printable(token)}; known are %n, %h and %% (write fe80::1%%eth0 for a zone)`
    return token
  })
  if (wrong === undefined && !isAddress(address)) wrong = 'is not a DNS name or IP address'
  return wrong === undefined ? { address } : { wrong }
}

class HostsFileBuilder {
  readonly #reader: YamlReader
  readonly #content: HostsFile
  readonly #hosts: Host[] = []
  readonly #names: string[] = []
  readonly #groupEntries: ReadonlyMap<string, GroupEntry>
  readonly #groups = new Map<string, readonly string[]>()
  readonly #openGroups: string[] = []
  readonly #context: HostSetContext
  readonly #sections: ReadonlyMap<string, Section>
  /** The values of the requested sections. */
  readonly #resolved = new Map<string, unknown>()

  constructor(reader: YamlReader, content: HostsFile, sections: readonly Section[]) {
    this.#reader = reader
    this.#content = content
    this.#sections = new Map(sections.map((section) => [section.key, section]))
    this.#groupEntries = new Map((content.groups ?? []).map((entry) => [entry.key, entry]))
    const known = new Set<string>()
    this.#context = {
      names: this.#names,
      groupNames: [...this.#groupEntries.keys()],
      group: (name) => this.#group(name),
      isHost: (name) => {
        for (let i = known.size; i < this.#names.length; i += 1) known.add(this.#names[i] ?? '')
        return known.has(name)
      },
    }
  }

  build(): Omit<Inventory, 'file'> {
    const { cluster, hosts = [], defaults = {}, groups = [] } = this.#content
    const takenAt = new Map<string, HostEntry>()
    for (const entry of hosts) this.#addHosts(entry, defaults, takenAt)
    const isHostless = [...this.#sections.values()].some(
      (section) => section.needsNoHost && section.key in this.#content,
    )
    if (hosts.length === 0 && !isHostless && this.#reader.problemCount === 0) {
      this.#reader.fail(0, 'there is no host under hosts; write for example hosts: { m8: { address: 192.168.1.80 } }')
    }
    this.#checkJumps()
    for (const { key } of groups) this.#group(key)
    const sections = [...this.#sections.keys()].map((key) => [key, this.#section(key)] as const)
    return {
      ...defined({ cluster }),
      hosts: this.#hosts,
      groups: this.#groups,
      sections: new Map(sections.filter(([, value]) => value !== undefined)),
    }
  }

  #addHosts(entry: HostEntry, defaults: ConnectionKeys, takenAt: Map<string, HostEntry>): void {
    const offset = textOffsetOf(entry.keyNode)
    const names = this.#tryExpand({ value: entry.key, offset }, {})
    const twice = new Map<HostEntry, string[]>()
    for (const name of names) {
      const taken = takenAt.get(name)
      if (!isHostName(name)) {
        this.#reader.fail(
          offset,
          name === 'all'
            ? 'a host may not be called all: it means every host'
            : `${printable(name)} is not a host name: letters, digits, _ . and - only, the first a letter, digit or _`,
        )
        return
      }
      if (taken) twice.set(taken, [...(twice.get(taken) ?? []), name])
      else {
        takenAt.set(name, entry)
        this.#names.push(name)
        this.#hosts.push(this.#host(name, entry, defaults))
      }
    }
    for (const [taken, doubled] of twice) {
      const { line } = this.#reader.placeOf(offsetOf(taken.keyNode))
      const verb = doubled.length === 1 ? 'is' : 'are'
      this.#reader.fail(
        offset,
        `${foldHostSet(doubled)} ${verb} listed twice; first as ${printable(taken.key)} in line ${line}`,
      )
    }
  }

  #host(name: string, { value }: HostEntry, defaults: ConnectionKeys): Host {
    const keys = { ...defaults, ...value }
    const { resources } = keys
    const { cpu, gpu, memory, custom } = resources ?? {}
    // A default jump host does not jump over itself.
    const hops = keys.jump?.value.flatMap((hop) => hop.split(',')).map((hop) => hop.trim())
    const jump = value.jump === undefined && hops?.includes(name) ? [] : hops?.filter((hop) => hop !== 'none')
    const expand = (key: 'address' | 'ssh_alias'): string | undefined => {
      const template = value[key]
      if (template === undefined) return undefined
      const expanded = expandAddress(template.value, name)
      if ('address' in expanded) return expanded.address
      this.#reader.fail(template.offset, `${key} ${printable(template.value)} ${expanded.wrong}`)
      return undefined
    }
    return {
      name,
      number: this.#names.length,
      ...defined({
        sshAlias: expand('ssh_alias'),
        address: expand('address'),
        port: keys.port,
        user: keys.user,
        transport: keys.transport,
        jump,
        identityFiles: keys.identity_file,
        forwardAgent: keys.forward_agent,
        persistMs: keys.persist === undefined ? undefined : Math.round(keys.persist * 1000),
        shell: keys.shell,
        resources: resources && defined({ cpu, gpu, memoryBytes: memory, custom: custom && recordOf(custom) }),
        labels: value.labels && recordOf(value.labels),
      }),
    }
  }

  /** Circular jumps. Hops outside the file are left to ssh. */
  #checkJumps(): void {
    const byName = new Map(this.#hosts.map((host) => [host.name, host]))
    const reported = new Set<number>()
    for (const entry of this.#content.hosts ?? []) {
      const offset = entry.value.jump?.offset ?? this.#content.defaults?.jump?.offset
      if (offset === undefined) continue
      for (const name of this.#tryExpand({ value: entry.key, offset: 0 }, {}, false)) {
        const loop = findJumpLoop(name, byName)
        if (loop && !reported.has(offset)) {
          reported.add(offset)
          this.#reader.fail(offset, `jump hosts form a loop: ${loop.join(' → ')}`)
        }
      }
    }
  }

  /** The members of a group, resolved on first use. */
  #group(name: string): readonly string[] | undefined {
    const known = this.#groups.get(name)
    const entry = this.#groupEntries.get(name)
    if (known || !entry) return known
    const offset = textOffsetOf(entry.keyNode)
    if (this.#openGroups.includes(name)) {
      const circle = [...this.#openGroups.slice(this.#openGroups.indexOf(name)), name]
      this.#reader.fail(offset, `groups form a loop: ${circle.map((group) => `@${group}`).join(' → ')}`)
      this.#groups.set(name, [])
      return []
    }
    if (!isGroupName(name)) {
      this.#reader.fail(
        offset,
        name === 'all' ? 'a group may not be called all: it is every host' : `${printable(name)} is not a group name`,
      )
    }
    this.#openGroups.push(name)
    const before = this.#reader.problemCount
    const members = new Set(entry.value.flatMap((set) => this.#tryExpand(set, this.#context)))
    if (members.size === 0 && this.#reader.problemCount === before) {
      this.#reader.fail(offset, `group ${printable(name)} is empty`)
    }
    this.#openGroups.pop()
    this.#groups.set(name, [...members])
    return this.#groups.get(name)
  }

  #expand(set: Located<string>): string[] {
    const before = this.#reader.problemCount
    const names = this.#tryExpand(set, this.#context)
    if (names.length === 0 && this.#reader.problemCount === before) {
      this.#reader.fail(set.offset, `${printable(set.value)} names no host`)
    }
    return names
  }

  #tryExpand({ value, offset }: Located<string>, context: HostSetContext, isReported = true): string[] {
    try {
      return expandHostSet(value, context)
    } catch (error) {
      if (!(error instanceof HostSetError)) throw error
      if (isReported) this.#reader.fail(offset + error.offset, error.reason)
      return []
    }
  }

  /** The value of a section; undefined: absent, or the file has a mistake in it. */
  #section(key: string): unknown {
    const raw = this.#content[key]
    if (raw !== undefined && !this.#resolved.has(key)) {
      // A section that refers to itself through others gets undefined.
      this.#resolved.set(key, undefined)
      this.#resolved.set(key, this.#sections.get(key)?.resolve(raw as never, this.#sectionContext))
    }
    return this.#resolved.get(key)
  }

  readonly #sectionContext: SectionContext = {
    hosts: this.#hosts,
    expand: (set) => this.#expand(set),
    expandOrAll: (set) => (set === undefined ? [...this.#names] : this.#expand(set)),
    knownHost: ({ value, offset }) => {
      const wrong = unknownHost(this.#names, value)
      if (wrong !== undefined) this.#reader.fail(offset, wrong)
      return value
    },
    other: <T>({ key }: Section<T>) => this.#section(key) as T | undefined,
    fail: (offset, message) => this.#reader.fail(offset, message),
  }
}

/** The names in a circle of jump hosts that begins at `start`, or undefined. The first hop of each host decides its route. */
function findJumpLoop(
  name: string,
  hosts: ReadonlyMap<string, Host>,
  trail: readonly string[] = [],
): string[] | undefined {
  if (trail.includes(name)) return [...trail.slice(trail.indexOf(name)), name]
  const route = [...trail, name]
  const [first, ...later] = hosts.get(name)?.jump ?? []
  const again = later.find((hop) => route.includes(hop))
  const loop = first === undefined ? undefined : findJumpLoop(first, hosts, route)
  return loop ?? (again === undefined ? undefined : [...route, again])
}

/** Reads the text of a hosts.yaml. @throws InventoryError with every problem; each line begins with `file`. */
export function parseHostsYaml(text: string, file: string, sections: readonly Section[]): Inventory {
  const reader = new YamlReader(text)
  let inventory: Omit<Inventory, 'file'> | undefined
  if (reader.isReadable) {
    const content = reader.read(hostsYamlSchema(sections), reader.document.contents, 'the file')
    if (content) inventory = new HostsFileBuilder(reader, content, sections).build()
  }
  if (reader.problemCount > 0 || !inventory) throw new InventoryError(file, reader.problems)
  return { file, ...inventory }
}
