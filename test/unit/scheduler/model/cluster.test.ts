import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Cluster, type Placement } from '../../../../src/scheduler/model/cluster.ts'
import { fits, spotOn } from '../../../../src/scheduler/model/fits.ts'
import type { HostCapacity, ResourceRequest } from '../../../../src/scheduler/model/resources.ts'
import { createFirstFit } from '../../../../src/scheduler/policies/published.ts'

const GIB = 2 ** 30

function host(name: string, changes: Partial<HostCapacity> = {}): HostCapacity {
  return { name, cpuMilli: 8000, memoryBytes: 64 * GIB, ...changes }
}

function request(changes: Partial<ResourceRequest> = {}): ResourceRequest {
  return { cpuMilli: 1000, memoryBytes: GIB, gpuCount: 0, gpuMilli: 0, ...changes }
}

/** What is free, as plain data. */
function left(cluster: Cluster): unknown {
  return {
    cpu: [...cluster.cpuLeftMilli],
    memory: [...cluster.memoryLeftBytes],
    devices: [...cluster.deviceLeftMilli],
    used: cluster.usedGpuMilli,
    custom: [...cluster.custom].map(([name, custom]) => [name, cluster.hosts.map((_, index) => custom.leftOn(index))]),
  }
}

describe('a cluster', () => {
  it('holds a share on one device, never on the sum of two', () => {
    const cluster = new Cluster([host('m1', { gpus: ['A10', 'A10'] })])
    const half = cluster.shapeOf(request({ gpuCount: 1, gpuMilli: 500 }))
    cluster.take(half, { host: 0, devices: [0] })
    cluster.take(half, { host: 0, devices: [1] })
    const most = cluster.shapeOf(request({ gpuCount: 1, gpuMilli: 800 }))
    expect(fits(cluster, most, 0)).toBe(false)
    expect(spotOn(cluster, most, 0)).toBeUndefined()
    expect(() => cluster.take(most, { host: 0, devices: [0] })).toThrow('does not hold it')
  })

  it('refuses a spot that names a device twice, one of another host, or too few', () => {
    const cluster = new Cluster([host('m1', { gpus: ['A10', 'A10'] }), host('m2', { gpus: ['A10'] })])
    const two = cluster.shapeOf(request({ gpuCount: 2, gpuMilli: 1000 }))
    for (const devices of [[0, 0], [0, 2], [0], [0, -1]])
      expect(() => cluster.take(two, { host: 0, devices })).toThrow('does not hold it')
  })

  it('admits only requests that tolerate its taints, match its labels and accept its models', () => {
    const cluster = new Cluster([
      host('m1', { taints: ['maintenance'], labels: { zone: 'a' }, gpus: ['T4'] }),
      host('m2', { labels: { zone: 'b' }, gpus: ['T4', 'A10'] }),
    ])
    const where = (changes: Partial<ResourceRequest>) => {
      const shape = cluster.shapeOf(request(changes))
      return [0, 1].filter((index) => fits(cluster, shape, index))
    }
    expect(where({})).toEqual([1])
    expect(where({ tolerates: ['maintenance'] })).toEqual([0, 1])
    expect(where({ tolerates: ['maintenance'], selectors: [{ label: 'zone', is: 'in', values: ['a'] }] })).toEqual([0])
    expect(where({ selectors: [{ label: 'host', is: 'not-in', values: ['m2'] }] })).toEqual([])
    expect(
      spotOn(cluster, cluster.shapeOf(request({ gpuCount: 1, gpuMilli: 500, gpuModels: ['A10'] })), 1)?.devices,
    ).toEqual([1])
    cluster.close(1, true)
    expect(where({})).toEqual([])
  })

  it('counts unit resources by instance and pools by amount', () => {
    const cluster = new Cluster([
      host('m1', { custom: { fpga: { kind: 'unit', count: 2 }, licence: { kind: 'pool', amount: 5 } } }),
    ])
    const most = cluster.shapeOf(request({ custom: { fpga: 700, licence: 2 } }))
    const first = cluster.take(most, { host: 0, devices: [] })
    cluster.take(most, { host: 0, devices: [] })
    expect(fits(cluster, most, 0)).toBe(false)
    expect(fits(cluster, cluster.shapeOf(request({ custom: { fpga: 300 } })), 0)).toBe(true)
    expect(fits(cluster, cluster.shapeOf(request({ custom: { fpga: 1000 } })), 0)).toBe(false)
    cluster.release(first)
    expect(fits(cluster, cluster.shapeOf(request({ custom: { fpga: 1000, licence: 3 } })), 0)).toBe(true)
    expect(fits(cluster, cluster.shapeOf(request({ custom: { licence: 4 } })), 0)).toBe(false)
    expect(() => cluster.release(first)).toThrow('twice')
  })

  it('says what is wrong with a request', () => {
    const cluster = new Cluster([host('m1')])
    expect(() => cluster.shapeOf(request({ cpuMilli: -1 }))).toThrow('cpuMilli is -1')
    expect(() => cluster.shapeOf(request({ cpuMilli: 0.5 }))).toThrow('cpuMilli is 0.5')
    expect(() => cluster.shapeOf(request({ gpuCount: 2, gpuMilli: 500 }))).toThrow('only a single GPU can be shared')
    expect(() => new Cluster([host('m1'), host('m1')])).toThrow('same name')
  })

  it('undoes an attempt that returns nothing', () => {
    const cluster = new Cluster([host('m1', { gpus: ['T4'] })])
    const shape = cluster.shapeOf(request({ gpuCount: 1, gpuMilli: 400 }))
    const old = cluster.take(shape, { host: 0, devices: [0] })
    const before = left(cluster)
    cluster.attempt(() => {
      cluster.release(old)
      cluster.take(shape, { host: 0, devices: [0] })
      return undefined
    })
    expect(left(cluster)).toEqual(before)
    expect([...cluster.placements()]).toEqual([old])
    expect(() =>
      cluster.attempt(() => {
        cluster.take(shape, { host: 0, devices: [0] })
        throw new Error('cut short')
      }),
    ).toThrow('cut short')
    expect(left(cluster)).toEqual(before)
  })

  it('takes the bundles of a gang together or not at all', () => {
    const cluster = new Cluster([host('m1', { gpus: ['T4'] }), host('m2', { gpus: ['T4'] })])
    const bundle = request({ gpuCount: 1, gpuMilli: 1000 })
    const shape = cluster.shapeOf(bundle)
    const takeOn = (...hosts: readonly number[]) =>
      cluster.attempt(() => hosts.map((index) => cluster.take(shape, { host: index, devices: [0] })))
    const before = left(cluster)
    expect(() => takeOn(0, 0)).toThrow('does not hold it')
    expect(() => takeOn(0, -1)).toThrow('does not hold it')
    expect(left(cluster)).toEqual(before)
    expect(takeOn(0, 1)).toHaveLength(2)
    expect(cluster.usedGpuMilli).toBe(2000)
  })

  it('lists hosts that changed since a cursor, latest first', () => {
    const cluster = new Cluster([host('m1'), host('m2'), host('m3')])
    const changedSince = (cursor: number) => {
      const seen: number[] = []
      for (let at = cluster.changedLast; at >= 0 && cluster.lastChange[at]! >= cursor; at = cluster.changedBefore(at))
        seen.push(at)
      return seen
    }
    const shape = cluster.shapeOf(request())
    expect(changedSince(0)).toEqual([])
    const placement = cluster.take(shape, { host: 1, devices: [] })
    cluster.close(0, true)
    const cursor = cluster.changeCount
    cluster.release(placement)
    cluster.close(2, true)
    expect(changedSince(cursor)).toEqual([2, 1])
    expect(changedSince(0)).toEqual([2, 1, 0])
    for (let round = 0; round < 8; round++) cluster.close(0, round % 2 === 0)
    expect(changedSince(cursor)).toEqual([0, 2, 1])
    expect(changedSince(cluster.changeCount)).toEqual([])
  })

  it('shares a shape only between equal requests', () => {
    const cluster = new Cluster([{ ...host('m1'), gpus: ['T4', 'G4'] }])
    const of = (...gpuModels: string[]) => cluster.shapeOf(request({ gpuCount: 1, gpuMilli: 500, gpuModels }))
    expect(of('T4', 'G4')).toBe(of('G4', 'T4'))
    expect(new Set([of(), of('T4'), of('G4'), of('T4', 'G4', 'A10')]).size).toBe(4)
    expect(cluster.shapeOf(request({ gpuCount: 0, gpuModels: ['T4'] }))).toBe(cluster.shapeOf(request()))
    expect(of('A10').allowedOn).toEqual(Uint8Array.of(0))
  })
})

