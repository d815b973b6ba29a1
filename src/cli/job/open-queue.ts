/** The queue of the cluster that hosts.yaml names: one file each, for the user's eyes only. */
import { createHash } from 'node:crypto'
import { realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { stateDirectory } from '../../base/user-directories.ts'
import { hostAddresses } from '../../inventory/host-addresses.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { fileTitle, type Inventory } from '../../inventory/inventory.ts'
import { loadInventory } from '../../inventory/load-inventory.ts'
import { resolveEndpoints } from '../../inventory/resolve-endpoints.ts'
import { measuredLinks } from '../../ops/net/mesh/kept-mesh.ts'
import { type DriverHost, foundGpus, gpusOf } from '../../scheduler/jobs/driver-host.ts'
import type { BundlePlace, Job } from '../../scheduler/jobs/job.ts'
import type { KnownHost } from '../../scheduler/jobs/packing.ts'
import { type LinkSpeeds, occupy } from '../../scheduler/jobs/plan-jobs.ts'
import { hasLog, isQueueFull } from '../../scheduler/jobs/queue-file.ts'
import { JobStore } from '../../scheduler/jobs/store.ts'
import type { Cluster } from '../../scheduler/model/cluster.ts'
import type { HostCapacity, ResourceRequest } from '../../scheduler/model/resources.ts'
import type { CliContext, GlobalOptions } from '../command-line/verb.ts'
import { endpointOptions, inventorySource } from '../connect/endpoints.ts'
import { notice } from '../output/notices.ts'
import { changedHosts, driverHost } from './declared-hosts.ts'

export type OpenQueue = Disposable & {
  readonly store: JobStore
  readonly inventory: Inventory
  /** The running scheduler; undefined: none. */
  driver(): string | undefined
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
  const queue = await openWith(options, context, (path) => new JobStore(path, busyMs))
  const file = unnamedFile(queue.inventory)
  if (file !== undefined && queue.store.hostsFile() !== file) queue.store.writeHostsFile(file)
  return queue
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

/** For a verb that reads the queue once and ends. It works even if the disk is full. */
export async function readQueueOnce(options: GlobalOptions, context: CliContext): Promise<OpenQueue> {
  try {
    return await readQueue(options, context)
  } catch (error) {
    if (!isQueueFull(error)) throw error
    return await openWith(options, context, (path) => {
      // The file would be read without its log, which has the latest changes.
      if (hasLog(path)) throw error
      return new JobStore(path, undefined, true)
    })
  }
}

async function openWith(
  options: GlobalOptions,
  context: CliContext,
  open: (path: string) => JobStore,
): Promise<OpenQueue> {
  const inventory = await loadInventory(inventorySource(options, context))
  const store = open(queuePath(inventory, context))
  const [own, other] = [unnamedFile(inventory), store.hostsFile()]
  if (own !== undefined && other !== undefined && other !== own && store.counts().size > 0) {
    store[Symbol.dispose]()
    throw new MusterError('configuration', `the jobs of clusters without a name are those of ${printable(other)}`, {
      hint: `Name this one in ${printable(own)}: cluster: NAME. If it is the same file, moved here: cluster: ${NO_NAME}`,
    })
  }
  return queueOn(store, inventory, options, context)
}

/** The hosts.yaml of a cluster without a name, whose queue another such file would use as well. */
function unnamedFile({ cluster, file }: Inventory): string | undefined {
  return cluster === undefined && file !== undefined ? realpathSync(file) : undefined
}

/** Disposing closes the store. */
export function queueOn(
  store: JobStore,
  inventory: Inventory,
  options: Pick<GlobalOptions, 'hosts'>,
  { now }: Pick<CliContext, 'now'>,
): OpenQueue {
  return {
    store,
    inventory,
    driver: () => store.lease.owner(now()),
    command: (verb) => commandOn(options, verb),
    [Symbol.dispose]: () => store[Symbol.dispose](),
  }
}

/** A file name, another one for each cluster: with a hash where the cluster's own name cannot be one. */
const NO_NAME = 'default'

export function queueName({ cluster = NO_NAME }: Pick<Inventory, 'cluster'>): string {
  const name = cluster.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, LONGEST_NAME)
  return name === cluster ? name : `${name}-${createHash('sha256').update(cluster).digest('hex').slice(0, 8)}`
}

const LONGEST_NAME = 64

export function queuePath(inventory: Inventory, { environment }: CliContext): string {
  return join(stateDirectory(environment), 'jobs', `${queueName(inventory)}.db`)
}

/** Also where only its log is left, which `JobStore` refuses. Throws where it may not be looked at. */
export const isQueueAt = (path: string): boolean =>
  [path, `${path}-wal`].some((file) => statSync(file, { throwIfNoEntry: false }) !== undefined)

/** False where it may not be looked at: it may exist. */
function isNothingThere(path: string): boolean {
  try {
    return !isQueueAt(path)
  } catch {
    return false
  }
}

/** How hosts reach each other, by name. Asks ssh_config only for the hosts of these places. */
export async function addressesOf(
  { inventory }: OpenQueue,
  places: readonly Pick<BundlePlace, 'host'>[],
  options: GlobalOptions,
  context: CliContext,
): Promise<ReadonlyMap<string, string>> {
  const { hosts } = inventory
  const placed = new Set(places.map(({ host }) => host))
  const asked = hosts.filter(({ name, address }) => address === undefined && placed.has(name))
  // Whoever connects reports what is wrong with it.
  const endpoints = await resolveEndpoints(inventory, asked, endpointOptions(options, context)).catch(() => [])
  return hostAddresses(hosts, endpoints)
}

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
  if (queue.driver() === undefined) notice(context, `muster: ${undrivenWords(queue)}\n`)
  else noticeChanged(queue, context)
}

