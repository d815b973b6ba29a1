/** Which rank of a job failed first, and the states of the others: from the order in which Muster saw their ends. */
import { describe, expect, it } from 'vitest'
import {
  type BundleState,
  ENDED_SILENTLY,
  isFinal,
  type Job,
  type JobEvent,
  type JobSpec,
  transition,
} from '../../../../src/scheduler/jobs/job.ts'
import { failedRanks, ranksOf } from '../../../../src/scheduler/jobs/ranks.ts'
import { testJob } from '../../../support/test-job.ts'

const PLACES = ['m1', 'm2', 'm3'].map((host) => ({ host, devices: [] }))
const MPI: NonNullable<JobSpec['launch']> = { kind: 'mpi', options: {}, ports: [46_000, 46_999], ranks: 1 }

const exit = (code: number, ranMs = 1000): BundleState => ({
  kind: 'ended',
  end: { kind: 'exit', code },
  beganMs: 1000,
  ranMs,
})
const vanished: BundleState = { kind: 'ended', end: { kind: 'gone', reason: ENDED_SILENTLY } }
const seen = (rank: number, bundle: BundleState): JobEvent => ({ kind: 'seen', rank, bundle })
const told = (bundle: number, code: number, endedMs: number, said = {}): JobEvent => ({
  ...{ kind: 'said', rank: bundle, said },
  ranks: [{ rank: bundle, restart: 0, code, endedMs }],
})
const cancel: JobEvent = { kind: 'stop', reason: 'cancelled' }

/** A running gang of three, after `events`. */
function lifeOf(spec: Partial<JobSpec>, ...events: readonly JobEvent[]): Job {
  const begun = PLACES.map((_, rank) => seen(rank, { kind: 'begun', beganMs: 1000 }))
  return [{ kind: 'placed', places: PLACES } as const, ...begun, ...events].reduce<Job>(
    (job, event) => transition(job, event, event.kind === 'placed' ? 1000 : 20_000),
    testJob({ bundles: 3, ...spec }),
  )
}

const statesOf = (job: Job) => ranksOf(job).map(({ state, code }) => `${state}${code === undefined ? '' : ` ${code}`}`)
const failedOf = (job: Job) => failedRanks(job, ranksOf(job)).map(({ rank }) => rank)
const reasonOf = ({ state }: Job) => (isFinal(state) ? state.reason : undefined)

