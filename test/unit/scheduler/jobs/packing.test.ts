import { expect, test } from 'vitest'
import type { BundlePlace, Job } from '../../../../src/scheduler/jobs/job.ts'
import { packHosts, packingFigures } from '../../../../src/scheduler/jobs/packing.ts'
import { testJob } from '../../../support/test-job.ts'

const host = { name: 'a', cpuMilli: 2000, memoryBytes: 100, gpus: ['', ''] }
const running = (id: number, gpuMilli: number, places: readonly BundlePlace[]): Job =>
  testJob(
    {
      request: { cpuMilli: 1000, memoryBytes: 10, gpuCount: places[0]?.devices.length ?? 0, gpuMilli },
      bundles: places.length,
    },
    { id, state: { kind: 'running', places, bundles: places.map(() => ({ kind: 'begun' })), startedMs: 0 } },
  )

test('shows shares by device, holdings by host and what no job can use', () => {
  const jobs = [
    running(1, 300, [
      { host: 'a', devices: [0] },
      { host: 'b', devices: [0] },
    ]),
    running(2, 500, [{ host: 'a', devices: [0] }]),
  ]
  expect(packHosts([host, { ...host, name: 'c' }], jobs)).toEqual([
    {
      name: 'a',
      devices: [
        [
          { job: 1, milli: 300 },
          { job: 2, milli: 500 },
        ],
        [],
      ],
      cpuUsedMilli: 2000,
      cpuMilli: 2000,
      memoryUsedBytes: 20,
      memoryBytes: 100,
      jobs: [1, 2],
      holdings: [
        { job: 1, cpuMilli: 1000, memoryBytes: 10 },
        { job: 2, cpuMilli: 1000, memoryBytes: 10 },
      ],
      strandedMilli: 1200,
    },
    expect.objectContaining({ name: 'c', devices: [[], []], cpuUsedMilli: 0, jobs: [], strandedMilli: 0 }),
  ])
})

test('counts each part of the devices once: held, free, fragmented, stranded or down', () => {
  const hosts = ['a', 'b', 'c', 'd'].map((name) => ({ ...host, name }))
  const jobs = [
    // No core is left on `a`, which has half a device and a whole one; `b` has half a device and cores.
    running(1, 500, [
      { host: 'a', devices: [0] },
      { host: 'a', devices: [0] },
      { host: 'b', devices: [0] },
      { host: 'd', devices: [1] },
    ]),
  ]
  const figures = packingFigures(packHosts(hosts, jobs), { d: 'timed out' })
  expect(figures).toMatchObject({
    devices: 8,
    heldMilli: 2000,
    freeDevices: 3,
    piecesMilli: 500,
    strandedMilli: 1000,
    downMilli: 1500,
  })
})
