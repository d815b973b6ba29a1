import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Cluster, type Placement } from '../../../../src/scheduler/model/cluster.ts'
import { fits } from '../../../../src/scheduler/model/fits.ts'
import { WorkloadMix } from '../../../../src/scheduler/model/mix.ts'
import type { HostCapacity, ResourceRequest } from '../../../../src/scheduler/model/resources.ts'
import { createPolicy, isPolicyName, POLICIES } from '../../../../src/scheduler/policies/policies.ts'
import { randomRuns } from '../../../support/random-runs.ts'

const GIB = 2 ** 30
const NAMES = Object.keys(POLICIES).filter(isPolicyName)

const hosts: readonly HostCapacity[] = [
  { name: 'm1', cpuMilli: 16_000, memoryBytes: 64 * GIB, gpus: ['T4', 'T4'] },
  { name: 'm2', cpuMilli: 16_000, memoryBytes: 64 * GIB, gpus: ['T4', 'A10'] },
  { name: 'm3', cpuMilli: 64_000, memoryBytes: 256 * GIB, gpus: ['A10', 'A10', 'A10', 'A10'] },
  { name: 'm4', cpuMilli: 64_000, memoryBytes: 256 * GIB },
  { name: 'm5', cpuMilli: 32_000, memoryBytes: 64 * GIB, gpus: ['A10', 'A10'], labels: { disk: 'fast' } },
  { name: 'm6', cpuMilli: 64_000, memoryBytes: 256 * GIB, gpus: ['A10', 'A10', 'A10', 'A10'] },
  { name: 'm7', cpuMilli: 32_000, memoryBytes: 64 * GIB, gpus: ['A10', 'A10'] },
]

const request = fc
  .record({
    cpuMilli: fc.constantFrom(0, 1000, 4000, 12_000),
    memoryBytes: fc.constantFrom(0, 4 * GIB, 40 * GIB),
    gpu: fc.constantFrom([0, 0], [1, 160], [1, 470], [1, 810], [1, 1000], [2, 1000], [4, 1000]),
    gpuModels: fc.constantFrom([], [], ['T4'], ['A10'], ['T4', 'A10'], ['H100']),
    isPicky: fc.constantFrom(false, false, true),
  })
  .map(({ gpu, isPicky, ...rest }): ResourceRequest => {
    const preferences = isPicky ? [{ label: 'disk', is: 'in', values: ['fast'] } as const] : []
    return { ...rest, gpuCount: gpu[0]!, gpuMilli: gpu[1]!, preferences }
  })

const steps = fc.array(fc.tuple(request, fc.nat({ max: 99 })), { minLength: 1, maxLength: 60 })

describe.each(NAMES)('the policy %s', (name) => {
  it('places exactly what some host holds', () => {
    fc.assert(
      fc.property(steps, (list) => {
        const cluster = new Cluster(hosts)
        const policy = createPolicy(name, cluster, WorkloadMix.of(list.map(([one]) => one)), 1)
        const live: Placement[] = []
        for (const [one, choice] of list) {
          if (choice < 30 && live.length > 0)
            for (const gone of live.splice(choice % live.length, 1)) cluster.release(gone)
          const shape = cluster.shapeOf(one)
          const allowed = choice % 2 === 0 ? (host: number) => host !== choice % hosts.length : undefined
          const holding = hosts.flatMap((_, host) =>
            fits(cluster, shape, host) && allowed?.(host) !== false ? [host] : [],
          )
          const spot = policy.choose(shape, allowed)
          if (spot === undefined) expect(holding).toEqual([])
          else {
            expect(holding).toContain(spot.host)
            live.push(cluster.take(shape, spot))
          }
        }
      }),
    )
  })
})

/** Whose choice hangs on the present state alone; the default policy works out scarcity only now and then. */
const STATELESS = ['fgd', 'first-fit', 'best-fit', 'dot-product', 'gpu-packing', 'gpu-clustering'] as const

describe.each(STATELESS)('the policy %s', (name) => {
  it('chooses the same with cached scores as from scratch', () => {
    fc.assert(
      fc.property(steps, (list) => {
        const cluster = new Cluster(hosts)
        const mix = WorkloadMix.of(list.map(([one]) => one))
        const policy = createPolicy(name, cluster, mix)
        const live: Placement[] = []
        for (const [one, choice] of list) {
          if (choice < 30 && live.length > 0)
            for (const gone of live.splice(choice % live.length, 1)) cluster.release(gone)
          const shape = cluster.shapeOf(one)
          const spot = policy.choose(shape)
          const again = new Cluster(hosts)
          const fresh = createPolicy(name, again, mix)
          for (const { shape: old, host, devices } of cluster.placements())
            again.take(again.shapeOf(old.request), { host, devices })
          expect(fresh.choose(again.shapeOf(one))).toEqual(spot)
          if (spot) live.push(cluster.take(shape, spot))
        }
      }),
      { numRuns: randomRuns(40) },
    )
  })
})

