/** Jobs that are stopped because they hang: what the scheduler concludes from what hosts tell of ranks. */
import { describe, expect, it } from 'vitest'
import { type BundleState, type Job, type SilenceSpec, transition } from '../../../../src/scheduler/jobs/job.ts'
import { bundleKey } from '../../../../src/scheduler/jobs/orders.ts'
import { SilenceWatch } from '../../../../src/scheduler/jobs/silence-watch.ts'

const STORE = 'abc0'
const HOSTS = ['m1', 'm2']

const jobOf = (silence: SilenceSpec | undefined, attempt = 1): Job => ({
  id: 17,
  user: 'ann',
  submittedMs: 0,
  priority: 0,
  attempt,
  failures: 0,
  after: [],
  spec: {
    name: 'train',
    command: 'train.py',
    environment: {},
    request: { cpuMilli: 1000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0 },
    bundles: 2,
    strategy: 'SPREAD',
    retries: 0,
    isPreemptible: false,
    ...(silence === undefined ? {} : { silence }),
  },
  state: {
    kind: 'running',
    places: HOSTS.map((host) => ({ host, devices: [] })),
    bundles: HOSTS.map((): BundleState => ({ kind: 'begun' })),
    startedMs: 0,
  },
})

type Told = { readonly quietS: number; readonly cpuS: number; readonly pid?: number }

/** The reason for which the job is stopped after so many seconds, asked every two seconds. */
function reasonAfter(seconds: number, job: Job, toldOf: (rank: number, s: number) => Told | undefined) {
  const watch = new SilenceWatch(STORE)
  for (let s = 0; s <= seconds; s += 2) {
    for (const [rank, host] of HOSTS.entries()) {
      const told = toldOf(rank, s)
      if (watch.programFor(host, [job], s * 1000) === '') continue
      const line =
        told &&
        `${bundleKey(STORE, job, rank)} ${rank} 0 ${told.pid ?? 7} S ${Math.round(told.cpuS * 100)} futex_wait 9 ${told.quietS} -`
      watch.take(host, `up 1\nranks ${line ?? 'nothing'}\n`, s * 1000)
    }
    const [found] = watch.stuck([job], s * 1000)
    if (found?.event.kind === 'refused') return { s, reason: found.event.reason, event: found.event }
  }
  return undefined
}

const idle = (_: number, s: number): Told => ({ quietS: s, cpuS: 3 + s / 500 })

describe('a job that is stopped when it is silent', () => {
  const spec: SilenceSpec = { seconds: 60, stop: 'idle' }

  it('has failed with what its ranks wait in, when none wrote anything and none used its processor for so long', () => {
    const found = reasonAfter(100, jobOf(spec), idle)
    expect(found?.s).toBeGreaterThanOrEqual(60)
    expect(found?.s).toBeLessThan(66)
    expect(found?.reason).toBe(
      'silent: nothing was written for 60 s and no processor used, waiting: ranks 0-1 in futex_wait',
    )
    const ending = transition(jobOf(spec), found?.event ?? { kind: 'hold' }, 70_000)
    const last = HOSTS.reduce(
      (job, _, rank) =>
        transition(job, { kind: 'seen', rank, bundle: { kind: 'ended', end: { kind: 'exit', code: 143 } } }, 71_000),
      ending,
    )
    expect(last.state).toMatchObject({ kind: 'failed', reason: found?.reason })
  })

  it('goes on while one rank writes, computes, began anew, or cannot be read', () => {
    const but = (other: (s: number) => Told | undefined) => (rank: number, s: number) =>
      rank === 1 ? other(s) : idle(rank, s)
    expect(
      reasonAfter(
        200,
        jobOf(spec),
        but((s) => ({ quietS: s % 50, cpuS: 0 })),
      ),
    ).toBeUndefined()
    expect(
      reasonAfter(
        200,
        jobOf(spec),
        but((s) => ({ quietS: s, cpuS: s / 20 })),
      ),
    ).toBeUndefined()
    expect(
      reasonAfter(
        200,
        jobOf(spec),
        but((s) => ({ quietS: s, cpuS: 0, pid: 7 + Math.floor(s / 50) })),
      ),
    ).toBeUndefined()
    expect(
      reasonAfter(
        200,
        jobOf(spec),
        but(() => undefined),
      ),
    ).toBeUndefined()
    expect(
      reasonAfter(
        200,
        jobOf(spec),
        but((s) => (s > 30 ? undefined : idle(1, s))),
      ),
    ).toBeUndefined()
  })

  it('is stopped although its ranks are busy, if it was submitted so', () => {
    const busy = (_: number, s: number): Told => ({ quietS: s, cpuS: s })
    expect(reasonAfter(100, jobOf(spec), busy)).toBeUndefined()
    expect(reasonAfter(100, jobOf({ ...spec, stop: 'always' }), busy)?.reason).toMatch(
      /^silent: nothing was written for 60 s, waiting/,
    )
  })

  it('is not even watched without that wish', () => {
    const watch = new SilenceWatch(STORE)
    for (const job of [jobOf(undefined), jobOf({ seconds: 60 })]) {
      expect(watch.programFor('m1', [job], 0)).toBe('')
      expect(watch.stuck([job], 10 ** 9)).toEqual([])
    }
  })
})
