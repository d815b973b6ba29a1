/** Gangs that come to an empty cluster, a window of them at a time; what finds no place is refused, and nothing leaves. */
import { placeWindow } from '../gangs/window.ts'
import { Cluster } from '../model/cluster.ts'
import type { Gang } from '../model/gang.ts'
import type { HostSpec } from '../model/resources.ts'
import { placeAsRay } from '../ray/ray-placement.ts'

export type GangInstance = {
  readonly name: string
  readonly hosts: readonly HostSpec[]
  readonly gangs: readonly Gang[]
  /** Of all GPUs, the most that is known to be possible. */
  readonly bestKnownGpuPercent: number | undefined
}

export const GANG_POLICIES = ['window', 'ray'] as const
export type GangPolicyName = (typeof GANG_POLICIES)[number]

export type GangResult = {
  readonly name: string
  readonly gpuPercent: number
  readonly ratioToBest: number | undefined
  readonly placed: number
  readonly gangs: number
}

/** `ray` takes gangs one by one whatever the window. */
export function runGangs(instance: GangInstance, policy: GangPolicyName, windowSize: number): GangResult {
  const cluster = new Cluster(instance.hosts)
  const { gangs, name, bestKnownGpuPercent } = instance
  let placed = 0
  if (policy === 'ray') for (const gang of gangs) placed += placeAsRay(cluster, gang) ? 1 : 0
  else
    for (let first = 0; first < gangs.length; first += windowSize)
      placed += placeWindow(cluster, gangs.slice(first, first + windowSize)).size
  const gpuPercent = (100 * cluster.usedGpuMilli) / Math.max(1, cluster.totalGpuMilli)
  const ratioToBest = bestKnownGpuPercent ? gpuPercent / bestKnownGpuPercent : undefined
  return { name, gpuPercent, ratioToBest, placed, gangs: gangs.length }
}
