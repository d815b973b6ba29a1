import { describe, expect, it } from 'vitest'
import { demoHost, demoStudy, firstJobs, nextJob } from '../../../../src/cli/demo/demo-jobs.ts'
import { driverHost } from '../../../../src/cli/job/declared-hosts.ts'
import { findGang } from '../../../../src/scheduler/gangs/place-gang.ts'
import { gangOf, occupy } from '../../../../src/scheduler/jobs/plan-jobs.ts'
import type { Submission } from '../../../../src/scheduler/jobs/store.ts'
import { spaceOf } from '../../../../src/scheduler/study/study.ts'

const STEPS = 40

const hostsOf = (count: number) => Array.from({ length: count }, (_, index) => demoHost(`m${index + 1}`, index))

/** Of the hosts with nothing on them. */
function emptyCluster(count: number) {
  const specs = hostsOf(count).map((host) => {
    const { name, cpuMilli = 0, memoryBytes = 0, gpuCount, labels } = driverHost(host)
    return { name, cpuMilli, memoryBytes, gpus: Array.from({ length: gpuCount }, () => ''), labels }
  })
  return occupy(specs, []).cluster
}

const places = (submissions: readonly Submission[], count: number) => {
  const cluster = emptyCluster(count)
  return submissions.flatMap(({ spec, variants }) => variants.map(() => findGang(cluster, gangOf(spec)) !== undefined))
}

describe('the jobs of the demo', () => {
  it('all start, except one that waits for room and one that never finds any', () => {
    const first = firstJobs(hostsOf(6))
    const flat = places(first, 6)
    expect(flat.slice(0, -2).every(Boolean)).toBe(true)
    expect(flat.slice(-2)).toEqual([false, false])
  })

  it.each([1, 2, 3, 6, 9, 200])('fit on %i idle hosts, except the one that is too large', (count) => {
    const first = firstJobs(hostsOf(count))
    const later = Array.from({ length: STEPS }, (_, step) => nextJob(step, hostsOf(count)))
    const homeless = [...first, ...later].filter(
      ({ spec }) => findGang(emptyCluster(count), gangOf(spec)) === undefined,
    )
    expect(homeless.map(({ spec }) => spec.name)).toEqual(['too large for any host'])
  })

  it('belong to several users, with gangs and shares of a device', () => {
    const jobs = firstJobs(hostsOf(6))
    expect(new Set(jobs.map(({ user }) => user)).size).toBeGreaterThan(2)
    expect(jobs.some(({ spec }) => spec.bundles > 1 && spec.request.gpuCount > 1)).toBe(true)
    expect(jobs.some(({ spec }) => spec.request.gpuMilli > 0 && spec.request.gpuMilli < 1000)).toBe(true)
  })

  it('come with studies of different names, whose trials fit and print what they are judged by', () => {
    const studies = [1, 2, 3].map(demoStudy)
    expect(new Set(studies.map(({ name }) => name)).size).toBe(3)
    for (const { job, spec } of studies) {
      expect(spaceOf(spec).parameters.map(({ name }) => name)).toEqual(['lr', 'batch'])
      expect(job && findGang(emptyCluster(1), gangOf(job))).toBeDefined()
      expect(job?.isUnlimited).toBe(true)
      expect(job?.metrics?.map(({ name }) => name)).toEqual(['loss', 'acc', 'step'])
    }
  })

  it('do not request memory that the machine does not have', () => {
    const jobs = Array.from({ length: STEPS }, (_, step) => nextJob(step, hostsOf(6)))
    expect([...firstJobs(hostsOf(6)), ...jobs].every(({ spec }) => spec.isUnlimited)).toBe(true)
  })
})
