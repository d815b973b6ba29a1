/** The ranks of a gang in the Jobs tab, on hosts whose answers a test makes up. */
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Sample } from '../../../../src/ops/net/watch/sample.ts'
import {
  type BundleState,
  ENDED_SILENTLY,
  type Job,
  type JobSpec,
  transition,
} from '../../../../src/scheduler/jobs/job.ts'
import { bundleKey } from '../../../../src/scheduler/jobs/orders.ts'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { rankPicture, ranksDocument } from '../../../../src/ui/jobs/ranks-document.ts'
import { jobOf, runningOn, STORE } from './fake-queue.ts'
import { openQueueTab } from './open-tab.ts'

const LAUNCH: JobSpec['launch'] = { kind: 'torchrun', options: {}, ports: [20000, 20099], ranks: 4 }

/** One bundle with four ranks on each host. */
const gang = (hosts: readonly string[], bundles: readonly BundleState[] = hosts.map(() => ({ kind: 'begun' }))) =>
  jobOf(
    17,
    {
      kind: 'running',
      places: hosts.map((host) => ({ host, devices: [] })),
      bundles,
      startedMs: 0,
      ring: { hosts, bitsPerSecond: 941e6, measuredMs: 0 },
    },
    { name: 'train.py', bundles: hosts.length, launch: LAUNCH },
  )

/** `isDeleted`: its bundle has no files. */
type Told = {
  readonly isDeleted?: boolean
  readonly step?: number
  readonly quietS?: number
  readonly bytes?: number
  readonly cpuS?: number
  readonly lines?: readonly string[]
}

const MARK = '0123456789abcdef'

async function openRanks({
  columns = 120,
  rows = 40,
  hosts = ['n1', 'n2'],
  job = gang(hosts),
}: {
  columns?: number
  rows?: number
  hosts?: readonly string[]
  job?: Job
} = {}) {
  const tab = await openQueueTab('5', columns, rows, [job], {})
  await tab.press('\r')
  let answered = tab.logs.length - hosts.length
  /** Answers what hosts have been asked. */
  const answer = async (toldOf: (rank: number) => Told | undefined) => {
    for (const [host, , handlers] of tab.logs.slice(Math.max(0, answered))) {
      const bundle = hosts.indexOf(host)
      const key = bundleKey(STORE, job, bundle)
      const own = [0, 1, 2, 3].map((index) => bundle * 4 + index).map((rank) => [rank, toldOf(rank)] as const)
      if (own.some(([, told]) => told === undefined)) {
        handlers.onEnd({ kind: 'unreachable', reason: 'no route to host' })
        continue
      }
      if (own.some(([, told]) => told?.isDeleted)) {
        handlers.onStdout(Buffer.from(`${key} deleted\n=\n${MARK}\n`))
        handlers.onEnd({ kind: 'exit', code: 0 })
        continue
      }
      const readings = own.map(([rank, { step, quietS = 1, bytes = 99, cpuS = 0, lines = [] } = {}]) =>
        [key, rank, 0, 100 + rank, 'S', cpuS * 100, 'futex_wait', bytes, quietS, step ?? '-', lines.at(-1) ?? ''].join(
          ' ',
        ),
      )
      const tails = own.map(([rank, { lines = [] } = {}]) => `${MARK} ${key} ${rank} whole\n${lines.join('\n')}\n\n`)
      handlers.onStdout(Buffer.from(`${readings.join('\n')}\n=\n${MARK}\n${tails.join('')}`))
      handlers.onEnd({ kind: 'exit', code: 0 })
    }
    answered = tab.logs.length
    tab.clock.advance(300)
    await setImmediate()
  }
  /** Reads every two seconds for so long. */
  const watch = async (seconds: number, toldOf: (rank: number, s: number) => Told | undefined) => {
    for (let s = 0; s <= seconds; s += 1) {
      tab.clock.advance(700)
      await setImmediate()
      await answer((rank) => toldOf(rank, s))
    }
  }
  return { ...tab, job, answer, watch }
}

