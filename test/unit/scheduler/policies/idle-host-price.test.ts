import { describe, expect, it } from 'vitest'
import { Cluster } from '../../../../src/scheduler/model/cluster.ts'
import { WorkloadMix } from '../../../../src/scheduler/model/mix.ts'
import type { HostCapacity, ResourceRequest } from '../../../../src/scheduler/model/resources.ts'
import { IdleHostPrice } from '../../../../src/scheduler/policies/least-stranding/clearing.ts'
import { createLeastStranding } from '../../../../src/scheduler/policies/least-stranding/least-stranding.ts'

const GIB = 2 ** 30
const GPUS = 8

const ask = (gpuCount: number, cpuMilli = 1000): ResourceRequest => {
  return { cpuMilli, memoryBytes: GIB, gpuCount, gpuMilli: gpuCount === 0 ? 0 : 1000 }
}

const clusterOf = (hosts: number): Cluster =>
  new Cluster(
    Array.from({ length: hosts }, (_, index): HostCapacity => {
      return { name: `m${index}`, cpuMilli: 96_000, memoryBytes: 512 * GIB, gpus: new Array<string>(GPUS).fill('A') }
    }),
  )

/** So many requests come and go on one GPU of a host. */
function pass(cluster: Cluster, host: number, device: number, count: number): void {
  const shape = cluster.shapeOf(ask(1))
  for (let index = 0; index < count; index++) cluster.release(cluster.take(shape, { host, devices: [device] }))
}

describe('the price of an idle host', () => {
  const begun = () => {
    const cluster = clusterOf(1)
    const price = new IdleHostPrice(cluster)
    pass(cluster, 0, 0, 1)
    const refuse = (gpuCount: number) => price.noteChoice(cluster.shapeOf(ask(gpuCount)), true)
    return { cluster, price, usual: price.milli, refuse }
  }

  it('is higher once something has left, whatever was refused before', () => {
    const cluster = clusterOf(1)
    const price = new IdleHostPrice(cluster)
    const whileAllStay = price.milli
    const placement = cluster.take(cluster.shapeOf(ask(1)), { host: 0, devices: [0] })
    price.noteChoice(cluster.shapeOf(ask(8)), true)
    expect(price.milli).toBe(whileAllStay)
    cluster.release(placement)
    expect(price.milli).toBeGreaterThan(whileAllStay)
  })

  it('is highest while only requests for several GPUs are refused', () => {
    const { price, usual, refuse } = begun()
    refuse(0)
    expect(price.milli).toBe(usual)
    refuse(8)
    expect(price.milli).toBeGreaterThan(usual)
    refuse(1)
    expect(price.milli).toBe(usual)
  })

  it('forgets old refusals, those for one GPU sooner than those for several', () => {
    const { cluster, price, usual, refuse } = begun()
    refuse(8)
    refuse(1)
    pass(cluster, 0, 0, GPUS / 2)
    expect(price.milli).toBe(usual)
    pass(cluster, 0, 0, 1)
    expect(price.milli).toBeGreaterThan(usual)
    pass(cluster, 0, 0, 2 * GPUS)
    expect(price.milli).toBe(usual)
  })
})

describe('least-stranding, while only requests for whole hosts wait', () => {
  /** Host 1 is begun, and after one more of these its last GPU has no CPU beside it. Host 0 is idle. */
  const fleet = () => {
    const cluster = clusterOf(2)
    const mix = WorkloadMix.of([...new Array<ResourceRequest>(99).fill(ask(1, 8000)), ask(8)])
    const policy = createLeastStranding(cluster, mix)
    cluster.take(cluster.shapeOf(ask(6, 76_000)), { host: 1, devices: [0, 1, 2, 3, 4, 5] })
    pass(cluster, 1, 6, 3)
    return { cluster, hostFor: (request: ResourceRequest) => policy.choose(cluster.shapeOf(request))?.host }
  }

  it('strands a GPU rather than open the last idle host', () => {
    const { cluster, hostFor } = fleet()
    const wide = ask(1, 20_000)
    expect(hostFor(wide)).toBe(0)
    expect(hostFor(ask(8, 200_000))).toBeUndefined()
    expect(hostFor(wide)).toBe(1)
    expect(cluster.idleDevices[0]).toBe(GPUS)
  })

  it('opens it when others are refused as well', () => {
    const { hostFor } = fleet()
    expect(hostFor(ask(8, 200_000))).toBeUndefined()
    expect(hostFor(ask(1, 200_000))).toBeUndefined()
    expect(hostFor(ask(1, 20_000))).toBe(0)
  })
})
