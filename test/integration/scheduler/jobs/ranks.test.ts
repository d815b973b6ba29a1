/** Ranks of a job: from its state, and from the files of a host, read by the program that runs there. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { BundleState, Job } from '../../../../src/scheduler/jobs/job.ts'
import { bundleKey } from '../../../../src/scheduler/jobs/orders.ts'
import {
  failedRanks,
  parseDeleted,
  parseRankReadings,
  parseRankTails,
  rankPrograms,
  ranksOf,
  runningPrograms,
  tailPrograms,
} from '../../../../src/scheduler/jobs/ranks.ts'
import { requirement } from '../../../support/requirements.ts'
import { testJob } from '../../../support/test-job.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const STORE = 'abc0'

const jobOf = (ranks: number | undefined, ...bundles: readonly BundleState[]): Job =>
  testJob(
    {
      bundles: bundles.length,
      launch: { kind: 'mpi', options: {}, ports: [46_000, 46_999], ...(ranks === undefined ? {} : { ranks }) },
    },
    {
      id: 17,
      state: {
        kind: 'running',
        places: bundles.map((_, index) => ({ host: `m${index + 1}`, devices: [] })),
        bundles,
        startedMs: 0,
      },
    },
  )

const BEGUN: BundleState = { kind: 'begun', beganMs: 1000 }
const rowOf = (job: Job) => ranksOf(job).map(({ title, host, state, code }) => [title, host, state, code])

describe('ranks from the state of a job', () => {
  it('are numbered through the bundles, and wait until their bundle begins', () => {
    expect(rowOf(jobOf(2, BEGUN, { kind: 'sent' }))).toEqual([
      ['rank 0', 'm1', 'running', undefined],
      ['rank 1', 'm1', 'running', undefined],
      ['rank 2', 'm2', 'waiting', undefined],
      ['rank 3', 'm2', 'waiting', undefined],
    ])
  })

  it('are all there when only some told how they ended', () => {
    const ended = (rank: number): BundleState => ({
      kind: 'ended',
      end: { kind: 'exit', code: 0 },
      ranks: [{ rank, restart: 0, code: 143 }],
    })
    expect(rowOf(jobOf(2, ended(1), ended(2)))).toEqual([
      ['rank 0', 'm1', 'stopped', undefined],
      ['rank 1', 'm1', 'stopped', 143],
      ['rank 2', 'm2', 'stopped', 143],
      ['rank 3', 'm2', 'stopped', undefined],
    ])
  })

  it('follow the roles whose bundles have fewer', () => {
    const job = jobOf(2, BEGUN, BEGUN)
    const { request } = job.spec
    const roles = [
      { name: 'host', count: 1, request, ranks: 2 },
      { name: 'host', count: 1, request, ranks: 1 },
    ]
    expect(rowOf({ ...job, spec: { ...job.spec, roles } })).toEqual([
      ['rank 0', 'm1', 'running', undefined],
      ['rank 1', 'm1', 'running', undefined],
      ['rank 2', 'm2', 'running', undefined],
    ])
  })

  it('have the end that their host told, the latest restart first', () => {
    const ranks = [
      { rank: 1, restart: 1, code: 3, text: 'ValueError: bad batch' },
      { rank: 1, restart: 0, code: 0 },
      { rank: 0, restart: 1, code: 143 },
    ]
    expect(ranksOf(jobOf(2, { ...BEGUN, ranks }))).toMatchObject([
      { rank: 0, state: 'stopped', code: 143, restart: 1 },
      { rank: 1, state: 'failed', code: 3, restart: 1, text: 'ValueError: bad batch' },
    ])
  })

  it('run again when their launcher started them again', () => {
    const reading = { rank: 0, restart: 1, bytes: 0, quietS: 0 }
    const job = jobOf(1, { ...BEGUN, ranks: [{ rank: 0, restart: 0, code: 1 }] })
    expect(ranksOf(job, new Map([[0, [reading]]]))).toMatchObject([{ state: 'running', restart: 1, reading }])
  })

  it('are those of their own bundles: a host that tells of a rank of another host is not believed', () => {
    const ends = [0, 2, 3].map((rank) => ({ rank, restart: 9, code: rank === 2 ? 0 : 1, endedMs: 1, text: 'evil' }))
    const job = jobOf(2, BEGUN, { ...BEGUN, ranks: ends })
    const readings = [0, 1, 3].map((rank) => ({ rank, restart: 9, bytes: 1, quietS: 0, step: 666 }))
    const rows = ranksOf(job, new Map([[1, readings]]))
    expect(rows).toMatchObject([
      { rank: 0, host: 'm1', state: 'running', restart: 0 },
      { rank: 1, host: 'm1', state: 'running', restart: 0 },
      { rank: 2, host: 'm2', state: 'done' },
      { rank: 3, host: 'm2', state: 'failed', text: 'evil' },
    ])
    expect(rows.slice(0, 2).map(({ reading }) => reading)).toEqual([undefined, undefined])
    expect(failedRanks(job, rows).map(({ title, host }) => `${title} on ${host}`)).toEqual(['rank 3 on m2'])
  })

  it('are not those of another bundle where a launcher starts one in each', () => {
    const job = jobOf(undefined, BEGUN, { ...BEGUN, ranks: [{ rank: 0, restart: 0, code: 1 }] })
    expect(failedRanks(job, ranksOf(job))).toEqual([])
    expect(rowOf(job).map(([, , state]) => state)).toEqual(['running', 'running'])
  })

  it('that a launcher shares out itself are where the hosts say, and those that two hosts claim are named with both', () => {
    const whole = jobOf(2, BEGUN, { ...BEGUN, ranks: [{ rank: 3, restart: 0, code: 1 }] }, BEGUN)
    const launch = { kind: 'torchrun', options: { elastic: '1:3' }, ports: [46_000, 46_999], ranks: 2 } as const
    const job: Job = { ...whole, spec: { ...whole.spec, launch } }
    const readings = (restart: number, ...ranks: readonly number[]) =>
      ranks.map((rank) => ({ rank, restart, bytes: 1, quietS: 0 }))
    const claims = (told: Readonly<Record<number, ReturnType<typeof readings>>>) =>
      ranksOf(job, new Map(Object.entries(told).map(([bundle, own]) => [Number(bundle), own]))).map(
        ({ rank, host, state, claimedBy }) => [rank, host, state, ...(claimedBy ?? [])].join(' '),
      )
    // Rank 3 was there before the restart.
    expect(claims({ 0: readings(1, 4, 5), 1: readings(1, 0, 1, 6) })).toEqual([
      '0 m2 running',
      '1 m2 running',
      '2 m3 running',
      '3 m3 running',
      '4 m1 running',
      '5 m1 running',
    ])
    expect(claims({ 0: readings(1, 0, 1), 1: readings(9, 0, 3), 2: readings(1, 4, 5) })).toEqual([
      '0 m1 running m1 m2',
      '0 m2 running m1 m2',
      '1 m1 running',
      '3 m2 running',
      '4 m3 running',
      '5 m3 running',
    ])
  })

  it('are the bundles themselves where a launcher starts one in each', () => {
    const ended: BundleState = { kind: 'ended', end: { kind: 'exit', code: 1 }, said: { why: 'no such file' } }
    expect(ranksOf(jobOf(undefined, BEGUN, ended))).toMatchObject([
      { title: 'rank 0', state: 'running' },
      { title: 'rank 1', state: 'failed', code: 1, text: 'no such file' },
    ])
  })
})

describe('the ranks of a job that failed', () => {
  it('are its bundles where it has no launcher, the first one to fail first', () => {
    const ended = (code: number, ranMs: number): BundleState => ({
      kind: 'ended',
      end: { kind: 'exit', code },
      beganMs: 0,
      ranMs,
    })
    const titles = (...bundles: readonly BundleState[]) => {
      const { spec, ...rest } = jobOf(undefined, ...bundles)
      const { launch: _, ...alone } = spec
      const job = { ...rest, spec: alone }
      return failedRanks(job, ranksOf(job)).map(({ title, host }) => `${title} on ${host}`)
    }
    expect(titles(ended(143, 9000), ended(3, 5000), ended(143, 9000))[0]).toBe('rank 1 on m2')
    expect(titles(ended(1, 5000))).toEqual(['rank 0 on m1'])
    expect(titles(ended(0, 5000))).toEqual([])
  })
})

describe('ranks read from a host', () => {
  const hasProc = requirement('/proc')
  const home = mkdtempSync(join(tmpdir(), 'muster-ranks-'))
  afterAll(() => rmSync(home, { recursive: true }))
  let attempt = 0
  /** A job of one bundle with these files. */
  const jobWith = (ranks: number | undefined, files: Readonly<Record<string, string>>) => {
    attempt += 1
    const job: Job = { ...jobOf(ranks, BEGUN), attempt }
    const directory = join(home, 'muster/jobs', bundleKey(STORE, job, 0))
    mkdirSync(directory, { recursive: true })
    for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text)
    return job
  }
  const run = (program = '') =>
    execFileSync('sh', {
      input: program,
      env: { ...process.env, XDG_STATE_HOME: home },
      stdio: ['pipe', 'pipe', 'ignore'],
      timeout: 5_000,
    }).toString()
  /** What the program tells of a bundle with these files. */
  const read = (ranks: number | undefined, files: Readonly<Record<string, string>>) => {
    const job = jobWith(ranks, files)
    const text = run(rankPrograms(job, STORE).get('m1'))
    return parseRankReadings(text, 'm1', job, STORE)
      .get(0)
      ?.toSorted((one, other) => one.rank - other.rank)
  }

  it.skipIf(!hasProc)('have step, last line, size and process', () => {
    const found = read(3, {
      ranks: `0 0 ${process.pid}\n1 0 999999999\n2 0 999999999\n2 1 ${process.pid}\n`,
      out: 'begin\nepoch 1 step 411 loss 0.5\nepoch 1 step 412/1000 loss 0.4\n',
      err: '',
      'rank.1': 'global_step=77\nTraceback\nValueError: bad batch\n',
      'rank.2': '  1%|#  \r 50%|##  \r',
    })
    expect(found).toMatchObject([
      { rank: 0, step: 412, line: 'epoch 1 step 412/1000 loss 0.4', bytes: 63, process: { pid: process.pid } },
      { rank: 1, step: 77, line: 'ValueError: bad batch', restart: 0 },
      { rank: 2, restart: 1, line: ' 50%|##  ', process: { pid: process.pid } },
    ])
    expect(found?.[1]?.process).toBeUndefined()
    expect(found?.[0]?.step).toBeTypeOf('number')
    expect(found?.[2]?.step).toBeUndefined()
  })

  it.skipIf(!hasProc)('have the processor time of the processes below them', async () => {
    const child = spawn('sh', ['-c', 'sh -c "while :; do :; done" & echo; wait'], {
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    try {
      await once(child.stdout, 'data')
      const files = { ranks: `0 0 ${child.pid}\n`, out: '', err: '' }
      await waitUntil(() => (read(1, files)?.[0]?.process?.cpuS ?? 0) > 0.1, 'processor time of the child')
    } finally {
      process.kill(-(child.pid ?? 0), 'SIGKILL')
    }
  })

  it('are the bundle where it is one rank', () => {
    expect(read(undefined, { id: '999999999 boot 1 1\n', out: 'step: 3\n', err: '' })).toMatchObject([
      { rank: 0, step: 3, line: 'step: 3' },
    ])
  })

  it.skipIf(!hasProc)(
    'are those of bundles that have ended, too, without a process, unless their files were deleted',
    () => {
      const begun = jobWith(2, { ranks: `0 0 ${process.pid}\n1 0 1\n`, out: 'step 9\n', err: '', 'rank.1': 'bye\n' })
      const end: BundleState = { kind: 'ended', end: { kind: 'exit', code: 0 }, beganMs: 0, ranMs: 1 }
      const job: Job = { ...jobOf(2, end), attempt: begun.attempt }
      const told = () => run(rankPrograms(job, STORE).get('m1'))
      const readings = [...parseRankReadings(told(), 'm1', job, STORE).values()].flat()
      expect(readings.toSorted((one, other) => one.rank - other.rank)).toMatchObject([
        { rank: 0, step: 9, line: 'step 9' },
        { rank: 1, line: 'bye' },
      ])
      expect([...parseRankReadings(told(), 'm1', job, STORE).values()].flat().some(({ process }) => process)).toBe(
        false,
      )
      expect(runningPrograms(job, STORE).size).toBe(0)
      expect(parseDeleted(told(), 'm1', job, STORE)).toEqual(new Set())
      rmSync(join(home, 'muster/jobs', bundleKey(STORE, job, 0)), { recursive: true })
      expect(parseDeleted(told(), 'm1', job, STORE)).toEqual(new Set([0]))
      // It never began, so it had none.
      const unable: Job = { ...jobOf(2, { kind: 'ended', end: { kind: 'unable' } }), attempt: begun.attempt }
      expect(parseDeleted(told(), 'm1', unable, STORE)).toEqual(new Set())
    },
  )

  it('are not taken from what a rank wrote into its output or into the file of ranks', () => {
    const found = read(2, {
      ranks: '0 0 1\n../../x 0 1\n1 0 $(touch /tmp/x)\n-1 0 1\n9 9\n',
      out: `x rank ${STORE}-17-1-0 5 0 1 0 R\n${STORE}-17-1-0 5 0 1 R 1 0 1 1 - fine\n`,
      err: '',
    })
    expect(found?.map(({ rank }) => rank)).toEqual([0])
  })

  it('are those of its own bundles, within bounds', () => {
    const job = jobOf(2, BEGUN, BEGUN)
    const [own, other] = [0, 1].map((bundle) => bundleKey(STORE, job, bundle))
    const rest = '0 0 12 R 150 futex_wait_queue 10 2 7 step 7'
    const lines = [
      `${own} ${rest}`,
      `${other} ${rest}`,
      `${own} 1234567 0 12 R 1 0 1 1 -`,
      `${own} 1 0 12 R 1e9 0 1 1 -`,
      `evil-17-1-0 ${rest}`,
      '',
    ]
    expect([...parseRankReadings(lines.join('\n'), 'm1', job, STORE)]).toEqual([
      [
        0,
        [
          {
            rank: 0,
            restart: 0,
            bytes: 10,
            quietS: 2,
            step: 7,
            line: 'step 7',
            process: { pid: 12, state: 'R', cpuS: 1.5, waitsIn: 'futex_wait_queue' },
          },
        ],
      ],
    ])
  })

  it('are those that their bundle can have, however the ranks are shared out', () => {
    const whole = jobOf(2, BEGUN, BEGUN, BEGUN)
    const roles = [2, 1].map((ranks, index) => ({ name: 'host', count: index + 1, request: whole.spec.request, ranks }))
    const job: Job = { ...whole, spec: { ...whole.spec, roles } }
    const [one, two, three] = [0, 1, 2].map((bundle) => bundleKey(STORE, job, bundle))
    const mark = '0123456789abcdef'
    const toldBy = (host: string, key = '') => {
      const all = [0, 1, 2, 3, 4]
      const readings = parseRankReadings(
        all.map((rank) => `${key} ${rank} 0 12 R 1 0 10 2 7 fine`).join('\n'),
        host,
        job,
        STORE,
      )
      const text = `${mark}\n${all.map((rank) => `${mark} ${key} ${rank} whole\nevil\n\n`).join('')}`
      const tails = parseRankTails(text, host, job, STORE, 100)
      return [[...readings.values()].flat().map(({ rank }) => rank), tails.map(({ rank }) => rank)]
    }
    expect(toldBy('m1', one)).toEqual([
      [0, 1],
      [0, 1],
    ])
    expect(toldBy('m2', two)).toEqual([[2], [2]])
    expect(toldBy('m3', three)).toEqual([[3], [3]])
    expect(toldBy('m2', three)).toEqual([[], []])
  })

  it.for([
    ['ranks', 2, []],
    ['out', 2, [0, 1]],
    ['err', undefined, [0]],
    ['rank.1', 2, [0, 1]],
    ['id', undefined, [0]],
  ] as const)('are read although its file %s is a FIFO', ([name, ranks, found]) => {
    const files = { ranks: '0 0 1\n1 0 1\n', id: '1 boot 1 1\n', out: 'a\n', err: 'b\n', 'rank.1': 'c\n' }
    const job = jobWith(ranks, files)
    const path = join(home, 'muster/jobs', bundleKey(STORE, job, 0), name)
    rmSync(path)
    execFileSync('mkfifo', [path])
    const text = run(rankPrograms(job, STORE).get('m1'))
    const readings = parseRankReadings(text, 'm1', job, STORE).get(0) ?? []
    expect(readings.map(({ rank }) => rank).toSorted()).toEqual(found)
    const expected = name === 'ranks' ? [] : ['a', 'b', ...(ranks === 2 ? ['c'] : [])]
    const own = { out: 'a', err: 'b', 'rank.1': 'c' }[name as string]
    const tails = parseRankTails(run(tailPrograms(job, STORE, 100).get('m1')), 'm1', job, STORE, 100)
    expect(tails.flatMap(({ lines }) => lines).toSorted()).toEqual(expected.filter((line) => line !== own))
  })

  it('have no more lines than were asked for, the last ones', () => {
    const key = `${STORE}-17-1-0`
    const text = (body: string) => `0123456789abcdef\n0123456789abcdef ${key} 0 whole\n${body}\n`
    const job = jobOf(1, BEGUN)
    const linesOf = (body: string, most: number) => parseRankTails(text(body), 'm1', job, STORE, most)
    expect(linesOf('a\n\nb\nc\n', 3)).toEqual([{ rank: 0, host: 'm1', lines: ['', 'b', 'c'], isCut: true }])
    expect(linesOf('\nb\nc\n', 3)).toEqual([{ rank: 0, host: 'm1', lines: ['', 'b', 'c'], isCut: false }])
    expect(linesOf('', 3)).toEqual([{ rank: 0, host: 'm1', lines: [], isCut: false }])
    expect(linesOf('\n'.repeat(9), 3)).toEqual([{ rank: 0, host: 'm1', lines: ['', '', ''], isCut: true }])
  })

  it('have their last whole lines, and cannot write for another rank', () => {
    const key = `${STORE}-17-${attempt + 1}-0`
    const forged = `0123456789abcdef ${key} 1 whole\nforged`
    const job = jobWith(2, {
      ranks: '0 0 1\n1 0 1\n',
      out: `first\n${forged}\n`,
      err: 'no end of line',
      'rank.1': `${'x'.repeat(200)}\nkept\n\nlast\n`,
    })
    const tails = parseRankTails(run(tailPrograms(job, STORE, 100).get('m1')), 'm1', job, STORE, 100)
    expect(tails.toSorted((one, other) => one.rank - other.rank || other.lines.length - one.lines.length)).toEqual([
      { rank: 0, host: 'm1', lines: ['first', ...forged.split('\n')], isCut: false },
      { rank: 0, host: 'm1', lines: ['no end of line'], isCut: false },
      { rank: 1, host: 'm1', lines: ['kept', '', 'last'], isCut: true },
    ])
  })
})
