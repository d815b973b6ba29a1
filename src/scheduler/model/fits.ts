/** Whether a host holds a shape now, and on which devices: by device, never by sums ([500, 500] does not hold 800). */
import type { Cluster, Spot } from './cluster.ts'
import { WHOLE_MILLI } from './resources.ts'
import type { Shape } from './shape.ts'

export function fits(cluster: Cluster, shape: Shape, host: number): boolean {
  return fitsBesidesDevices(cluster, shape, host) && countDevices(cluster, shape, host) >= shape.gpuCount
}

export function fitsBesidesDevices(cluster: Cluster, shape: Shape, host: number): boolean {
  return shape.allowedOn[host] === 1 && cluster.isClosed[host] !== 1 && cluster.holdsAmounts(shape, host)
}

/** How many devices of the host hold one device's part of the shape. */
export function countDevices(cluster: Cluster, shape: Shape, host: number): number {
  if (shape.gpuCount === 0) return 0
  if (shape.gpuMilli === WHOLE_MILLI && shape.takesAnyModel) return cluster.idleDevices[host] as number
  const end = cluster.deviceStart[host + 1] as number
  let count = 0
  for (let device = cluster.deviceStart[host] as number; device < end; device++)
    if (holdsPart(cluster, shape, device)) count++
  return count
}

export function hasDevice(cluster: Cluster, shape: Shape, host: number): boolean {
  const end = cluster.deviceStart[host + 1] as number
  for (let device = cluster.deviceStart[host] as number; device < end; device++)
    if (holdsPart(cluster, shape, device)) return true
  return false
}

/** `device`: its number in the cluster. */
export function holdsPart(cluster: Cluster, shape: Shape, device: number): boolean {
  return (
    (cluster.deviceLeftMilli[device] as number) >= shape.gpuMilli &&
    shape.takesModel[cluster.deviceModel[device] as number] === 1
  )
}

/** A share goes to the tightest device, whole GPUs to the first idle ones; undefined: it does not fit. */
export function spotOn(cluster: Cluster, shape: Shape, host: number): Spot | undefined {
  if (!fitsBesidesDevices(cluster, shape, host)) return undefined
  const devices = tightestDevices(cluster, shape, host)
  return devices && { host, devices }
}

const NO_DEVICES: readonly number[] = []

/** Devices within the host, by devices alone. */
export function tightestDevices(cluster: Cluster, shape: Shape, host: number): readonly number[] | undefined {
  if (shape.gpuCount === 0) return NO_DEVICES
  const start = cluster.deviceStart[host] as number
  const end = cluster.deviceStart[host + 1] as number
  if (shape.gpuMilli === WHOLE_MILLI) {
    const devices: number[] = []
    for (let device = start; device < end && devices.length < shape.gpuCount; device++)
      if (holdsPart(cluster, shape, device)) devices.push(device - start)
    return devices.length === shape.gpuCount ? devices : undefined
  }
  const device = tightestDevice(cluster, shape, host)
  return device < 0 ? undefined : [device]
}

/** The tightest device within the host for a share, the first of equals. For whole GPUs and none: 0 when they fit. Else -1. */
export function tightestDevice(cluster: Cluster, shape: Shape, host: number): number {
  if (shape.gpuCount === 0) return 0
  if (shape.gpuMilli === WHOLE_MILLI) return countDevices(cluster, shape, host) >= shape.gpuCount ? 0 : -1
  const start = cluster.deviceStart[host] as number
  const end = cluster.deviceStart[host + 1] as number
  let best = -1
  for (let device = start; device < end; device++) {
    if (!holdsPart(cluster, shape, device)) continue
    if (best < 0 || (cluster.deviceLeftMilli[device] as number) < (cluster.deviceLeftMilli[best] as number))
      best = device
  }
  return best < 0 ? -1 : best - start
}
