/** Slurm's answers, the scripts of jobs, and what login hosts must not be able to do. */
import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import type { OpsHosts } from '../../../../src/ops/kernel/host-port.ts'
import { openSlurm, parseRound, parseTrial, roundProgram } from '../../../../src/ops/slurm/job-engine.ts'
import {
  parseJob,
  reasonWords,
  refusalWords,
  reportOf,
  type SlurmJob,
  SQUEUE_FORMAT,
} from '../../../../src/ops/slurm/queue.ts'
import { type SlurmStart, slurmScript, whyNotSlurm } from '../../../../src/ops/slurm/script.ts'
import type { SlurmSpec } from '../../../../src/ops/slurm/section.ts'
import { parseUsage } from '../../../../src/ops/slurm/usage.ts'
import { enginePicture } from '../../../../src/ui/packing/engine-picture.ts'

const SLURM: SlurmSpec = { login: 'c1', partition: 'main', coreMemoryBytes: 2 ** 30, options: [] }
const KEY = 'abc-1-1-0'

type Spec = SlurmStart['spec']
const spec = ({
  request,
  ...rest
}: { request?: Partial<Spec['request']> } & Partial<Omit<Spec, 'request'>> = {}): Spec => ({
  name: 'train',
  command: 'true',
  bundles: 1,
  strategy: 'PACK',
  ...rest,
  request: { cpuMilli: 1000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0, ...request },
})

/** As squeue writes it. */
function line(cells: readonly string[]): string {
  const widths = SQUEUE_FORMAT.split(',').map((column) => Number(column.split('.')[1]))
  return widths.map((width, index) => (cells[index] ?? '').slice(0, width).padStart(width)).join('')
}
const queued = (state: string, status = '0', reason = 'None', id = '7', nodes = '') =>
  line([id, state, status, reason, 'N/A', 'N/A', nodes, KEY])
const job = (state: string, rest: Partial<SlurmJob> = {}): SlurmJob => ({
  ...{ id: '7', state, status: 0, reason: 'None', nodes: '', name: KEY },
  ...rest,
})
const report = (state: string, rest: Partial<SlurmJob> = {}, hasBegun = true, end?: string) =>
  reportOf('check', { jobs: [job(state, rest)], claim: hasBegun ? '7' : undefined, end, isKnown: true })

