/** Gangs that come to an empty cluster of equal hosts, a window at a time; what does not fit is refused, and nothing leaves. */

import * as z from 'zod'
import type { ResultOf } from '../../base/calculation.ts'
import { placeWindow } from '../gangs/window.ts'
import { Cluster } from '../model/cluster.ts'
import type { Gang, HostCapacity } from '../model/resources.ts'
import { placeAsRay } from '../ray/ray-placement.ts'
import { bundlesOf, gpuMilli, hostOf, parseJson, strategy } from './json-input.ts'

export type GangInstance = {
  readonly name: string
  readonly hosts: readonly HostCapacity[]
  readonly gangs: readonly Gang[]
  /** The most that is known to be possible, of all GPUs. */
  readonly bestKnownGpuPercent: number | undefined
}

export const GANG_POLICIES = ['window', 'ray'] as const
export type GangPolicyName = (typeof GANG_POLICIES)[number]

export type GangResult = ResultOf<ReturnType<typeof runGangs>>

/** `ray` takes gangs one by one, whatever the window. */
export function* runGangs(instance: GangInstance, policy: GangPolicyName, windowSize: number) {
  const cluster = new Cluster(instance.hosts)
  const { gangs, name, bestKnownGpuPercent } = instance
  let placed = 0
  const step = policy === 'ray' ? 1 : windowSize
  for (let first = 0; first < gangs.length; first += step) {
    yield
    const window = gangs.slice(first, first + step)
    if (policy === 'window') placed += placeWindow(cluster, window).size
    else for (const gang of window) placed += placeAsRay(cluster, gang) ? 1 : 0
  }
  const gpuPercent = (100 * cluster.usedGpuMilli) / Math.max(1, cluster.totalGpuMilli)
  const ratioToBest = bestKnownGpuPercent ? gpuPercent / bestKnownGpuPercent : undefined
  return { name, gpuPercent, ratioToBest, placed, gangs: gangs.length }
}

const count = z.int().min(0).max(1_000_000)
/** Cores or GiB, with fractions. */
const amount = z.number().min(0).max(2_000_000)
const instances = z.array(
  z.object({
    name: z.string(),
    hosts: z.object({ count: count.min(1).max(100_000), cpu: amount, memoryGiB: amount, gpus: count.max(1024) }),
    gangs: z.array(
      z.object({ bundles: count.min(1).max(100_000), gpuMilli, cpu: amount, memoryGiB: amount, strategy }),
    ),
    bestKnownGpuPercent: z.number().min(0).nullish(),
  }),
)

/** @throws MusterError 'configuration' with the first mistake. */
export function parseGangInstances(text: string): readonly GangInstance[] {
  return parseJson(text, 'instances', instances).map(({ name, hosts, gangs, bestKnownGpuPercent }) => ({
    name,
    bestKnownGpuPercent: bestKnownGpuPercent ?? undefined,
    hosts: Array.from({ length: hosts.count }, (_, index) => hostOf(`host${index}`, hosts)),
    gangs: gangs.map(({ bundles, strategy: own, ...bundle }, index) => ({
      name: `gang${index}`,
      strategy: own,
      bundles: bundlesOf(bundles, bundle),
    })),
  }))
}
