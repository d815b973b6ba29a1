/** Random histories of a queue: nothing starves, only the more important end others, limits hold. A failure prints its seed. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findGang } from '../../../../src/scheduler/gangs/place-gang.ts'
import { isActive, type Job, type JobSpec } from '../../../../src/scheduler/jobs/job.ts'
import { gangOf, occupy, waitingLine } from '../../../../src/scheduler/jobs/plan-jobs.ts'
import { Cluster } from '../../../../src/scheduler/model/cluster.ts'
import type { Strategy } from '../../../../src/scheduler/model/resources.ts'
import { predictS } from '../../../../src/scheduler/plan/predict.ts'
import { firstInTurn } from '../../../../src/scheduler/plan/turn.ts'
import { applyEvent } from '../../../support/apply-event.ts'
import { QueueWorld, worldSpec } from '../../../support/queue-world.ts'
import { randomRuns } from '../../../support/random-runs.ts'

const HOSTS = [
  { name: 'a', cpuMilli: 4000, memoryBytes: 2 ** 30, gpus: ['', ''] },
  { name: 'b', cpuMilli: 2000, memoryBytes: 2 ** 30, gpus: [] },
  { name: 'c', cpuMilli: 8000, memoryBytes: 2 ** 30, gpus: ['', '', '', ''] },
]

const anySpec = fc
  .record({
    cpu: fc.constantFrom(1, 2, 4, 4, 8, 100),
    gpuMilli: fc.constantFrom(0, 0, 500, 1000, 2000),
    bundles: fc.constantFrom(1, 1, 1, 2, 3),
    strategy: fc.constantFrom<Strategy>('PACK', 'SPREAD', 'STRICT_PACK', 'STRICT_SPREAD'),
    estimateS: fc.option(fc.integer({ min: 1, max: 20_000 }), { nil: undefined }),
    limitS: fc.option(fc.integer({ min: 1, max: 20_000 }), { nil: undefined }),
    runS: fc.integer({ min: 1, max: 20_000 }),
    retries: fc.constantFrom(0, 0, 2),
    isPreemptible: fc.constantFrom(true, true, false),
    isRay: fc.constantFrom(false, false, false, true),
  })
  .map(({ cpu, gpuMilli, estimateS, limitS, isRay, ...rest }): JobSpec => {
    const gpuCount = gpuMilli === 0 ? 0 : Math.max(1, gpuMilli / 1000)
    return worldSpec({
      ...rest,
      request: { cpuMilli: cpu * 1000, memoryBytes: 0, gpuCount, gpuMilli: Math.min(1000, gpuMilli) },
      ...(estimateS === undefined ? {} : { estimateS }),
      ...(limitS === undefined ? {} : { limitS }),
      ...(isRay ? { engine: 'ray' } : {}),
    })
  })

const anyAction = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('submit' as const),
      spec: anySpec,
      count: fc.constantFrom(1, 1, 3, 40),
      user: fc.constantFrom('ann', 'bob', 'cem'),
      priority: fc.constantFrom(0, 0, 0, 1, 3),
      after: fc.option(fc.nat(30), { nil: undefined }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('pass' as const), s: fc.constantFrom(1, 5, 60, 4000, 90_000) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('up' as const, 'down' as const), host: fc.nat(2) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        'cancel' as const,
        'hold' as const,
        'release' as const,
        'requeue' as const,
        'raise' as const,
      ),
      id: fc.nat(60),
    }),
  },
)
type Action = typeof anyAction extends fc.Arbitrary<infer One> ? One : never

function act(world: QueueWorld, action: Action): void {
  const { store, nowMs } = world
  switch (action.kind) {
    case 'submit': {
      const after = action.after !== undefined && store.get(action.after) !== undefined ? [action.after] : []
      const { spec, user, priority, count } = action
      world.submit(spec, { user, priority, after, variants: Array.from({ length: count }, () => ({})) })
      return
    }
    case 'pass':
      world.nowMs += action.s * 1000
      return
    case 'up':
      world.down.delete(HOSTS[action.host]?.name ?? '')
      return
    case 'down':
      world.down.add(HOSTS[action.host]?.name ?? '')
      return
    case 'cancel':
      applyEvent(store, action.id, { kind: 'stop', reason: 'cancelled' }, nowMs)
      return
    case 'raise':
      store.editAll([action.id], (job) => ({ spec: job.spec, priority: job.priority + 1 }))
      return
    default:
      applyEvent(store, action.id, { kind: action.kind }, nowMs)
  }
}

/** Those that may begin on hosts now, in turn. */
function inTurn({ store, nowMs }: QueueWorld): readonly Job[] {
  const lines = store.waiting(nowMs)
  const runTimes = store.accounting.runTimes()
  const isShared = new Set(lines.map(({ user }) => user)).size > 1
  const usage = isShared ? store.accounting.usage(store.active(), nowMs) : new Map()
  const lengthS = (job: { user: string; estimateS: number | undefined }) => predictS(job, runTimes)
  const all = firstInTurn(lines.map(waitingLine), 10_000, { nowS: Math.floor(nowMs / 1000), usage, lengthS })
  return all.map(({ order }) => store.get(order) as Job).filter(({ spec }) => spec.engine === undefined)
}

