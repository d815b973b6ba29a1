import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseHostAnswer } from '../../../../src/scheduler/jobs/host-program.ts'
import {
  type BundlePlace,
  type BundleState,
  type BundleTimes,
  ENDED_SILENTLY,
  engineNodes,
  formatBundle,
  isActive,
  isFinal,
  type Job,
  type JobEvent,
  type JobSpec,
  type JobState,
  leftWords,
  type SeenBundle,
  transition,
  waitsFrom,
} from '../../../../src/scheduler/jobs/job.ts'
import { ranMs } from '../../../../src/scheduler/jobs/job-columns.ts'
import { bundleKey, ordersFor } from '../../../../src/scheduler/jobs/orders.ts'
import { testJob, testSpec } from '../../../support/test-job.ts'

const spec = (rest: Partial<JobSpec> = {}): JobSpec =>
  testSpec({
    command: 'true',
    request: { cpuMilli: 1000, memoryBytes: 0, gpuCount: 1, gpuMilli: 500 },
    bundles: 2,
    ...rest,
  })

const job = (rest: Partial<JobSpec> = {}): Job => testJob(spec(rest))

const places = [
  { host: 'a', devices: [1] },
  { host: 'b', devices: [0] },
]
const exit = (code: number): BundleState => ({ kind: 'ended', end: { kind: 'exit', code } })
const gone: BundleState = { kind: 'ended', end: { kind: 'gone', reason: 'gone' } }
const barred: BundleState = { kind: 'ended', end: { kind: 'barred' } }
const seen = (rank: number, bundle: SeenBundle): JobEvent => ({ kind: 'seen', rank, bundle })
const placed: JobEvent = { kind: 'placed', places }
const cancel: JobEvent = { kind: 'stop', reason: 'cancelled' }

const lifeOf = (first: Job, ...events: readonly JobEvent[]): Job => {
  let job = first
  events.forEach((event, index) => {
    job = { ...job, ...transition(job, event, index) }
  })
  return job
}

const kindAfter = (first: Job, ...events: readonly JobEvent[]) => lifeOf(first, ...events).state.kind

