import { describe, expect, it } from 'vitest'
import type { EngineUsage } from '../../../../src/scheduler/jobs/engine.ts'
import { enginePicture, isWaiting } from '../../../../src/ui/packing/engine-picture.ts'
import { LOOSE_JOB } from '../../../../src/ui/packing/ray-picture.ts'

const GIB = 2 ** 30
const node = (name: string, rest: Partial<EngineUsage['nodes'][number]> = {}) => ({
  ...{ name, cpuMilli: 4000, cpuUsedMilli: 0, memoryBytes: 8 * GIB, memoryUsedBytes: 0, gpus: 2, trouble: '' },
  ...rest,
})
const share = (name: string, cpuMilli: number, devices: readonly number[]) => ({
  ...{ node: name, cpuMilli, memoryBytes: GIB, devices },
})
const jobOf = (name: string) => (name.startsWith('abc-') ? Number(name.split('-')[1]) : undefined)

describe('the picture of an engine', () => {
  it('has the real devices of jobs, and one sign for those of other people', () => {
    const { hosts, down, own, others, jobs } = enginePicture(
      {
        nodes: [
          node('n1', { cpuUsedMilli: 4000, memoryUsedBytes: 3 * GIB }),
          node('n2', { trouble: 'down*', cpuUsedMilli: 1000, memoryUsedBytes: GIB }),
        ],
        jobs: [
          { id: '7', name: 'abc-17-1-0', user: 'ada', isOwn: true, shares: [share('n1', 2000, [1])] },
          { id: '8', name: 'abc-17-1-0', user: 'bob', isOwn: false, shares: [share('n2', 1000, [0])] },
          { id: '9', name: 'x', user: 'bob', isOwn: false, waits: 'later', shares: [] },
          { id: '10', name: 'abc-18-1-0', user: 'ada', isOwn: true, waits: 'soon', startS: 60, shares: [] },
        ],
      },
      'Slurm',
      jobOf,
    )
    expect(hosts[0]).toMatchObject({
      devices: [[], [{ job: 17, milli: 1000 }]],
      jobs: [17, LOOSE_JOB],
      // Half of its cores are held by jobs that cannot be seen.
      holdings: [
        { job: 17, cpuMilli: 2000, memoryBytes: GIB },
        { job: LOOSE_JOB, cpuMilli: 2000, memoryBytes: 2 * GIB },
      ],
      strandedMilli: 1000,
    })
    expect(hosts[1]).toMatchObject({ devices: [[{ job: LOOSE_JOB, milli: 1000 }], []], strandedMilli: 0 })
    expect([down, own, others]).toEqual([{ n2: 'down*' }, [17], 1])
    expect(jobs.map(({ name }) => name)).toEqual(['job 17', 'job 18', '8 of bob', '9 of bob'])
    expect(jobs.filter(isWaiting)).toMatchObject([
      { job: 18, name: 'job 18', why: 'soon', expectedMs: 60_000 },
      { job: LOOSE_JOB, name: '9 of bob', title: 'x', why: 'later' },
    ])
  })

  it('has a job that is placed in part both as a holder and as a waiting one, and nodes of unknown size', () => {
    const { hosts, own, jobs } = enginePicture(
      {
        note: 'nodes may not be listed',
        nodes: [node('n1', { cpuMilli: 0, cpuUsedMilli: 2000, gpus: 1, isBlind: true })],
        jobs: [
          { id: 'a', name: 'abc-17-1-0', user: 'x', isOwn: true, waits: 'full', shares: [share('n1', 2000, [0])] },
        ],
      },
      'Kubernetes',
      jobOf,
    )
    expect(hosts).toMatchObject([{ unknown: ['cores', 'memory'], strandedMilli: 0, devices: [[{ job: 17 }]] }])
    expect([own, jobs]).toMatchObject([[17], [{ why: 'full', places: [{ node: 'n1', devices: [0] }] }]])
  })

  it('draws devices as held by others that the node says are held, and that no visible job explains', () => {
    const nodes = [node('n1', { gpus: 3, heldDevices: [0, 1, 9] })]
    const mine = { id: '7', name: 'abc-17-1-0', user: 'ada', isOwn: true, shares: [share('n1', 1000, [1])] }
    const { hosts } = enginePicture({ nodes, jobs: [mine] }, 'Slurm', jobOf)
    expect(hosts[0]?.devices).toEqual([[{ job: LOOSE_JOB, milli: 1000 }], [{ job: 17, milli: 1000 }], []])
  })

  it('has nodes of any name that take jobs', () => {
    const nodes = ['constructor', 'toString', '__proto__', 'n1'].map((name) => node(name))
    const { hosts, down } = enginePicture(
      { nodes: [...nodes, node('n2', { trouble: 'cordoned' })], jobs: [] },
      'K',
      jobOf,
    )
    expect(hosts.map(({ name }) => down[name])).toEqual([undefined, undefined, undefined, undefined, 'cordoned'])
  })
})