/** No host is idle while the first in turn of those that could use it alone waits. */
function expectNobodyStarves(world: QueueWorld): void {
  const hosts = world.hosts()
  const busy = new Set(
    world.store
      .active()
      .flatMap(({ state }) =>
        isActive(state) ? state.places.filter((_, rank) => state.bundles[rank]?.kind !== 'ended') : [],
      )
      .map(({ host }) => host),
  )
  const waiting = inTurn(world)
  for (const host of hosts) {
    if (host.isDrained || busy.has(host.name)) continue
    const first = waiting.find(({ spec }) => {
      const gang = gangOf(spec)
      const isPossible = findGang(new Cluster(hosts), gang) !== undefined
      return isPossible && findGang(new Cluster([host]), { ...gang, bundles: gang.bundles.slice(0, 1) }) !== undefined
    })
    if (first?.spec.bundles === 1) throw new Error(`job ${first.id} waits beside ${host.name}, which is idle`)
  }
}

function expectLimitsHold({ store, nowMs }: QueueWorld): void {
  for (const { id, state, spec } of store.active()) {
    if (spec.limitS === undefined || !isActive(state) || state.kind === 'ending') continue
    const hasBegun = state.bundles.some((bundle) => bundle.kind !== 'sent')
    if (hasBegun && nowMs - state.startedMs > spec.limitS * 1000) throw new Error(`job ${id} outlives its limit`)
  }
  for (const { state, spec } of store.list(['timed-out'], 1000))
    if (state.kind === 'timed-out')
      expect(state.endedMs - (state.startedMs ?? 0)).toBeGreaterThan((spec.limitS ?? 0) * 1000)
}

function expectNothingIsOverCommitted(world: QueueWorld): void {
  const active = world.store.active()
  const { placements } = occupy(HOSTS, active)
  for (const { id, state } of active)
    if (isActive(state))
      expect(placements.get(id)?.length).toBe(state.bundles.filter((bundle) => bundle.kind !== 'ended').length)
}

/** An action, and whether hosts act before it. */
type Step = readonly [Action, boolean]

function live(steps: readonly Step[], isPreempting: boolean, check: (world: QueueWorld) => void): void {
  using world = new QueueWorld(HOSTS, isPreempting)
  for (const [action, isAnswered] of steps) {
    if (isAnswered) world.act()
    act(world, action)
    const before = inTurn(world)
    const most = Math.max(...before.map(({ priority }) => priority))
    const victims = world.tick()
    if (!isPreempting) expect(victims).toEqual([])
    for (const { spec, priority } of victims) {
      expect(spec.isPreemptible).toBe(true)
      expect(priority).toBeLessThan(most)
    }
    expectNobodyStarves(world)
    expectLimitsHold(world)
    expectNothingIsOverCommitted(world)
  }
  check(world)
}