describe('a job', () => {
  test('runs when all bundles have begun and is done when all have succeeded', () => {
    expect(kindAfter(job(), placed, seen(0, { kind: 'begun' }))).toBe('starting')
    expect(kindAfter(job(), placed, seen(0, { kind: 'begun' }), seen(1, { kind: 'begun' }))).toBe('running')
    expect(kindAfter(job(), placed, seen(0, exit(0)))).toBe('starting')
    expect(kindAfter(job(), placed, seen(0, exit(0)), seen(1, exit(0)))).toBe('done')
  })

  test('is pending in its engine until that starts it, and has not run before', () => {
    const first = job({ bundles: 1, engine: 'slurm' })
    const handed: JobEvent = { kind: 'placed', places: [{ host: '@slurm', devices: [] }] }
    const ranAfter = (...events: readonly JobEvent[]) => ranMs(lifeOf(first, handed, ...events).state, 60_000)
    expect(kindAfter(first, handed)).toBe('pending')
    expect(kindAfter(first, handed, seen(0, { kind: 'sent' }))).toBe('pending')
    expect(kindAfter(first, handed, seen(0, { kind: 'begun' }))).toBe('running')
    expect([ranAfter(), ranAfter(cancel), ranAfter(cancel, seen(0, gone))]).toEqual([undefined, undefined, undefined])
    expect([ranAfter(seen(0, { kind: 'begun' })), ranAfter(seen(0, exit(0)))]).toEqual([59_999, 1])
  })

  test('ran as long as its host measured, from when its engine says, between its hand-over and the report of its end', () => {
    const first = transition(
      job({ bundles: 1, engine: 'slurm' }),
      { kind: 'placed', places: [places[0] as BundlePlace] },
      1000,
    )
    const over = (times: BundleTimes) => ({ kind: 'ended', end: { kind: 'exit', code: 0 }, ...times }) as const
    const timesAfter = (...bundles: readonly BundleState[]) => {
      let current = first
      for (const [index, bundle] of bundles.entries())
        current = transition(current, seen(0, bundle), (index + 1) * 20_000)
      const { startedMs, endedMs } = current.state as Extract<JobState, { kind: 'done' }>
      return [startedMs, endedMs]
    }
    expect(timesAfter(over({ beganMs: 15_000, ranMs: 1050 }))).toEqual([15_000, 16_050])
    // What the clock of its host or of its engine says cannot be.
    expect(timesAfter(over({ beganMs: 500, ranMs: 1050 }))).toEqual([1000, 2050])
    expect(timesAfter(over({ beganMs: 90_000, ranMs: 1050 }))).toEqual([18_950, 20_000])
    expect(timesAfter(over({ beganMs: 15_000, ranMs: 90_000 }))).toEqual([1000, 20_000])
    // Its engine rounded its start up.
    expect(timesAfter({ kind: 'begun', beganMs: 39_500 }, over({ ranMs: 20_500 }))).toEqual([19_500, 40_000])
  })

  test('keeps the nodes of its engine: those where it was started last, after its end too', () => {
    const first = job({ bundles: 1, engine: 'slurm' })
    const handed: JobEvent = { kind: 'placed', places: [{ host: '@slurm', devices: [] }] }
    const nodesAfter = (...events: readonly JobEvent[]) => engineNodes(lifeOf(first, handed, ...events).state)
    const on = (nodes: string) => seen(0, { kind: 'begun', nodes })
    expect([nodesAfter(), nodesAfter(seen(0, { kind: 'begun' })), nodesAfter(on('n1'))]).toEqual([
      undefined,
      undefined,
      'n1',
    ])
    expect(nodesAfter(on('n1'), on('n[1-2]'))).toBe('n[1-2]')
    expect([nodesAfter(on('n1'), seen(0, exit(3))), nodesAfter(on('n1'), seen(0, gone))]).toEqual(['n1', 'n1'])
    // It ended between two polls.
    expect(nodesAfter(seen(0, { kind: 'ended', end: { kind: 'exit', code: 0 }, nodes: 'n2' }))).toBe('n2')
    expect(nodesAfter(on('n1'), seen(0, { kind: 'sent' }))).toBeUndefined()
  })

  test('fails as a whole when one bundle does: the others are stopped first', () => {
    expect(kindAfter(job(), placed, seen(0, exit(3)))).toBe('ending')
    expect(lifeOf(job(), placed, seen(0, exit(3)), seen(1, exit(143))).state).toMatchObject({
      kind: 'failed',
      reason: 'rank 0 on a failed first: exit 3',
    })
    expect(kindAfter(job(), placed, seen(0, gone), seen(1, exit(143)))).toBe('lost')
  })

  test('fails with the reason of the bundle that failed first', () => {
    const begun = [placed, seen(0, { kind: 'begun' }), seen(1, { kind: 'begun' })]
    expect(lifeOf(job(), ...begun, seen(1, exit(3)), seen(0, exit(143))).state).toMatchObject({
      failed: 1,
      reason: 'rank 1 on b failed first: exit 3',
    })
    expect(lifeOf(job(), ...begun, seen(1, gone), seen(0, exit(143))).state).toMatchObject({
      kind: 'lost',
      failed: 1,
      reason: 'rank 1 on b failed first: gone',
    })
    expect(lifeOf(job({ bundles: 1 }), { ...placed, places: places.slice(1) }, seen(0, exit(3))).state).toMatchObject({
      failed: 0,
      reason: 'exit 3',
    })
  })

  test('is queued again without a failure when a host could not start it', () => {
    const unable: BundleState = { kind: 'ended', end: { kind: 'unable' } }
    const again = lifeOf(job(), placed, seen(0, { kind: 'begun' }), seen(1, unable), seen(0, exit(143)))
    expect(again).toMatchObject({ attempt: 2, failures: 0, state: { kind: 'queued', notBeforeMs: 2003 } })
    expect(kindAfter(job(), placed, seen(0, exit(3)), seen(1, unable))).toBe('failed')
    expect(kindAfter(job(), placed, seen(1, unable), cancel, seen(0, barred))).toBe('cancelled')
  })

  test('never begins the same attempt twice, even when its host has no trace of it', () => {
    const began = [placed, seen(0, { kind: 'begun' }), seen(1, { kind: 'begun' })]
    const lost = lifeOf(job(), ...began, seen(0, { kind: 'missing' }))
    expect(ordersFor(lost, 'q', new Map(), 9).map(({ order }) => order.kind)).toEqual(['stop'])
    expect(kindAfter(lost, seen(1, exit(143)))).toBe('lost')
    expect(kindAfter(job(), placed, seen(0, { kind: 'missing' }))).toBe('starting')
    // An engine says that it has it, and starts it again.
    expect(kindAfter(job(), ...began, seen(0, { kind: 'sent' }))).toBe('starting')
  })

  test('is killed ten seconds after TERM, even if the clock was set meanwhile', () => {
    const stopped = lifeOf(job(), placed, seen(0, { kind: 'begun' }), cancel)
    const signalAt = (nowMs: number) =>
      ordersFor(stopped, 'q', new Map(), nowMs).map(({ order }) => 'signal' in order && order.signal)
    expect([0, 9_000, -9_000, 11_000, 86_400_000, -86_400_000].map((ms) => signalAt(ms)[0])).toEqual([
      'TERM',
      'TERM',
      'TERM',
      'KILL',
      'KILL',
      'KILL',
    ])
  })

  test('is limited to the memory that it asks for unless told otherwise, and says when the kernel killed it', () => {
    const request = { cpuMilli: 2000, memoryBytes: 2 ** 30, gpuCount: 0, gpuMilli: 0 }
    const limitsOf = (rest: Partial<JobSpec>) =>
      ordersFor(lifeOf(job(rest), placed), 'q', new Map(), 0).map(
        ({ order }) => order.kind === 'start' && order.run.limits,
      )
    expect(limitsOf({ request })).toEqual([request, request])
    expect(limitsOf({ request, isUnlimited: true })).toEqual([undefined, undefined])
    expect(limitsOf({})).toEqual([undefined, undefined])
    expect(
      parseHostAnswer('k begun at=12.5\nm exit 0 memory at=12.50 to=14.00\nn exit 3 at=1.00 to=3.50 boot=b').bundles,
    ).toEqual(
      new Map<string, BundleState>([
        ['k', { kind: 'begun' }],
        ['m', { kind: 'ended', end: { kind: 'exit', code: 0, isOutOfMemory: true }, ranMs: 1500 }],
        ['n', { ...exit(3), ranMs: 2500 } as BundleState],
      ]),
    )
    const timed = parseHostAnswer('k begun unlimited at=12.5\nm begun at=\nn exit 0 at=1 to=2 boot=b\no begun at=1e9', {
      toMs: (upS) => upS * 10,
      errorMs: 0,
    })
    expect(timed.bundles).toEqual(
      new Map<string, BundleState>([
        ['k', { kind: 'begun', isUnlimited: true, beganMs: 125 }],
        ['m', { kind: 'begun' }],
        ['n', { ...exit(0), ranMs: 1000 } as BundleState],
        ['o', { kind: 'begun' }],
      ]),
    )
    const killed = parseHostAnswer('q-7-1-0 begun unlimited\nq-7-1-1 exit 137 memory').bundles
    const life = [placed, seen(0, killed.get('q-7-1-0') as BundleState), seen(0, exit(0))]
    const { state } = lifeOf(job({ request }), ...life, seen(1, killed.get('q-7-1-1') as BundleState))
    expect(state).toMatchObject({
      kind: 'failed',
      reason:
        'rank 1 on b failed first: exit 137 (SIGKILL): killed by the kernel: more memory than it asked for (1.0 GiB)',
      bundles: [{ kind: 'ended', isUnlimited: true }, { kind: 'ended' }],
    })
  })

  test('is retried as often as declared, each time later and as a new attempt', () => {
    const fails = [placed, seen(0, exit(3)), seen(1, exit(0))]
    const again = lifeOf(job({ retries: 1 }), ...fails)
    expect(again).toMatchObject({
      attempt: 2,
      failures: 1,
      state: { kind: 'queued', last: 'failed: rank 0 on a failed first: exit 3' },
    })
    expect(kindAfter(again, ...fails)).toBe('failed')
    expect(lifeOf(again, ...fails, { kind: 'retry' })).toMatchObject({
      attempt: 3,
      failures: 0,
      state: { kind: 'queued' },
    })
  })

  test('is cancelled whether it waits, is being sent or never started', () => {
    expect(kindAfter(job(), cancel)).toBe('cancelled')
    expect(kindAfter(job(), { kind: 'hold' }, cancel, { kind: 'release' })).toBe('cancelled')
    expect(kindAfter(job(), placed, cancel)).toBe('ending')
    expect(kindAfter(job({ retries: 3 }), placed, cancel, seen(0, barred), seen(1, barred))).toBe('cancelled')
  })

  test('keeps why it was cancelled, whether it ran or not', () => {
    const prune: JobEvent = { ...cancel, because: 'pruned: worse than the median' }
    const reason = 'pruned: worse than the median'
    for (const events of [[prune], [placed, prune, seen(0, barred), seen(1, exit(143))]])
      expect(lifeOf(job(), ...events).state).toMatchObject({ kind: 'cancelled', reason })
  })

  test('says why a bundle was killed after a stop', () => {
    const silent: BundleState = { kind: 'ended', end: { kind: 'gone', reason: ENDED_SILENTLY } }
    const endsAfter = (...events: readonly JobEvent[]) => {
      const { state } = lifeOf(job(), placed, seen(0, { kind: 'begun' }), seen(1, { kind: 'begun' }), ...events)
      if (!('bundles' in state)) throw new Error(`it has no bundles: ${state.kind}`)
      return state.bundles.map((one) => formatBundle(one))
    }
    const killed = 'killed when the job was cancelled'
    expect(endsAfter(cancel, seen(0, silent), seen(1, silent))).toEqual([killed, killed])
    const limit: JobEvent = { kind: 'stop', reason: 'timed-out' }
    expect(endsAfter(limit, seen(0, silent), seen(1, exit(143)))).toEqual(['killed at the time limit', 'exit 143'])
    expect(endsAfter(seen(0, exit(1)), seen(1, silent))).toEqual(['exit 1', 'killed when another bundle ended'])
    expect(endsAfter(seen(0, silent), seen(1, exit(143)))).toEqual([ENDED_SILENTLY, 'exit 143'])
  })

  test('ends at once when all of its hosts are given up, whatever they report later', () => {
    const forget: JobEvent = { kind: 'forget', hosts: ['a', 'b', 'c'] }
    const life = lifeOf(job(), placed, forget, seen(0, exit(0)), seen(1, exit(0)))
    expect(life.state).toMatchObject({ kind: 'cancelled', reason: 'abandoned on hosts that did not answer', places })
    expect(ordersFor({ ...job(), ...life }, 'store', new Map(), 0)).toEqual([])
    expect(kindAfter(job(), forget)).toBe('cancelled')
  })

  test('when one host is given up, is still stopped on the others and holds their devices until then', () => {
    const forget: JobEvent = { kind: 'forget', hosts: ['a'] }
    const begun = [placed, seen(0, { kind: 'begun' }), seen(1, { kind: 'begun' })]
    for (const before of [[], [cancel]]) {
      const ending = lifeOf(job(), ...begun, ...before, forget)
      expect(ending.state.kind).toBe('ending')
      expect(ordersFor(ending, 'q', new Map(), 9)).toMatchObject([{ host: 'b', rank: 1, order: { kind: 'stop' } }])
      expect(lifeOf(ending, seen(0, exit(0)), seen(1, exit(143))).state).toMatchObject({
        kind: 'cancelled',
        reason: 'abandoned on hosts that did not answer',
        bundles: [{ end: { reason: 'abandoned: its host did not answer' } }, exit(143)],
      })
    }
    expect(kindAfter(job(), ...begun, { kind: 'forget', hosts: [] })).toBe('ending')
  })

  test('is queued again without a failure after preemption', () => {
    const events: JobEvent[] = [placed, { kind: 'stop', reason: 'preempted' }, seen(0, exit(143)), seen(1, exit(143))]
    expect(lifeOf(job(), ...events)).toMatchObject({ attempt: 2, failures: 0, state: { kind: 'queued' } })
  })

  test.each([
    ['cancelled', { kind: 'cancelled' }],
    ['preempted', { kind: 'queued', last: 'stopped for a job of higher priority' }],
    ['requeued', { kind: 'queued', last: 'requeued' }],
    ['timed-out', { kind: 'timed-out' }],
  ] as const)('is what it was stopped for (%s) also where it ends well when told, but done where it ended before', (reason, after) => {
    const running = lifeOf(
      job({ bundles: 1 }),
      { kind: 'placed', places: places.slice(0, 1) },
      seen(0, { kind: 'begun' }),
    )
    const told = transition(running, { kind: 'stop', reason }, 5000)
    const ends = (ranMs: number) =>
      transition(told, seen(0, { kind: 'ended', end: { kind: 'exit', code: 0 }, beganMs: 1, ranMs }), 8000).state
    expect(ends(5500)).toMatchObject(after)
    expect(ends(4500).kind).toBe('done')
    // The clocks of an engine are not exact enough for that.
    const inEngine = { ...told, spec: spec({ bundles: 1, engine: 'slurm' }) }
    expect(transition(inEngine, seen(0, { ...exit(0), ranMs: 4500 } as BundleState), 8000).state).toMatchObject(after)
  })

  test('counts as waiting only the time that it waited, also while held and after retries', () => {
    const at = (one: Job, event: JobEvent, nowMs: number): Job => ({ ...one, ...transition(one, event, nowMs) })
    const ends = [seen(0, exit(143)), seen(1, exit(143))]
    const running = at(job(), placed, 100)
    const again = ends.reduce((one, end) => at(one, end, 1000), at(running, { kind: 'stop', reason: 'preempted' }, 900))
    expect([waitsFrom(job()), waitsFrom(running), waitsFrom(again)]).toEqual([0, 0, 900])
    const released = at(at(again, { kind: 'hold' }, 1100), { kind: 'release' }, 1200)
    expect(waitsFrom(released)).toBe(900)
    const second = at(released, placed, 1300)
    const third = ends.reduce((one, end) => at(one, end, 5000), at(second, { kind: 'stop', reason: 'requeued' }, 4000))
    expect(waitsFrom(third)).toBe(4600)
    const cancelled = at(third, cancel, 6000)
    expect(waitsFrom(at(cancelled, { kind: 'retry' }, 9000))).toBe(9000)
  })
})

