import { describe, expect, it } from 'vitest'
import type { PlacementGroup } from '../../../../src/ops/ray/usage.ts'
import { LOOSE_JOB, rayPicture } from '../../../../src/ui/packing/ray-picture.ts'
import { ADDRESSES, nodeUsage, usageOf } from '../ray/fake-ray.ts'

const GIB = 2 ** 30

const group = (id: string, own: Partial<PlacementGroup> = {}): PlacementGroup => ({
  id,
  name: '',
  state: 'CREATED',
  scheduling: '',
  bundles: [],
  ...own,
})
const numberOf = ({ id }: PlacementGroup): number => ['', 'a', 'b'].indexOf(id)
const node = (ip: string, cpu: number, gpu: number) =>
  nodeUsage(ip, {
    logical: new Map([
      ['CPU', { used: cpu, total: 4 }],
      ['GPU', { used: gpu, total: 2 }],
      ['memory', { used: 0, total: 8 * GIB }],
    ]),
  })

describe('the picture of Ray', () => {
  it('gives each bundle to its node, and the rest to tasks and actors without a group', () => {
    const usage = usageOf({
      nodes: [node('10.9.0.1', 3, 1.5), node('10.9.0.2', 0, 0), nodeUsage('10.9.0.3', { isAlive: false })],
      groups: [group('a', { bundles: [{ index: 0, resources: { CPU: 2, GPU: 1 }, nodeId: 'id-10.9.0.1' }] })],
    })
    const picture = rayPicture(usage, ADDRESSES, numberOf)
    const [m1, m2] = picture.hosts
    expect(m1).toMatchObject({ name: 'm1', cpuMilli: 4000, cpuUsedMilli: 3000, jobs: [1, LOOSE_JOB] })
    expect(m1?.devices).toEqual([[{ job: 1, milli: 1000 }], [{ job: LOOSE_JOB, milli: 500 }]])
    expect(m2).toMatchObject({ name: 'm2', cpuUsedMilli: 0, devices: [[], []], jobs: [] })
    expect(picture.dead).toEqual(['m3'])
  })

  it('says why a group waits, and lists other demands', () => {
    const bundles = [{ index: 0, resources: { CPU: 9 } }]
    const groups = [
      group('a', { name: 'big', state: 'PENDING', scheduling: 'INFEASIBLE', bundles }),
      group('b', { state: 'PENDING', scheduling: 'NO_RESOURCES', bundles: [{ index: 0, resources: { CPU: 4 } }] }),
    ]
    const demands = ["{'CPU': 3.0}: 6+ pending tasks/actors", "{'CPU': 9.0} * 1 (PACK): 1+ pending placement groups"]
    const { waiting } = rayPicture(usageOf({ groups, demands }), ADDRESSES, numberOf)
    expect(waiting).toEqual([
      { group: 1, name: 'big', why: 'infeasible: no node has 9 CPU' },
      { group: 2, name: 'b', why: 'no resources: 1 bundles of 4 CPU' },
      { group: undefined, name: 'tasks and actors', why: "{'CPU': 3.0}: 6+ pending tasks/actors" },
    ])
  })
})