/** Says so if the running scheduler, and so what is shown, knows an older hosts.yaml. */
export function noticeChanged(queue: OpenQueue, context: CliContext): void {
  const words = changedWords(queue)
  if (words !== undefined) notice(context, `muster: ${words}\n`)
}

/** Hosts that hosts.yaml declares otherwise than when the running scheduler started. */
export function changedSinceStart({ store, inventory, driver }: OpenQueue): string | undefined {
  const { declared } = (driver() !== undefined && store.report()) || {}
  return declared && changedHosts(declared, inventory)
}

export function changedWords(queue: OpenQueue): string | undefined {
  const hosts = changedSinceStart(queue)
  const words = `${fileTitle(queue.inventory)} has changed for ${hosts} since the scheduler started. Start it again:`
  return hosts && `${words} ${queue.command('job work')}`
}

/** Hosts as the running scheduler sees them, else as `declaredHosts`. */
export function hostsOf(queue: OpenQueue): readonly KnownHost[] {
  const { declared, hosts = [] } = (queue.driver() !== undefined && queue.store.report()) || {}
  if (declared === undefined) return declaredHosts(queue)
  const seen = new Map(hosts.map((host) => [host.name, host]))
  return declared.map((host) => withUnknown(host, seen.get(host.name)))
}

/** Hosts as hosts.yaml declares them, with what a scheduler was told by them; none is asked. */
export function declaredHosts({ store, inventory }: OpenQueue): readonly KnownHost[] {
  const seen = new Map(store.report()?.hosts.map((host) => [host.name, host]))
  return inventory.hosts.map((host) => {
    const declared = driverHost(host)
    const known = seen.get(declared.name)
    return withUnknown(declared, known && { ...known, ...capacityOf(declared, known) })
  })
}

function capacityOf(declared: DriverHost, known?: HostCapacity) {
  const { name, cpuMilli, memoryBytes, labels, custom } = declared
  return {
    name,
    cpuMilli: cpuMilli ?? known?.cpuMilli ?? 0,
    memoryBytes: memoryBytes ?? known?.memoryBytes ?? 0,
    ...gpusOf(declared, foundGpus(known)),
    labels,
    custom: custom ?? {},
  }
}

function withUnknown(declared: DriverHost, known: HostCapacity = capacityOf(declared)): KnownHost {
  // No machine has none: it is not known yet.
  const unknown = [
    ...(declared.cpuMilli === undefined && known.cpuMilli === 0 ? ['cores' as const] : []),
    ...(declared.memoryBytes === undefined && known.memoryBytes === 0 ? ['memory' as const] : []),
  ]
  return unknown.length === 0 ? known : { ...known, unknown }
}
