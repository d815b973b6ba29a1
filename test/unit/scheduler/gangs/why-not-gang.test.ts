import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findGang } from '../../../../src/scheduler/gangs/place-gang.ts'
import { whyNotGang } from '../../../../src/scheduler/gangs/why-not.ts'
import { Cluster } from '../../../../src/scheduler/model/cluster.ts'
import type { Gang, Strategy } from '../../../../src/scheduler/model/resources.ts'
import { randomRuns } from '../../../support/random-runs.ts'

const createCluster = (hosts: number, gpus: number) =>
  new Cluster(
    Array.from({ length: hosts }, (_, index) => ({
      name: `h${index}`,
      cpuMilli: 4000,
      memoryBytes: 2 ** 30,
      gpus: Array.from({ length: gpus }, () => ''),
    })),
  )

const gang = (strategy: Strategy, shares: readonly number[], rest: Partial<Gang> = {}): Gang => ({
  name: '',
  strategy,
  bundles: shares.map((share) => ({ cpuMilli: 500, memoryBytes: 1, gpuCount: 1, gpuMilli: share })),
  ...rest,
})

describe('why a gang does not fit', () => {
  test('is undefined when it fits', () => {
    expect(whyNotGang(createCluster(2, 1), gang('STRICT_SPREAD', [1000, 1000]))).toBeUndefined()
  })

  test('says how many bundles fit and which strategy would help', () => {
    const cluster = createCluster(2, 2)
    const spread = gang('STRICT_SPREAD', [500, 500, 500])
    const why = whyNotGang(cluster, spread)
    expect(why?.isImpossible).toBe(true)
    expect(why?.lines).toEqual([
      'Too large for these hosts, even when they are idle.',
      'Only 2 of 3 bundles fit (STRICT_SPREAD).',
      'It would fit with SPREAD.',
      'It would fit with 2 bundles.',
    ])
  })

  test('says for each host why a bundle does not fit', () => {
    const cluster = createCluster(2, 2)
    for (const share of [600, 600, 600]) findGang(cluster, gang('PACK', [share]))
    const large = gang('PACK', [500, 1000, 1000])
    const why = whyNotGang(cluster, large)
    expect(why?.isImpossible).toBe(false)
    expect(why?.lines).toEqual(['Only 1 of 3 bundles fits (PACK).', 'It would fit with 1 bundle.'])
    findGang(cluster, gang('PACK', [600]))
    const none = whyNotGang(cluster, large)
    expect(none?.lines).toEqual([
      'Bundle 1 fits on no host:',
      'h[0-1]: needs 0.5 of one GPU; none has that free (all 2 together: 0.8)',
      'Bundle 2 fits on no host:',
      'h[0-1]: needs 1 idle GPU, 0 of 2 idle',
    ])
  })

  test('says of what is too large for idle hosts only what holds while they are idle', () => {
    const cluster = createCluster(2, 2)
    for (const share of [600, 600, 600]) findGang(cluster, gang('PACK', [share]))
    expect(whyNotGang(cluster, gang('STRICT_SPREAD', [1000, 1000, 1000]))?.lines).toEqual([
      'Too large for these hosts, even when they are idle.',
      'Only 2 of 3 bundles fit (STRICT_SPREAD).',
      'It would fit with SPREAD.',
      'It would fit with 2 bundles.',
    ])
    const bundles = [{ cpuMilli: 4000, memoryBytes: 1, gpuCount: 4, gpuMilli: 1000 }]
    expect(whyNotGang(cluster, { name: '', strategy: 'PACK', bundles })?.lines).toEqual([
      'Too large for these hosts, even when they are idle.',
      'h[0-1]: needs 4 GPUs, has 2',
    ])
  })

  test('says that the limit of bundles per host is in the way', () => {
    const limited = gang('PACK', [500, 500, 500], { maxBundlesPerHost: 1 })
    expect(whyNotGang(createCluster(2, 2), limited)?.lines).toContain(
      'It would fit without a limit of bundles per host.',
    )
  })
})

test('finds a placement whenever one exists, where greedy packing gives up', () => {
  const anyShares = fc.array(fc.constantFrom(200, 300, 400, 500, 600, 700), { minLength: 2, maxLength: 6 })
  const anyStrategy = fc.constantFrom<Strategy>('PACK', 'SPREAD', 'STRICT_PACK', 'STRICT_SPREAD')
  fc.assert(
    fc.property(anyShares, anyStrategy, fc.integer({ min: 1, max: 2 }), (shares, strategy, gpus) => {
      const cluster = createCluster(2, gpus)
      const isFound = findGang(cluster.copy(), gang(strategy, shares), 100_000) !== undefined
      expect(isFound).toBe(existsFor(strategy, shares, 2, gpus))
    }),
    { numRuns: randomRuns(60) },
  )
})

/** By trying each device for each share. */
function existsFor(strategy: Strategy, shares: readonly number[], hosts: number, gpus: number): boolean {
  const left = Array.from({ length: hosts * gpus }, () => 1000)
  const used: number[] = []
  const hostsOk = () => {
    const on = used.map((device) => Math.floor(device / gpus))
    if (strategy === 'STRICT_PACK') return new Set(on).size <= 1
    return strategy !== 'STRICT_SPREAD' || new Set(on).size === on.length
  }
  const place = (index: number): boolean => {
    const share = shares[index]
    if (share === undefined) return true
    for (let device = 0; device < left.length; device++) {
      if ((left[device] as number) < share) continue
      left[device] = (left[device] as number) - share
      used.push(device)
      if (hostsOk() && place(index + 1)) return true
      used.pop()
      left[device] = (left[device] as number) + share
    }
    return false
  }
  return place(0)
}
