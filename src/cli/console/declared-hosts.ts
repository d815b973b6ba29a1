/**
 * The hosts that an open console knows: from one hosts.yaml, from several as a workspace, or only from the command line. Files
 * are read again when they change.
 */
import { basename, dirname } from 'node:path'
import { getOrMake } from '../../base/collections.ts'
import { MusterError } from '../../base/errors.ts'
import { KeptPromise } from '../../base/kept-promise.ts'
import { printable } from '../../base/printable.ts'
import type { Endpoint, Host } from '../../inventory/host.ts'
import { isGroupName, parseHostSpec } from '../../inventory/host-name.ts'
import { bareName } from '../../inventory/host-set.ts'
import { type Inventory, inventoryFromTarget, resolveTarget, type TargetOptions } from '../../inventory/inventory.ts'
import { type EndpointOptions, resolveEndpoints } from '../../inventory/resolve-endpoints.ts'
import type { DeclaredNames } from '../../ui/console/declared.ts'

/** A file of a workspace. `title`: the group of its hosts. */
export type WorkspacePart = { readonly title: string; readonly inventory: Inventory }

type Origin = WorkspacePart & { readonly name: string }

/** A file of a workspace, whose hosts have the names that it gives them. What it says changes with the file. */
export interface WorkspaceFile {
  readonly title: string
  readonly inventory: Inventory
  /** Their names in the console. */
  readonly names: ReadonlyMap<string, string>
  /** Of all its hosts. */
  endpoints(): Promise<readonly Endpoint[]>
}

/** Where each host name of the workspace comes from. */
type Workspace = {
  readonly inventory: Inventory
  readonly origins: ReadonlyMap<string, Origin>
  /** By title. */
  readonly parts: ReadonlyMap<string, Part>
}

type Part = {
  readonly inventory: Inventory
  readonly names: ReadonlyMap<string, string>
  readonly endpoints: KeptPromise<readonly Endpoint[]>
}

export class DeclaredHosts {
  readonly #read: (() => Promise<Inventory | readonly WorkspacePart[]>) | undefined
  readonly #resolution: EndpointOptions
  /** Of a workspace, the names that were given to hosts, and to which (`FILE/HOST`): an open pane keeps its name, and no other host gets it. */
  readonly #given = new Map<string, string>()
  #now: Workspace
  #endpoints = this.#keep()
  /** Those of a workspace; empty if one file is open, or none. */
  readonly files: readonly WorkspaceFile[]

  /** `read`: reads the files again; absent: there are none. */
  constructor(
    first: Inventory | readonly WorkspacePart[],
    resolution: EndpointOptions,
    read?: () => Promise<Inventory | readonly WorkspacePart[]>,
  ) {
    this.#now = workspaceOf(first, resolution, this.#given)
    this.#resolution = resolution
    this.#read = read
    this.files = isParts(first) ? first.map(({ title }) => this.#file(title)) : []
  }

  /** Without a file and sections if several files are open: these belong to one cluster each. */
  get inventory(): Inventory {
    return this.#now.inventory
  }

  /** Several files are open. */
  get isWorkspace(): boolean {
    return this.#now.origins.size > 0
  }

  get names(): DeclaredNames {
    const { inventory, parts } = this.#now
    const { cluster, hosts, groups } = inventory
    const sections = [inventory, ...[...parts.values()].map((part) => part.inventory)].map((each) => each.sections)
    return {
      cluster,
      hosts: hosts.map(({ name }) => name),
      groups,
      entries: this.#ways(),
      sections,
    }
  }

  /** Of all declared hosts. */
  endpoints(): Promise<readonly Endpoint[]> {
    return this.#endpoints.get()
  }

  /** The hosts of a target. @throws MusterError `usage` or `configuration` */
  async resolve(expression: string | undefined, options: TargetOptions): Promise<readonly Endpoint[]> {
    const { inventory } = this.#now
    const isDeclared = inventory.file !== undefined || this.isWorkspace
    const hosts =
      isDeclared || expression === undefined
        ? resolveTarget(inventory, expression, options)
        : inventoryFromTarget(expression, options).hosts
    return await this.reach(hosts)
  }

  /** How hosts of the inventory are reached. */
  async reach(hosts: readonly Host[]): Promise<readonly Endpoint[]> {
    const { inventory, origins } = this.#now
    const originOf = (name: string) => origins.get(name) ?? origins.get(bareName(name))
    const reached = new Map<string, Endpoint>()
    for (const [from, own] of Map.groupBy(hosts, ({ name }) => originOf(name)?.inventory ?? inventory)) {
      const named = own.map((host) => ({ ...host, name: origins.get(host.name)?.name ?? host.name }))
      const endpoints = await resolveEndpoints(from, named, this.#resolution)
      for (const [index, endpoint] of endpoints.entries()) {
        const host = own[index]?.name ?? endpoint.host
        const scoped = inPasswordScope(endpoint, originOf(host)?.title)
        const ownName = endpoint.host
        // ssh_config and the system's ssh know it by its own name.
        const names = host === ownName ? {} : { ownName, alias: endpoint.alias ?? ownName }
        reached.set(host, { ...scoped, host, ...names })
      }
    }
    return hosts.flatMap(({ name }) => reached.get(name) ?? [])
  }

  /** Reads the files again. @throws as the first reading does; the earlier declarations then stay */
  async reload(): Promise<void> {
    if (this.#read === undefined) return
    this.#now = workspaceOf(await this.#read(), this.#resolution, this.#given)
    this.#endpoints = this.#keep()
  }

  /** Of each host, what the files say of its connection and its shell, also of its jump hosts. */
  #ways(): ReadonlyMap<string, unknown> {
    const { inventory, origins } = this.#now
    const ways = new Map<string, unknown>()
    for (const [from, hosts] of Map.groupBy(inventory.hosts, ({ name }) => origins.get(name)?.inventory ?? inventory)) {
      const byName = new Map(from.hosts.map((host) => [host.name, host]))
      for (const host of hosts) ways.set(host.name, wayTo(host, byName))
    }
    return ways
  }

  #keep(): KeptPromise<readonly Endpoint[]> {
    return new KeptPromise(() => this.reach(this.inventory.hosts))
  }

  #file(title: string): WorkspaceFile {
    const part = (): Part => {
      const found = this.#now.parts.get(title)
      if (found === undefined) throw new MusterError('internal', `there is no file ${title}`)
      return found
    }
    return {
      title,
      get inventory() {
        return part().inventory
      },
      get names() {
        return part().names
      },
      endpoints: () => part().endpoints.get(),
    }
  }
}