describe('what squeue says', () => {
  it('is read by the widths of its columns', () => {
    const cells = ['12', 'PENDING', '0', 'Resources', '1795416669', '1795416999', 'n[1-2]', KEY]
    expect(parseJob(line(cells))).toEqual({
      ...{ id: '12', state: 'PENDING', status: 0, reason: 'Resources' },
      ...{ startS: 1_795_416_669, endS: 1_795_416_999, nodes: 'n[1-2]', name: KEY },
    })
    // A year ahead, as behind jobs without a time limit.
    expect(parseJob(line(cells), 1_795_416_669 - 365 * 86_400)?.startS).toBeUndefined()
    expect(parseJob(line(cells), 1_795_416_000)?.startS).toBe(1_795_416_669)
    expect(parseJob(line(['12', 'PENDING', '0', 'None', '17901544000', '', '', KEY]))?.startS).toBeUndefined()
    for (const wrong of [
      '',
      'squeue: error: x',
      line(['x', 'PENDING', '0']),
      line(['1', 'pending', '0']),
      `${line(cells)} `,
    ])
      expect(parseJob(wrong), wrong).toBeUndefined()
  })

  it('is judged by state and exit code', () => {
    expect(report('PENDING')).toBe('waiting')
    expect(report('CONFIGURING')).toBe('waiting')
    for (const state of ['RUNNING', 'SUSPENDED', 'COMPLETING', 'NEW_STATE'])
      expect(report(state), state).toBe('running')
    expect(report('COMPLETED')).toEqual({ kind: 'exit', code: 0 })
    expect(report('FAILED', { status: 768, reason: 'NonZeroExitCode' })).toEqual({ kind: 'exit', code: 3 })
    expect(report('FAILED', { status: 9, reason: 'RaisedSignal' })).toEqual({ kind: 'exit', code: 137 })
    expect(report('FAILED', { reason: 'SystemFailure' }, false)).toEqual({
      kind: 'gone',
      reason: 'Slurm could not start it: SystemFailure',
    })
    expect(report('FAILED', { reason: 'JobLaunchFailure', nodes: 'n2' }, false)).toEqual({
      kind: 'refused',
      reason: expect.stringContaining('n2 could not start it (JobLaunchFailure)'),
    })
    expect(report('FAILED', { status: 1, reason: 'BadConstraints' }, false)).toEqual({
      kind: 'refused',
      reason: 'Slurm refused it: no node of the partition can ever hold it',
    })
    expect(report('FAILED', { status: 94 << 8, reason: 'NonZeroExitCode' }, false)).toMatchObject({
      kind: 'refused',
    })
    expect(report('FAILED', { status: 94 << 8, reason: 'NonZeroExitCode' })).toEqual({ kind: 'exit', code: 94 })
    expect(report('CANCELLED')).toMatchObject({ kind: 'gone', isCancelled: true })
    expect(report('TIMEOUT')).toMatchObject({ kind: 'gone', isTimedOut: true })
    expect(report('OUT_OF_MEMORY')).toEqual({ kind: 'exit', code: 137, isOutOfMemory: true })
    expect(report('NODE_FAIL', { nodes: 'n3' })).toEqual({ kind: 'gone', reason: 'a node failed while it ran: n3' })
    expect(report('PREEMPTED')).toMatchObject({ kind: 'unable' })
    // What Muster stopped itself has its own reason.
    expect(reportOf('stop', { jobs: [job('CANCELLED')], isKnown: true })).toBe('lost')
  })

  it('counts less than what the script of the job has noted', () => {
    expect(report('FAILED', { status: 256, reason: 'NonZeroExitCode' }, true, 'exit 7 RUNNING None')).toEqual({
      kind: 'exit',
      code: 7,
    })
    expect(report('COMPLETING', {}, true, 'exit 0')).toEqual({ kind: 'exit', code: 0 })
    expect(report('NODE_FAIL', { nodes: 'n3' }, true, 'exit 0')).toEqual({ kind: 'exit', code: 0 })
    expect(report('NODE_FAIL', { nodes: 'n3' }, true, 'exit 1 RUNNING None')).toMatchObject({ kind: 'gone' })
    const noted = (end: string) => reportOf('check', { jobs: [], claim: '7', end, isKnown: true })
    expect(noted('exit 3 RUNNING None')).toEqual({ kind: 'exit', code: 3 })
    expect(noted('exit 143 COMPLETING None')).toMatchObject({ isCancelled: true })
    expect(noted('exit 143 COMPLETING TimeLimit')).toMatchObject({ isTimedOut: true })
    expect(noted('exit 143 COMPLETING NodeDown')).toEqual({ kind: 'gone', reason: 'a node failed while it ran' })
    // Who ended it is told by the state that follows.
    expect(report('COMPLETING', {}, true, 'exit 143 COMPLETING None')).toBe('running')
    expect(noted('exit x')).toBe('lost')
  })

  it('tells when a job began and how long it ran: first what its script measured, then what Slurm says', () => {
    const listed = (state: string, nodes = 'n1') => line(['7', state, '0', 'None', '1000', '1004', nodes, KEY])
    const told = (...lines: readonly string[]) =>
      parseRound([{ kind: 'check', key: KEY }], `${['now 1030', ...lines, 'end'].join('\n')}\n`).times?.get(KEY)
    const measured = [`claim ${KEY} 7`, `end ${KEY} exit 0`, `times ${KEY} 1009 77.25 78.5`]
    expect(told(listed('PENDING', ''))).toBeUndefined()
    expect(told(listed('RUNNING'))).toEqual({ agoMs: 30_000 })
    expect(told(listed('CANCELLED'))).toEqual({ agoMs: 30_000, ranMs: 4000 })
    // Cancelled before it began.
    expect(told(listed('CANCELLED', ''))).toBeUndefined()
    for (const more of [[], [listed('COMPLETED')]])
      expect(told(...more, ...measured)).toEqual({ agoMs: 21_000, ranMs: 1250 })
    expect(told(...measured.with(2, `times ${KEY} 1009 77.25 7.5`))).toEqual({ agoMs: 21_000 })
    for (const odd of ['', '1009', '1009  ', 'x 1 2', '1009 1 2 3', '1009 1e9 2'])
      expect(told(...measured.with(2, `times ${KEY} ${odd}`)), odd).toBeUndefined()
  })

  it('is not enough for a job that Slurm has forgotten, or that arrived twice', () => {
    const nothing = { jobs: [], isKnown: false }
    expect(reportOf('start', nothing)).toBeUndefined()
    expect(reportOf('check', nothing)).toBe('forgotten')
    expect(reportOf('stop', nothing)).toBe('barred')
    expect(reportOf('start', { ...nothing, isHanded: true })).toBe('waiting')
    expect(reportOf('start', { ...nothing, isKnown: true })).toBe('forgotten')
    expect(reportOf('start', { ...nothing, claim: '7' })).toBe('lost')
    const twice = [job('COMPLETED', { id: '8' }), job('RUNNING')]
    expect(reportOf('check', { jobs: twice, claim: '7', isKnown: true })).toBe('running')
    expect(reportOf('check', { jobs: twice, claim: '8', isKnown: true })).toEqual({ kind: 'exit', code: 0 })
    expect(reportOf('stop', { jobs: [job('PENDING')], claim: 'barred', isKnown: false })).toBe('barred')
  })

  it('is explained in words, with the code', () => {
    expect(reasonWords('Resources')).toBe('waiting for other jobs to free what it asks for (Resources)')
    expect(reasonWords('ReqNodeNotAvail, UnavailableNodes:n3')).toContain('are down, drained or reserved')
    expect(reasonWords('toString')).toBe('Slurm: toString')
    expect(reasonWords('')).toBe('Slurm: no reason given')
  })
})