const anyHistory = fc.array(fc.tuple(anyAction, fc.boolean()), { minLength: 1, maxLength: 40 })

describe('any history of a queue', () => {
  test('wastes no idle host, exceeds no limit and over-commits nothing', () => {
    fc.assert(
      fc.property(anyHistory, fc.boolean(), (steps, isPreempting) => live(steps, isPreempting, () => undefined)),
      { numRuns: randomRuns(60) },
    )
  })

  test('starts an important job within a minute where only preemptible jobs are in its way', () => {
    const request = { cpuMilli: 8000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0 }
    fc.assert(
      fc.property(anyHistory, (steps) =>
        live(steps, true, (world) => {
          const { store } = world
          const staying = store.active().filter(({ spec, state }) => !spec.isPreemptible && state.kind !== 'ending')
          const [id = 0] = world.submit(worldSpec({ request }), { priority: 1000 })
          const isPossible = findGang(occupy(world.hosts(), staying).cluster, gangOf(worldSpec({ request })))
          for (let s = 0; s < 60; s++) {
            world.tick()
            world.act(false)
            world.nowMs += 1000
          }
          if (isPossible !== undefined) expect(store.get(id)?.state.kind).toBe('running')
        }),
      ),
      { numRuns: randomRuns(40) },
    )
  })

  const small = (rest: Partial<JobSpec> = {}) => worldSpec({ estimateS: 60, ...rest })
  test.each([
    ['jobs for Ray while it does not answer', small({ engine: 'ray' }), {}],
    [
      'jobs that no host can ever hold',
      small({ request: { cpuMilli: 100_000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0 } }),
      {},
    ],
    ['jobs that wait for a running job', small(), { after: [1] }],
  ] as const)('a job begins within one tick behind 1,500 %s', (_, spec, rest) => {
    using world = new QueueWorld(HOSTS, false)
    world.submit(worldSpec({ runS: 1e6, estimateS: 1e6 }))
    world.tick()
    world.act()
    world.submit(spec, { priority: 5, variants: Array.from({ length: 1500 }, () => ({})), ...rest })
    const [id = 0] = world.submit(small())
    world.tick()
    expect(kindOf(world, id)).toBe('starting')
  })

  test('a job begins within one tick behind 1,500 jobs that wait for a retry', () => {
    using world = new QueueWorld(HOSTS, false)
    const ids = world.submit(small({ retries: 1 }), { priority: 5, variants: Array.from({ length: 1500 }, () => ({})) })
    const fail = { kind: 'seen', rank: 0, bundle: { kind: 'ended', end: { kind: 'exit', code: 1 } } } as const
    const placed = { kind: 'placed', places: [{ host: 'a', devices: [] }] } as const
    world.store.applyAll(
      ids.flatMap((id) => [
        { id, event: placed },
        { id, event: fail },
      ]),
      world.nowMs,
    )
    const [id = 0] = world.submit(small())
    world.tick()
    expect(kindOf(world, id)).toBe('starting')
  })

  test('a job begins within one tick behind 1,500 different jobs that never fit', () => {
    using world = new QueueWorld(HOSTS, false)
    for (let index = 0; index < 1500; index++) {
      const request = { cpuMilli: 100_000 + index, memoryBytes: 0, gpuCount: 0, gpuMilli: 0 }
      world.submit(small({ request }), { priority: 5 })
    }
    const [id = 0] = world.submit(small())
    world.tick()
    expect(kindOf(world, id)).toBe('starting')
  })

  const kindOf = (world: QueueWorld, id: number) => world.store.get(id)?.state.kind
})
