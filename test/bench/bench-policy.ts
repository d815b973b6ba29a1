import type { Cluster } from '../../src/scheduler/model/cluster.ts'
import type { WorkloadMix } from '../../src/scheduler/model/mix.ts'
import { createPolicy, isPolicyName, POLICIES } from '../../src/scheduler/policies/policies.ts'
import type { PlacementPolicy } from '../../src/scheduler/policies/scored-policy.ts'
import { createLpd } from './lpd/lpd.ts'

/** Those of the product, and the LP-guided one. */
export function createBenchPolicy(name: string, cluster: Cluster, mix: WorkloadMix, seed: number): PlacementPolicy {
  if (name === 'lpd') return createLpd(cluster, mix)
  if (isPolicyName(name)) return createPolicy(name, cluster, mix, seed)
  throw new Error(`--policies: ${name} is none of lpd, ${Object.keys(POLICIES).join(', ')}`)
}
