/** The queue of the cluster that hosts.yaml names: one file each, for the user's eyes only. */
import { createHash } from 'node:crypto'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { defined } from '../../base/defined.ts'
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { stateDirectory } from '../../base/user-directories.ts'
import type { Host } from '../../inventory/host.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { loadInventory } from '../../inventory/load-inventory.ts'
import { measuredLinks } from '../../ops/net/mesh/kept-mesh.ts'
import type { DriverHost } from '../../scheduler/jobs/host-rounds.ts'
import type { BundlePlace, Job } from '../../scheduler/jobs/job.ts'
import type { KnownHost } from '../../scheduler/jobs/packing.ts'
import { type LinkSpeeds, occupy } from '../../scheduler/jobs/plan-jobs.ts'
import { JobStore } from '../../scheduler/jobs/store.ts'
import type { Cluster } from '../../scheduler/model/cluster.ts'
import { type HostCapacity, milliOf, type ResourceRequest } from '../../scheduler/model/resources.ts'
import type { CliContext, GlobalOptions } from '../command-line/verb.ts'
import { inventorySource } from '../connect/endpoints.ts'
import { notice } from '../output/notices.ts'

export type OpenQueue = Disposable & {
  readonly store: JobStore
  readonly inventory: Inventory
  readonly path: string
  /** The command line that runs a verb on this queue, as `commandOn` writes it. */
  command(verb: string): string
}

/** `muster job work`, with the --hosts that was given. Printable. */
export const commandOn = ({ hosts }: Pick<GlobalOptions, 'hosts'>, verb: string): string =>
  `muster ${verb}${hosts === undefined ? '' : ` --hosts ${printable(shellQuote(hosts))}`}`

/** What a command says where something waits for a scheduler. */
export const undrivenWords = (queue: Pick<OpenQueue, 'command'>): string =>
  `no scheduler running. Run: ${queue.command('job work')}`

/**
 * `busyMs`: how long a call may wait for other writers.
 * @throws MusterError `configuration` when hosts.yaml or the queue cannot be used.
 */
export async function openQueue(options: GlobalOptions, context: CliContext, busyMs?: number): Promise<OpenQueue> {
  return await openWith(options, context, (path) => new JobStore(path, busyMs))
}

/** To read only: where there is no queue and none can be made, it is empty. Else as `openQueue`. */
export async function readQueue(options: GlobalOptions, context: CliContext, busyMs?: number): Promise<OpenQueue> {
  return await openWith(options, context, (path) => {
    try {
      return new JobStore(path, busyMs)
    } catch (error) {
      if (!isNothingThere(path)) throw error
      return new JobStore(':memory:', busyMs)
    }
  })
}

async function openWith(
  options: GlobalOptions,
  context: CliContext,
  open: (path: string) => JobStore,
): Promise<OpenQueue> {
  const inventory = await loadInventory(inventorySource(options, context))
  const path = queuePath(inventory, context)
  const store = open(path)
  const command = (verb: string) => commandOn(options, verb)
  return { store, inventory, path, command, [Symbol.dispose]: () => store[Symbol.dispose]() }
}

/** A file name, another one for each cluster: with a hash where the cluster's own name cannot be one. */
export function queueName({ cluster = 'default' }: Pick<Inventory, 'cluster'>): string {
  const name = cluster.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, LONGEST_NAME)
  return name === cluster ? name : `${name}-${createHash('sha256').update(cluster).digest('hex').slice(0, 8)}`
}

const LONGEST_NAME = 64

export function queuePath(inventory: Inventory, { environment }: CliContext): string {
  return join(stateDirectory(environment), 'jobs', `${queueName(inventory)}.db`)
}

/** False where it may not be looked at: it may exist. */
function isNothingThere(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) === undefined
  } catch {
    return false
  }
}

/** As hosts.yaml declares it. Without an address, other hosts use the name. */
export function driverHost({ name, address, resources = {}, labels = {} }: Host): DriverHost {
  const { cpu, gpu = 0, memoryBytes, custom = {} } = resources
  const pools = Object.entries(custom).map(
    ([key, amount]) => [key, { kind: 'pool', amount: Math.floor(amount) }] as const,
  )
  return {
    name,
    address: address ?? name,
    ...defined({ cpuMilli: cpu === undefined ? undefined : milliOf(cpu, 'down'), memoryBytes }),
    gpuCount: gpu,
    labels,
    custom: pools.length === 0 ? undefined : Object.fromEntries(pools),
  }
}

/** How hosts reach each other, by name. */
export const addressesOf = ({ inventory }: OpenQueue): ReadonlyMap<string, string> =>
  new Map(inventory.hosts.map(driverHost).map(({ name, address }) => [name, address]))

/** Why hosts do not answer the scheduler: `m5: cannot connect …`. */
export function downWords(queue: OpenQueue): readonly string[] {
  const names = new Set(hostsOf(queue).map(({ name }) => name))
  const down = Object.entries(queue.store.report()?.down ?? {})
  return down.flatMap(([host, reason]) => (names.has(host) ? [`${host}: ${reason}`] : []))
}