describe('in a gang without a launcher, the first rank to end without being stopped', () => {
  it.each([
    [137, 'exit 137 (SIGKILL)'],
    [143, 'exit 143 (SIGTERM)'],
    [130, 'exit 130'],
  ])('failed, although its exit code %i is that of a signal', (code, words) => {
    // Its host says that it ended after the others.
    const job = lifeOf({}, seen(1, exit(code, 1100)), seen(0, exit(143)), seen(2, exit(137)))
    expect(statesOf(job)).toEqual(['stopped 143', `failed ${code}`, 'stopped 137'])
    expect(failedOf(job)).toEqual([1])
    expect(reasonOf(job)).toBe(`rank 1 on m2 failed first: ${words}`)
  })

  it('is known before the others have ended', () => {
    const job = lifeOf({}, seen(1, exit(137)))
    expect(statesOf(job)).toEqual(['running', 'failed 137', 'running'])
    expect(failedOf(job)).toEqual([1])
  })

  it('is lost if its process vanished, and is named', () => {
    const job = lifeOf({}, seen(2, vanished), seen(0, exit(143)), seen(1, vanished))
    expect(statesOf(job)).toEqual(['stopped 143', 'stopped', 'lost'])
    expect(ranksOf(job)[2]?.text).toBe(ENDED_SILENTLY)
    expect(failedOf(job)).toEqual([2])
    expect(job.state.kind).toBe('lost')
    expect(reasonOf(job)).toBe(`rank 2 on m3 failed first: ${ENDED_SILENTLY}`)
  })

  it('is named before one that failed because of it, also with an ordinary exit code', () => {
    const job = lifeOf({}, seen(2, exit(9)), seen(0, exit(1, 1500)), seen(1, exit(143, 1500)))
    expect(statesOf(job)).toEqual(['failed 1', 'stopped 143', 'failed 9'])
    expect(failedOf(job)).toEqual([2, 0])
    expect(reasonOf(job)).toBe('rank 2 on m3 failed first: exit 9, 0.5 s before the others')
  })

  it('has the reason that its host gives', () => {
    const end: BundleState = { kind: 'ended', end: { kind: 'exit', code: 9, isUnwritten: true } }
    expect(reasonOf(lifeOf({}, seen(1, end), seen(0, exit(143)), seen(2, exit(143))))).toBe(
      'rank 1 on m2 failed first: exit 9: the disk was full, so output may be missing',
    )
  })

  it('does not exist if the job was stopped before', () => {
    const job = lifeOf({}, cancel, seen(1, exit(137)), seen(0, exit(143)), seen(2, vanished))
    expect(statesOf(job)).toEqual(['stopped 143', 'stopped 137', 'stopped'])
    const silent: JobEvent = { kind: 'refused', reason: 'it looks stuck' }
    const stuck = lifeOf({}, silent, seen(1, exit(137)), seen(0, exit(143)), seen(2, exit(143)))
    expect(statesOf(stuck)).toEqual(['stopped 143', 'stopped 137', 'stopped 143'])
    expect(reasonOf(stuck)).toBe('it looks stuck')
  })

  it('stays the first if the job is cancelled after it', () => {
    const job = lifeOf({}, seen(1, exit(137)), cancel, seen(0, exit(143)), seen(2, exit(143)))
    expect(job.state.kind).toBe('cancelled')
    expect(statesOf(job)).toEqual(['stopped 143', 'failed 137', 'stopped 143'])
  })

  it('is shown together with one that the kernel killed for its memory', () => {
    const end: BundleState = { kind: 'ended', end: { kind: 'exit', code: 137, isOutOfMemory: true } }
    const job = lifeOf({}, seen(1, exit(3)), seen(0, end), seen(2, exit(143)))
    expect(statesOf(job)).toEqual(['failed 137', 'failed 3', 'stopped 143'])
    expect(ranksOf(job)[0]?.text).toMatch(/^killed by the kernel/)
  })

  it('is unknown for a job that an earlier version ended', () => {
    const { state, ...rest } = lifeOf({}, seen(1, exit(137)), seen(0, exit(143)), seen(2, exit(143)))
    if (!isFinal(state)) throw new Error(state.kind)
    const { failed: _, ...old } = state
    expect(statesOf({ ...rest, state: old })).toEqual(['stopped 143', 'stopped 137', 'stopped 143'])
  })
})

