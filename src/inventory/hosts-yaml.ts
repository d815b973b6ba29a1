/** hosts.yaml: text → inventory, or every problem of the file at once. */
import { printable } from '../base/printable.ts'
import type { Host, Resources } from './host.ts'
import { isAddress, isGroupName, isHostName } from './host-name.ts'
import { expandHostSet, foldHostSet, type HostSetContext, HostSetError } from './host-set.ts'
import { hostsYamlSchema } from './hosts-yaml-schema.ts'
import { type EnvironmentSpec, type Inventory, type NfsSpec, type RaySpec, unknownHost } from './inventory.ts'
import { InventoryError } from './inventory-error.ts'
import { nearestWord } from './nearest-word.ts'
import { type Entry, type Located, offsetOf, type Schema, textOffsetOf, YamlReader } from './yaml-reader.ts'

type FileOf<S> = S extends Schema<infer T> ? T : never
type HostsFile = FileOf<typeof hostsYamlSchema>
type HostEntry = NonNullable<HostsFile['hosts']>[number]
type GroupEntry = NonNullable<HostsFile['groups']>[number]
type ConnectionKeys = NonNullable<HostsFile['defaults']>

/** Leaves out what is undefined, as `exactOptionalPropertyTypes` wants it. */
function defined<T extends object>(values: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never
}