/** What is free besides these jobs. */
export const freeBeside = (queue: OpenQueue, active: readonly Job[]): Cluster =>
  occupy(withEnough(hostsOf(queue)), active).cluster

/** `the cores of m[1-2] are not known yet`; undefined: all that is asked for is known there. */
export function unknownWords(
  queue: OpenQueue,
  { cpuMilli, memoryBytes }: Pick<ResourceRequest, 'cpuMilli' | 'memoryBytes'>,
  places: readonly Pick<BundlePlace, 'host'>[],
): string | undefined {
  const placed = new Set(places.map(({ host }) => host))
  const hosts = hostsOf(queue).filter(({ name }) => placed.has(name))
  const partsOf = [
    ['cores', cpuMilli],
    ['memory', memoryBytes],
  ] as const
  const words = partsOf.flatMap(([part, amount]) => {
    const names = hosts.filter(({ unknown }) => amount > 0 && unknown?.includes(part)).map(({ name }) => name)
    return names.length === 0
      ? []
      : [`the ${part} of ${foldHostSet(names)} ${part === 'cores' ? 'are' : 'is'} not known yet`]
  })
  return words.length === 0 ? undefined : words.join(', ')
}

/** Of what is not known of a host yet there may be as much as one likes. */
export function withEnough(hosts: readonly KnownHost[]): readonly HostCapacity[] {
  return hosts.map(({ unknown = [], ...host }) => ({
    ...host,
    ...(unknown.includes('cores') ? { cpuMilli: UNKNOWN_CPU_MILLI } : {}),
    ...(unknown.includes('memory') ? { memoryBytes: UNKNOWN_MEMORY_BYTES } : {}),
  }))
}

const UNKNOWN_CPU_MILLI = 1_000_000_000
const UNKNOWN_MEMORY_BYTES = 2 ** 50

/** What `muster net mesh` measured between hosts that still have the same addresses. */
export function linkSpeedsOf({ hosts }: Inventory, { environment, now }: CliContext): LinkSpeeds {
  const addresses = new Map(hosts.map((host) => [host.name, driverHost(host).address]))
  return (names, network) =>
    measuredLinks(environment, new Map(names.map((name) => [name, addresses.get(name) ?? name])), network, now())
}

/** Says so if what was put into the queue waits for a scheduler, or if the one that runs knows an older hosts.yaml. */
export function noticeScheduler(queue: OpenQueue, context: CliContext): void {
  const words = queue.store.lease.owner(context.now()) === undefined ? undrivenWords(queue) : changedWords(queue)
  if (words !== undefined) notice(context, `muster: ${words}\n`)
}

/** Of hosts that hosts.yaml does not declare as it did when the scheduler started, which still uses those that were removed. */
export function changedWords({ store, inventory, command }: OpenQueue): string | undefined {
  const seen = new Map(store.report()?.hosts.map((host) => [host.name, host]))
  const changed = inventory.hosts
    .map(driverHost)
    .filter(({ name, cpuMilli, memoryBytes, gpuCount, labels, custom }) => {
      const known = seen.get(name)
      if (known === undefined) return seen.size > 0
      const given = { cpuMilli: cpuMilli ?? known.cpuMilli, memoryBytes: memoryBytes ?? known.memoryBytes, gpuCount }
      const used = { cpuMilli: known.cpuMilli, memoryBytes: known.memoryBytes, gpuCount: known.gpus?.length ?? 0 }
      return !isDeepStrictEqual(
        { ...given, labels, custom },
        { ...used, labels: known.labels ?? {}, custom: known.custom },
      )
    })
  const declared = new Set(inventory.hosts.map(({ name }) => name))
  const removed = [...seen.keys()].filter((name) => !declared.has(name))
  if (changed.length + removed.length === 0) return undefined
  const hosts = foldHostSet([...changed.map(({ name }) => name), ...removed])
  return `hosts.yaml has changed for ${hosts} since the scheduler started. Start it again: ${command('job work')}`
}

/** Hosts as the scheduler saw them last, else as hosts.yaml declares them; none is asked. */
export function hostsOf({ store, inventory }: OpenQueue): readonly KnownHost[] {
  const seen = new Map(store.report()?.hosts.map((host) => [host.name, host]))
  return inventory.hosts.map((host) => {
    const declared = driverHost(host)
    const { name, cpuMilli = 0, memoryBytes = 0, gpuCount, labels, custom } = declared
    const gpus = Array.from({ length: gpuCount }, () => '')
    const known = seen.get(name) ?? { name, cpuMilli, memoryBytes, gpus, labels, ...defined({ custom }) }
    // No machine has none: it is not known yet.
    const unknown = [
      ...(declared.cpuMilli === undefined && known.cpuMilli === 0 ? ['cores' as const] : []),
      ...(declared.memoryBytes === undefined && known.memoryBytes === 0 ? ['memory' as const] : []),
    ]
    return unknown.length === 0 ? known : { ...known, unknown }
  })
}