test('takes times from the host, between sending the order and receiving the report', () => {
  const begun = (beganMs: number): BundleState => ({ kind: 'begun', beganMs })
  const over = (beganMs: number, ranMs: number): BundleState => ({ ...exit(0), beganMs, ranMs }) as BundleState
  const at = (events: readonly (readonly [number, JobEvent])[]) => {
    let current = job()
    for (const [nowMs, event] of events) current = { ...current, ...transition(current, event, nowMs) }
    return current.state
  }
  const times = at([
    [1000, placed],
    [9000, seen(0, begun(1200))],
    [9000, seen(1, begun(1300))],
    [90_000, seen(0, over(1250, 5000))],
    [95_000, seen(1, over(1300, 7000))],
  ])
  expect(times).toMatchObject({ kind: 'done', startedMs: 1200, placedMs: 1000, endedMs: 8300 })
  expect(
    at([
      [1000, placed],
      [5000, seen(0, exit(0))],
      [6000, seen(1, exit(0))],
    ]),
  ).toMatchObject({
    startedMs: 1000,
    endedMs: 6000,
  })
  const any = fc.double({ min: -1e12, max: 1e12, noNaN: true })
  fc.assert(
    fc.property(any, any, any, (beganMs, otherMs, ranMs) => {
      const state = at([
        [1000, placed],
        [2000, seen(0, begun(beganMs))],
        [2000, seen(1, over(otherMs, ranMs))],
        [3000, seen(0, over(otherMs, ranMs))],
      ])
      if (state.kind !== 'done' || state.startedMs === undefined) throw new Error(state.kind)
      expect(state.startedMs).toBeGreaterThanOrEqual(1000)
      expect(state.startedMs).toBeLessThanOrEqual(2000)
      expect(state.endedMs).toBeGreaterThanOrEqual(state.startedMs)
      expect(state.endedMs).toBeLessThanOrEqual(3000)
    }),
  )
})

