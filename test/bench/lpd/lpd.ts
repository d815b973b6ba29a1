/**
 * LPD(λ, Q): FGD led by the prices of the configuration LP of the expected workload. What is worth most stays free; scores are
 * cut into steps of Q milli. A baseline to compare with: it solves a linear program for each mix.
 */
import type { Cluster } from '../../../src/scheduler/model/cluster.ts'
import type { WorkloadMix } from '../../../src/scheduler/model/mix.ts'
import { WHOLE_MILLI } from '../../../src/scheduler/model/resources.ts'
import { createByFragments } from '../../../src/scheduler/policies/published.ts'
import type { PlacementPolicy } from '../../../src/scheduler/policies/scored-policy.ts'
import { STEP_MILLI, solveConfigurationLp } from './configuration-lp.ts'

const LAMBDA = 10
const GRAIN_MILLI = 200

export function createLpd(cluster: Cluster, mix: WorkloadMix): PlacementPolicy {
  const entries = mix.entries()
  const asked = entries.reduce((sum, { request, count }) => sum + count * request.gpuCount * request.gpuMilli, 0)
  const scale = cluster.totalGpuMilli / asked
  const { valuesOf } = solveConfigurationLp(
    cluster,
    entries.map(({ request, count }) => ({ request, count: count * scale })),
  )
  return createByFragments(cluster, mix, (gain, { gpuCount, gpuMilli }, host, leftMilli) => {
    const value = (milli: number) => valuesOf[host]![Math.floor(milli / STEP_MILLI)]!
    const after = gpuMilli === WHOLE_MILLI ? 0 : value(leftMilli - gpuMilli)
    const loss = gpuCount === 0 ? 0 : gpuCount * (value(leftMilli) - after)
    return Math.round((gain - LAMBDA * loss) / GRAIN_MILLI)
  })
}