/** A host without what does not concern its connection; its number changes with the hosts above it. `trail`: reached through it. */
function wayTo(host: Host, byName: ReadonlyMap<string, Host>, trail: readonly string[] = []): object {
  const { number: _number, resources: _resources, labels: _labels, jump = [], ...own } = host
  const hops = jump.map((hop, index) => {
    const known = byName.get(hop) ?? byName.get(parseHostSpec(hop)?.host ?? hop)
    if (known === undefined || trail.includes(known.name)) return [hop]
    // A later hop is reached through the one before it.
    return [hop, wayTo(index === 0 ? known : { ...known, jump: [] }, byName, [...trail, host.name])]
  })
  return { ...own, hops }
}

/** Applies to its jump hosts, too. */
const inPasswordScope = (endpoint: Endpoint, scope: string | undefined): Endpoint =>
  scope === undefined
    ? endpoint
    : { ...endpoint, passwordScope: scope, jump: endpoint.jump.map((hop) => inPasswordScope(hop, scope)) }

/**
 * A host keeps its name if only one file has it, else it is `FILE/HOST`; so do groups. Each file is a group, too. `given`: the names
 * that hosts have kept since the start.
 */
function workspaceOf(
  from: Inventory | readonly WorkspacePart[],
  resolution: EndpointOptions,
  given: Map<string, string>,
): Workspace {
  if (!isParts(from)) return { inventory: from, origins: new Map(), parts: new Map() }
  const before = new Map([...given].map(([name, full]) => [full, name]))
  const titles = new Set(from.map(({ title }) => title))
  const hostCount = counted(from.flatMap(({ inventory }) => inventory.hosts.map(({ name }) => name)))
  const groupCount = counted(from.flatMap(({ inventory }) => [...inventory.groups.keys()]))
  const hosts: Host[] = []
  const groups = new Map<string, readonly string[]>()
  const origins = new Map<string, Origin>()
  const parts = new Map<string, Part>()
  for (const { title, inventory } of from) {
    const nameOf = (name: string): string => {
      const full = `${title}/${name}`
      return before.get(full) ?? ((hostCount.get(name) ?? 0) > 1 || given.has(name) ? full : name)
    }
    const names = new Map(inventory.hosts.map(({ name }) => [name, nameOf(name)]))
    for (const host of inventory.hosts) {
      const name = nameOf(host.name)
      hosts.push({ ...host, name, number: hosts.length + 1 })
      origins.set(name, { title, inventory, name: host.name })
      before.set(`${title}/${host.name}`, name)
      given.set(name, `${title}/${host.name}`)
    }
    const endpoints = new KeptPromise(() => resolveEndpoints(inventory, inventory.hosts, resolution))
    parts.set(title, { inventory, names, endpoints })
    groups.set(title, [...names.values()])
    for (const [group, members] of inventory.groups) {
      // A group of one file may be called as this one calls a group of another: `a/fast`.
      const isOwn = (groupCount.get(group) ?? 0) === 1 && !titles.has(group.split('/')[0] ?? '')
      groups.set(isOwn ? group : `${title}/${group}`, members.map(nameOf))
    }
  }
  return { inventory: { cluster: [...titles].join(' + '), hosts, groups }, origins, parts }
}

const isParts = (from: Inventory | readonly WorkspacePart[]): from is readonly WorkspacePart[] => Array.isArray(from)

function counted(names: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, getOrMake(counts, name, () => 0) + 1)
  return counts
}

/** A word of the command line that is a hosts.yaml and no host: a path. */
export const isHostsFile = (word: string): boolean => /\.ya?ml$/i.test(word)

/** `lab` for lab.yaml and for lab/hosts.yaml. @throws MusterError `usage` if two files have one title, or one has none */
export function titlesOf(files: readonly string[]): string[] {
  const titles = files.map((file) => {
    const stem = basename(file).replace(/\.ya?ml$/i, '')
    return stem === 'hosts' ? basename(dirname(file)) : stem
  })
  for (const [index, title] of titles.entries()) {
    const file = printable(files[index] ?? '')
    if (!isGroupName(title) || title.includes('/')) {
      throw new MusterError('usage', `${file} cannot be the name of a group`, {
        hint: 'Name the file with letters, digits, _, . and -.',
      })
    }
    const other = titles.indexOf(title)
    if (other !== index) {
      throw new MusterError('usage', `${printable(files[other] ?? '')} and ${file} have the same name`, {
        hint: `Their hosts would both be @${title}: rename one of the files.`,
      })
    }
  }
  return titles
}