test('any events: an end is final except for a retry, an attempt is sent once, orders follow from the state', () => {
  const anyBundle = fc.constantFrom<BundleState>({ kind: 'sent' }, { kind: 'begun' }, exit(0), exit(1), gone, barred)
  const anyEvent: fc.Arbitrary<JobEvent> = fc.oneof(
    fc.constant(placed),
    fc.record({ kind: fc.constant('seen' as const), rank: fc.integer({ min: 0, max: 2 }), bundle: anyBundle }),
    fc.record({
      kind: fc.constant('stop' as const),
      reason: fc.constantFrom('cancelled' as const, 'timed-out' as const, 'preempted' as const),
    }),
    fc.record({ kind: fc.constant('forget' as const), hosts: fc.subarray(['a', 'b']) }),
    fc.record({ kind: fc.constantFrom('hold' as const, 'release' as const, 'retry' as const) }),
  )
  fc.assert(
    fc.property(fc.array(anyEvent, { maxLength: 40 }), fc.integer({ min: 0, max: 2 }), (events, retries) => {
      let current = job({ retries })
      const sent = new Set<string>()
      events.forEach((event, nowMs) => {
        const next = { ...current, ...transition(current, event, nowMs) }
        if (isFinal(current.state) && event.kind !== 'retry') expect(next.state).toBe(current.state)
        expect(next.attempt === current.attempt || next.state.kind === 'queued').toBe(true)
        if (isActive(next.state) && !isActive(current.state)) {
          const key = bundleKey('q', next, 0)
          expect(sent.has(key)).toBe(false)
          sent.add(key)
        }
        const orders = ordersFor(next, 'q', new Map(), nowMs)
        if (isActive(next.state)) {
          const open = next.state.bundles.filter((bundle) => bundle.kind !== 'ended')
          expect(orders).toHaveLength(open.length)
          expect(orders.every(({ order }) => (order.kind === 'stop') === (next.state.kind === 'ending'))).toBe(true)
        } else expect(orders).toEqual([])
        current = next
      })
    }),
  )
})

