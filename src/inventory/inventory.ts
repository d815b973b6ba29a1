/** The hosts of one run of Muster: from hosts.yaml, or only from a target on the command line. */

import { getOrMake } from '../base/collections.ts'
import { defined } from '../base/defined.ts'
import { MusterError } from '../base/errors.ts'
import { printable } from '../base/printable.ts'
import type { Host } from './host.ts'
import { formatHostSpec, isExplicitSpec, isPort, parseHostSpec } from './host-name.ts'
import { bareName, expandHostSet, type HostSetContext, HostSetError } from './host-set.ts'
import { didYouMean } from './nearest-word.ts'

export type Inventory = {
  /** The file it was read from; undefined for a target without a file. */
  readonly file?: string
  /** The name of that file for messages (`fileTitle`). */
  readonly shown?: string
  /** That file is the example of a checkout. */
  readonly isExample?: boolean
  readonly cluster?: string
  readonly hosts: readonly Host[]
  /** Group names to the names of their hosts. */
  readonly groups: ReadonlyMap<string, readonly string[]>
  /** What the sections of areas declare, by key (`sectionOf`). */
  readonly sections?: ReadonlyMap<string, unknown>
}

/** The name of its file for messages. */
export const fileTitle = ({ shown = 'hosts.yaml' }: Inventory): string => printable(shown)

/** Hosts of an inventory, or others that a target gives in full. */
export type Selection = { readonly inventory: Inventory; readonly hosts: readonly Host[] }

export type TargetOptions = {
  /** Hosts to leave out. */
  readonly exclude?: string
  /** What `-` stands for. */
  readonly stdinNames?: readonly string[]
  /** Without an expression, an inventory without hosts is no mistake. */
  readonly mayBeEmpty?: boolean
  /** Only the names are wanted, so those that no file declares are accepted, too. */
  readonly isForNames?: boolean
  /** Only hosts that the inventory has, as it describes them: a login in the expression would have no effect. */
  readonly isOfInventory?: true
  /** Instead of what the inventory says; a host written as `user@host` or `host:port` keeps its own. */
  readonly login?: Pick<Host, 'user' | 'port'>
  /** Whether another host has this name already: a host written as `user@host` or `host:port` is then named in full. */
  isTaken?(name: string): boolean
}

/** The groups that each host is in, in the file's order. */
export function groupsByHost(inventory: Inventory): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>()
  for (const [group, members] of inventory.groups)
    for (const host of members) getOrMake(groups, host, (): string[] => []).push(group)
  return groups
}

/**
 * The hosts for these names: of the inventory (`bob@m8` is m8 with another user), or as the text itself describes them.
 * These are named only by their host if that is unique, otherwise in full: `127.0.0.1:2201` and `127.0.0.1:2202`.
 */
function hostsOf(
  specs: readonly string[],
  byName: ReadonlyMap<string, Host>,
  expression: string,
  { login: wanted, isTaken = () => false }: Pick<TargetOptions, 'login' | 'isTaken'>,
): Host[] {
  const alike = Map.groupBy(specs, bareName)
  let number = byName.size
  return specs.map((spec) => {
    const known = byName.get(spec)
    if (known) return { ...known, ...wanted }
    const { host, ...login } = parseHostSpec(spec) ?? {}
    if (host === undefined) {
      const isNoPort = !isPort(Number(/^[^:]+:(\d+)$/.exec(spec)?.[1] ?? 22))
      const reason = isNoPort ? ': a port is from 1 to 65535' : ' is not a host name'
      throw new HostSetError(expression, Math.max(0, expression.indexOf(spec)), printable(spec) + reason)
    }
    const base = byName.get(host)
    if (!base) number += 1
    const bare = bareName(spec)
    const name = alike.get(bare)?.length === 1 && !isTaken(bare) ? bare : spec
    return { ...(base ?? { number }), name, ...wanted, ...login }
  })
}

