import { describe, expect, it } from 'vitest'
import { Cluster, type Placement } from '../../../../src/scheduler/model/cluster.ts'
import { WorkloadMix } from '../../../../src/scheduler/model/mix.ts'
import { createPolicy } from '../../../../src/scheduler/policies/policies.ts'
import { createRandomNumbers } from '../../../../src/scheduler/policies/random.ts'
import { createSyntheticGangs, syntheticHosts } from '../../../../src/scheduler/simulate/fleet-run.ts'
import { randomRuns } from '../../../support/random-runs.ts'

/** `MUSTER_ROUNDS=1000000` for a long run. */
const OPERATIONS = Number(process.env.MUSTER_ROUNDS ?? randomRuns(5000))
/** How often all devices are checked, not only those of the host that changed. */
const WHOLE_LOOKS = 100

describe('a long history of a fleet', () => {
  it('never over-commits and frees everything in the end', { timeout: 600_000 }, () => {
    const hosts = syntheticHosts(60, 7)
    const cluster = new Cluster(hosts)
    const total = { cpu: [...cluster.cpuLeftMilli], memory: [...cluster.memoryLeftBytes] }
    const next = createSyntheticGangs(hosts, 500, 8)
    const policy = createPolicy('least-stranding', cluster, WorkloadMix.of(Array.from({ length: 500 }, next).flat()))
    const random = createRandomNumbers(9)
    const live: Placement[] = []
    for (let operation = 0; operation < OPERATIONS; operation++) {
      const isLeaving = live.length > 0 && random() < 0.4
      const [request] = next()
      const shape = cluster.shapeOf(request!)
      const spot = isLeaving ? undefined : policy.choose(shape)
      if (spot) live.push(cluster.take(shape, spot))
      else if (live.length > 0) {
        const index = Math.floor(random() * live.length)
        cluster.release(live[index]!)
        live[index] = live.at(-1)!
        live.pop()
      }
      if (operation % Math.ceil(OPERATIONS / WHOLE_LOOKS) === 0) expect(problems(cluster, live, total)).toEqual([])
    }
    expect(problems(cluster, live, total)).toEqual([])
    for (const placement of live) cluster.release(placement)
    expect([...cluster.deviceLeftMilli].every((left) => left === 1000)).toBe(true)
    expect({ cpu: [...cluster.cpuLeftMilli], memory: [...cluster.memoryLeftBytes] }).toEqual(total)
  })
})

/** Where what is free and what is placed do not add up to what there is. */
function problems(
  cluster: Cluster,
  live: readonly Placement[],
  total: { readonly cpu: readonly number[]; readonly memory: readonly number[] },
): string[] {
  const cpu = [...cluster.cpuLeftMilli]
  const memory = [...cluster.memoryLeftBytes]
  const devices = [...cluster.deviceLeftMilli]
  const found = [...cpu, ...memory, ...devices].some((left) => left < 0) ? ['less than nothing is free'] : []
  for (const { host, devices: used, shape } of live) {
    cpu[host]! += shape.cpuMilli
    memory[host]! += shape.memoryBytes
    for (const device of used) devices[cluster.deviceStart[host]! + device]! += shape.gpuMilli
  }
  if (cpu.some((sum, host) => sum !== total.cpu[host])) found.push('CPU does not add up')
  if (memory.some((sum, host) => sum !== total.memory[host])) found.push('memory does not add up')
  if (devices.some((sum) => sum !== 1000)) found.push('devices do not add up')
  return found
}