describe('with a launcher', () => {
  it('the rank that failed first is named, even if it was killed', () => {
    const ends = [told(2, 137, 5000), told(0, 143, 5400, { failed: '137' }), told(1, 143, 5400)]
    const job = lifeOf({ launch: MPI }, ...ends, seen(0, exit(137, 4500)), seen(1, exit(143, 4500)), seen(2, exit(0)))
    expect(reasonOf(job)).toBe('rank 2 on m3 failed first: exit 137 (SIGKILL), 0.4 s before the others')
    expect(statesOf(job)).toEqual(['stopped 143', 'stopped 143', 'failed 137'])
    expect(failedOf(job)).toEqual([2])
  })

  it('a rank that told no end is lost if its launcher failed first, and stopped otherwise', () => {
    const ends = [told(0, 143, 5400), told(1, 143, 5400)]
    const launcher = [seen(2, exit(137, 4000)), seen(0, exit(143, 5000)), seen(1, exit(143, 5000))]
    const job = lifeOf({ launch: MPI }, ...ends, ...launcher)
    expect(reasonOf(job)).toMatch(/^the mpi launcher on m3 failed first: exit 137/)
    expect(statesOf(job)).toEqual(['stopped 143', 'stopped 143', 'lost'])
    expect(failedOf(job)).toEqual([2])
    const other = lifeOf(
      { launch: MPI },
      told(1, 3, 5000),
      seen(0, exit(3, 5000)),
      seen(1, exit(3)),
      seen(2, exit(143)),
    )
    expect(statesOf(other)).toEqual(['stopped', 'failed 3', 'stopped'])
    expect(failedOf(other)).toEqual([1])
  })

  describe('a bundle that tells that it failed and goes on', () => {
    const TF: NonNullable<JobSpec['launch']> = { kind: 'tf', options: {}, ports: [46_000, 46_999] }
    // Muster hears it at 20 s.
    const reported: JobEvent = { kind: 'said', rank: 1, said: { failed: '' }, ranks: [] }
    const stopped = (code: number) => exit(code, 19_010)
    const REASON = 'rank 1 on m2 failed first: it had reported a failure'

    it.each([143, 137, 130, 0])('is named alone, though all end with exit code %i when they are stopped', (code) => {
      const ends = [stopped(code), stopped(code), stopped(code)].map((end, rank) => seen(rank, end))
      const job = lifeOf({ launch: TF }, reported, ...ends)
      expect(job.state).toMatchObject({ kind: 'failed', failed: 1, failedMs: 20_000, reason: REASON })
      const other = code === 0 ? 'done 0' : `stopped ${code}`
      expect(statesOf(job)).toEqual([other, `failed ${code}`, other])
      expect(failedOf(job)).toEqual([1])
    })

    it('is named with what it raised, though another one is killed by force after it', () => {
      const why: JobEvent = { kind: 'said', rank: 1, said: { why: 'ValueError: bad batch' }, ranks: [] }
      const ends = [seen(0, stopped(143)), why, seen(1, stopped(1)), seen(2, stopped(137))]
      expect(reasonOf(lifeOf({ launch: TF }, reported, ...ends))).toBe(`${REASON}: ValueError: bad batch`)
    })

    it('is not the first where another one had ended before, or raised something and lingered', () => {
      const early = lifeOf({ launch: TF }, reported, seen(0, exit(137, 9000)), seen(1, stopped(143)), seen(2, exit(0)))
      expect(reasonOf(early)).toBe('rank 0 on m1 failed first: exit 137 (SIGKILL), 10.0 s before the others')
      const raised: JobEvent = { kind: 'said', rank: 0, said: { why: 'ValueError: bad batch' }, ranks: [] }
      const ends = [raised, seen(0, stopped(143)), seen(1, stopped(143)), seen(2, stopped(143))]
      expect(reasonOf(lifeOf({ launch: TF }, reported, ...ends))).toBe(
        'rank 0 on m1, rank 1 on m2 failed within 20 ms of each other: exit 143 (SIGTERM): ValueError: bad batch',
      )
    })

    it('is judged by its exit code where its host told that, as its command had ended', () => {
      const told: JobEvent = { kind: 'said', rank: 1, said: { failed: '3' }, ranks: [] }
      const job = lifeOf({ launch: TF }, told, seen(1, exit(3)), seen(0, stopped(143)), seen(2, stopped(143)))
      expect(reasonOf(job)).toBe('rank 1 on m2 failed first: exit 3, 18.0 s before the others')
    })

    it('is named as the launcher of its ranks', () => {
      const ranks = [told(0, 137, 20_030), told(1, 143, 20_030), told(2, 137, 20_040)]
      const ends = [0, 1, 2].map((rank) => seen(rank, stopped(143)))
      const job = lifeOf({ launch: MPI }, reported, ...ranks, ...ends)
      expect(reasonOf(job)).toBe('the mpi launcher on m2 failed first: it had reported a failure')
    })
  })

  describe('ranks that were killed with the program that would tell their end', () => {
    const fact = (bundle: number, said: Record<string, string>): JobEvent => ({
      ...{ kind: 'said', rank: bundle, said },
      ranks: [],
    })
    /** Bundle 0 has ranks 0 and 1, and so on; mpirun is in bundle 0 and fails. */
    const lifeWith = (...facts: readonly JobEvent[]) =>
      lifeOf(
        { launch: { ...MPI, ranks: 2 } },
        ...facts,
        ...[seen(1, exit(0)), seen(2, exit(0)), seen(0, exit(137, 6000))],
      )

    it('are lost and named with the launcher, first the one that mpirun names', () => {
      const job = lifeWith(
        fact(1, { lost: '2' }),
        fact(2, { lost: '5 4' }),
        fact(0, { mpi: 'openmpi', noticed: '4 9' }),
      )
      expect(reasonOf(job)).toBe(
        'the mpi launcher on m1 failed: exit 137 (SIGKILL); lost: rank 4 on m3 (SIGKILL, says mpirun), rank 2 on m2, rank 5 on m3',
      )
      expect(statesOf(job).slice(2)).toEqual(['lost', 'stopped', 'lost', 'lost'])
      expect(failedOf(job).slice(0, 3)).toEqual([4, 2, 5])
    })

    it('are named without a word where mpirun names a rank that the job does not have, or that told its end', () => {
      for (const noticed of ['6 9', '3 9', '-1 9', '2 9 x', '2', `2 ${'9'.repeat(9)}`])
        expect(reasonOf(lifeWith(fact(1, { lost: '2' }), fact(0, { mpi: 'openmpi', noticed })))).toBe(
          'the mpi launcher on m1 failed first: exit 137 (SIGKILL); lost: rank 2 on m2',
        )
    })

    it('are those of the host that tells it, and no others', () => {
      const plain = 'the mpi launcher on m1 failed first: exit 137 (SIGKILL)'
      for (const lost of ['4', '6 99999', 'x', '2,3', '']) expect(reasonOf(lifeWith(fact(1, { lost })))).toBe(plain)
      const noticed = '2 9'
      expect(reasonOf(lifeWith(fact(1, { lost: '2', mpi: 'openmpi', noticed })))).not.toContain('says')
      expect(reasonOf(lifeWith(fact(1, { lost: '2' }), fact(0, { mpi: 'mpich', noticed })))).not.toContain('says')
    })

    it('are not named where a rank failed, the job was cancelled, or their launcher was stopped', () => {
      const lost = [fact(1, { lost: '2' }), fact(0, { mpi: 'openmpi', noticed: '2 9' })]
      expect(reasonOf(lifeWith(...lost, told(0, 3, 5000)))).toMatch(/^rank 0 on m1 failed first: exit 3/)
      expect(reasonOf(lifeWith(cancel, ...lost))).toBeUndefined()
      const ends = [seen(0, exit(137, 6000)), seen(1, exit(143, 7000)), seen(2, exit(0))]
      const stopped = lifeOf({ launch: { ...MPI, ranks: 2 } }, ...lost, ...ends)
      expect(reasonOf(stopped)).toMatch(/^the mpi launcher on m1 failed first: exit 137[^;]*$/)
    })
  })

  it('a rank is lost if its whole bundle vanished', () => {
    const job = lifeOf({ launch: MPI }, told(0, 143, 5400), seen(2, vanished), seen(0, exit(143)), seen(1, exit(143)))
    expect(job.state.kind).toBe('lost')
    expect(reasonOf(job)).toBe(`the mpi launcher on m3 failed first: ${ENDED_SILENTLY}`)
    expect(statesOf(job)).toEqual(['stopped 143', 'stopped', 'lost'])
    expect(failedOf(job)).toEqual([2])
  })
})
