/** Jobs that are stopped because they hang: what the scheduler concludes from what hosts tell of ranks. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { type BundleState, type Job, type SilenceSpec, transition } from '../../../../src/scheduler/jobs/job.ts'
import { bundleKey } from '../../../../src/scheduler/jobs/orders.ts'
import { SilenceWatch } from '../../../../src/scheduler/jobs/silence-watch.ts'
import { testJob } from '../../../support/test-job.ts'

const STORE = 'abc0'
const HOSTS = ['m1', 'm2']

const jobOf = (silence: SilenceSpec | undefined, attempt = 1): Job =>
  testJob(
    { bundles: 2, ...(silence === undefined ? {} : { silence }) },
    {
      id: 17,
      attempt,
      state: {
        kind: 'running',
        places: HOSTS.map((host) => ({ host, devices: [] })),
        bundles: HOSTS.map((): BundleState => ({ kind: 'begun' })),
        startedMs: 0,
      },
    },
  )

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
      watch.take(host, `up 1\nranks ${line ?? 'nothing'}\nranks all 17\n`, s * 1000)
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

describe('the readings of a round', () => {
  const home = mkdtempSync(join(tmpdir(), 'muster-silence-'))
  afterAll(() => rmSync(home, { recursive: true }))
  const MARK = 'feedfeedfeedfeed'
  const jobs = [17, 18].map((id): Job => {
    const job = { ...jobOf({ seconds: 60, stop: 'idle' }), id }
    const launch = { kind: 'mpi', options: {}, ports: [46_000, 46_999] as const, ranks: 1 }
    return {
      ...job,
      spec: { ...job.spec, launch },
      state: { ...job.state, places: [{ host: 'm1', devices: [] }] } as Job['state'],
    }
  })
  const [first, second] = jobs as [Job, Job]
  const pathOf = (job: Job, name: string) => {
    const directory = join(home, 'muster/jobs', bundleKey(STORE, job, 0))
    mkdirSync(directory, { recursive: true })
    return join(directory, name)
  }
  const run = (program: string) =>
    execFileSync('sh', {
      input: `mark=${MARK}\n( ${program} )\n`,
      env: { ...process.env, XDG_STATE_HOME: home },
      stdio: ['pipe', 'pipe', 'inherit'],
      timeout: 4_000,
    }).toString()

  it('are not held up by a job whose file of ranks is a FIFO', () => {
    rmSync(pathOf(first, 'ranks'), { force: true })
    execFileSync('mkfifo', [pathOf(first, 'ranks')])
    writeFileSync(pathOf(second, 'ranks'), '0 0 1\n')
    writeFileSync(pathOf(second, 'out'), 'a line that is not needed\n')
    const text = run(new SilenceWatch(STORE).programFor('m1', jobs, 60_000)).replaceAll(MARK, '')
    expect(text).toMatch(new RegExp(`^ranks all 17\nranks ${bundleKey(STORE, second, 0)} 0 0 1 .*\nranks all 18\n$`))
    expect(text).not.toContain('not needed')
  })

  it('are whole lines of at most 32 KiB, and a job that is not read to its end is not judged', () => {
    rmSync(pathOf(first, 'ranks'), { force: true })
    writeFileSync(
      pathOf(first, 'ranks'),
      Array.from({ length: 4096 }, (_, rank) => `${rank} 0 ${process.pid}\n`).join(''),
    )
    const lines = run(new SilenceWatch(STORE).programFor('m1', [first], 60_000)).split('\n')
    expect(lines.pop()).toBe('')
    expect(lines.every((line) => line.startsWith(`${MARK}ranks ${bundleKey(STORE, first, 0)} `))).toBe(true)
    expect(lines.length).toBeGreaterThan(300)
    expect(lines.join('\n').replaceAll(`${MARK}ranks `, '').length).toBeLessThanOrEqual(32 * 1024)
    const isStuck = (end: string) => {
      const watch = new SilenceWatch(STORE)
      for (const s of [100, 150, 200]) {
        watch.programFor('m1', [first], s * 1000)
        watch.take('m1', `ranks ${bundleKey(STORE, first, 0)} 0 0 7 S 0 futex_wait 0 999 - \n${end}`, s * 1000)
      }
      return watch.stuck([first], 200_000).length > 0
    }
    expect([isStuck(''), isStuck('ranks all 17\n')]).toEqual([false, true])
  })

  it('have one time limit, and end with the job that reached it', () => {
    const watch = new SilenceWatch(STORE)
    const orderOf = (program: string) => [...program.matchAll(/all (\d+)/g)].map(([, id]) => id)
    const before = watch.programFor('m1', jobs, 60_000)
    expect(before.match(/timeout /g)).toHaveLength(1)
    expect(orderOf(before)).toEqual(['17', '18'])
    watch.take('m1', '', 65_000)
    const after = watch.programFor('m1', jobs, 120_000)
    expect(orderOf(after)).toEqual(['18', '17'])
    watch.take('m1', 'ranks all 18\nranks all 17\n', 120_000)
    expect(orderOf(watch.programFor('m1', jobs, 180_000))).toEqual(['17', '18'])
  })
})
