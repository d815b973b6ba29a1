import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { placeGang } from '../../../../src/scheduler/gangs/place-gang.ts'
import { placeWindow } from '../../../../src/scheduler/gangs/window.ts'
import { Cluster } from '../../../../src/scheduler/model/cluster.ts'
import type { Gang, ResourceRequest, Strategy } from '../../../../src/scheduler/model/resources.ts'
import { placeAsRay } from '../../../../src/scheduler/ray/ray-placement.ts'
import { parseGangInstances, runGangs } from '../../../../src/scheduler/simulate/gang-instances.ts'
import { atOnce } from '../../../support/at-once.ts'

const STRATEGIES: readonly Strategy[] = ['PACK', 'SPREAD', 'STRICT_PACK', 'STRICT_SPREAD']

const bundle = (gpuMilli: number, cpuMilli = 1000): ResourceRequest => ({
  cpuMilli,
  memoryBytes: 1,
  gpuCount: gpuMilli === 0 ? 0 : Math.max(1, gpuMilli / 1000),
  gpuMilli: Math.min(gpuMilli, 1000),
})

const gang = (strategy: Strategy, ...gpus: readonly number[]): Gang => ({
  name: `${strategy} ${gpus}`,
  strategy,
  bundles: gpus.map((gpuMilli) => bundle(gpuMilli)),
})

const createCluster = (hosts = 3, gpus = 2) =>
  new Cluster(
    Array.from({ length: hosts }, (_, index) => ({
      name: `h${index}`,
      cpuMilli: 8000,
      memoryBytes: 1000,
      gpus: Array.from({ length: gpus }, () => ''),
    })),
  )

const hostsOf = (placements: readonly { readonly host: number }[] | undefined) => placements?.map(({ host }) => host)

describe.each([
  ['ours', placeGang],
  ['Ray', placeAsRay],
] as const)('%s', (_, place) => {
  test('treats strict strategies as conditions and the others as preferences', () => {
    expect(new Set(hostsOf(place(createCluster(), gang('STRICT_PACK', 1000, 1000)))).size).toBe(1)
    expect(place(createCluster(), gang('STRICT_PACK', 1000, 1000, 1000))).toBeUndefined()
    expect(new Set(hostsOf(place(createCluster(), gang('STRICT_SPREAD', 1000, 1000, 1000)))).size).toBe(3)
    expect(place(createCluster(), gang('STRICT_SPREAD', 100, 100, 100, 100))).toBeUndefined()
    expect(new Set(hostsOf(place(createCluster(), gang('PACK', 1000, 1000, 1000)))).size).toBe(2)
    expect(new Set(hostsOf(place(createCluster(), gang('SPREAD', 100, 100, 100, 100)))).size).toBe(3)
  })

  test('counts devices, not sums: two halves do not hold 0.8', () => {
    const cluster = createCluster(1, 2)
    expect(place(cluster, gang('STRICT_PACK', 600, 600))).toHaveLength(2)
    expect(place(cluster, gang('PACK', 800))).toBeUndefined()
    expect(cluster.usedGpuMilli).toBe(1200)
  })

  test('places a gang whole or not at all, without over-committing, and deterministically', () => {
    const anyGang = fc.record({
      strategy: fc.constantFrom(...STRATEGIES),
      gpus: fc.array(fc.constantFrom(0, 200, 500, 800, 1000, 2000), { minLength: 1, maxLength: 6 }),
    })
    fc.assert(
      fc.property(fc.array(anyGang, { maxLength: 8 }), (gangs) => {
        const run = () => {
          const cluster = createCluster()
          return gangs.map(({ strategy, gpus }) => {
            const before = [...cluster.deviceLeftMilli, ...cluster.cpuLeftMilli]
            const hosts = hostsOf(place(cluster, gang(strategy, ...gpus)))
            if (hosts === undefined) expect([...cluster.deviceLeftMilli, ...cluster.cpuLeftMilli]).toEqual(before)
            else expect(hosts).toHaveLength(gpus.length)
            if (hosts && strategy === 'STRICT_PACK') expect(new Set(hosts).size).toBe(1)
            if (hosts && strategy === 'STRICT_SPREAD') expect(new Set(hosts).size).toBe(hosts.length)
            expect(Math.min(...cluster.deviceLeftMilli, ...cluster.cpuLeftMilli)).toBeGreaterThanOrEqual(0)
            return hosts
          })
        }
        expect(run()).toEqual(run())
      }),
    )
  })
})

