/** Who is where, as data for a picture: each host with what its jobs hold of it, and what of its free GPUs nobody could use. */
import type { HostSpec } from '../model/resources.ts'
import { WHOLE_MILLI } from '../model/resources.ts'
import { isActive, type Job } from './job.ts'

/** One job's part of a device. */
export type DeviceShare = { readonly job: number; readonly milli: number }

/** What one job holds of a host, all of its bundles there together. */
export type Holding = { readonly job: number; readonly cpuMilli: number; readonly memoryBytes: number }

export type PackedHost = {
  readonly name: string
  /** In device order; those who were placed first come first. */
  readonly devices: readonly (readonly DeviceShare[])[]
  readonly cpuUsedMilli: number
  readonly cpuMilli: number
  readonly memoryUsedBytes: number
  readonly memoryBytes: number
  readonly jobs: readonly number[]
  /** One a job, in the order of `jobs`. */
  readonly holdings: readonly Holding[]
  /** Milli-GPU that are free while no core is: nobody can use them. */
  readonly strandedMilli: number
}

export function packHosts(hosts: readonly HostSpec[], active: readonly Job[]): readonly PackedHost[] {
  return hosts.map((host) => packHost(host, active))
}

function packHost({ name, gpus = [], cpuMilli, memoryBytes }: HostSpec, active: readonly Job[]): PackedHost {
  const devices: DeviceShare[][] = gpus.map(() => [])
  const holdings: Holding[] = []
  for (const { id, state, spec } of active) {
    if (!isActive(state)) continue
    const ranks = state.places.flatMap((place, rank) =>
      place.host === name && state.bundles[rank]?.kind !== 'ended' ? [place] : [],
    )
    if (ranks.length === 0) continue
    const { request } = spec
    holdings.push({
      job: id,
      cpuMilli: request.cpuMilli * ranks.length,
      memoryBytes: request.memoryBytes * ranks.length,
    })
    for (const place of ranks)
      for (const device of place.devices) devices[device]?.push({ job: id, milli: request.gpuMilli })
  }
  const cpuUsedMilli = holdings.reduce((sum, one) => sum + one.cpuMilli, 0)
  const memoryUsedBytes = holdings.reduce((sum, one) => sum + one.memoryBytes, 0)
  const freeMilli = devices.reduce((sum, shares) => sum + freeOf(shares), 0)
  return {
    name,
    devices,
    cpuUsedMilli,
    cpuMilli,
    memoryUsedBytes,
    memoryBytes,
    jobs: holdings.map(({ job }) => job),
    holdings,
    strandedMilli: cpuUsedMilli >= cpuMilli ? freeMilli : 0,
  }
}

/** Of all hosts together; what is free on a device that is shared already is in pieces: a whole GPU finds no room there. */
export type PackingFigures = {
  readonly devices: number
  readonly heldMilli: number
  readonly freeDevices: number
  readonly piecesMilli: number
  readonly strandedMilli: number
  readonly cpuMilli: number
  readonly cpuUsedMilli: number
  readonly memoryBytes: number
  readonly memoryUsedBytes: number
}

export function packingFigures(hosts: readonly PackedHost[]): PackingFigures {
  const devices = hosts.flatMap((host) => host.devices)
  const shared = devices.filter((shares) => shares.length > 0)
  const sum = (amount: (host: PackedHost) => number) => hosts.reduce((total, host) => total + amount(host), 0)
  const piecesMilli = shared.reduce((total, shares) => total + freeOf(shares), 0)
  return {
    devices: devices.length,
    heldMilli: shared.length * WHOLE_MILLI - piecesMilli,
    freeDevices: devices.length - shared.length,
    piecesMilli,
    strandedMilli: sum(({ strandedMilli }) => strandedMilli),
    cpuMilli: sum(({ cpuMilli }) => cpuMilli),
    cpuUsedMilli: sum(({ cpuUsedMilli }) => cpuUsedMilli),
    memoryBytes: sum(({ memoryBytes }) => memoryBytes),
    memoryUsedBytes: sum(({ memoryUsedBytes }) => memoryUsedBytes),
  }
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** The same job has the same letter for as long as it runs; after 62 letters they come again. */
export const letterOf = (job: number): string => LETTERS[(job - 1) % LETTERS.length] ?? '?'

function freeOf(shares: readonly DeviceShare[]): number {
  return shares.reduce((left, { milli }) => left - milli, WHOLE_MILLI)
}