describe('a launched job whose port was taken meanwhile', () => {
  const launch = { kind: 'torchrun', options: {}, ports: [46_000, 46_099], ranks: 2 } as const
  const refused: JobEvent = {
    kind: 'refused',
    reason: 'a: cannot listen at 10.0.0.1 port 46001: Address already in use',
  }
  const said: JobEvent = {
    kind: 'said',
    rank: 0,
    said: { why: 'EADDRINUSE, message: address already in use' },
    ranks: [],
  }

  test.each([
    ['in preflight', [placed, refused, seen(0, barred), seen(1, barred)]],
    ['when its launcher began', [placed, said, seen(0, exit(1)), seen(1, exit(143))]],
  ])('%s starts again at once, three times, and none of them is a failure', (_, attempt) => {
    let own = job({ launch })
    for (const number of [2, 3, 4]) {
      own = lifeOf(own, ...attempt)
      expect(own).toMatchObject({ attempt: number, failures: 0, state: { kind: 'queued' } })
      expect(own.state).not.toHaveProperty('notBeforeMs')
    }
    expect(lifeOf(own, ...attempt)).toMatchObject({ attempt: 4, state: { kind: 'failed' } })
  })

  test('starts again for its words alone where it has a launcher', () => {
    expect(lifeOf(job(), placed, said, seen(0, exit(1)), seen(1, exit(143))).state.kind).toBe('failed')
  })
})

