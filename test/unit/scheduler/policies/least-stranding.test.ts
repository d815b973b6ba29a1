import { describe, expect, it } from 'vitest'
import { Cluster, type Placement } from '../../../../src/scheduler/model/cluster.ts'
import { WorkloadMix } from '../../../../src/scheduler/model/mix.ts'
import type { HostCapacity, ResourceRequest } from '../../../../src/scheduler/model/resources.ts'
import { createPolicy } from '../../../../src/scheduler/policies/policies.ts'

const GIB = 2 ** 30
const HOSTS = 3

function ask(gpuCount: number): ResourceRequest {
  return { cpuMilli: 1000, memoryBytes: GIB, gpuCount, gpuMilli: gpuCount === 0 ? 0 : 1000 }
}

/** Three hosts of eight GPUs; what is placed, where, by hand or by the policy. */
class Fleet {
  readonly cluster = new Cluster(
    Array.from({ length: HOSTS }, (_, index): HostCapacity => {
      return { name: `m${index}`, cpuMilli: 96_000, memoryBytes: 512 * GIB, gpus: Array.from({ length: 8 }, () => 'A') }
    }),
  )
  readonly policy = createPolicy('least-stranding', this.cluster, WorkloadMix.of([ask(1), ask(1), ask(1), ask(8)]))

  put(host: number, devices: readonly number[]): Placement {
    return this.cluster.take(this.cluster.shapeOf(ask(devices.length)), { host, devices })
  }

  choose(gpuCount: number): number | undefined {
    return this.policy.choose(this.cluster.shapeOf(ask(gpuCount)))?.host
  }

  place(gpuCount: number): Placement {
    const shape = this.cluster.shapeOf(ask(gpuCount))
    const spot = this.policy.choose(shape)
    if (spot === undefined) throw new Error('no place')
    return this.cluster.take(shape, spot)
  }

  /** Short tenants of one GPU of a host come and go. */
  passTime(host: number, device: number, count = 40): void {
    for (let index = 0; index < count; index++) {
      this.cluster.release(this.put(host, [device]))
      this.choose(1)
    }
  }
}

