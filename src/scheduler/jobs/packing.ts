/** Who is where, as data for a picture: each host with what its jobs hold of it, and what of its free GPUs nobody could use. */
import type { HostSpec } from '../model/resources.ts'
import { WHOLE_MILLI } from '../model/resources.ts'
import { isActive, type Job } from './job.ts'

/** One job's part of a device. */
export type DeviceShare = { readonly job: number; readonly milli: number }

export type PackedHost = {
  readonly name: string
  /** In device order; those who were placed first come first. */
  readonly devices: readonly (readonly DeviceShare[])[]
  readonly cpuUsedMilli: number
  readonly cpuMilli: number
  readonly memoryUsedBytes: number
  readonly memoryBytes: number
  readonly jobs: readonly number[]
  /** Milli-GPU that are free while no core is: nobody can use them. */
  readonly strandedMilli: number
}

export function packHosts(hosts: readonly HostSpec[], active: readonly Job[]): readonly PackedHost[] {
  return hosts.map((host) => packHost(host, active))
}

function packHost({ name, gpus = [], cpuMilli, memoryBytes }: HostSpec, active: readonly Job[]): PackedHost {
  const devices: DeviceShare[][] = gpus.map(() => [])
  const jobs: number[] = []
  let cpuUsedMilli = 0
  let memoryUsedBytes = 0
  for (const { id, state, spec } of active) {
    if (!isActive(state)) continue
    state.places.forEach((place, rank) => {
      if (place.host !== name || state.bundles[rank]?.kind === 'ended') return
      if (jobs.at(-1) !== id) jobs.push(id)
      cpuUsedMilli += spec.request.cpuMilli
      memoryUsedBytes += spec.request.memoryBytes
      for (const device of place.devices) devices[device]?.push({ job: id, milli: spec.request.gpuMilli })
    })
  }
  const freeMilli = devices.reduce(
    (sum, shares) => sum + shares.reduce((left, { milli }) => left - milli, WHOLE_MILLI),
    0,
  )
  const strandedMilli = cpuUsedMilli >= cpuMilli ? freeMilli : 0
  return { name, devices, cpuUsedMilli, cpuMilli, memoryUsedBytes, memoryBytes, jobs, strandedMilli }
}
