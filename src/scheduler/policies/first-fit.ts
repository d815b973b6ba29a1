/** The lowest host number that holds it; a share goes on the device that it fills most. */
import type { Cluster } from '../model/cluster.ts'
import type { ScoredPolicy } from './scored-policy.ts'
import { createTightestPolicy } from './tightest-policy.ts'

export function createFirstFit(cluster: Cluster): ScoredPolicy {
  return createTightestPolicy('first-fit', cluster, () => 0)
}
