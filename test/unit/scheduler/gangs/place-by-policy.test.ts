/** A gang placed bundle by bundle with the policies for single requests. */
import { describe, expect, it } from 'vitest'
import { placeByPolicy } from '../../../../src/scheduler/gangs/place-by-policy.ts'
import { Cluster } from '../../../../src/scheduler/model/cluster.ts'
import { WorkloadMix } from '../../../../src/scheduler/model/mix.ts'
import type { Strategy } from '../../../../src/scheduler/model/resources.ts'
import { createPolicy, POLICIES, type PolicyName } from '../../../../src/scheduler/policies/policies.ts'

const gpus = (count: number) => ({ cpuMilli: 1000, memoryBytes: 0, gpuCount: count, gpuMilli: 1000 })
const gang = (strategy: Strategy, ...bundles: readonly ReturnType<typeof gpus>[]) => ({ name: '', strategy, bundles })

/** Three hosts with 2, 4 and 4 GPUs. */
const cluster = () =>
  new Cluster(
    [2, 4, 4].map((count, index) => ({
      name: `n${index}`,
      cpuMilli: 16_000,
      memoryBytes: 1,
      gpus: Array.from({ length: count }, () => ''),
    })),
  )
const place = (name: PolicyName, on: Cluster, ...rest: Parameters<typeof gang>) => {
  const own = gang(...rest)
  return placeByPolicy(on, own, createPolicy(name, on, WorkloadMix.of(own.bundles)))?.map(({ host }) => host)
}

describe.each(Object.keys(POLICIES) as PolicyName[])('%s', (name) => {
  it('follows each strategy and keeps the order of the bundles', () => {
    const two = [gpus(1), gpus(1)]
    expect(new Set(place(name, cluster(), 'PACK', ...two)).size).toBe(1)
    expect(new Set(place(name, cluster(), 'STRICT_PACK', ...two)).size).toBe(1)
    expect(new Set(place(name, cluster(), 'SPREAD', ...two, gpus(1))).size).toBe(3)
    expect(new Set(place(name, cluster(), 'SPREAD', ...two, ...two)).size).toBe(3)
    expect(new Set(place(name, cluster(), 'STRICT_SPREAD', ...two, gpus(1))).size).toBe(3)
    const [small, large] = place(name, cluster(), 'STRICT_SPREAD', gpus(2), gpus(4)) ?? []
    expect([1, 2]).toContain(large)
    expect(small).not.toBe(large)
    expect(place(name, cluster(), 'STRICT_PACK', gpus(1), gpus(3))?.every((host) => host > 0)).toBe(true)
  })

  it('takes nothing when one bundle does not fit', () => {
    const own = cluster()
    expect(place(name, own, 'STRICT_SPREAD', gpus(1), gpus(1), gpus(1), gpus(1))).toBeUndefined()
    expect(place(name, own, 'STRICT_PACK', gpus(3), gpus(3))).toBeUndefined()
    expect(place(name, own, 'PACK', gpus(4), gpus(4), gpus(4))).toBeUndefined()
    expect([...own.idleDevices]).toEqual([2, 4, 4])
  })
})
