import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { reasonsOf, whyNotGang } from '../../../../src/scheduler/gangs/why-not.ts'
import { Cluster } from '../../../../src/scheduler/model/cluster.ts'
import { fits, spotOn } from '../../../../src/scheduler/model/fits.ts'
import type { HostCapacity, ResourceRequest } from '../../../../src/scheduler/model/resources.ts'
import { randomRuns } from '../../../support/random-runs.ts'

const GIB = 2 ** 30

const hosts: readonly HostCapacity[] = [
  { name: 'm1', cpuMilli: 4000, memoryBytes: 8 * GIB, gpus: ['T4', 'T4'] },
  { name: 'm2', cpuMilli: 8000, memoryBytes: 16 * GIB, gpus: ['A10'], taints: ['lab'] },
  {
    name: 'm3',
    cpuMilli: 2000,
    memoryBytes: 4 * GIB,
    labels: { zone: 'b' },
    custom: { fpga: { kind: 'unit', count: 1 } },
  },
]

const requests = fc
  .record({
    cpuMilli: fc.constantFrom(0, 1000, 3000, 6000, 9000),
    memoryBytes: fc.constantFrom(0, 2 * GIB, 6 * GIB, 12 * GIB),
    gpu: fc.constantFrom([0, 0], [1, 300], [1, 600], [1, 1000], [2, 1000]),
    gpuModels: fc.constantFrom<string[][]>([], [], ['T4'], ['H100']),
    isZoned: fc.boolean(),
    isTolerant: fc.boolean(),
    fpga: fc.constantFrom(0, 0, 500, 1000),
  })
  .map(
    ({ gpu, isZoned, isTolerant, fpga, ...rest }): ResourceRequest => ({
      ...rest,
      gpuCount: gpu[0]!,
      gpuMilli: gpu[1]!,
      selectors: isZoned ? [{ label: 'zone', is: 'in', values: ['b'] }] : [],
      tolerates: isTolerant ? ['lab'] : [],
      custom: { fpga },
    }),
  )

describe('where hosts have fewer GPUs than hosts.yaml declares', () => {
  const cluster = new Cluster(
    ['m1', 'm2'].map((name) => ({ name, cpuMilli: 9000, memoryBytes: 0, gpus: [''], gpusDeclared: 11 })),
  )
  const gang = (bundles: number, gpuCount: number, gpuMilli = 1000) => ({
    ...{ name: '', strategy: 'PACK' as const },
    bundles: Array.from({ length: bundles }, () => ({ cpuMilli: 0, memoryBytes: 0, gpuCount, gpuMilli })),
  })
  const FEWER = 'has 1 GPU, but 11 are declared'

  it('says so if a job lacks GPUs, whether or not those that are there are in use', () => {
    expect(whyNotGang(cluster, gang(1, 2))).toEqual({
      isImpossible: true,
      lines: ['Too large for these hosts, even when they are idle.', `m[1-2]: needs 2 GPUs; ${FEWER}`],
    })
    expect(whyNotGang(cluster, gang(3, 1))?.lines).toContain(`m[1-2]: ${FEWER}`)
    const busy = cluster.copy()
    for (const host of [0, 1]) busy.take(busy.shapeOf(gang(1, 1).bundles[0]!), { host, devices: [0] })
    expect(whyNotGang(busy, gang(1, 1))?.lines).toContain(`m[1-2]: needs 1 idle GPU, 0 of 1 idle; ${FEWER}`)
  })

  it('does not say so if a job lacks something else', () => {
    const cores = { cpuMilli: 10_000, memoryBytes: 0, gpuCount: 1, gpuMilli: 1000 }
    expect(whyNotGang(cluster, { ...gang(0, 0), bundles: [cores] })?.lines.join()).not.toContain('declares')
  })
})

