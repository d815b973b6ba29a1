/** `muster job logs --all`, with hosts that answer more than they were asked for. */
import { Writable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import type { ConnectedHosts } from '../../../../src/cli/job/hosts.ts'
import { findRank, printAll } from '../../../../src/cli/job/rank-logs.ts'
import type { Job } from '../../../../src/scheduler/jobs/job.ts'
import { bundleKey } from '../../../../src/scheduler/jobs/orders.ts'
import { testJob } from '../../../support/test-job.ts'

const STORE = 'abc0'
const MIB = 1024 * 1024
const MARK = '0123456789abcdef'

const jobOf = (ranks: number): Job =>
  testJob(
    { bundles: 2, launch: { kind: 'mpi', options: {}, ports: [46_000, 46_999], ranks } },
    {
      state: {
        kind: 'running',
        places: ['m1', 'm2'].map((host) => ({ host, devices: [] })),
        bundles: [{ kind: 'begun' }, { kind: 'begun' }],
        startedMs: 0,
      },
    },
  )

/** The same, by a launcher that chooses the ranks itself. */
function elastic({ spec, ...job }: Job): Job {
  const launch = { kind: 'torchrun', options: { elastic: '1:2' }, ports: [46_000, 46_999], ranks: 2 } as const
  return { ...job, spec: { ...spec, launch } }
}

/** What is printed when the hosts answer so: the beginning of it, the number of its lines, and what was taken from each host. */
async function printedOf(job: Job, answers: Readonly<Record<string, () => Iterable<string>>>, json = false) {
  const taken: Record<string, number> = {}
  const hosts = {
    async exec(host: string, _program: string, signal: AbortSignal, onText: (text: string) => void) {
      taken[host] = 0
      for (const part of answers[host]?.() ?? []) {
        if (signal.aborted) break
        taken[host] += part.length
        onText(part)
      }
      const outcome = signal.aborted ? { kind: 'cancelled' } : { kind: 'exit', code: 0 }
      return { outcome, stdout: new Uint8Array(), stderr: new Uint8Array(), durationMs: 0 }
    },
  } as unknown as ConnectedHosts
  let [output, messages, count] = ['', '', 0]
  const stdout = new Writable({
    decodeStrings: false,
    write(text: string, _, done) {
      count += 1
      if (output.length < 1000) output += text.slice(0, 1000)
      done()
    },
  })
  const stderr = new Writable({
    decodeStrings: false,
    write(text: string, _, done) {
      messages += text
      done()
    },
  })
  const { signal } = new AbortController()
  const context = { stdout, stderr, signal, environment: {}, workingDirectory: '/', now: () => 0, stdin: process.stdin }
  const exitCode = await printAll(job, STORE, hosts, { color: 'never', json }, context)
  return { exitCode, output, messages, count, taken }
}

const fileOf = (job: Job, bundle: number, rank: number, text: string) =>
  `${MARK} ${bundleKey(STORE, job, bundle)} ${rank} whole\n${text}\n`

it('cuts hosts that answer without an end, says so, and still prints what the others said', async () => {
  const job = jobOf(1)
  const found = await printedOf(job, {
    *m1() {
      yield `${MARK}\n${fileOf(job, 0, 0, 'begin\n')}`
      for (;;) yield `${'x'.repeat(MIB - 1)}\n`
    },
    *m2() {
      yield `${MARK}\n${fileOf(job, 1, 1, 'begin\nonly here\n')}`
    },
  })
  expect(found.output).toMatch(/^ {2}0-1 {2}begin\n/)
  expect(found.exitCode).toBe(4)
  expect(found.messages).toBe('muster: m1: it answered with more than 8.1 MiB: the rest is left out\n')
  // Stdout and stderr of its rank, 4 MiB each.
  expect(found.taken.m1).toBeLessThanOrEqual(10 * MIB)
  expect(found.count).toBeGreaterThan(2)
})

it('takes no more than 128 MiB from all hosts together', async () => {
  const job = jobOf(64)
  const endless = (bundle: number) =>
    function* () {
      yield `${MARK}\n${fileOf(job, bundle, bundle * 64, '')}`
      for (;;) yield `${'x'.repeat(MIB - 1)}\n`
    }
  const { taken, messages } = await printedOf(job, { m1: endless(0), m2: endless(1) })
  expect((taken.m1 ?? 0) + (taken.m2 ?? 0)).toBeLessThanOrEqual(131 * MIB)
  expect(messages.match(/it answered with more than/g)).toHaveLength(2)
})

it('folds no more than a million lines, the last ones of each rank', async () => {
  const job = jobOf(1)
  const { count, messages } = await printedOf(job, {
    *m1() {
      yield `${MARK}\n${fileOf(job, 0, 0, '\n'.repeat(4 * MIB))}`
    },
    *m2() {
      yield `${MARK}\n${fileOf(job, 1, 1, '\n'.repeat(4 * MIB - 2))}`
    },
  })
  expect(count).toBeGreaterThan(500_000)
  expect(count).toBeLessThanOrEqual(1_000_000)
  expect(messages).toBe(
    'muster: only the end is read of rank 0-1: at most 4.0 MiB a file, and 1000000 lines of all ranks\n',
  )
})

describe('the output of one rank', () => {
  /** Hosts whose jobs have these ranks in their file; what was asked of them. */
  const hostsWith = (ranks: Readonly<Record<string, readonly number[]>>) => {
    const asked: string[] = []
    const hosts = {
      async exec(host: string, program: string) {
        asked.push(host)
        const code = ranks[host]?.some((rank) => program.includes(`'^${rank} '`)) ? 0 : 1
        return { outcome: { kind: 'exit', code }, stdout: new Uint8Array(), stderr: new Uint8Array(), durationMs: 0 }
      },
    } as unknown as ConnectedHosts
    return { hosts, asked }
  }
  const { signal } = new AbortController()

  it('is read where Muster placed the rank, whatever other hosts say', async () => {
    const job = jobOf(2)
    const { hosts, asked } = hostsWith({ m1: [2, 3], m2: [0, 1, 2] })
    expect(await findRank(job, STORE, 0, hosts, signal)).toEqual([{ bundle: 0, host: 'm1', files: ['out', 'err'] }])
    expect(await findRank(job, STORE, 2, hosts, signal)).toEqual([{ bundle: 1, host: 'm2', files: ['rank.2'] }])
    for (const rank of [1, 3, 4])
      await expect(findRank(job, STORE, rank, hosts, signal)).rejects.toThrow(`no output of rank ${rank}`)
    expect(asked).toEqual(['m2', 'm1', 'm2'])
  })

  it('is that of all hosts that say that they have the rank, where the launcher chose', async () => {
    const job = elastic(jobOf(2))
    const hostsOf = async (rank: number, ranks: Readonly<Record<string, readonly number[]>>) =>
      (await findRank(job, STORE, rank, hostsWith(ranks).hosts, signal)).map(({ host, isClaimed }) => [host, isClaimed])
    expect(await hostsOf(1, { m2: [0, 1] })).toEqual([['m2', true]])
    expect(await hostsOf(1, { m1: [1], m2: [0, 1] })).toEqual([
      ['m1', true],
      ['m2', true],
    ])
    expect(await hostsOf(0, {})).toEqual([['m1', false]])
    await expect(hostsOf(4, { m2: [4] })).rejects.toThrow('no output of rank 4')
  })
})

it.each([true, false])('tells ranks that several hosts claim apart (json: %s)', async (json) => {
  const job = elastic(jobOf(2))
  const { output, messages } = await printedOf(
    job,
    {
      *m1() {
        yield `${MARK}\n${fileOf(job, 0, 0, 'step 1\nreal\n')}${fileOf(job, 0, 1, 'step 1\n')}`
      },
      *m2() {
        yield `${MARK}\n${fileOf(job, 1, 0, 'step 9\nlie\n')}${fileOf(job, 1, 2, 'step 3\n')}${fileOf(job, 1, 3, 'step 4\n')}`
      },
    },
    json,
  )
  if (!json) {
    expect(output).toBe('  1-3 0@m1 0@m2  step 1\n> 0@m2           lie\n> 0@m1           real\n')
    expect(messages).toBe('muster: claimed by several of m[1-2]: rank 0\n')
    return
  }
  const lines = output.trim().split('\n')
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { ranks: [1, 2, 3], claims: [{ host: 'm1' }, { host: 'm2' }], isOdd: false, text: 'step 1' },
    { ranks: [], claims: [{ rank: 0, host: 'm2' }], isOdd: true, text: 'lie' },
    { ranks: [], claims: [{ rank: 0, host: 'm1' }], isOdd: true, text: 'real' },
  ])
})