describe('the answer of a round', () => {
  const orders = [{ kind: 'start', key: KEY }] as const
  const round = (...lines: readonly string[]) => parseRound(orders, lines.join('\n'))

  it('says what became of each order, and why it waits', () => {
    const { trouble, reports, waits } = round(queued('PENDING', '0', 'Priority'), `known ${KEY}`, 'end')
    expect(trouble).toBeUndefined()
    expect([...reports]).toEqual([[KEY, 'waiting']])
    expect(waits?.get(KEY)?.why).toBe('jobs of higher priority go first (Priority)')
  })

  it('fails a job that sbatch refuses, and keeps one that it cannot take now', () => {
    const refused = round(
      `refused ${KEY} sbatch: error: Batch job submission failed: Invalid partition name specified`,
      'end',
    )
    expect(refused.reports.get(KEY)).toEqual({
      kind: 'refused',
      reason: 'Slurm refused it: Invalid partition name specified. Correct partition in slurm of hosts.yaml',
    })
    const passing = round(`refused ${KEY} sbatch: error: Unable to contact slurm controller (connect failure)`, 'end')
    expect(passing.reports.size).toBe(0)
    expect(passing.waits?.get(KEY)?.why).toContain('Unable to contact slurm controller')
    expect(refusalWords('')).toBe('Slurm refused it: no reason given')
    const account = 'Invalid account or account/partition combination specified'
    expect(refusalWords(`sbatch: error: Batch job submission failed: ${account}`)).toBe(
      `Slurm refused it: ${account}. Set account in slurm of hosts.yaml to one of yours. To list them, run: sacctmgr show associations`,
    )
  })

  it('is believed only about jobs that were asked for, and only when it is whole', () => {
    const other = line(['1', 'COMPLETED', '0', 'None', 'N/A', 'N/A', '', 'abc-2-1-0'])
    expect([...round(other, 'claim abc-2-1-0 1', 'end abc-2-1-0 exit 0', 'end').reports]).toEqual([])
    expect(round(queued('COMPLETED'))).toEqual({
      trouble: "could not parse the login host's answer",
      reports: new Map(),
    })
    expect(round('trouble Unable to contact\u001b[2J', 'end')).toMatchObject({ reports: new Map() })
    expect(round('trouble no \u001b[2J').trouble).toBe('no \\x1b[2J')
  })

  it('says where jobs run', () => {
    expect(round(queued('RUNNING', '0', 'None', '12', 'n[1-2]'), 'end').nodes).toEqual(new Map([[KEY, 'n[1-2]']]))
    expect(round(queued('PENDING'), 'end').nodes?.size).toBe(0)
    expect(round(queued('RUNNING'), 'end').waits?.size).toBe(0)
    const suspended = round(queued('SUSPENDED'), 'end')
    expect([...suspended.reports, ...(suspended.waits ?? [])]).toEqual([
      [KEY, 'running'],
      [KEY, { why: 'suspended in Slurm' }],
    ])
  })

  it('says nothing about a job of which there are too many', () => {
    const of = (count: number) =>
      Array.from({ length: count }, (_, index) => queued('COMPLETED', '0', 'None', `${index}`))
    expect([...round(...of(16), `claim ${KEY} 15`, 'end').reports]).toEqual([[KEY, { kind: 'exit', code: 0 }]])
    expect([...round(...of(3000), `claim ${KEY} 15`, 'end').reports]).toEqual([])
  })

  it('says nothing about a job whose line cannot be parsed', () => {
    const odd = queued('RUNNING').replace('RUNNING', 'running')
    expect(round(odd, `known ${KEY}`, 'end').reports.size).toBe(0)
    const told = Buffer.from('Übung', 'utf8').toString('latin1')
    const { waits } = round(queued('PENDING', '0', told), 'end')
    expect(waits?.get(KEY)?.why).toBe('Slurm: Übung')
  })

  it('says what is wrong with the cluster', () => {
    const trouble = (text: string) => round(`trouble ${text}`).trouble
    expect(trouble('slurm_load_jobs error: Unable to contact slurm controller (connect failure)')).toContain(
      'its controller does not answer',
    )
    expect(trouble('squeue: fatal: Could not establish a configuration source')).toBe(
      'the login host has no slurm.conf',
    )
    expect(trouble('Munge encode failed: Failed to access "/run/munge/munge.socket.2"')).toContain(
      'munged is not running',
    )
    expect(trouble('slurm_load_jobs error: Zero Bytes were transmitted or received')).toContain(
      'munge keys or clocks differ',
    )
    expect(trouble('c1 has no sbatch')).toBe('c1 has no sbatch')
  })

  it('survives anything', () => {
    let seed = 1
    const next = (below: number) => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed % below
    }
    const words = [
      KEY,
      'claim',
      'end',
      'known',
      'refused',
      'exit 3',
      '\u0000',
      '\u001b[2J',
      '__proto__',
      'é'.repeat(300),
      ' ',
      '9'.repeat(40),
    ]
    for (let count = 0; count < 300; count++) {
      const text = Array.from(
        { length: next(30) },
        () => words[next(words.length)] + (next(3) === 0 ? '\n' : ' '),
      ).join('')
      const { reports } = parseRound(orders, `${text}\nend`)
      expect([...reports.keys()].every((key) => key === KEY)).toBe(true)
    }
  })
})