describe('why a request does not fit', () => {
  it('gives reasons exactly where placing fails, and is impossible exactly where idle hosts would not do', () => {
    fc.assert(
      fc.property(
        fc.array(requests, { maxLength: 6 }),
        requests,
        fc.subarray([0, 1, 2]),
        (running, request, drained) => {
          const cluster = new Cluster(hosts)
          for (const one of running) {
            const shape = cluster.shapeOf(one)
            const spot = [0, 1, 2].map((host) => spotOn(cluster, shape, host)).find((found) => found !== undefined)
            if (spot) cluster.take(shape, spot)
          }
          for (const host of drained) cluster.close(host, true)
          const shape = cluster.shapeOf(request)
          for (const host of [0, 1, 2])
            expect(reasonsOf(cluster, shape, host).length === 0).toBe(fits(cluster, shape, host))
          const empty = new Cluster(hosts)
          const wouldEver = [0, 1, 2].some((host) => fits(empty, empty.shapeOf(request), host))
          const why = whyNotGang(cluster, { name: '', strategy: 'PACK', bundles: [request] })
          if (why !== undefined) expect(why.isImpossible).toBe(!wouldEver)
        },
      ),
      { numRuns: randomRuns(200) },
    )
  })

  it('names what each host lacks', () => {
    const cluster = new Cluster(hosts)
    const reasons = (request: ResourceRequest) =>
      [0, 1, 2].map((host) => reasonsOf(cluster, cluster.shapeOf(request), host))
    const half = cluster.shapeOf({ cpuMilli: 1000, memoryBytes: GIB, gpuCount: 1, gpuMilli: 500 })
    cluster.take(half, { host: 0, devices: [0] })
    cluster.take(half, { host: 0, devices: [1] })
    const share = { cpuMilli: 1000, memoryBytes: GIB, gpuCount: 1, gpuMilli: 800 }
    expect(reasons(share)).toEqual([
      ['needs 0.8 of one GPU; none has that free (all 2 together: 1)'],
      ['has taints: lab'],
      ['has no GPU'],
    ])
    cluster.close(2, true)
    const large = { cpuMilli: 3000, memoryBytes: 7 * GIB, gpuCount: 2, gpuMilli: 1000, custom: { fpga: 2000 } }
    expect(reasons(large)).toEqual([
      [
        'needs 3 cores, 2 of 4 free',
        'needs 7.0 GiB of memory, 6.0 of 8.0 free',
        'needs 2000 fpga, 0 free',
        'needs 2 idle GPUs, 0 of 2 idle',
      ],
      ['has taints: lab', 'needs 2000 fpga, 0 free', 'needs 2 GPUs, has 1'],
      [
        'takes no new jobs now',
        'needs 3 cores, has 2',
        'needs 7.0 GiB of memory, has 4.0',
        'needs 2000 fpga, 1000 free',
        'has no GPU',
      ],
    ])
    const selectors = [{ label: 'zone', is: 'in', values: ['c'] }] as const
    expect(reasons({ ...share, gpuModels: ['T4'], tolerates: ['lab'], selectors }).slice(1)).toEqual([
      ['does not match on zone', 'has other GPUs: A10'],
      ['takes no new jobs now', 'does not match on zone', 'has no GPU'],
    ])
  })

  it('says that --on leaves a host out', () => {
    const cluster = new Cluster(hosts)
    const selectors = [{ label: 'host', is: 'in', values: ['m2'] }] as const
    const shape = cluster.shapeOf({
      cpuMilli: 0,
      memoryBytes: 0,
      gpuCount: 0,
      gpuMilli: 0,
      selectors,
      tolerates: ['lab'],
    })
    expect([0, 1].map((host) => reasonsOf(cluster, shape, host))).toEqual([['is left out by --on'], []])
  })

  it('is empty where it fits', () => {
    const cluster = new Cluster(hosts)
    const shape = cluster.shapeOf({ cpuMilli: 1000, memoryBytes: GIB, gpuCount: 0, gpuMilli: 0 })
    expect(reasonsOf(cluster, shape, 0)).toEqual([])
  })
})