/**
 * The hosts of a target: from the inventory, or given in full (`user@host`, `host:port`).
 * @throws MusterError `usage` if the expression is wrong, names an unknown host or leaves no host.
 */
export function resolveTarget(
  inventory: Inventory,
  expression: string | undefined,
  options: TargetOptions = {},
): readonly Host[] {
  if (expression === undefined && inventory.hosts.length === 0) {
    if (options.mayBeEmpty) return []
    throw new MusterError('usage', `${fileTitle(inventory)} declares no hosts`, {
      hint: 'Add them under hosts, or name them on the command line: user@host.',
    })
  }
  const byName = new Map(inventory.hosts.map((host) => [host.name, host]))
  const context: HostSetContext = {
    names: [...byName.keys()],
    groupNames: [...inventory.groups.keys()],
    group: (name) => inventory.groups.get(name),
    isHost: (name) =>
      byName.has(name) ||
      (options.isOfInventory !== true && isExplicitSpec(name)) ||
      (options.isForNames === true && !inventory.groups.has(name)),
    ...defined({ stdinNames: options.stdinNames }),
  }
  const wanted = expandTarget(expression ?? 'all', options, context, inventory.file)
  return hostsOf(wanted, byName, expression ?? 'all', options)
}

/** How to name a machine that the file does not declare. */
export const outsideHint = (file: string): string =>
  `A machine outside ${printable(file)} is written as user@host or host:port; --hosts none leaves that file out.`

const ofInventoryHint = (file: string): string =>
  `Only hosts of ${printable(file)} can be named here, without a user or port of your own.`

function expandTarget(
  expression: string,
  { exclude, stdinNames, isOfInventory }: TargetOptions,
  context: HostSetContext,
  file: string | undefined,
): string[] {
  const expand = (text: string): string[] => {
    try {
      return expandHostSet(text, context)
    } catch (error) {
      if (!(error instanceof HostSetError) || file === undefined || !error.reason.startsWith('there is no host'))
        throw error
      throw new MusterError('usage', error.message, {
        cause: error,
        hint: isOfInventory ? ofInventoryHint(file) : outsideHint(file),
      })
    }
  }
  const wanted = expand(expression)
  const excluded = new Set(exclude === undefined ? [] : expand(exclude))
  const left = wanted.filter((name) => !excluded.has(name) && !excluded.has(bareName(name)))
  if (left.length > 0) return left
  const what = exclude === undefined ? printable(expression) : `${printable(expression)} without ${printable(exclude)}`
  const reason = stdinNames?.length === 0 && expression.includes('-') ? ' (stdin had no names)' : ''
  throw new MusterError('usage', `${what} leaves no host${reason}`, {
    hint: '`muster hosts` lists the hosts and their groups.',
  })
}

/** An inventory of the hosts of a target, without any file: `m[8-10]`, `root@h1,h2:2222`. @throws MusterError `usage` */
export function inventoryFromTarget(expression: string, options: TargetOptions = {}): Inventory {
  const specs = expandTarget(expression, options, defined({ stdinNames: options.stdinNames }), undefined)
  return { hosts: hostsOf(specs, new Map(), expression, options), groups: new Map() }
}

/** The hosts as a target names them, with each user and port that is not the inventory's own. */
export function targetNames({ inventory, hosts }: Selection): readonly string[] {
  const declared = new Map(inventory.file === undefined ? [] : inventory.hosts.map((host) => [host.name, host]))
  return hosts.map(({ name, user, port }) => {
    const { host = name } = parseHostSpec(name) ?? {}
    const own = declared.get(host)
    const login = { user: user === own?.user ? undefined : user, port: port === own?.port ? undefined : port }
    return formatHostSpec({ host, ...defined(login) })
  })
}

/** What is wrong with a name that is meant to be a host of the inventory, or undefined. */
export function unknownHost(inventoryNames: readonly string[], name: string): string | undefined {
  if (inventoryNames.includes(name)) return undefined
  return `there is no host ${printable(name)}${didYouMean(name, inventoryNames)}`
}
