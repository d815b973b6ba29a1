import { describe, expect, test } from 'vitest'
import { type Job, type JobSpec, type JobState, transition } from '../../../../src/scheduler/jobs/job.ts'
import { type LinkSpeeds, onRing, planJobs } from '../../../../src/scheduler/jobs/plan-jobs.ts'
import { testJob, testSpec } from '../../../support/test-job.ts'

const HOST = { name: 'a', cpuMilli: 1000, memoryBytes: 2 ** 30, gpus: [] }
const spec = testSpec({ name: '', estimateS: 3600, isPreemptible: true })
const job = (id: number, state: JobState, priority = 0): Job => testJob(spec, { id, state, priority })
const on = (host: string) => ({
  places: [{ host, devices: [] }],
  bundles: [{ kind: 'begun' as const }],
  startedMs: 0,
})
const planAt = (nowMs: number, active: readonly Job[], hosts = [HOST]) =>
  planJobs({
    hosts,
    active,
    lines: [[job(9, { kind: 'queued' }, 1)]],
    runTimes: new Map(),
    usage: new Map(),
    nowMs,
    isPreempting: true,
  }).events.map(({ id, event }) => [id, event.kind])

describe('a job that was told to stop', () => {
  const ending = job(1, { kind: 'ending', stop: 'cancelled', sinceMs: 100_000, ...on('a') })
  const running = job(2, { kind: 'running', ...on('b') })
  const hosts = [HOST, { ...HOST, name: 'b' }]

  test('is waited for, and no other job is stopped meanwhile', () => {
    expect(planAt(103_000, [ending, running], hosts)).toEqual([])
  })

  test('is not relied on for ever: if it does not end, another job is stopped', () => {
    expect(planAt(200_000, [ending, running], hosts)).toEqual([[2, 'stop']])
  })
})

describe('on a host that has fewer GPUs than are declared', () => {
  const host = { ...HOST, cpuMilli: 8000, gpus: [''], gpusDeclared: 11 }
  const request = { ...spec.request, gpuCount: 1, gpuMilli: 1000 }
  const heldBy = (id: number, ...devices: number[]): Job => ({
    ...job(id, { kind: 'running', ...on('a'), places: [{ host: 'a', devices }] }),
    spec: { ...spec, request: { ...request, gpuCount: devices.length } },
  })
  const waiting = [7, 8].map((id) => ({ ...job(id, { kind: 'queued' }), spec: { ...spec, request } }))
  const placedBeside = (active: readonly Job[]) =>
    planJobs({
      ...{ hosts: [host], active, lines: waiting.map((one) => [one]), runTimes: new Map(), usage: new Map() },
      ...{ nowMs: 1_000_000, isPreempting: false },
    }).events.map(({ id, event }) => [id, event.kind === 'placed' && event.places])

  test('jobs get only the GPUs that it has', () => {
    expect(placedBeside([])).toEqual([[7, [{ host: 'a', devices: [0] }]]])
  })

  test('jobs keep other GPUs that they already have, and do not block jobs that do not need these', () => {
    expect(placedBeside([heldBy(1, 5)])).toEqual([[7, [{ host: 'a', devices: [0] }]]])
    expect(placedBeside([heldBy(1, 0, 5)])).toEqual([])
  })
})

describe('a job with a launcher', () => {
  const places = ['a', 'b', 'c'].map((host) => ({ host, devices: [] }))
  const launch = { kind: 'mpi', options: {}, ports: [46_000, 46_999] } as const
  const gang = { ...spec, bundles: 3 }
  const measured = (asked: unknown[] = []): LinkSpeeds => {
    return (...question) => {
      asked.push(question)
      return { timeMs: 5000, speed: (from, to) => (from === 'a' && to === 'b' ? 10e6 : 941e6) }
    }
  }
  const hostsOf = (own: JobSpec, links: LinkSpeeds = measured()) =>
    onRing(own, places, links).places.map(({ host }) => host)

  test('gets its places in the order of the fastest ring, which its state keeps until its end', () => {
    const asked: unknown[] = []
    const own = { ...gang, launch: { ...launch, options: { network: '10.0.0.0/24' } } }
    const placed = onRing(own, places, measured(asked))
    expect(asked).toEqual([[['a', 'b', 'c'], '10.0.0.0/24']])
    expect(placed).toEqual({
      places: ['a', 'c', 'b'].map((host) => ({ host, devices: [] })),
      ring: { hosts: ['a', 'c', 'b'], bitsPerSecond: 941e6, measuredMs: 5000 },
    })
    let now = transition({ ...job(1, { kind: 'queued' }), spec: own }, { kind: 'placed', ...placed }, 0)
    expect(now.state).toMatchObject({ kind: 'starting', ring: placed.ring })
    for (const rank of [0, 1, 2]) {
      const end = { kind: 'ended', end: { kind: 'exit', code: 0 } } as const
      now = transition(now, { kind: 'seen', rank, bundle: end }, 1)
    }
    expect(now.state).toMatchObject({ kind: 'done', ring: placed.ring })
  })

  test('gets them in the direction in which its ranks send', () => {
    const torchrun = { ...gang, launch: { ...launch, kind: 'torchrun' } }
    expect(hostsOf(torchrun)).toEqual(['a', 'b', 'c'])
    expect(onRing(torchrun, places, measured()).ring?.hosts).toEqual(['a', 'c', 'b'])
    const onCards = { ...torchrun, request: { ...spec.request, gpuCount: 1, gpuMilli: 1000 } }
    expect(hostsOf(onCards)).toEqual(['a', 'c', 'b'])
  })

  test('keeps them as placed where the order means nothing, nothing was measured, or it was asked for', () => {
    const role = 'worker=2 ps=1'
    for (const own of [
      gang,
      { ...gang, launch: { ...launch, options: { order: 'as-placed' } } },
      { ...gang, launch: { ...launch, kind: 'torchrun', options: { elastic: '1:3' } } },
      { ...gang, launch: { ...launch, kind: 'tf', options: { role } } },
      { ...gang, launch: { ...launch, kind: 'unknown' } },
    ]) {
      expect(onRing(own, places, measured())).toEqual({ places })
    }
    expect(onRing({ ...gang, launch }, places, () => undefined)).toEqual({ places })
  })
})
