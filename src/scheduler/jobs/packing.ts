/** What jobs hold of each host, and which free GPUs no job could use. */
import { getOrMake } from '../../base/collections.ts'
import { defined } from '../../base/defined.ts'
import { type HostCapacity, type ResourceRequest, WHOLE_MILLI } from '../model/resources.ts'
import { isActive, isFinal, type Job, requestsOf } from './job.ts'

/** One job's part of a device. */
export type DeviceShare = { readonly job: number; readonly milli: number }

/** What one job holds of a host, with all its bundles there. */
export type Holding = { readonly job: number; readonly cpuMilli: number; readonly memoryBytes: number }

/** Neither declared nor asked of the host yet. */
export type Unknown = readonly ('cores' | 'memory')[]

export type PackedHost = {
  readonly name: string
  /** In device order; of a device in the order of placement. */
  readonly devices: readonly (readonly DeviceShare[])[]
  readonly cpuUsedMilli: number
  readonly cpuMilli: number
  readonly memoryUsedBytes: number
  readonly memoryBytes: number
  readonly jobs: readonly number[]
  readonly holdings: readonly Holding[]
  readonly unknown?: Unknown
  /** How many GPUs hosts.yaml declares, if the host has only `devices`. */
  readonly gpusDeclared?: number
  /** Milli-GPU that are free where no core is, so that no job can use them. */
  readonly strandedMilli: number
}

/** A job had these devices of a host, or none but cores and memory; `toMs`: undefined while it has them. */
export type DeviceHold = {
  readonly job: number
  readonly host: string
  readonly devices: readonly number[]
  readonly fromMs: number
  readonly toMs?: number
}

/** What a job holds, or held until it ended. */
export function holdsOf({ id, state }: Job): readonly DeviceHold[] {
  if (!('places' in state) || state.places === undefined) return []
  const { places, startedMs = 0 } = state
  const fromMs = ('placedMs' in state ? state.placedMs : undefined) ?? startedMs
  const end = isFinal(state) ? { toMs: state.endedMs } : {}
  return places.map(({ host, devices }) => ({ job: id, host, devices, fromMs, ...end }))
}

export type KnownHost = HostCapacity & { readonly unknown?: Unknown }

/** The jobs that run where no host is declared any more, with the names of these hosts. */
export function onRemovedHosts(
  active: readonly Job[],
  hosts: readonly { readonly name: string }[],
): readonly { readonly job: number; readonly hosts: readonly string[] }[] {
  const declared = new Set(hosts.map(({ name }) => name))
  return active.flatMap(({ id, spec, state }) => {
    const places = spec.engine === undefined && isActive(state) ? state.places : []
    const removed = [...new Set(places.map(({ host }) => host))].filter((host) => !declared.has(host))
    return removed.length === 0 ? [] : [{ job: id, hosts: removed }]
  })
}

/** One pass over all jobs, as there may be thousands. */
export function packHosts(hosts: readonly KnownHost[], active: readonly Job[]): readonly PackedHost[] {
  const held = new Map<string, HeldBundle[]>()
  for (const { id, state, spec } of active) {
    if (!isActive(state)) continue
    const requests = requestsOf(spec)
    state.places.forEach(({ host, devices }, rank) => {
      if (state.bundles[rank]?.kind === 'ended') return
      const request = requests[rank] ?? spec.request
      getOrMake(held, host, () => []).push({ job: id, devices, request })
    })
  }
  return hosts.map((host) => packHost(host, held.get(host.name) ?? []))
}

type HeldBundle = { readonly job: number; readonly devices: readonly number[]; readonly request: ResourceRequest }

function packHost(
  { name, gpus = [], gpusDeclared, cpuMilli, memoryBytes, unknown }: KnownHost,
  held: readonly HeldBundle[],
): PackedHost {
  const devices: DeviceShare[][] = gpus.map(() => [])
  const holdings: Holding[] = []
  for (const [job, here] of Map.groupBy(held, ({ job }) => job)) {
    holdings.push({
      job,
      cpuMilli: sum(here, ({ request }) => request.cpuMilli),
      memoryBytes: sum(here, ({ request }) => request.memoryBytes),
    })
    for (const { devices: own, request } of here)
      for (const device of own) devices[device]?.push({ job, milli: request.gpuMilli })
  }
  const cpuUsedMilli = sum(holdings, (one) => one.cpuMilli)
  const memoryUsedBytes = sum(holdings, (one) => one.memoryBytes)
  const freeMilli = sum(devices, freeOf)
  return {
    name,
    devices,
    cpuUsedMilli,
    cpuMilli,
    memoryUsedBytes,
    memoryBytes,
    jobs: holdings.map(({ job }) => job),
    holdings,
    ...defined({ unknown, gpusDeclared }),
    strandedMilli: cpuUsedMilli >= cpuMilli && !unknown?.includes('cores') ? freeMilli : 0,
  }
}