describe('a launched bundle that tells that its command failed', () => {
  const launched = job({ launch: { kind: 'torchrun', options: {}, ports: [46_000, 46_999] } })
  const failed = (rank: number, code: string): JobEvent => ({ kind: 'said', rank, said: { failed: code }, ranks: [] })
  const begun = [placed, seen(0, { kind: 'begun' }), seen(1, { kind: 'begun' })]
  const killed: SeenBundle = { kind: 'ended', end: { kind: 'gone', reason: ENDED_SILENTLY } }

  test('has the others stopped before it has ended, and is the reason of the end', () => {
    const ending = lifeOf(launched, ...begun, failed(1, '3'))
    expect(ending.state).toMatchObject({ kind: 'ending', failed: 1, bundles: [{ kind: 'begun' }, { kind: 'begun' }] })
    expect(ordersFor(ending, 'q', new Map(), 0).map(({ order }) => order.kind)).toEqual(['stop', 'stop'])
    const over = lifeOf(ending, seen(0, killed), seen(1, exit(3)))
    expect(over.state).toMatchObject({ kind: 'failed', reason: expect.stringContaining('exit 3') })
  })

  test('was killed itself: the job is lost, not ended by another bundle', () => {
    const over = lifeOf(launched, ...begun, failed(1, 'gone'), seen(0, exit(143)), seen(1, killed))
    expect(over.state).toMatchObject({ kind: 'lost', reason: `rank 1 on b failed first: ${ENDED_SILENTLY}` })
  })

  test('changes nothing where the job is stopped already, and where the job has no launcher', () => {
    const stopped = lifeOf(launched, ...begun, cancel, failed(1, '143'), seen(0, killed), seen(1, exit(143)))
    expect(stopped.state.kind).toBe('cancelled')
    expect(lifeOf(job(), ...begun, failed(1, '3')).state.kind).toBe('running')
  })

  test('keeps what its hosts found left, in words for people', () => {
    const left = { count: 1, processes: [{ pid: 7, name: 'x' }] }
    const over = lifeOf(launched, ...begun, seen(0, { ...exit(0), left: { count: 0, processes: [] } } as SeenBundle))
    expect(leftWords(over)).toEqual([])
    expect(leftWords(lifeOf(over, seen(1, { ...exit(0), left } as SeenBundle)))).toEqual([
      'left on b: x (pid 7)',
      'nothing left on a',
    ])
    expect(leftWords(lifeOf(launched, placed, seen(0, barred), seen(1, exit(1))))).toEqual([
      'nothing left on a',
      'could not check what is left on b',
    ])
    expect(leftWords(lifeOf(job(), placed, seen(0, exit(0)), seen(1, exit(0))))).toEqual([])
  })
})

test('a task that the kernel ended for its memory names what its role asked for', () => {
  const request = { cpuMilli: 1000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0 }
  const roles = [
    { name: 'worker', count: 1, request },
    { name: 'ps', count: 1, request: { ...request, memoryBytes: 2 ** 30 } },
  ]
  const launch = { kind: 'tf', options: {}, ports: [46_000, 46_099] } as const
  const end: BundleState = { kind: 'ended', end: { kind: 'exit', code: 137, isOutOfMemory: true } }
  expect(lifeOf(job({ launch, roles }), placed, seen(1, end), seen(0, exit(143))).state).toMatchObject({
    kind: 'failed',
    reason: expect.stringMatching(
      /^ps 0 on b failed first: exit 137 .SIGKILL.: killed by the kernel: .* asked for .1\.0 GiB/,
    ),
  })
})