describe('the script of a job', () => {
  /** Without those that are always the same. */
  const options = (given: Parameters<typeof spec>[0], own: Partial<SlurmSpec> = {}, priority = 0) =>
    slurmScript({ key: KEY, environment: {}, priority, spec: spec(given) }, { ...SLURM, ...own })
      .split('\n')
      .filter((text) => text.startsWith('#SBATCH ') && !/ --(job-name|comment|output|no-requeue)\b/.test(text))
      .map((text) => text.slice('#SBATCH '.length))
      .join(' ')

  it('asks for what the job asks for, by strategy', () => {
    expect(
      options({ request: { cpuMilli: 1500, memoryBytes: 2 ** 31, gpuCount: 2, gpuMilli: 1000 }, limitS: 61 }),
    ).toBe('--partition=main --nodes=1 --ntasks=1 --cpus-per-task=2 --mem=2048M --gres=gpu:2 --time=2')
    const gang = (strategy: string, rest: Parameters<typeof spec>[0] = {}) =>
      options({
        bundles: 4,
        strategy,
        request: { cpuMilli: 2000, memoryBytes: 2 ** 31, gpuCount: 1, gpuMilli: 1000 },
        ...rest,
      })
    expect(gang('PACK')).toBe('--partition=main --ntasks=4 --cpus-per-task=2 --mem-per-cpu=1024M --gpus-per-task=1')
    expect(gang('PACK', { maxBundlesPerHost: 2 })).toContain('--ntasks=4 --ntasks-per-node=2')
    expect(gang('STRICT_PACK')).toContain('--nodes=1 --ntasks=4 ')
    expect(gang('SPREAD')).toContain('--ntasks=4 --spread-job --distribution=cyclic')
    expect(gang('STRICT_SPREAD')).toContain('--nodes=4 --ntasks=4 --ntasks-per-node=1 --cpus-per-task=2 --mem=2048M')
  })

  it('always asks for memory, unless hosts.yaml leaves that to Slurm', () => {
    expect(options({})).toContain('--mem-per-cpu=1024M')
    expect(options({}, { coreMemoryBytes: 0 })).not.toContain('mem')
  })

  it('has the account, the QOS and the options of hosts.yaml', () => {
    const own = { account: 'lab', qos: 'low', options: ['--constraint=a100'] }
    expect(options({}, own)).toMatch(/^--partition=main --account=lab --qos=low .* --constraint=a100$/)
  })

  it('shares a GPU only by shards', () => {
    const half = { gpuCount: 1, gpuMilli: 500 }
    expect(whyNotSlurm(spec({ request: half }), SLURM)).toContain('shards_per_gpu')
    expect(whyNotSlurm(spec({ request: half }), { ...SLURM, shardsPerGpu: 4 })).toBeUndefined()
    expect(whyNotSlurm(spec({ request: half, bundles: 2 }), { ...SLURM, shardsPerGpu: 4 })).toContain('STRICT_SPREAD')
    expect(options({ request: half }, { shardsPerGpu: 4 })).toContain('--gres=shard:2')
  })

  it('lowers its priority in Slurm below 0, which is all that users may do there', () => {
    expect(options({}, {}, 5)).not.toContain('nice')
    expect(options({}, {}, -3)).toContain(' --nice=300')
    expect(options({}, {}, -1e9)).toContain(' --nice=2000000000')
  })

  it('has a component for each role that asks for something else', () => {
    const request = { cpuMilli: 1000, memoryBytes: 2 ** 30, gpuCount: 0, gpuMilli: 0 }
    const large = { ...request, cpuMilli: 4000, gpuCount: 1, gpuMilli: 1000 }
    const roles = [
      { name: 'chief', count: 1, request },
      { name: 'worker', count: 2, request },
      { name: 'ps', count: 1, request: large },
    ]
    const unlike = { bundles: 4, roles, leaders: [0] }
    expect(options(unlike)).toBe(
      '--partition=main --ntasks=3 --cpus-per-task=1 --mem-per-cpu=1024M hetjob --partition=main --nodes=1 --ntasks=1 --cpus-per-task=4 --mem-per-cpu=256M --gres=gpu:1',
    )
    const script = slurmScript({ key: KEY, environment: {}, priority: 0, spec: spec(unlike) }, SLURM)
    expect(script.match(/^srun .*$/gm)).toEqual([
      // Slurm hides no device from a bundle that asks for none.
      'srun --kill-on-bad-exit=1 --het-group=0 --cpus-per-task=1 /bin/sh -c "$bare$rank" : --het-group=1 --cpus-per-task=4 /bin/sh -c "$rank" &',
    ])
    const alike = { ...unlike, roles: roles.slice(0, 2), bundles: 3 }
    expect(options(alike)).toBe('--partition=main --ntasks=3 --cpus-per-task=1 --mem-per-cpu=1024M')
    expect(whyNotSlurm(spec(unlike), SLURM)).toBeUndefined()
    expect(whyNotSlurm(spec({ ...unlike, strategy: 'STRICT_PACK' }), SLURM)).toContain('on different nodes')
  })

  it('is a shell script in which no text of the job is anything but text', () => {
    const evil = `it's "x"\n#SBATCH --uid=0\n$(touch /tmp/x) \`y\``
    const start = (bundles: number): SlurmStart => ({
      key: KEY,
      environment: { WORD: evil },
      priority: 0,
      spec: spec({ name: evil, command: evil, directory: `/a b/${evil}`, bundles }),
    })
    for (const bundles of [1, 3])
      for (const isPlain of [true, false]) {
        const script = slurmScript(start(bundles), SLURM, isPlain)
        // It is read up to the first line that is no comment.
        const head = script.slice(0, script.search(/^[^#]/m))
        expect(head).not.toMatch(/^#SBATCH --uid/m)
        expect(head.split('\n').filter((one) => one.includes('$') || one.includes('`'))).toEqual([])
        execFileSync('sh', ['-n'], { input: script })
        expect(script.includes('claim')).toBe(!isPlain)
      }
  })

  it('goes to the login host as one word, in a program that a shell can read', () => {
    const order = { kind: 'start', key: KEY, environment: { A: "'" }, priority: 0 } as const
    const start = { ...order, spec: spec({ command: "echo 'a' > b" }) }
    const program = roundProgram({ ...SLURM, bin: '/opt/slurm/bin', directory: '/shared/muster' }, [
      start,
      { kind: 'check', key: 'abc-2-1-0' },
      { kind: 'stop', key: 'abc-3-1-0' },
    ])
    execFileSync('sh', ['-n'], { input: program })
    expect(program).toContain(`start ${KEY} '#!/bin/sh\n`)
    expect(program).toContain('\ncheck abc-2-1-0\nstop abc-3-1-0\n')
    expect(program).toContain('PATH=/opt/slurm/bin:$PATH')
  })
})

describe('a dry run', () => {
  it('says when Slurm would start it, or why it never would', () => {
    const text =
      'code 0\nsbatch: Job 26 to start at 2026-11-23T07:00:00 using 1 processors on nodes n[1-2] in partition main\n'
    expect(parseTrial(text)).toEqual({ words: 'Slurm would start it at 2026-11-23 07:00:00 on n[1-2]' })
    expect(parseTrial(text.replace('2026', '2537'))).toEqual({
      words: 'Slurm cannot say when it would start: jobs without a time limit come first',
    })
    // A year ahead.
    expect(parseTrial(`now 1763881200\n${text}`)).toEqual({
      words: 'Slurm cannot say when it would start: jobs without a time limit come first',
    })
    expect(parseTrial(`now 1795417000\n${text}`)).toHaveProperty('words', expect.stringContaining('would start it at'))
    expect(parseTrial('code 1\nallocation failure: Requested node configuration is not available\n')).toEqual({
      isNever: true,
      words:
        'Slurm refused it: Requested node configuration is not available. To see what its nodes have, run: muster pack --engine slurm',
    })
    expect(parseTrial('code 1\nallocation failure: Unable to contact slurm controller\n')).toHaveProperty('trouble')
    expect(parseTrial('trouble c1 has no sbatch\n')).toEqual({ trouble: 'c1 has no sbatch' })
    expect(parseTrial('')).toHaveProperty('trouble')
  })
})

describe('a login host that cannot be used', () => {
  it('is named', async () => {
    const outcome = { kind: 'unreachable', reason: 'it is not open in the console' } as const
    const nothing = new Uint8Array()
    const hosts = {
      exec: async () => ({ outcome, stdout: nothing, stderr: nothing, durationMs: 0 }),
    } as unknown as OpsHosts
    const slurm = openSlurm({ login: 'c1', coreMemoryBytes: 0, options: [] })
    const { signal } = new AbortController()
    const words = 'c1: unreachable: it is not open in the console'
    expect(await slurm.usage(hosts, signal)).toBe(words)
    expect(await slurm.round([{ kind: 'check', key: 'abc-1-1-0' }], hosts, signal)).toMatchObject({ trouble: words })
  })

  it('is told to be set up where the cluster is Muster’s, and else to say where its programs are', () => {
    const cluster = { controller: 'c1', nodes: ['n1'], nodeIps: {} }
    const program = (own: object) =>
      roundProgram({ ...SLURM, login: 'c1', ...own }, [{ kind: 'check', key: 'abc-1-1-0' }])
    expect(program({ cluster })).toContain('trouble "Slurm is not set up on c1. Run: muster up slurm"')
    expect(program({})).toContain('trouble "c1 has no $program in its PATH. Set bin in slurm of hosts.yaml"')
  })
})

describe('the use of a cluster', () => {
  const nodes = `NodeName=n1 CPUAlloc=4 CPUTot=4 RealMemory=8000 AllocMem=300 Gres=gpu:a100:2(S:0) State=MIXED+COMPLETING+PLANNED
NodeName=n02 CPUAlloc=1 CPUTot=4 RealMemory=8000 AllocMem=100 Gres=gpu:4,shard:8 State=DOWN*`

  const cells = (...values: readonly string[]) => ['job', ...values].join('\t')
  const running = (id: string, uid: string, nodeList: string, name = 'x') =>
    cells(id, 'RUNNING', uid, uid === '1000' ? 'ada' : 'bob', 'N/A', 'None', nodeList, id, name)

  it('is who holds which device on which node, and why jobs wait', () => {
    const usage = parseUsage(`me 1000
now 1795416000
${nodes}
${running('7', '1000', 'n[1,02-03]', 'abc-1-1-0')}
${cells('8', 'PENDING', '1001', 'bob', '1795416669', 'Priority', '', '8', 'other')}
more 0
JobId=7 Nodes=n1 CPU_IDs=0-1,3 Mem=200 GRES=gpu:a100:2(IDX:0-1) Nodes=n[02-03] CPU_IDs=0 Mem=100 GRES=gpu:1(IDX:3),shard:1(3)
end
`)
    expect(usage?.nodes).toMatchObject([
      { name: 'n1', cpuMilli: 4000, cpuUsedMilli: 4000, memoryBytes: 8000 * 2 ** 20, gpus: 2, trouble: '' },
      { name: 'n02', gpus: 4, trouble: 'down*' },
    ])
    expect(usage?.jobs).toEqual([
      {
        ...{ id: '7', name: 'abc-1-1-0', user: 'ada', isOwn: true },
        shares: [
          { node: 'n1', cpuMilli: 3000, memoryBytes: 200 * 2 ** 20, devices: [0, 1] },
          { node: 'n02', cpuMilli: 1000, memoryBytes: 100 * 2 ** 20, devices: [3] },
        ],
      },
      {
        ...{ id: '8', name: 'other', user: 'bob', isOwn: false, shares: [], startS: 1_795_416_669 },
        waits: 'jobs of higher priority go first (Priority)',
      },
    ])
    expect(usage).not.toHaveProperty('note')
    const suspended = running('7', '1000', 'n1').replace('RUNNING', 'SUSPENDED')
    expect(parseUsage(`me 1000\n${nodes}\n${suspended}\nend`)?.jobs).toMatchObject([
      { id: '7', waits: 'suspended in Slurm', shares: [{ node: 'n1' }] },
    ])
    expect(parseUsage('more 6000\nend')?.note).toBe('6000 more jobs are not shown')
  })

  it('calls tasks of an array as squeue does', () => {
    const pending = (label: string) => cells('8', 'PENDING', '1001', 'bob', 'N/A', 'Resources', '', label, 'sweep')
    const task = cells('9', 'RUNNING', '1001', 'bob', 'N/A', 'None', 'n1', '8_1', 'sweep')
    const labels = ['8_[3-45:2%2]', '8_7', '8', '8_[3\x1b', `8_[${'3,'.repeat(60)}]`].map(pending)
    const usage = parseUsage(`me 1000\n${nodes}\n${[task, ...labels].join('\n')}\nend`)
    expect(usage?.jobs.map(({ label }) => label)).toEqual([
      '8_1',
      '8_[3-45:2%2]',
      '8_7',
      undefined,
      undefined,
      undefined,
    ])
    expect(enginePicture(usage!, 'Slurm', () => undefined).jobs.map(({ id, name }) => [id, name])).toEqual([
      ['9', '8_1 of bob'],
      ['8', '8_[3-45:2%2] of bob'],
      ['8', '8_7 of bob'],
      ...Array.from({ length: 3 }, () => ['8', '8 of bob']),
    ])
  })

  it('has no more nodes and devices than can be drawn, and says how many are left out', () => {
    const many = Array.from({ length: 12_000 }, (_, index) => `NodeName=z${index} CPUTot=4 Gres=gpu:128 State=IDLE`)
    const job = running('1', '1000', 'z[0-11999]')
    const held = 'JobId=1 Nodes=z[0-11999] CPU_IDs=0-3 Mem=10 GRES=gpu:128(IDX:0-127)'
    const usage = parseUsage([...many, job, held, 'end'].join('\n'))
    expect([usage?.nodes.length, usage?.note]).toEqual([512, '11488 more nodes are not shown'])
    expect(
      parseUsage([...many.map((line) => line.replace('gpu:128', '(null)')), 'end'].join('\n'))?.nodes,
    ).toHaveLength(5000)
    expect(usage?.jobs[0]?.shares).toHaveLength(512)
  })

  it('is also what nodes say is held, as a line break in the name of a job hides its devices', () => {
    const types = 'Gres=gpu:a100:2,gpu:h100:4 GresUsed=gpu:a100:2(IDX:0-1),gpu:h100:0(IDX:N/A),shard:0(0/8)'
    const usage = parseUsage(`me 1000
NodeName=n1 CPUAlloc=1 CPUTot=4 RealMemory=8000 AllocMem=300 ${types} State=MIXED GresUsed=gpu:6(IDX:0-5)
NodeName=n2 CPUAlloc=1 CPUTot=4 RealMemory=8000 AllocMem=300 Gres=gpu:6 GresUsed=gpu:a:1(IDX:1),gpu:b:2(IDX:4-5) State=MIXED
NodeName=n3 CPUAlloc=0 CPUTot=4 RealMemory=8000 AllocMem=0 Gres=(null) State=IDLE
${running('7', '1001', 'n1', 'night')}
JobId=7 Nodes=n2 CPU_IDs=0 Mem=5 GRES=gpu:a:1(IDX:1),gpu:b:2(IDX:4-5)
end`)
    expect(usage?.nodes.map(({ heldDevices }) => heldDevices)).toEqual([[0, 1], [1, 4, 5], []])
  })

  it('believes no text of other users that looks like fields of scontrol', () => {
    const forged = 'UserId=ada(1000) Nodes=n02 CPU_IDs=0-3 GRES=gpu:4(IDX:0-3)'
    const usage = parseUsage(`me 1000
${nodes}
${running('7', '1000', 'n02', 'abc-1-1-0')}
${running('8', '1001', 'n1', `x ${forged}`)}
${running('9', '1001', 'n1')}
JobId=8 Nodes=n02 CPU_IDs=0-3 GRES=gpu:4(IDX:0-3) Nodes=n1 CPU_IDs=0 Mem=5 GRES=gpu:1(IDX:0) GRES=gpu:2(IDX:0-1)
JobId=9 Nodes=n1 CPU_IDs=0 GRES=gpu:1(IDX:0) Nodes=n1 CPU_IDs=1 Mem=5 GRES=gpu:1(IDX:1)
JobId=7 Nodes=n02 CPU_IDs=0-3 GRES=gpu:4(IDX:0-3)
JobId=7 Nodes=n02 CPU_IDs=0 Mem=5 GRES=gpu:1(IDX:0)
end`)
    const unknown = { cpuMilli: 0, memoryBytes: 0, devices: [] }
    expect(usage?.jobs.map(({ id, isOwn, shares }) => [id, isOwn, shares])).toEqual([
      ['7', true, [{ node: 'n02', ...unknown }]],
      ['8', false, [{ node: 'n1', cpuMilli: 1000, memoryBytes: 5 * 2 ** 20, devices: [0] }]],
      ['9', false, [{ node: 'n1', ...unknown }]],
    ])
  })

  it('is bounded, whatever a list of nodes stands for', () => {
    const held = 'JobId=7 Nodes=n[1-99999] CPU_IDs=0-99999 GRES=gpu:9(IDX:0-99999)'
    const first = parseUsage(`me 1000\n${nodes}\n${running('7', '1000', 'n1')}\n${held}\nend`)
    expect(first?.jobs[0]?.shares).toMatchObject([{ node: 'n1' }])
    expect(first?.jobs[0]?.shares[0]?.devices).toHaveLength(128)
    const usage = parseUsage(`me 1000\n${nodes}\n${running('7', '1000', 'n[1-99999]')}\n${`${held}\n`.repeat(5000)}end`)
    expect(usage?.jobs.at(-1)?.shares).toEqual([])
    expect(parseUsage(nodes)).toBeUndefined()
  })
})