describe('any order of taking and releasing', () => {
  const requests = fc.record({
    cpuMilli: fc.integer({ min: 0, max: 4000 }),
    memoryBytes: fc.integer({ min: 0, max: 16 * GIB }),
    gpu: fc.constantFrom([0, 0], [1, 160], [1, 460], [1, 810], [1, 1000], [2, 1000], [4, 1000]),
    fpga: fc.constantFrom(0, 300, 1000),
  })

  it('never over-commits a device and frees everything in the end', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(requests, fc.nat()), { maxLength: 60 }), (steps) => {
        const fpga = { fpga: { kind: 'unit', count: 2 } } as const
        const cluster = new Cluster([
          host('m1', { gpus: ['T4', 'T4', 'A10'], custom: fpga }),
          host('m2', { gpus: ['A10', 'A10', 'A10', 'A10'], custom: fpga }),
        ])
        const before = left(cluster)
        const policy = createFirstFit(cluster)
        const live: Placement[] = []
        for (const [{ gpu, fpga: amount, ...rest }, choice] of steps) {
          if (choice % 3 === 0 && live.length > 0) {
            for (const gone of live.splice(choice % live.length, 1)) cluster.release(gone)
            continue
          }
          const shape = cluster.shapeOf({ ...rest, gpuCount: gpu[0]!, gpuMilli: gpu[1]!, custom: { fpga: amount } })
          const spot = policy.choose(shape)
          if (spot) live.push(cluster.take(shape, spot))
          for (const milli of cluster.deviceLeftMilli) expect(milli >= 0 && milli <= 1000).toBe(true)
          for (const milli of cluster.cpuLeftMilli) expect(milli >= 0).toBe(true)
          for (const bytes of cluster.memoryLeftBytes) expect(bytes >= 0).toBe(true)
        }
        expect(cluster.placementCount).toBe(live.length)
        for (const placement of live) cluster.release(placement)
        expect(left(cluster)).toEqual(before)
      }),
    )
  })
})