describe('least-stranding, while requests come and go', () => {
  it('places a request beside the oldest tenant rather than on a lower host with a young one', () => {
    const fleet = new Fleet()
    fleet.put(1, [0])
    fleet.passTime(2, 0)
    fleet.put(0, [0])
    expect(fleet.choose(1)).toBe(1)
  })

  it('opens a host that is too small for requests for many GPUs rather than fill one that holds them and will be empty sooner', () => {
    const gpus = (count: number) => Array.from({ length: count }, () => 'A')
    const cluster = new Cluster([
      { name: 'wide', cpuMilli: 96_000, memoryBytes: 512 * GIB, gpus: gpus(8) },
      { name: 'old', cpuMilli: 96_000, memoryBytes: 512 * GIB, gpus: gpus(8) },
      { name: 'small', cpuMilli: 24_000, memoryBytes: 512 * GIB, gpus: gpus(2) },
    ])
    const policy = createPolicy('least-stranding', cluster, WorkloadMix.of([ask(1), ask(1), ask(1), ask(8)]))
    const put = (host: number, devices: readonly number[]) =>
      cluster.take(cluster.shapeOf(ask(devices.length)), { host, devices })
    const choose = () => policy.choose(cluster.shapeOf(ask(1)))?.host
    put(1, [0, 1, 2, 3, 4, 5, 6])
    for (let index = 0; index < 400; index++) {
      cluster.release(put(1, [7]))
      choose()
    }
    expect(choose()).toBe(1)
    put(1, [7])
    put(0, [0])
    expect(choose()).toBe(2)
  })

  it('takes the lower of two equal hosts as long as nothing has left', () => {
    const fleet = new Fleet()
    fleet.put(1, [0])
    fleet.put(0, [0])
    expect(fleet.choose(1)).toBe(0)
  })

  it('clears the host with the youngest tenants for a request that needs all of its GPUs', () => {
    const { fleet } = twoBegun()
    expect(fleet.choose(1)).toBe(0)
    expect(fleet.choose(8)).toBeUndefined()
    for (let index = 0; index < 7; index++) expect(fleet.place(1).host).toBe(1)
    expect(fleet.choose(1)).toBe(0)
  })

  it('uses the cleared host when no other has room', () => {
    const fleet = new Fleet()
    fleet.put(1, [0, 1, 2, 3, 4, 5, 6, 7])
    fleet.put(2, [0, 1, 2, 3, 4, 5, 6, 7])
    fleet.passTime(0, 0)
    fleet.put(0, [0])
    expect(fleet.choose(8)).toBeUndefined()
    expect(fleet.choose(1)).toBe(0)
  })

  it('clears a host for the largest waiting request, also after clearing it for a smaller one', () => {
    const fleet = new Fleet()
    fleet.put(2, [0, 1, 2, 3, 4, 5, 6])
    for (const host of [1, 0]) for (const device of [0, 1, 2, 3]) fleet.put(host, [device])
    const last = [fleet.put(1, [4]), fleet.put(0, [4])]
    fleet.passTime(2, 7)
    expect(fleet.choose(4)).toBeUndefined()
    fleet.passTime(2, 7)
    for (const one of last) fleet.cluster.release(one)
    expect(fleet.choose(4)).toBe(0)
    expect(fleet.choose(8)).toBeUndefined()
    fleet.passTime(2, 7)
    expect(fleet.choose(4)).toBe(1)
  })

  it('stops clearing once the waiting request is placed', () => {
    const { fleet, older, younger } = twoBegun()
    expect(fleet.choose(8)).toBeUndefined()
    expect(fleet.choose(1)).toBe(1)
    fleet.cluster.release(older)
    expect(fleet.place(8).host).toBe(1)
    fleet.cluster.release(younger)
    fleet.put(0, [0])
    expect(fleet.choose(1)).toBe(0)
  })
})

/** Host 2 is full; host 0 was opened right after host 1, long ago. */
function twoBegun() {
  const fleet = new Fleet()
  fleet.put(2, [0, 1, 2, 3, 4, 5, 6])
  const older = fleet.put(1, [0])
  const younger = fleet.put(0, [0])
  fleet.passTime(2, 7)
  fleet.put(2, [7])
  return { fleet, older, younger }
}

describe('least-stranding, where CPU runs out before GPUs', () => {
  const share = (gpuMilli: number, cores: number): ResourceRequest => {
    return { cpuMilli: cores * 1000, memoryBytes: GIB, gpuCount: gpuMilli === 0 ? 0 : 1, gpuMilli }
  }
  const halves = Array.from({ length: 10 }, () => share(500, 2))

  /** The first host has a shared GPU that exactly holds the request, but then too few cores for its other GPU. */
  function chooseAmong(requests: readonly ResourceRequest[]): number | undefined {
    const gpus = ['A', 'A']
    const cluster = new Cluster([
      { name: 'm1', cpuMilli: 12_000, memoryBytes: 512 * GIB, gpus },
      { name: 'm2', cpuMilli: 64_000, memoryBytes: 512 * GIB, gpus },
    ])
    const policy = createPolicy('least-stranding', cluster, WorkloadMix.of(requests))
    cluster.take(cluster.shapeOf(share(700, 4)), { host: 0, devices: [0] })
    return policy.choose(cluster.shapeOf(share(300, 6)))?.host
  }

  it('fills a shared GPU as long as there is enough CPU', () => {
    expect(chooseAmong(halves)).toBe(0)
  })

  it('leaves the cores to the idle GPU beside it once requests ask for more CPU than there is', () => {
    expect(chooseAmong([...halves, ...Array.from({ length: 10 }, () => share(0, 10))])).toBe(1)
  })
})