it('counts no ranks while a gang waits for its next attempt', async () => {
  const { console } = await openRanks()
  const { details, ranks } = console.state.queue
  if (details === undefined || ranks === undefined) throw new Error('no ranks are shown')
  const waiting = { ...details, job: { ...details.job, attempt: 2, state: { kind: 'queued' } as const } }
  const picture = rankPicture(waiting, ranks, undefined)
  const { head } = ranksDocument({
    ...{ details: waiting, picture, samples: new Map(), columns: 200, headRows: 9, theme: themes.none, nowMs: 0 },
  })
  expect(head[0]?.map(({ text }) => text).join('')).toContain(' 17 train.py · torchrun · attempt 2 · queued')
})

describe('the ranks of a gang', () => {
  it('are cells beside their hosts with their steps, below what job they are of', async () => {
    const { answer, watch, text, titles, hints } = await openRanks()
    expect(text()).toContain(' 17 train.py · torchrun · 8 ranks on 2 hosts · attempt 1 · running')
    expect(text()).toContain('ring 941 Mbit/s')
    await answer((rank) => ({ step: 412 - (rank === 6 ? 14 : 0) }))
    expect(text()).toMatch(/^ n1 +▸0 ● 412 +1 ● 412 +2 ● 412 +3 ● 412/m)
    expect(text()).toMatch(/^ n2 +4 ● 412 +5 ● 412 +6 ● 398 +7 ● 412/m)
    expect(text()).toMatch(/▸ rank 0 on n1: running, step 412, wrote 1 s ago/)
    await watch(3, () => ({ bytes: 0, quietS: 11 }))
    expect(text()).toMatch(/▸ rank 0 on n1: running, wrote nothing yet/)
    expect(titles()[0]).toBe(' ranks of job 17 ')
    expect(hints()).toMatch(/Esc back.*Enter its log.*o odd lines.*s stack/)
  })

  it('fold their logs: lines that all wrote are one, the odd one stands out, and one log can be read alone', async () => {
    const { answer, press, text, titles } = await openRanks()
    const lines = (rank: number) => ['begin', ...(rank === 6 ? ['worker \x1b[1m2 restarted'] : []), `loss 0.4${rank}`]
    await answer((rank) => ({ lines: lines(rank) }))
    expect(titles()[1]).toBe(' log of 8 ranks, 1 of 3 lines differ, ~ in numbers ')
    expect(text()).toMatch(/^ all {3}begin\n▸6 {5}worker .*2 restarted\n all~ {2}loss 0\.40/m)
    expect(text()).not.toContain('\x1b')
    await press('o')
    expect(text()).toMatch(/^▸6 +worker/m)
    expect(text()).not.toContain('begin')
    await press('o')
    await press('\x1b[C\r')
    expect(titles()[1]).toBe(' log of rank 1 on n1 ')
    expect(text()).toMatch(/^ begin\n loss 0\.41/m)
    await press('\x1b[B')
    expect(titles()[1]).toBe(' log of rank 5 on n2 ')
    await press('q')
    expect(titles()[1]).toMatch(/log of 8 ranks/)
  })

  it('are filtered by rank, host, state and what they wrote, and keys move among those that are left', async () => {
    const { answer, press, text, titles, hints } = await openRanks()
    await answer((rank) => ({ lines: [rank === 6 ? 'NaN in the gradient' : 'loss 1'] }))
    await press('/host:n2')
    expect(titles()[0]).toBe(' ranks of job 17  /host:n2▏  4 of 8 ')
    expect(text()).toMatch(/^ n2 +▸4 ● /m)
    expect(text()).not.toMatch(/^ n1 /m)
    await press(' nan\r')
    expect(text()).toMatch(/^ n2 +▸6 ● /m)
    await press('gG\x1b[D')
    expect(text()).toMatch(/^ n2 +▸6 ● /m)
    await press('/x\r')
    expect(text()).toContain('no rank matches “host:n2 nanx” · Esc clears the filter')
    expect(hints()).toMatch(/Esc clear filter/)
    await press('jn\r')
    await press('\x1b')
    expect(text()).toMatch(/^ n1 +▸?0 /m)
  })

  it('are sorted by rank, host or state, with the worst state first', async () => {
    const { watch, press, text, titles, hints } = await openRanks()
    await watch(80, (rank, s) => ({ step: rank === 6 ? 2 * s : 4 * s }))
    expect(hints()).toMatch(/> sort/)
    await press('>>')
    expect(titles()[0]).toBe(' ranks of job 17 by STATE▴ ')
    expect(text()).toMatch(/^ n2 +▸6 ▲ +\d+ +4 ● .*\n n1 +0 ● /m)
    await press('\x1b[C')
    expect(text()).toMatch(/▸4 ●/)
    await press('>I')
    expect(titles()[0]).toBe(' ranks of job 17 by RANK▾ ')
    expect(text()).toMatch(/^ n2 +7 ● +\d+ +6 ▲ .*\n n1 +3 ● /m)
    await press('I')
    expect(titles()[0]).toBe(' ranks of job 17 ')
  })

  it('name the straggler with its pace, and the key for the next rank in trouble selects it', async () => {
    const { watch, press, text } = await openRanks()
    await watch(80, (rank, s) => ({ step: rank === 6 ? 2 * s : 4 * s }))
    expect(text()).toMatch(/rank 6 is behind: 0\.5\d s a step, the others 0\.2\d s \(n2\)/)
    expect(text()).toMatch(/^ n2 .*▸6 ▲ /m)
    expect(text()).toMatch(/● running +▲ behind/)
    await press('\x1b[A')
    expect(text()).toMatch(/▸2 ●.*\n.* 6 ▲/)
    await press('n')
    expect(text()).toMatch(/▸6 ▲/)
  })

  it('name what the host of a straggler does, if the Network tab watches it, while ranks of it run', async () => {
    const { watch, console } = await openRanks()
    await watch(80, (rank, s) => ({ step: rank === 6 ? 2 * s : 4 * s }))
    const { details, ranks, seen } = console.state.queue
    if (details === undefined || ranks === undefined) throw new Error('no ranks are shown')
    const sample: Sample = {
      ...{
        atMs: 0,
        cores: 8,
        cpu: 0.34,
        memoryBytes: 1,
        memoryUsedBytes: 0,
        swapBytes: 0,
        swapUsedBytes: 0,
        cards: [],
      },
      ...{ receivedBytes: 1e6, sentBytes: 12_000, gpus: [{ id: '0', name: 'H200', busy: 0.96, celsius: 84 }] },
    }
    const picture = rankPicture(details, ranks, seen)
    const samples = new Map([['n2', sample]])
    const { head } = ranksDocument({
      ...{ details, picture, samples, columns: 200, headRows: 9, theme: themes.none, nowMs: 0 },
    })
    expect(head.map((row) => row.map(({ text }) => text).join('')).join('\n')).toMatch(
      /the others 0\.2\d s \(n2: CPU 34%, GPU 0 96% 84 °C, in 8M, out 96k\)/,
    )
    const besideN2 = (job: Job) => {
      const over = rankPicture({ ...details, job }, ranks, undefined)
      const { row } = ranksDocument({
        ...{ details, picture: over, samples, columns: 200, headRows: 9, theme: themes.none, nowMs: 0 },
      })
      return row(1).at(-1)?.text
    }
    const hosts = ['n1', 'n2']
    expect(besideN2(gang(hosts))).toBe('CPU 34%, GPU 0 96% 84 °C, in 8M, out 96k')
    // What the host does after they have ended is not theirs.
    expect(besideN2(gang(hosts, [{ kind: 'begun' }, { kind: 'ended', end: { kind: 'exit', code: 0 } }]))).toBe('-')
  })

  it('show the last steps of a bundle that has ended', async () => {
    const hosts = ['n1', 'n2']
    const { answer, press, text, queue, clock, job } = await openRanks({ hosts })
    await answer((rank) => ({ step: 400 + rank, lines: ['step 404'] }))
    const ended: BundleState = { kind: 'ended', end: { kind: 'exit', code: 0 } }
    queue.jobs[0] = { ...gang(hosts, [{ kind: 'begun' }, ended]), id: job.id }
    for (let s = 0; s < 3; s += 1) {
      clock.advance(1000)
      await setImmediate()
    }
    await answer((rank) => ({ step: 500 + rank, lines: ['step 404', ...(rank === 4 ? ['out of memory', ''] : [])] }))
    expect(text()).toMatch(/● 500[\s\S]*■ 504/)
    await press('\x1b[B')
    expect(text()).toMatch(/▸ rank 4 on n2: stopped, step 504 {2}out of memory$/m)
  })

  it('say that the output was deleted, of all of them, of some and of one, and keep the steps that were read', async () => {
    const hosts = ['n1', 'n2']
    const ended: BundleState = { kind: 'ended', end: { kind: 'exit', code: 0 }, beganMs: 0, ranMs: 1 }
    const { answer, press, text, titles, queue, clock, job } = await openRanks({ hosts })
    await answer((rank) => ({ step: 400 + rank, lines: ['begin'] }))
    queue.jobs[0] = { ...gang(hosts, [{ kind: 'begun' }, ended]), id: job.id }
    const again = async () => {
      for (let s = 0; s < 3; s += 1) {
        clock.advance(1000)
        await setImmediate()
      }
    }
    await again()
    await answer((rank) => (rank < 4 ? { lines: ['begin'] } : { isDeleted: true }))
    expect(titles()[1]).toBe(' log of 8 ranks, 0 of 1 lines differ, deleted on n2 ')
    expect(text()).toMatch(/■ 404/)
    await press('\x1b[B')
    await press('\r')
    expect(titles()[1]).toBe(' log of rank 4 on n2 ')
    expect(text()).toMatch(/^ the output was deleted$/m)
    await press('q')
    await again()
    await answer(() => ({ isDeleted: true }))
    queue.jobs[0] = { ...gang(hosts, [ended, ended]), id: job.id }
    await again()
    await answer(() => ({ isDeleted: true }))
    expect(titles()[1]).toBe(' log of 8 ranks ')
    expect(text()).toMatch(/^ the output was deleted$/m)
  })

  it('look stuck when none wrote anything or used its processor, with what they wait in', async () => {
    const { watch, text } = await openRanks()
    await watch(20, (_, s) => ({ quietS: 720 + s, cpuS: 5 }))
    expect(text()).toMatch(/looks stuck: no rank has written anything for 12 min, and none used its processor/)
    expect(text()).toContain('Waiting: ranks 0-7 in futex_wait')
    const busy = await openRanks()
    await busy.watch(20, (_, s) => ({ quietS: 720 + s, cpuS: 5 + s }))
    expect(busy.text()).toMatch(/quiet: no rank has written anything for 12 min; all ranks use a core/)
  })

  it('of a host that does not answer are marked, with the reason', async () => {
    const { answer, text } = await openRanks()
    await answer((rank) => (rank < 4 ? { step: 7 } : undefined))
    expect(text()).toMatch(/^ n1 +0 ● 7/m)
    expect(text()).toMatch(/^ n2 +▸4 \? .*no route to host/m)
  })

  it('tell the first failure, and the others as its consequences', async () => {
    const hosts = ['n1', 'n2']
    const end = (rank: number, code: number, endedMs: number, text: string) => ({
      rank,
      restart: 0,
      code,
      endedMs,
      text,
    })
    const job = gang(hosts, [
      { kind: 'begun', ranks: [end(1, 1, 5_000, 'Connection closed by peer')] },
      { kind: 'begun', ranks: [end(4, 1, 3_000, 'ValueError: bad batch'), end(5, 0, 2_000, '')] },
    ])
    const { text, answer } = await openRanks({ hosts, job })
    await answer(() => ({}))
    expect(text()).toMatch(/^ rank 4 on n2 failed first: exit 1, .*ValueError: bad batch/m)
    expect(text()).toMatch(/^ Consequences: rank 1 on n1, exit 1: Connection closed by peer/m)
    expect(text()).toMatch(/^ n1 +0 ● +1 ✗/m)
    expect(text()).toMatch(/^ n2 +▸4 ✗ +5 ✓ +6 ●/m)
  })

  it.each([
    [{ kind: 'exit', code: 137 }, 'failed, exit 137', 'exit 137 (SIGKILL)', 'failed'],
    [{ kind: 'exit', code: 9 }, 'failed, exit 9', 'exit 9', 'failed'],
    [{ kind: 'gone', reason: ENDED_SILENTLY }, `lost  ${ENDED_SILENTLY}`, ENDED_SILENTLY, 'lost'],
  ] as const)('of a gang without a launcher name the one that ended first with %j', async (end, row, words, mark) => {
    const hosts = ['n1', 'n2', 'n3']
    const exit = (code: number): BundleState => ({ kind: 'ended', end: { kind: 'exit', code } })
    const bundles = [exit(143), { kind: 'ended', end } as BundleState, exit(143)]
    const { state, ...rest } = gang(hosts, bundles)
    const { launch: _, ...spec } = rest.spec
    const fallen = [{ kind: 'placed', places: 'places' in state ? (state.places ?? []) : [] } as const]
    const events = [1, 0, 2].map((rank) => ({ kind: 'seen', rank, bundle: bundles[rank] as BundleState }) as const)
    const job = [...fallen, ...events].reduce<Job>((one, event) => transition(one, event, 0), {
      ...rest,
      spec,
      state: { kind: 'queued' },
    })
    const { text, press } = await openRanks({ hosts, job })
    expect(text()).toContain(` rank 1 on n2 failed first: ${words}`)
    expect(text()).toContain(`▸ rank 1 on n2: ${row}`)
    expect(text()).toMatch(/^ n1 +0 ■ .*\n n2 +▸1 ✗ .*\n n3 +2 ■ /m)
    expect(text()).toMatch(new RegExp(`✗ ${mark} +■ stopped`))
    await press('g')
    expect(text()).toContain('▸ rank 0 on n1: stopped, exit 143')
    await press('n')
    expect(text()).toContain('▸ rank 1 on n2')
    expect(text()).not.toContain('no rank is in trouble')
  })

  it('are read every two seconds and only while they are shown', async () => {
    const { answer, press, logs, clock } = await openRanks()
    await answer(() => ({}))
    const asked = logs.length
    for (let s = 0; s < 4; s += 1) {
      clock.advance(1000)
      await setImmediate()
    }
    // One that does not answer is not asked again.
    expect(logs.length).toBe(asked + 2)
    await answer(() => ({}))
    await press('q')
    const closed = logs.filter(([, command]) => !command.includes('cat log-')).length
    for (let s = 0; s < 5; s += 1) {
      clock.advance(1000)
      await setImmediate()
    }
    expect(logs.filter(([, command]) => !command.includes('cat log-')).length).toBe(closed)
  })

  it('show where the selected rank is, asked of its host alone', async () => {
    const { answer, press, logs, text, titles } = await openRanks()
    await press('s')
    expect(text()).not.toContain('reading …')
    await answer(() => ({}))
    await press('\x1b[B')
    await press('s')
    expect(titles()[1]).toBe(' stack of rank 4 on n2 ')
    const [host, command, handlers] = logs.at(-1) ?? []
    expect(host).toBe('n2')
    const program = Buffer.from(/echo (\S+) \|/.exec(command ?? '')?.[1] ?? '', 'base64').toString()
    expect(program).toContain('py-spy dump --pid $p')
    expect(program).toContain('set -- 104; n=0')
    handlers?.onStdout(Buffer.from('Thread 104: "MainThread"\n    all_reduce (torch/\x07distributed.py:9)\n'))
    handlers?.onEnd({ kind: 'exit', code: 0 })
    expect(text()).toContain('all_reduce (torch/')
    expect(text()).not.toContain('\x07')
  })

  it('that two hosts claim are marked as such, each with the log of its host', async () => {
    const whole = gang(['n1', 'n2'])
    const launch = { kind: 'torchrun', options: { elastic: '1:2' }, ports: [20000, 20099] as const, ranks: 1 }
    const job: Job = { ...whole, spec: { ...whole.spec, launch } }
    const { press, text, titles, tab } = await openRanks({ job }).then((opened) => ({ ...opened, tab: opened }))
    for (const [host, , handlers] of tab.logs.slice(-2)) {
      const key = bundleKey(STORE, job, host === 'n1' ? 0 : 1)
      const reading = `${key} 0 0 100 S 0 futex_wait 9 1 7 words of ${host}`
      handlers.onStdout(Buffer.from(`${reading}\n=\n${MARK}\n${MARK} ${key} 0 whole\nwords of ${host}\n\n`))
      handlers.onEnd({ kind: 'exit', code: 0 })
    }
    tab.clock.advance(300)
    await setImmediate()
    expect(text()).toMatch(/^ n1 +▸0 ‖ 7 .*\n n2 +0 ‖ 7 /m)
    expect(text()).toMatch(/‖ claimed twice/)
    expect(text()).toMatch(/rank 0 on n1: running, claimed by n\[1-2\]/)
    expect(text()).toMatch(/^▸0@n1 0@n2~ +words of n1/m)
    await press('\r')
    expect(titles()[1]).toBe(' log of rank 0 on n1 ')
    await press('\x1b[B')
    expect(titles()[1]).toBe(' log of rank 0 on n2 ')
    expect(text()).toMatch(/^ words of n2/m)
    expect(text()).not.toMatch(/^ words of n1/m)
  })

  it('cancel their job alone, and leave keys of the list without effect', async () => {
    const { press, queue, console, text } = await openRanks()
    await press('f')
    expect(console.state.queue.filter).toBe('all')
    await press('c')
    await press('y')
    expect(queue.changes).toEqual([['cancel', [17]]])
    await press('q')
    expect(text()).toMatch(/^▸17 +running/m)
  })

  it('are not there for a job with one place', async () => {
    const { press, console, hints } = await openQueueTab('5', 80, 24, [jobOf(1, runningOn('n1'))], {})
    expect(hints()).not.toContain('ranks')
    await press('\r')
    expect(console.state.queue.ranks).toBeUndefined()
  })

  it.each([
    [80, 24],
    [120, 40],
    [240, 67],
  ])('scroll on %i×%i when they are 256 on 64 hosts, and stay in view when selected', async (columns, rows) => {
    const hosts = Array.from({ length: 64 }, (_, index) => `gpu${String(index + 1).padStart(2, '0')}`)
    const { answer, press, text, console } = await openRanks({ columns, rows, hosts })
    await answer((rank) => ({ step: 100_000 + rank, lines: ['same', `rank ${rank}`] }))
    expect(text()).toMatch(/^ gpu01 +▸ *0 ● 100000 +1 ● 100001/m)
    expect(
      text()
        .split('\n')
        .every((line) => line.length <= columns - 2),
    ).toBe(true)
    await press('\x1b[6~'.repeat(20))
    expect(text()).toMatch(/^ gpu64 .*▸ *252 ●/m)
    expect(text()).toContain('256 ranks on 64 hosts')
    expect(console.state.queue.ranks?.rank).toBe(252)
    expect(text()).toMatch(/^ all +same/m)
  })
})
