/** What jobs hold of each host, and which free GPUs no job could use. */
import { type HostCapacity, WHOLE_MILLI } from '../model/resources.ts'
import { isActive, type Job, requestsOf } from './job.ts'

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
  /** Milli-GPU that are free where no core is, so that no job can use them. */
  readonly strandedMilli: number
}

export type KnownHost = HostCapacity & { readonly unknown?: Unknown }

export const packHosts = (hosts: readonly KnownHost[], active: readonly Job[]): readonly PackedHost[] =>
  hosts.map((host) => packHost(host, active))

function packHost({ name, gpus = [], cpuMilli, memoryBytes, unknown }: KnownHost, active: readonly Job[]): PackedHost {
  const devices: DeviceShare[][] = gpus.map(() => [])
  const holdings: Holding[] = []
  for (const { id, state, spec } of active) {
    if (!isActive(state)) continue
    const requests = requestsOf(spec)
    const here = state.places.flatMap((place, rank) =>
      place.host === name && state.bundles[rank]?.kind !== 'ended'
        ? [{ ...place, request: requests[rank] ?? spec.request }]
        : [],
    )
    if (here.length === 0) continue
    holdings.push({
      job: id,
      cpuMilli: sum(here, ({ request }) => request.cpuMilli),
      memoryBytes: sum(here, ({ request }) => request.memoryBytes),
    })
    for (const { devices: own, request } of here)
      for (const device of own) devices[device]?.push({ job: id, milli: request.gpuMilli })
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
    ...(unknown === undefined ? {} : { unknown }),
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

const devicesOf = ({ devices }: PackedHost) => devices

const sum = <T>(of: readonly T[], amount: (one: T) => number) => of.reduce((total, one) => total + amount(one), 0)

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** A job keeps its letter; after 62 jobs the letters repeat. */
export const letterOf = (job: number): string => LETTERS[(job - 1) % LETTERS.length] ?? '?'

function freeOf(shares: readonly DeviceShare[]): number {
  return shares.reduce((left, { milli }) => left - milli, WHOLE_MILLI)
}