/** `%n` the last number in the name, `%h` the name, `%%` a percent sign; a string that begins with `!` says what is wrong. */
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

  constructor(reader: YamlReader, content: HostsFile) {
    this.#reader = reader
    this.#content = content
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
    if (hosts.length === 0 && this.#reader.problemCount === 0) {
      this.#reader.fail(0, 'there is no host under hosts; write for example hosts: { m8: { address: 192.168.1.80 } }')
    }
    this.#checkJumps()
    for (const { key } of groups) this.#group(key)
    const trust = this.#content.trust?.mesh
    const environment = this.#environment()
    const ray = this.#ray()
    return {
      ...defined({ cluster, environment, ray, trustMesh: trust && this.#expand(trust) }),
      hosts: this.#hosts,
      groups: this.#groups,
      nfs: this.#nfs(),
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
        `${foldHostSet(doubled)} ${verb} named twice; first by ${printable(taken.key)} in line ${line}`,
      )
    }
  }

  #host(name: string, { value }: HostEntry, defaults: ConnectionKeys): Host {
    const keys = { ...defaults, ...value }
    // A default jump host does not jump over itself.
    const hops = keys.jump?.value.flatMap((hop) => hop.split(',')).map((hop) => hop.trim())
    const jump = value.jump === undefined && hops?.includes(name) ? [] : hops?.filter((hop) => hop !== 'none')
    const template = value.address
    const expanded = template && expandAddress(template.value, name)
    if (expanded && 'wrong' in expanded) {
      this.#reader.fail(template.offset, `address ${printable(template.value)} ${expanded.wrong}`)
    }
    const labels = value.labels && Object.fromEntries(value.labels.map((entry) => [entry.key, entry.value]))
    return {
      name,
      number: this.#names.length,
      ...defined({
        address: expanded && 'address' in expanded ? expanded.address : undefined,
        port: keys.port,
        user: keys.user,
        transport: keys.transport,
        jump,
        identityFiles: keys.identity_file,
        forwardAgent: keys.forward_agent,
        persistMs: keys.persist === undefined ? undefined : Math.round(keys.persist * 1000),
        shell: keys.shell,
        resources: keys.resources && this.#resources(keys.resources),
        labels,
      }),
    }
  }

  #resources({ cpu, gpu, memory, custom }: NonNullable<ConnectionKeys['resources']>): Resources {
    return defined({
      cpu,
      gpu,
      memoryBytes: memory,
      custom: custom && Object.fromEntries(custom.map((entry) => [entry.key, entry.value])),
    })
  }

  /** Jumps that come back to where they began. Hops outside the file are ssh's business. */
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
          this.#reader.fail(offset, `jump goes in a circle: ${loop.join(' → ')}`)
        }
      }
    }
  }

  /** The members of a group, found when first asked for. */
  #group(name: string): readonly string[] | undefined {
    const known = this.#groups.get(name)
    const entry = this.#groupEntries.get(name)
    if (known || !entry) return known
    const offset = textOffsetOf(entry.keyNode)
    if (this.#openGroups.includes(name)) {
      const circle = [...this.#openGroups.slice(this.#openGroups.indexOf(name)), name]
      this.#reader.fail(offset, `groups go in a circle: ${circle.map((group) => `@${group}`).join(' → ')}`)
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

  #knownHost({ value, offset }: Located<string>): string {
    const wrong = unknownHost(this.#names, value)
    if (wrong !== undefined) this.#reader.fail(offset, wrong)
    return value
  }

  #everywhere(set: Located<string> | undefined): readonly string[] {
    return set === undefined ? [...this.#names] : this.#expand(set)
  }

  #environment(): EnvironmentSpec | undefined {
    const located = this.#content.environment
    if (!located) return undefined
    const { conda, docker, venv } = located.value
    if ([conda, docker, venv].filter(Boolean).length !== 1) {
      this.#reader.fail(located.offset, 'environment must have exactly one of conda, docker and venv')
    }
    const chosen = conda ?? docker ?? venv
    if (!chosen) return undefined
    const hosts = this.#everywhere(chosen.hosts)
    const from = this.#sourceOf(chosen.from, hosts)
    if (conda) {
      const { name = '', prefix, file } = conda
      return { kind: 'conda', name, hosts, from, ...defined({ prefix, file }) }
    }
    if (docker) {
      const { image = '', file, name = 'muster', options = '--network host', restart = 'unless-stopped' } = docker
      const { command } = docker
      return { kind: 'docker', image, name, options, restart, hosts, from, ...defined({ file, command }) }
    }
    if (!venv) return undefined
    const { path = '', requirements, wheels, python = 'python3' } = venv
    return { kind: 'venv', path, python, hosts, from, ...defined({ requirements, wheels }) }
  }

  /** The host that the others of an environment follow. */
  #sourceOf(from: Located<string> | undefined, hosts: readonly string[]): string {
    if (from === undefined) {
      const head = this.#content.ray?.head?.value
      return (hosts.includes(head ?? '') ? head : hosts[0]) ?? ''
    }
    const name = this.#knownHost(from)
    if (this.#names.includes(name) && !hosts.includes(name)) {
      this.#reader.fail(from.offset, `${printable(name)} is not one of the hosts of the environment`)
    }
    return name
  }

  #nfs(): NfsSpec[] {
    return (this.#content.nfs ?? []).flatMap((entry) => {
      const { server, clients, path = '' } = entry
      if (!server || !clients) return []
      return {
        server: this.#knownHost(server),
        path,
        options: entry.options ?? 'rw,sync,no_subtree_check',
        clients: this.#expand(clients),
        mount: entry.mount ?? path,
        mountOptions: entry.mount_options ?? 'defaults',
        ...defined({ mode: entry.mode, exportTo: entry.export_to }),
      }
    })
  }

  #variableName({ key, keyNode }: Entry): string {
    if (!/^[A-Za-z_]\w*$/.test(key)) {
      this.#reader.fail(textOffsetOf(keyNode), `${printable(key)} is not a name of an environment variable`)
    }
    return key
  }

  /** Labels that no host has are a slip of the pen. */
  #labelsOfHosts(labels: Located<readonly string[]> | undefined): readonly string[] {
    const known = new Set(this.#hosts.flatMap((host) => Object.keys(host.labels ?? {})))
    for (const name of labels?.value ?? []) {
      if (known.has(name)) continue
      const nearest = nearestWord(name, known)
      const hint = nearest === undefined ? '' : `; did you mean ${printable(nearest)}?`
      this.#reader.fail(labels?.offset ?? 0, `no host has a label ${printable(name)}${hint}`)
    }
    return labels?.value ?? []
  }

  #ray(): RaySpec | undefined {
    const { head, workers, port = 6379, dashboard_host = '127.0.0.1', dashboard_port = 8265 } = this.#content.ray ?? {}
    const { node_ips = [], object_store, temp_dir, env = [], auth, ports, labels, supervise } = this.#content.ray ?? {}
    if (!head) return undefined
    return {
      nodeIps: Object.fromEntries(
        node_ips.map(({ key, value, keyNode }) => [
          this.#knownHost({ value: key, offset: textOffsetOf(keyNode) }),
          value,
        ]),
      ),
      variables: Object.fromEntries(env.map((entry) => [this.#variableName(entry), entry.value])),
      ...defined({ objectStoreBytes: object_store, tempDirectory: temp_dir }),
      head: this.#knownHost(head),
      workers: workers === undefined ? [] : this.#expand(workers),
      port,
      dashboardHost: dashboard_host,
      dashboardPort: dashboard_port,
      hasToken: auth === 'token',
      labels: this.#labelsOfHosts(labels),
      isSupervised: supervise === 'systemd',
      ports: defined({
        nodeManager: ports?.node_manager,
        objectManager: ports?.object_manager,
        workers: ports?.workers,
      }),
    }
  }
}

/** The names along a circle of jump hosts that begins at `start`, or undefined. Each host's first hop decides its own way. */
export function findJumpLoop(start: string, hosts: ReadonlyMap<string, Host>): string[] | undefined {
  const visit = (name: string, trail: readonly string[]): string[] | undefined => {
    const at = trail.indexOf(name)
    if (at >= 0) return [...trail.slice(at), name]
    const hops = hosts.get(name)?.jump ?? []
    for (const [index, hop] of hops.entries()) {
      const loop =
        index === 0 ? visit(hop, [...trail, name]) : [...trail, name].includes(hop) ? [...trail, name, hop] : undefined
      if (loop) return loop
    }
    return undefined
  }
  return visit(start, [])
}

/**
 * Reads the text of a hosts.yaml.
 * @throws InventoryError with every problem; `file` is what its lines begin with.
 */
export function parseHostsYaml(text: string, file: string): Inventory {
  const reader = new YamlReader(text)
  let inventory: Omit<Inventory, 'file'> | undefined
  if (reader.isReadable) {
    const content = reader.read(hostsYamlSchema, reader.document.contents, 'the file')
    if (content) inventory = new HostsFileBuilder(reader, content).build()
  }
  if (reader.problemCount > 0 || !inventory) throw new InventoryError(file, reader.problems)
  return { file, ...inventory }
}