/** `down`: by name of a host that cannot be used now. */
export function packingFigures(hosts: readonly PackedHost[], down: Readonly<Record<string, unknown>> = {}) {
  const up = hosts.filter(({ name }) => down[name] === undefined)
  const [all, there] = [hosts.flatMap(devicesOf), up.flatMap(devicesOf)]
  const usable = up.filter(({ strandedMilli }) => strandedMilli === 0).flatMap(devicesOf)
  const shared = usable.filter((shares) => shares.length > 0)
  const freeMilli = sum(all, freeOf)
  return {
    devices: all.length,
    heldMilli: all.length * WHOLE_MILLI - freeMilli,
    freeDevices: usable.length - shared.length,
    /** Free, but on hosts that are down. */
    downMilli: freeMilli - sum(there, freeOf),
    /** Free on a shared device. */
    piecesMilli: sum(shared, freeOf),
    /** Free where no core is. */
    strandedMilli: sum(up, ({ strandedMilli }) => strandedMilli),
    cpuMilli: sum(hosts, ({ cpuMilli }) => cpuMilli),
    cpuUsedMilli: sum(hosts, ({ cpuUsedMilli }) => cpuUsedMilli),
  }
}

/** How usable free GPUs are: the most that a job can get on one host and on a shared GPU now, and the hosts whose free GPUs have no core. */
export function fragmentation(hosts: readonly PackedHost[], down: Readonly<Record<string, unknown>> = {}) {
  const up = hosts.filter(({ name, devices }) => down[name] === undefined && devices.length > 0)
  const wholeOf = ({ devices, strandedMilli }: PackedHost) =>
    strandedMilli > 0 ? 0 : devices.filter((shares) => shares.length === 0).length
  const pieces = up
    .filter(({ strandedMilli }) => strandedMilli === 0)
    .flatMap(devicesOf)
    .filter((shares) => shares.length > 0)
    .map(freeOf)
  return {
    /** Whole free devices, of all hosts. */
    free: sum(up, wholeOf),
    mostOnOneHost: largest(up, wholeOf),
    largestHost: largest(up, ({ devices }) => devices.length),
    piecesMilli: sum(pieces, (milli) => milli),
    largestPieceMilli: largest(pieces, (milli) => milli),
    strandedMilli: sum(up, ({ strandedMilli }) => strandedMilli),
    stranded: up.filter(({ strandedMilli }) => strandedMilli > 0).map(({ name }) => name),
  }
}

const devicesOf = ({ devices }: PackedHost) => devices

/** Of many, too: a call has no room for so many arguments. */
const largest = <T>(all: readonly T[], of: (one: T) => number): number =>
  all.reduce((most, one) => Math.max(most, of(one)), 0)

const sum = <T>(of: readonly T[], amount: (one: T) => number) => of.reduce((total, one) => total + amount(one), 0)

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** After 62 jobs the letters repeat. */
export const letterOf = (job: number): string => LETTERS[(job - 1) % LETTERS.length] ?? '?'

/**
 * Letters of jobs that are shown together: a job keeps the one that it has in `known`, and no letter is given twice while
 * there are others.
 */
export function lettersOf(
  jobs: Iterable<number>,
  known: ReadonlyMap<number, string> = new Map(),
): ReadonlyMap<number, string> {
  const ids = [...new Set(jobs)]
  const taken = new Set(ids.flatMap((id) => known.get(id) ?? []))
  return new Map(
    ids.map((id) => {
      const from = (id - 1) % LETTERS.length
      const turned = LETTERS.slice(from) + LETTERS.slice(0, Math.max(0, from))
      const letter = known.get(id) ?? [...turned].find((one) => !taken.has(one)) ?? letterOf(id)
      taken.add(letter)
      return [id, letter] as const
    }),
  )
}

function freeOf(shares: readonly DeviceShare[]): number {
  return shares.reduce((left, { milli }) => left - milli, WHOLE_MILLI)
}