describe('ours', () => {
  test('keeps to the limit of bundles per host with every strategy', () => {
    const limited = (strategy: Strategy, count: number): Gang => ({
      ...gang(strategy, ...Array.from({ length: count }, () => 100)),
      maxBundlesPerHost: 2,
    })
    expect(hostsOf(placeGang(createCluster(), limited('PACK', 5)))?.sort()).toEqual([0, 0, 1, 1, 2])
    for (const strategy of STRATEGIES) expect(placeGang(createCluster(), limited(strategy, 7))).toBeUndefined()
    expect(placeGang(createCluster(), limited('STRICT_PACK', 3))).toBeUndefined()
  })

  test('returns bundles in the order of the gang, preferred hosts first', () => {
    const cluster = createCluster()
    const preferences = [{ label: 'host', is: 'in', values: ['h2'] }] as const
    const bundles = [{ ...bundle(200), preferences }, bundle(2000), { ...bundle(300), preferences }]
    const placements = placeGang(cluster, { name: 'mixed', strategy: 'PACK', bundles })
    expect(placements?.map(({ shape }) => shape.gpuMilli)).toEqual([200, 1000, 300])
    expect(hostsOf(placements)?.filter((host) => host === 2)).toHaveLength(2)
  })

  test('places a large gang of a window before earlier small ones', () => {
    const small = gang('PACK', 1000)
    const cpuOnly = gang('PACK', 0)
    const large = gang('STRICT_SPREAD', 2000, 2000, 2000)
    const placed = placeWindow(createCluster(), [small, cpuOnly, large])
    expect([...placed.keys()]).toEqual([large, cpuOnly])
  })

  test('leaves cores for idle GPUs when a gang needs none, in a window and alone', () => {
    const small = gang('PACK', 1000)
    const cores = (cpuMilli: number): Gang => ({ name: 'cores', strategy: 'PACK', bundles: [bundle(0, cpuMilli)] })
    // 7 of 8 cores are left then, and 2 of them stay for the one of two GPUs that is idle.
    expect(placeWindow(createCluster(1), [small, cores(5000)]).size).toBe(2)
    expect(placeWindow(createCluster(1), [small, cores(5001)]).size).toBe(1)
    expect(placeWindow(createCluster(1), [cores(4001)]).size).toBe(0)
    expect(placeWindow(createCluster(1), [cores(4000)]).size).toBe(1)
  })
})

test('predicts that Ray takes the emptiest host', () => {
  const cluster = createCluster()
  const hosts = Array.from({ length: 4 }, () => hostsOf(placeAsRay(cluster, gang('PACK', 500)))?.[0])
  expect(hosts).toEqual([0, 1, 2, 0])
})

describe('instances', () => {
  const instance = {
    name: 'one',
    hosts: { count: 2, cpu: 8, memoryGiB: 8, gpus: 2 },
    gangs: [
      { bundles: 1, gpuMilli: 500, cpu: 1, memoryGiB: 1, strategy: 'PACK' },
      { bundles: 2, gpuMilli: 2000, cpu: 1, memoryGiB: 1, strategy: 'STRICT_SPREAD' },
    ],
    bestKnownGpuPercent: 100,
  }

  test('compares the used GPUs with the best known result', () => {
    const [parsed] = parseGangInstances(JSON.stringify([instance]))
    if (parsed === undefined) throw new Error('no instance')
    expect(atOnce(runGangs(parsed, 'window', 64))).toEqual({
      name: 'one',
      gpuPercent: 100,
      ratioToBest: 1,
      placed: 1,
      gangs: 2,
    })
    for (const result of [atOnce(runGangs(parsed, 'ray', 64)), atOnce(runGangs(parsed, 'window', 1))])
      expect(result).toMatchObject({ gpuPercent: 12.5, ratioToBest: 0.125, placed: 1 })
  })

  test('names the place of a mistake', () => {
    expect(() => parseGangInstances('[')).toThrow('not valid JSON')
    const wrong = { ...instance, gangs: [{ ...instance.gangs[0], gpuMilli: 1500 }] }
    expect(() => parseGangInstances(JSON.stringify([wrong]))).toThrow('0.gangs.0.gpuMilli: must be a share of one GPU')
  })

  test('accepts fractions of cores and GiB and an unknown best result', () => {
    const odd = { ...instance, hosts: { count: 1, cpu: 1.5, memoryGiB: 0.5, gpus: 1 }, bestKnownGpuPercent: null }
    const [parsed] = parseGangInstances(
      JSON.stringify([{ ...odd, gangs: [{ ...instance.gangs[0], cpu: 0.5, memoryGiB: 0.25 }] }]),
    )
    expect(parsed?.hosts[0]).toMatchObject({ cpuMilli: 1500, memoryBytes: 2 ** 29 })
    expect(parsed?.gangs[0]?.bundles[0]).toMatchObject({ cpuMilli: 500, memoryBytes: 2 ** 28 })
    expect(parsed && atOnce(runGangs(parsed, 'window', 1))).toMatchObject({ gpuPercent: 50, ratioToBest: undefined })
  })
})
