/** Placement policies by name. */
import type { Cluster } from '../model/cluster.ts'
import type { WorkloadMix } from '../model/mix.ts'
import { createLeastStranding } from './least-stranding/least-stranding.ts'
import {
  createBestFit,
  createDotProduct,
  createFgd,
  createFirstFit,
  createGpuClustering,
  createGpuPacking,
} from './published.ts'
import { createRandom } from './random.ts'
import type { PlacementPolicy } from './scored-policy.ts'

export type PolicyName = keyof typeof POLICIES

type CreatePolicy = (cluster: Cluster, mix: WorkloadMix, seed: number) => PlacementPolicy

export const DEFAULT_POLICY = 'least-stranding'

export const POLICIES = {
  'least-stranding': createLeastStranding,
  fgd: createFgd,
  'first-fit': createFirstFit,
  'best-fit': createBestFit,
  'dot-product': createDotProduct,
  'gpu-packing': createGpuPacking,
  'gpu-clustering': createGpuClustering,
  random: (cluster, _mix, seed) => createRandom(cluster, seed),
} as const satisfies Record<string, CreatePolicy>

export function isPolicyName(name: string): name is PolicyName {
  return Object.hasOwn(POLICIES, name)
}

/** `seed` makes random choices repeatable. */
export function createPolicy(name: PolicyName, cluster: Cluster, mix: WorkloadMix, seed = 0): PlacementPolicy {
  const create: CreatePolicy = POLICIES[name]
  return create(cluster, mix, seed)
}
