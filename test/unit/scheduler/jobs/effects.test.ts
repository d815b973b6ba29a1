/** The effects of a what-if gang on other jobs. */
import { describe, expect, it } from 'vitest'
import { delaysOf, victimsFor } from '../../../../src/scheduler/jobs/effects.ts'
import type { Job } from '../../../../src/scheduler/jobs/job.ts'
import type { Gang } from '../../../../src/scheduler/model/resources.ts'
import { hostSpecs, jobOf, runningOn } from '../../ui/jobs/fake-queue.ts'

const NOW = 100_000
const request = { cpuMilli: 1000, memoryBytes: 0, gpuCount: 1, gpuMilli: 1000 }
const gangOf = (bundles: number): Gang => ({ name: '', strategy: 'PACK', bundles: new Array(bundles).fill(request) })
const started = (id: number, host: string, device: number, estimateS: number, priority = 0): Job => ({
  ...jobOf(id, { ...runningOn(host, device), startedMs: NOW } as Job['state'], { request, estimateS }),
  priority,
})

const inputOf = (active: readonly Job[], waiting: readonly Job[], gang: Gang) => ({
  ...{ hosts: hostSpecs(1, 2), active, gang, nowMs: NOW, runTimes: new Map() },
  lines: waiting.map((job) => ({ at: (index: number) => [job][index] })),
})

describe('a gang that is tried', () => {
  it('delays the jobs whose place it would take, until it would have ended', () => {
    const waiting = jobOf(5, { kind: 'queued' }, { request, bundles: 2, estimateS: 60 })
    const input = inputOf([started(1, 'n1', 0, 600)], [waiting], gangOf(1))
    expect(delaysOf(input, [{ host: 0, devices: [1] }])).toEqual([{ job: 5, fromS: 700, toS: 100 + 3600 }])
  })

  it('delays no job if there is room for all', () => {
    const waiting = jobOf(5, { kind: 'queued' }, { request, estimateS: 60 })
    expect(delaysOf(inputOf([], [waiting], gangOf(1)), [{ host: 0, devices: [1] }])).toEqual([])
  })

  it('that does not fit names the jobs that would have to end, the least important first, and none needlessly', () => {
    const active = [started(1, 'n1', 0, 600, 5), started(2, 'n1', 1, 600)]
    expect(victimsFor(inputOf(active, [], gangOf(1)))).toEqual([2])
    expect(victimsFor(inputOf(active, [], gangOf(2)))?.toSorted()).toEqual([1, 2])
    expect(victimsFor(inputOf(active, [], gangOf(3)))).toBeUndefined()
  })
})
