import { describe, expect, it } from 'vitest'
import { WorkloadMix } from '../../../../src/scheduler/model/mix.ts'
import type { HostCapacity, ResourceRequest } from '../../../../src/scheduler/model/resources.ts'
import { createPolicy } from '../../../../src/scheduler/policies/policies.ts'
import { layOver, replayChurn, type TimedRequest } from '../../../../src/scheduler/simulate/churn.ts'
import { atOnce } from '../../../support/at-once.ts'
import { pressTogether } from '../../../support/press-together.ts'

const hostsOf = (gpus: number): HostCapacity[] => [
  { name: 'n0', cpuMilli: 64_000, memoryBytes: 1, gpus: Array.from({ length: gpus }, () => 'A') },
]
const requestOf = (gpuCount: number): ResourceRequest => ({ cpuMilli: 0, memoryBytes: 0, gpuCount, gpuMilli: 1000 })
const podOf = (gpuCount: number, createdAtS: number, deletedAtS: number) => ({
  name: 'p',
  request: requestOf(gpuCount),
  createdAtS,
  deletedAtS,
})
/** Eleven requests for a GPU each, one every 10 s; the odd ones stay for 5 s, the others for 40. */
const PODS = Array.from({ length: 11 }, (_, index) => podOf(1, index * 10, index * 10 + (index % 2 === 1 ? 5 : 40)))

function askedAt(requests: readonly TimedRequest[], timeS: number): number {
  return requests.filter(({ arrivalS, durationS }) => arrivalS <= timeS && timeS < arrivalS + durationS).length
}

function averageAsked(requests: readonly TimedRequest[], spanS: number): number {
  const steps = Array.from({ length: 1000 }, (_, index) => askedAt(requests, ((index + 0.5) / 1000) * spanS))
  return steps.reduce((sum, asked) => sum + asked, 0) / steps.length
}

describe('an overlaid trace', () => {
  it('requests the wanted load on average, in shifted copies of the trace', () => {
    const { requests, copies } = layOver({ pods: PODS, hosts: hostsOf(24), load: 1, seed: 1 })
    // A copy asks for (6 × 40 + 5 × 5) / 100 GPUs.
    expect(copies).toBe(Math.round(24 / 2.65))
    expect(averageAsked(requests, 100)).toBeCloseTo(copies * 2.65, 0)
    expect(new Set(requests.map(({ arrivalS }) => arrivalS)).size).toBeGreaterThan(PODS.length)
  })

  it('is a ring: what runs at its end runs at its beginning', () => {
    const { requests } = layOver({ pods: PODS, hosts: hostsOf(24), load: 1, seed: 2 })
    expect(askedAt(requests, 0)).toBe(askedAt(requests, 99.999))
    expect(requests.map(({ arrivalS }) => arrivalS)).toEqual(
      requests.map(({ arrivalS }) => arrivalS).sort((one, other) => one - other),
    )
  })

  it('needs to know when pods came and went', () => {
    const pods = [{ name: 'p', request: requestOf(1) }]
    expect(() => layOver({ pods, hosts: hostsOf(1), load: 1, seed: 1 })).toThrow('no arrival and departure times')
  })
})

describe('a compressed trace', () => {
  it('requests the wanted load on average, each request once and for its own time', () => {
    const { requests, faster } = pressTogether({ pods: PODS, hosts: hostsOf(4), load: 1, seed: 1 })
    const spanS = 100 / faster
    expect(faster).toBeGreaterThan(1)
    expect(averageAsked(requests, spanS)).toBeCloseTo(4, 1)
    const begun = requests.filter(({ arrivalS }) => arrivalS > 0)
    expect(begun).toHaveLength(PODS.length)
    expect(begun.filter(({ durationS }) => durationS === 40)).toHaveLength(6)
  })

  it('cannot request more than everything at once', () => {
    const { requests, faster } = pressTogether({ pods: PODS, hosts: hostsOf(100), load: 1, seed: 1 })
    expect(averageAsked(requests, 100 / faster)).toBeCloseTo(PODS.length, 5)
  })
})

describe('requests that come and go', () => {
  const replay = (requests: readonly TimedRequest[], gpus: number) =>
    atOnce(
      replayChurn({
        hosts: hostsOf(gpus),
        requests,
        mix: new WorkloadMix(),
        isLearning: false,
        createPolicy: (cluster, mix) => createPolicy('first-fit', cluster, mix, 1),
      }),
    )
  const timed = (gpuCount: number, arrivalS: number, durationS: number): TimedRequest => ({
    request: requestOf(gpuCount),
    arrivalS,
    durationS,
  })

  it('wait for room, and may pass an older one that does not fit', () => {
    const result = replay([timed(1, 0, 10), timed(2, 1, 5), timed(1, 2, 3), timed(1, 20, 1)], 2)
    // The second waits for the first (9 s), the third goes in at once; from 10 to 15 both GPUs are given away.
    expect(result).toMatchObject({
      requests: 4,
      placements: 4,
      maximumWaitS: 9,
      averageWaitS: 9 / 4,
      waitedPercent: 25,
    })
    expect(result.allocationPercent).toBeCloseTo((100 * (10 + 3 + 2 * 5)) / (2 * 20), 10)
  })

  it('wait until the last arrival if they are never placed', () => {
    const result = replay([timed(1, 0, 100), timed(1, 10, 5), timed(0, 50, 1)], 1)
    expect(result).toMatchObject({ placements: 2, maximumWaitS: 40, averageWaitS: 40 / 3 })
    expect(result.allocationPercent).toBe(100)
  })
})