describe.each(STATELESS)('the policy %s', (name) => {
  it('chooses the same with and without GPU models, among hosts that have them', () => {
    const alike = hosts.filter(({ gpus = [] }) => new Set(gpus).size < 2)
    fc.assert(
      fc.property(steps, (list) => {
        const cluster = new Cluster(alike)
        const mix = WorkloadMix.of(list.map(([one]) => one))
        const policy = createPolicy(name, cluster, mix)
        const other = createPolicy(name, cluster, mix)
        for (const [one] of list) {
          const spot = policy.choose(cluster.shapeOf(one))
          const wanted = one.gpuModels ?? []
          const isWanted = (host: number) =>
            one.gpuCount === 0 || wanted.length === 0 || wanted.includes(alike[host]?.gpus?.[0] ?? '')
          expect(spot).toEqual(other.choose(cluster.shapeOf({ ...one, gpuModels: [] }), isWanted))
          if (spot) cluster.take(cluster.shapeOf(one), spot)
        }
      }),
      { numRuns: randomRuns(40) },
    )
  })
})

/** Enough hosts, and requests that differ in CPU and memory alone, for the search to skip hosts, and to give up a loose bound. */
const many = Array.from({ length: 90 }, (_, index): HostCapacity => {
  const cpuMilli = 16_000 + 8000 * (index % 5)
  const gpus = Array.from({ length: [2, 4, 8, 0][index % 4]! }, () => (index % 3 === 0 ? 'T4' : 'A10'))
  return { name: `h${index}`, cpuMilli, memoryBytes: (64 + 32 * (index % 3)) * GIB, gpus }
})

const amounts = fc.record({ cpuMilli: fc.nat({ max: 9 }), gib: fc.nat({ max: 9 }) })

describe.each(NAMES.filter((name) => name !== 'random'))('the policy %s', (name) => {
  it('chooses the same whether or not requests share scores', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(request, amounts, fc.nat({ max: 99 })), { maxLength: 400, size: 'max' }),
        (list) => {
          const requests = list.map(([one, { cpuMilli, gib }]) => {
            return { ...one, cpuMilli: 500 * cpuMilli ** 2, memoryBytes: GIB * gib ** 2 }
          })
          const sides = [true, false].map((isSharing) => {
            const cluster = new Cluster(many)
            const policy = createPolicy(name, cluster, WorkloadMix.of(requests))
            // No host has taints, so this only keeps the request apart from others.
            const shapeOf = (one: ResourceRequest) =>
              cluster.shapeOf(isSharing ? one : { ...one, tolerates: [`${one.cpuMilli} ${one.memoryBytes}`] })
            const live: Placement[] = []
            return { cluster, policy, shapeOf, live }
          })
          requests.forEach((one, index) => {
            const choice = list[index]![2]
            const isAllowed = choice % 3 === 0 ? (host: number) => host % 7 !== choice % 7 : undefined
            const [shared, alone] = sides.map(({ cluster, policy, shapeOf, live }) => {
              if (choice < 30 && live.length > 0)
                for (const gone of live.splice((choice * 7) % live.length, 1)) cluster.release(gone)
              const spot = policy.choose(shapeOf(one), isAllowed)
              if (spot) live.push(cluster.take(shapeOf(one), spot))
              return spot
            })
            expect(shared).toEqual(alone)
          })
        },
      ),
      { numRuns: randomRuns(10) },
    )
  })
})

describe('preferences', () => {
  it('are followed where possible', () => {
    const cluster = new Cluster(hosts)
    const preferences = [{ label: 'disk', is: 'in', values: ['fast'] } as const]
    const shape = cluster.shapeOf({ cpuMilli: 20_000, memoryBytes: GIB, gpuCount: 0, gpuMilli: 0, preferences })
    const policy = createPolicy('least-stranding', cluster, new WorkloadMix())
    const first = policy.choose(shape)!
    expect(first.host).toBe(4)
    cluster.take(shape, first)
    expect(policy.choose(shape)?.host).toBeGreaterThan(1)
  })
})
