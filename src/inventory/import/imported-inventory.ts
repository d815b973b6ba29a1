/** What every importer collects: hosts and groups for hosts.yaml, and notes about what it skipped. */
import { getOrMake } from '../../base/collections.ts'
import { MusterError, messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { isAddress, isGroupName, isHostName, isPort, isUserName, parseHostSpec } from '../host-name.ts'
import { MAX_NAMES } from '../host-set.ts'

export type SourceFile = { readonly path: string; readonly text: string }

/** The keys of a host that can be written without knowing the rest of the file, in hosts.yaml's own spelling. */
export type ImportedHost = {
  readonly ssh_alias?: string
  readonly address?: string
  readonly port?: number
  readonly user?: string
  readonly transport?: string
  readonly jump?: string
  readonly identity_file?: string
}

/** Something that could not be imported. `line` counts from 1; 0: the whole file. `count`: how often the file has it. */
export type ImportNote = {
  readonly path: string
  readonly line: number
  readonly text: string
  readonly count?: number
}

/** More than a source of `MAX_NAMES` hosts in several groups each expands to. */
const MAX_EXPANDED = 10 * MAX_NAMES

const tooLarge = (path: string, count: number): MusterError =>
  new MusterError('configuration', `${printable(path)} names more than ${count} hosts`)

/** A host as the source has it, and where. */
type Origin = { readonly wanted: string; readonly host: ImportedHost; readonly path: string; readonly line: number }
type Group = { readonly hosts: Set<string>; readonly groups: Set<string> }

export class ImportedInventory {
  /** By names that are final after `settle`. */
  readonly hosts = new Map<string, ImportedHost>()
  readonly groups = new Map<string, Group>()
  readonly notes: ImportNote[] = []
  readonly #noted = new Set<string>()
  #expanded = 0
  readonly #nameOf = new Map<string, string>()
  readonly #origins = new Map<string, Origin>()
  readonly #groupNameOf = new Map<string, string>()

  note(path: string, line: number, text: string): void {
    const key = JSON.stringify([path, line, text])
    if (this.#noted.has(key)) return
    this.#noted.add(key)
    this.notes.push({ path, line, text: printable(text) })
  }

  /** Adds a machine, or finds it again; returns its name until `settle`, or undefined if no valid name is possible. */
  addHost(wanted: string, host: ImportedHost, path: string, line: number): string | undefined {
    const problem = problemOf(wanted, host)
    if (problem !== undefined) {
      this.note(path, line, `${printable(wanted)} is left out: ${problem}`)
      return undefined
    }
    const identity = JSON.stringify([wanted, host])
    const known = this.#nameOf.get(identity)
    if (known !== undefined) return known
    if (this.hosts.size >= MAX_NAMES) throw tooLarge(path, MAX_NAMES)
    const name = this.#freeName(wanted, host)
    this.hosts.set(name, host)
    this.#origins.set(name, { wanted, host, path, line })
    this.#nameOf.set(identity, name)
    return name
  }

  /** When all is added: gives hosts their final names, and notes each that is not the one in the source. */
  settle(): void {
    const renamed = new Map<string, string>()
    const others = new Set<string>()
    // A host without a login of its own has its name before those that are the same host with one.
    for (const [name, { wanted, host }] of this.#origins) {
      const holder = this.#origins.get(wanted)
      if (name === wanted || holder?.wanted !== wanted || hasLogin(host) || !hasLogin(holder.host)) continue
      renamed.set(name, wanted)
      const other = this.#freeName(wanted, holder.host, others)
      others.add(other)
      renamed.set(wanted, other)
    }
    const finalName = (name: string): string => renamed.get(name) ?? name
    this.hosts.clear()
    for (const [before, { wanted, host, path, line }] of this.#origins) {
      const name = finalName(before)
      if (name !== wanted) this.note(path, line, `${printable(wanted)} is called ${name} here`)
      // What ssh_config says about the wanted name counts also under the other one.
      const origin = /[:%]/.test(wanted) ? { address: wanted } : { ssh_alias: wanted }
      this.hosts.set(name, name === wanted || host.address !== undefined ? host : { ...origin, ...host })
    }
    if (renamed.size === 0) return
    for (const { hosts } of this.groups.values()) {
      const names = [...hosts].map(finalName)
      hosts.clear()
      for (const name of names) hosts.add(name)
    }
  }

  /** Adds a machine written as `[user@]host[:port]`, also to a group. */
  addSpec(spec: string, path: string, line: number, group?: Group): string | undefined {
    const { host, ...login } = parseHostSpec(spec) ?? {}
    if (host === undefined) this.note(path, line, `${printable(spec)} is left out: it is not [user@]host[:port]`)
    const name = host === undefined ? undefined : this.addHost(host, login, path, line)
    if (name !== undefined) group?.hosts.add(name)
    return name
  }

  /** The names that a pattern stands for; none, with a note, if it cannot be expanded. */
  expand(pattern: string, expand: (pattern: string) => string[], path: string, line: number): string[] {
    let names: string[]
    try {
      names = expand(pattern)
    } catch (error) {
      this.note(path, line, `${printable(pattern)} is left out: ${messageOf(error)}`)
      return []
    }
    this.countExpanded(names.length, path)
    return names
  }

  /** Bounds what a small file with many ranges expands to. @throws MusterError `configuration` */
  countExpanded(names: number, path: string): void {
    this.#expanded += names
    if (this.#expanded > MAX_EXPANDED) throw tooLarge(path, MAX_EXPANDED)
  }

  /** The group by its name in the source, created if new. */
  group(wanted: string, path: string, line: number): Group {
    const name = this.groupName(wanted, path, line)
    return getOrMake(this.groups, name, () => ({ hosts: new Set(), groups: new Set() }))
  }

  /** Adds a group of the source to another one, unless a group would be part of itself then. */
  addGroup(wanted: string, path: string, line: number, to: Group): void {
    const name = this.groupName(wanted, path, line)
    const below = new Set([name])
    for (const each of below) {
      const group = this.groups.get(each)
      if (group === to) return this.note(path, line, `${printable(wanted)} is left out here: groups would form a loop`)
      for (const member of group?.groups ?? []) below.add(member)
    }
    to.groups.add(name)
  }

  groupName(wanted: string, path: string, line: number): string {
    const known = this.#groupNameOf.get(wanted)
    if (known !== undefined) return known
    let name = wanted
    if (!isGroupName(wanted)) {
      const taken = new Set([...this.groups.keys(), ...this.#groupNameOf.values()])
      name = freeName(`group-${wanted.replace(/[^\p{L}\p{N}_.:-]+/gu, '-').slice(0, 200)}`, taken)
      this.note(path, line, `group ${printable(wanted)} is called ${name} here`)
    }
    this.#groupNameOf.set(wanted, name)
    return name
  }

  #freeName(wanted: string, host: ImportedHost, others: ReadonlySet<string> = new Set()): string {
    const taken = { has: (name: string) => this.hosts.has(name) || others.has(name) }
    if (isHostName(wanted) && !taken.has(wanted)) return wanted
    const parts = isHostName(wanted) ? [host.user, wanted, host.port] : ['host', wanted]
    const joined = parts.filter((part) => part !== undefined).join('-')
    const plain = joined.replace(/[^\p{L}\p{N}_.-]+/gu, '-').slice(0, 200)
    // A valid host name, whatever remains of the user's or the host's name.
    return freeName(isHostName(plain) ? plain : `host${plain}`, taken)
  }
}

function freeName(base: string, taken: { has(name: string): boolean }): string {
  let name = base
  for (let count = 2; taken.has(name); count += 1) name = `${base}-${count}`
  return name
}

const hasLogin = ({ user, port }: ImportedHost): boolean => user !== undefined || port !== undefined

function problemOf(name: string, { address, port, user, jump, identity_file }: ImportedHost): string | undefined {
  if (!isAddress(name)) return 'it is not a host name'
  if (address !== undefined && !isAddress(address)) return `${printable(address)} is not an address`
  if (port !== undefined && !isPort(port)) return `${port} is not a port`
  if (user !== undefined && !isUserName(user)) return `${printable(user)} is not a user name`
  if (jump?.split(',').some((hop) => parseHostSpec(hop.trim()) === undefined))
    return `${printable(jump)} is not a jump host`
  if (identity_file?.includes('"')) return 'its key file has a quote in its name'
  return undefined
}
