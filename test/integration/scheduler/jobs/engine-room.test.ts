/** Which jobs with needs go to their engine: in turn, one group after the other, and impossible ones in nobody's way. */

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { EngineRoom } from '../../../../src/scheduler/jobs/engine.ts'
import { askedOf, freeRoom, judgeRoom } from '../../../../src/scheduler/jobs/engine-room.ts'
import type { JobSpec } from '../../../../src/scheduler/jobs/job.ts'
import { PlanPass } from '../../../../src/scheduler/jobs/plan-jobs.ts'
import { JobStore } from '../../../../src/scheduler/jobs/store.ts'
import { namesIn, parseNeeds } from '../../../../src/scheduler/plans/needs.ts'
import { applyEvent } from '../../../support/apply-event.ts'
import { bundleKeyOf } from '../../../support/bundle-key.ts'
import { worldSpec } from '../../../support/queue-world.ts'

let store: JobStore
let nowMs: number
beforeEach(() => {
  store = new JobStore(':memory:')
  nowMs = 1_000_000
})
afterEach(() => store[Symbol.dispose]())

const submit = (needs?: string, priority = 0): number =>
  submitSpec(needs === undefined ? {} : { needs: parseNeeds(needs) }, priority)
const submitSpec = (own: Partial<JobSpec>, priority = 0): number => {
  const spec = worldSpec({ engine: 'ray', ...own })
  const submission = { spec, user: 'ann', priority, isHeld: false, after: [], variants: [{}] }
  return store.submit(submission, nowMs)[0] as number
}
const roomOf = (gpu: number, taken: Record<string, number> = {}): EngineRoom => ({
  nodes: [{ host: 'm1', total: { CPU: 64, GPU: 8 }, free: { CPU: 64, GPU: gpu } }],
  taken,
})
/** Numbers of the jobs that are handed over, which are then starting. */
const pass = (room: EngineRoom | undefined, mostWaiting = 8): readonly number[] => {
  const engines = [{ name: 'ray', mostWaiting, room }]
  const plan = new PlanPass(store).plan({ nowMs, hosts: [], engines, isPreempting: false, isGathering: false })
  for (const { id, event } of plan.events) applyEvent(store, id, event, nowMs)
  return plan.events.map(({ id }) => id).sort((one, other) => one - other)
}
const begin = (id: number) => applyEvent(store, id, { kind: 'seen', rank: 0, bundle: { kind: 'begun' } }, nowMs)
const keyOf = (id: number) => bundleKeyOf(store, id)

describe('jobs with needs', () => {
  it('wait until the engine says what is free; the others do not', () => {
    const needing = submit('{gpu:1}')
    const plain = submit()
    expect(pass(undefined)).toEqual([plain])
    expect(pass(roomOf(1))).toEqual([needing])
  })

  it('asks engines for their room only if a job waits for it', () => {
    const wants = () => {
      const engines = [{ name: 'ray', mostWaiting: 8 }]
      return new PlanPass(store).plan({ nowMs, hosts: [], engines, isPreempting: false, isGathering: false }).wantsRoom
    }
    submit()
    expect(wants()).toEqual(new Set())
    submit('{gpu:1}')
    expect(wants()).toEqual(new Set(['ray']))
  })

  it('go in turn, and a smaller one does not overtake', () => {
    const [first, large, small] = [submit('6x{gpu:1}'), submit('4x{gpu:1}'), submit('{gpu:1}')]
    expect(pass(roomOf(8))).toEqual([first])
    // The first has its group now: two are left.
    expect(pass(roomOf(2, { [keyOf(first)]: 6 }))).toEqual([])
    expect(pass(roomOf(8))).toEqual([])
    begin(first)
    applyEvent(
      store,
      first,
      { kind: 'seen', rank: 0, bundle: { kind: 'ended', end: { kind: 'exit', code: 0 } } },
      nowMs,
    )
    expect(pass(roomOf(8))).toEqual([large, small])
  })

  it('of a higher priority go first', () => {
    const [low, high] = [submit('8x{gpu:1}'), submit('8x{gpu:1}', 5)]
    expect(pass(roomOf(8))).toEqual([high])
    expect(low).toBeLessThan(high)
  })

  it.each([
    ['a gang', { bundles: 2, strategy: 'STRICT_SPREAD' as const }],
    ['a job on one node', {}],
  ])('wait for the room that %s takes which went before them and is not placed yet', (_, shape) => {
    const request = { cpuMilli: 1000, memoryBytes: 0, gpuCount: 3, gpuMilli: 1000 }
    const other = submitSpec({ request, ...shape })
    const needing = submit('6x{gpu:1}')
    const host = (name: string, gpu: number) => ({
      host: name,
      total: { CPU: 64, GPU: 4 },
      free: { CPU: 64, GPU: gpu },
    })
    const room = (taken: Record<string, number> = {}) => ({ nodes: [host('m1', 4), host('m2', 4)], taken })
    expect(pass(room())).toEqual([other])
    expect(pass(room())).toEqual([])
    // It is placed: what is free says so from now on.
    begin(other)
    expect(pass(room())).toEqual([needing])
  })

  it('do not wait for the room of a job that can never be placed', () => {
    const other = submitSpec({ request: { cpuMilli: 1000, memoryBytes: 0, gpuCount: 4, gpuMilli: 1000 }, bundles: 3 })
    const needing = submit('8x{gpu:1}')
    expect(pass(roomOf(8))).toEqual([other, needing])
  })

  it('let jobs without needs pass while they wait', () => {
    const needing = submit('8x{gpu:1}')
    const plain = submit()
    expect(pass(roomOf(4))).toEqual([plain])
    expect(pass(roomOf(8))).toEqual([needing])
  })

  it('that can never be placed let others pass', () => {
    submit('9x{gpu:1}')
    const other = submit('8x{gpu:1}')
    expect(pass(roomOf(8))).toEqual([other])
  })

  it('are no more than the engine may have waiting', () => {
    const ids = Array.from({ length: 5 }, () => submit('{gpu:1}'))
    const plain = submit()
    expect(pass(roomOf(8), 3)).toEqual(ids.slice(0, 3))
    for (const id of ids.slice(0, 3)) begin(id)
    expect(pass(roomOf(5, Object.fromEntries(ids.slice(0, 3).map((id) => [keyOf(id), 1]))), 3)).toEqual([
      ...ids.slice(3),
      plain,
    ])
  })
})

describe('room that was promised', () => {
  it('is kept until the job has its groups, or has run for a while without them', () => {
    const id = submit('6x{gpu:1}')
    pass(roomOf(8))
    const left = (room: EngineRoom) => freeRoom(room, store.active(), store.id, nowMs, ['GPU', 'CPU']).gpuLeftMilli[0]
    expect(left(roomOf(8))).toBe(2000)
    begin(id)
    expect(left(roomOf(8))).toBe(2000)
    expect(left(roomOf(8, { [keyOf(id)]: 5 }))).toBe(2000)
    expect(left(roomOf(2, { [keyOf(id)]: 6 }))).toBe(2000)
    nowMs += 130_000
    expect(left(roomOf(8))).toBe(8000)
  })

  it('includes the process of the job until it runs', () => {
    const id = submit('{gpu:1}')
    pass(roomOf(8))
    const left = () => freeRoom(roomOf(8), store.active(), store.id, nowMs, []).cpuLeftMilli[0]
    expect(left()).toBe(63_000)
    begin(id)
    expect(left()).toBe(64_000)
  })

  it('is judged in words', () => {
    const asked = askedOf(worldSpec({ needs: parseNeeds('8x{gpu:1}') }))
    if (asked === undefined) throw new Error('it has needs')
    const judged = (room: EngineRoom) =>
      judgeRoom(room.nodes, freeRoom(room, [], store.id, nowMs, namesIn(asked)), asked, 'Ray')
    expect(judged(roomOf(8)).kind).toBe('fits')
    expect(judged(roomOf(7))).toEqual({
      kind: 'later',
      why: [
        'Ray has no room for 8 × {GPU 1} PACK and {CPU 1} for the job itself: 7 of 8 bundles fit.',
        'Free: m1 7 of 8 GPU, 64 of 64 CPU.',
      ],
    })
    expect(judged({ nodes: [], taken: {} })).toEqual({ kind: 'never', why: ['can never be placed: Ray has no nodes'] })
  })
})
