/** The driver with real processes of this machine behind its port: each "host" has a directory of its own. */

import { execFileSync, spawn } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Clock, systemClock } from '../../../src/base/clock.ts'
import { type DriverEvent, type DriverOptions, driveJobs, LEASE_MS } from '../../../src/scheduler/jobs/driver.ts'
import type { DriverHost } from '../../../src/scheduler/jobs/driver-host.ts'
import type { JobHosts } from '../../../src/scheduler/jobs/host-line.ts'
import { isActive, type Job, type JobSpec } from '../../../src/scheduler/jobs/job.ts'
import { formatCleanProgram, parseCleaned } from '../../../src/scheduler/jobs/left.ts'
import { watchStore } from '../../../src/scheduler/jobs/queue-file.ts'
import { hostsToForget, JobStore, type Submission } from '../../../src/scheduler/jobs/store.ts'
import { applyEvent } from '../../support/apply-event.ts'
import { bundleKeyOf } from '../../support/bundle-key.ts'
import { writeProgram } from '../../support/program.ts'
import { requirement } from '../../support/requirements.ts'
import { testSpec } from '../../support/test-job.ts'
import { waitUntil } from '../../support/wait-until.ts'

const canRun = process.platform === 'linux' && requirement('setsid')

const HOSTS: readonly DriverHost[] = ['a', 'b'].map((name) => ({
  name,
  address: `${name}.lab`,
  cpuMilli: 8000,
  memoryBytes: 2 ** 30,
  gpuCount: 2,
  labels: {},
  custom: undefined,
}))

const spec = (command: string, rest: Partial<JobSpec> = {}): JobSpec => testSpec({ name: command, command, ...rest })

describe.skipIf(!canRun)('driving a queue', () => {
  let directory: string
  let store: JobStore
  const down = new Set<string>()
  const slow = new Set<string>()
  const cut = new Map<string, () => void>()

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-jobs-'))
    store = new JobStore(join(directory, 'queue.db'))
    down.clear()
    slow.clear()
  })
  afterEach(async () => {
    for (const { id } of store.active()) submitStop(id)
    await drive()
    store[Symbol.dispose]()
    rmSync(directory, { recursive: true, force: true })
  })

  const port: JobHosts = {
    open(host, { onText, onEnd }) {
      if (down.has(host)) {
        const told = setImmediate(() => onEnd('no answer'))
        return { write() {}, [Symbol.dispose]: () => clearImmediate(told) }
      }
      const child = shell(host)
      child.stdout.setEncoding('utf8').on('data', onText)
      child.on('close', () => onEnd(down.has(host) ? 'no answer' : 'it ended'))
      cut.set(host, () => child.stdin.end())
      return { write: (text) => void child.stdin.write(text), [Symbol.dispose]: () => child.stdin.end() }
    },
  }
  const shell = (host: string) => {
    const home = join(directory, host)
    mkdirSync(home, { recursive: true })
    const PATH = `${join(directory, 'bin')}:${process.env.PATH}`
    const environment = { PATH, HOME: home, MUSTER_HARDWARE: home, OUT: directory }
    const words = slow.has(host) ? ['-c', 'sleep 0.5; exec sh -s'] : ['-s']
    return spawn('sh', words, { env: environment, stdio: ['pipe', 'pipe', 'ignore'] })
  }
  const run = async (host: string, program: string): Promise<string> => {
    const child = shell(host)
    child.stdin.end(program)
    return (await child.stdout.setEncoding('utf8').toArray()).join('')
  }
  const submit = (own: JobSpec, rest: Partial<Submission> = {}) =>
    store.submit({ spec: own, user: 'ann', priority: 0, isHeld: false, after: [], variants: [{}], ...rest }, Date.now())
  const submitStop = (id: number) => applyEvent(store, id, { kind: 'stop', reason: 'cancelled' }, Date.now())
  const drive = async (
    signal = new AbortController().signal,
    own = store,
    more: Partial<DriverOptions> = {},
  ): Promise<void> => {
    const lease = own.lease.take('test', Date.now(), LEASE_MS)
    if (lease === undefined) throw new Error('somebody else drives')
    const rest = { isPreempting: true, isUntilEmpty: true, clock: systemClock }
    const watch = (onWrite: () => void) => watchStore(join(directory, 'queue.db'), onWrite)
    await driveJobs({ store: own, lease, hosts: HOSTS, port, signal, watchStore: watch, ...rest, ...more })
    own.lease.give(lease)
  }
  const lines = (name: string) => readFileSync(join(directory, name), 'utf8').trim().split('\n')
  const exists = (name: string) => existsSync(join(directory, name))
  const kinds = (ids: readonly number[]) => ids.map((id) => store.get(id)?.state.kind)
  const job = (id: number): Job => store.get(id) as Job
  const placeOf = (id: number) => {
    const { state } = job(id)
    return 'places' in state ? state.places?.[0] : undefined
  }

  it('runs arrays, gangs and dependent jobs with commands quoted correctly', async () => {
    const array = submit(spec('echo "$X" >>"$OUT/array"'), {
      variants: ['1', "it's", '$HOME', 'a  b'].map((X) => ({ X })),
    })
    const gang = submit(
      spec('echo "$RANK/$WORLD_SIZE $MUSTER_HOSTS $MASTER_ADDR $CUDA_VISIBLE_DEVICES" >>"$OUT/gang"', {
        bundles: 4,
        request: { cpuMilli: 1000, memoryBytes: 0, gpuCount: 1, gpuMilli: 1000 },
      }),
    )
    const last = submit(spec('cat "$OUT/gang" >"$OUT/last"'), { after: gang })
    const never = submit(spec('true'), { after: submit(spec('exit 4')) })
    await drive()
    expect(kinds([...array, ...gang, ...last])).toEqual(new Array(6).fill('done'))
    expect(lines('array').sort()).toEqual(['$HOME', '1', 'a  b', "it's"])
    expect(
      lines('last')
        .sort()
        .map((line) => line.slice(0, 4)),
    ).toEqual(['0/4 ', '1/4 ', '2/4 ', '3/4 '])
    const firstHost = lines('gang')[0]?.split(' ')[1]?.split(',')[0]
    expect(new Set(lines('gang').map((line) => line.split(' ')[2]))).toEqual(new Set([`${firstHost}.lab`]))
    expect(kinds(never)).toEqual(['cancelled'])
    const state = job(array[1] as number).state
    expect('places' in state && state.places).toHaveLength(1)
  })

  it('gives jobs the addresses at which hosts reach each other', async () => {
    const gang = submit(spec('echo "$MASTER_ADDR $MUSTER_ADDRESSES" >>"$OUT/gang"', { bundles: 2 }))
    const addresses = new Map(HOSTS.map(({ name }) => [name, `${name}.reached`]))
    await drive(undefined, store, { addresses })
    expect(kinds(gang)).toEqual(['done'])
    expect(lines('gang')[0]).toMatch(/^(\S+\.reached) \1,\S+\.reached$/)
  })

  it('stores the last metrics of each job, also of those that ran without a scheduler', async () => {
    const metrics = [{ name: 'loss' }, { name: 'acc', isMost: true }]
    const sweep = submit(spec('echo "loss=9"; echo "epoch $X loss=0.$X" && [ $X != 2 ]', { metrics }), {
      variants: ['1', '2'].map((X) => ({ X })),
    })
    await drive()
    const [first = 0, second = 0] = sweep
    expect(kinds(sweep)).toEqual(['done', 'failed'])
    expect([store.results.of(first), store.results.of(second)]).toEqual([{ loss: '0.1' }, { loss: '0.2' }])
    expect(store.results.unread()).toEqual([])
    applyEvent(store, first, { kind: 'retry' }, Date.now())
    applyEvent(store, second, { kind: 'retry' }, Date.now())
    const stop = new AbortController()
    const driving = drive(stop.signal)
    await waitUntil(() => kinds(sweep).every((kind) => kind !== 'queued'), 'both to begin again')
    stop.abort()
    await driving
    await drive()
    expect(store.results.unread()).toEqual([])
    const { rows, parameters, count } = store.results.sweep(store.groupOf(first) ?? 0, job(first).spec)
    expect([parameters, count]).toEqual([['X'], 2])
    expect(rows).toMatchObject([
      { id: first, state: { kind: 'done' }, attempt: 2, parameters: { X: '1' }, values: { loss: '0.1' } },
      {
        ...{ id: second, attempt: 2 },
        state: { kind: 'failed', reason: 'exit 1', places: [expect.anything()], startedMs: expect.any(Number) },
      },
    ])
  })

  it('a spread gang waits for a host that has not answered yet', async () => {
    slow.add('a')
    const gang = submit(spec('true', { bundles: 2, strategy: 'SPREAD' }))
    const alone = submit(spec('true'))
    await drive()
    expect(kinds([...gang, ...alone])).toEqual(['done', 'done'])
    const { state } = job(gang[0] as number)
    expect('places' in state && state.places?.map(({ host }) => host).toSorted()).toEqual(['a', 'b'])
  })

  it('notices when somebody else writes to the queue', async () => {
    const told = Promise.withResolvers<void>()
    using _ = watchStore(join(directory, 'queue.db'), () => told.resolve())
    using other = new JobStore(join(directory, 'queue.db'))
    const rest = { user: 'ann', priority: 0, isHeld: false, after: [], variants: [{}] }
    other.submit({ spec: spec('true'), ...rest }, Date.now())
    await told.promise
    using nothing = watchStore(join(directory, 'nowhere', 'queue.db'), () => expect.unreachable())
    expect(nothing).toBeDefined()
    await drive()
    expect(store.counts()).toEqual(new Map([['done', 1]]))
  })

  it('finds a write that was reported before it could be read, without waiting for its next tick', async () => {
    const hold = { sinceMs: 0, hasRested: false, isResting: false }
    const clock: Clock = {
      now: () => hold.sinceMs || Date.now(),
      after(ms, callback) {
        // On a busy machine the pass before the clock stood still rests as long as a tick.
        if (hold.sinceMs > 0 && ms < 50) hold.hasRested = true
        if (!hold.hasRested || ms < 50) return systemClock.after(ms, callback)
        hold.isResting = true
        return { [Symbol.dispose]() {} }
      },
    }
    const answered = new Set<string>()
    const onEvent = (event: DriverEvent) => event.kind === 'host' && answered.add(event.host)
    let report = () => {}
    const stop = new AbortController()
    const driving = drive(stop.signal, store, {
      clock,
      onEvent,
      isUntilEmpty: false,
      watchStore(onWrite) {
        report = onWrite
        return { [Symbol.dispose]() {} }
      },
    })
    await waitUntil(() => answered.size === HOSTS.length, 'all hosts to answer')
    // Later than any plan that took long would let the next one wait.
    hold.sinceMs = Date.now() + 10_000
    await waitUntil(() => hold.isResting, 'the driver to wait for its next tick')
    report()
    using other = new JobStore(join(directory, 'queue.db'))
    const rest = { user: 'ann', priority: 0, isHeld: false, after: [], variants: [{}] }
    const [id = 0] = other.submit({ spec: spec('true'), ...rest }, Date.now())
    await waitUntil(() => job(id).state.kind !== 'queued', 'the job to be placed')
    stop.abort()
    await driving
  })

  it('retries failures, enforces limits and stops a gang when one bundle fails', async () => {
    const flaky = submit(spec('mkdir "$OUT/once" 2>/dev/null && exit 9; exit 0', { retries: 1 }))
    const slow = submit(spec('sleep 1000 & wait', { limitS: 1 }))
    const gang = submit(spec('[ $RANK = 1 ] && exit 5; sleep 1000', { bundles: 3 }))
    await drive()
    expect(kinds([...flaky, ...slow, ...gang])).toEqual(['done', 'timed-out', 'failed'])
    expect(job(flaky[0] as number).attempt).toBe(2)
  })

  it('cancels what needs a job that saved its work and exited with 0 when its time was over', async () => {
    const saved = submit(spec("trap 'echo saved; exit 0' TERM; while :; do sleep 0.1; done", { limitS: 1 }))
    const next = submit(spec('touch "$OUT/next"'), { after: saved })
    await drive()
    expect([kinds([...saved, ...next]), exists('next')]).toEqual([['timed-out', 'cancelled'], false])
  })

  it('gives jobs no GPU that their host does not have', async () => {
    for (const { name } of HOSTS)
      mkdirSync(join(directory, name, 'proc/driver/nvidia/gpus/0000:01:00.0'), { recursive: true })
    const request = { cpuMilli: 1000, memoryBytes: 0, gpuCount: 1, gpuMilli: 1000 }
    const ids = submit(spec('echo "$CUDA_VISIBLE_DEVICES" >>"$OUT/devices"', { request }), {
      variants: [{}, {}, {}, {}],
    })
    await drive()
    expect([kinds(ids), lines('devices')]).toEqual([new Array(4).fill('done'), new Array(4).fill('0')])
    const expected = HOSTS.map(({ name }) => ({ name, gpus: [''], gpusDeclared: 2 }))
    expect(store.report()?.hosts).toMatchObject(expected)
    // The next scheduler still knows this number for a host that does not answer.
    down.add('b')
    submit(spec('true'))
    await drive()
    expect([store.report()?.hosts, store.report()?.down]).toMatchObject([expected, { b: 'no answer' }])
  })

  it('a more important job preempts one that allows it, which runs again afterwards', async () => {
    const whole = { cpuMilli: 1000, memoryBytes: 0, gpuCount: 2, gpuMilli: 1000 }
    const low = submit(
      spec('echo begun >>"$OUT/low"; while [ ! -e "$OUT/urgent" ]; do sleep 0.1; done', {
        request: whole,
        isPreemptible: true,
      }),
      { variants: [{}, {}] },
    )
    const driving = drive()
    await waitUntil(() => exists('low') && lines('low').length === 2, 'both to run')
    const urgent = submit(spec('touch "$OUT/urgent"', { request: whole }), { priority: 1 })
    await driving
    expect(kinds([...low, ...urgent])).toEqual(['done', 'done', 'done'])
    expect(low.map((id) => job(id).attempt).sort()).toEqual([1, 2])
    expect(lines('low')).toHaveLength(3)
  })

  it('runs nothing twice and forgets nothing, however often the scheduler restarts', async () => {
    const ids = submit(spec('echo $MUSTER_JOB >>"$OUT/ran"; sleep 0.1'), {
      variants: Array.from({ length: 40 }, () => ({})),
    })
    for (let round = 1; store.queued(1).length > 0 || store.active().length > 0; round++) {
      const controller = new AbortController()
      using own = new JobStore(join(directory, 'queue.db'))
      const driving = drive(controller.signal, own)
      await waitUntil(
        () => store.list(['done'], 100).length >= round * 7 || store.list(['done'], 100).length === ids.length,
        'some to be done',
      )
      controller.abort()
      await driving
    }
    expect(new Set(kinds(ids))).toEqual(new Set(['done']))
    expect(
      lines('ran')
        .map(Number)
        .sort((one, other) => one - other),
    ).toEqual(ids)
  })

  it('sends nothing new to a host that does not answer, and finds its jobs when it is back', async () => {
    const onA = { selectors: [{ label: 'host', is: 'in', values: ['a'] }] } as const
    const ids = submit(
      spec('while [ ! -e "$OUT/go" ]; do sleep 0.1; done', {
        request: { cpuMilli: 8000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0, ...onA },
      }),
    )
    const driving = drive()
    await waitUntil(() => kinds(ids)[0] === 'running', 'it to run')
    down.add('a')
    cut.get('a')?.()
    await waitUntil(() => store.report()?.down.a === 'no answer', 'its host to be missed')
    const next = submit(spec('touch "$OUT/go"'))
    await waitUntil(() => kinds(next)[0] === 'done', 'the other host to take the next one')
    const state = job(next[0] as number).state
    expect('places' in state && state.places?.[0]?.host).toBe('b')
    expect(kinds(ids)).toEqual(['running'])
    down.delete('a')
    await driving
    expect(kinds(ids)).toEqual(['done'])
  })

  it('says which running jobs it cannot follow, as hosts.yaml no longer declares their host', async () => {
    const [id = 0] = submit(spec('true'))
    const lease = store.lease.take('earlier', Date.now(), LEASE_MS)
    applyEvent(store, id, { kind: 'placed', places: [{ host: 'gone', devices: [] }] }, Date.now(), lease)
    if (lease !== undefined) store.lease.give(lease)
    const troubles: unknown[] = []
    const onEvent: DriverOptions['onEvent'] = (event) => {
      if (event.kind === 'host' && event.trouble !== undefined) troubles.push([event.host, event.trouble])
    }
    const driving = drive(undefined, store, { onEvent })
    await waitUntil(() => store.report()?.down.gone !== undefined, 'the report to name it')
    expect(troubles).toEqual([['gone', expect.stringMatching(/^no longer in hosts\.yaml, .* cancel --forget /)]])
    const hosts = hostsToForget([job(id)], store.report())
    applyEvent(store, id, { kind: 'stop', reason: 'cancelled' }, Date.now())
    applyEvent(store, id, { kind: 'forget', hosts }, Date.now())
    await driving
    expect(kinds([id])).toEqual(['cancelled'])
    expect(store.report()?.down).toEqual({})
  })

  describe('whose hosts get other addresses while a job runs', () => {
    const onA = { selectors: [{ label: 'host', is: 'in', values: ['a'] }] } as const
    const request = { cpuMilli: 1000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0, ...onA }
    const command = 'echo $MUSTER_ATTEMPT >>"$OUT/ran"; while [ ! -e "$OUT/go" ]; do sleep 0.05; done'
    const moved = HOSTS.map((host) => ({ ...host, address: `new-${host.address}` }))
    /** The machine that had the name of one host has that of the other one. */
    const swapped: JobHosts = { open: (host, handlers) => port.open(host === 'a' ? 'b' : 'a', handlers) }
    const whyOf = (id: number) => store.report()?.waits?.[id]?.why
    let id: number

    beforeEach(async () => {
      ;[id = 0] = submit(spec(command, { request, retries: 1 }))
      const stop = new AbortController()
      const driving = drive(stop.signal)
      await waitUntil(() => exists('ran') && kinds([id])[0] === 'running', 'it to run')
      stop.abort()
      await driving
    })

    it('follows it to the new address', async () => {
      const driving = drive(undefined, store, { hosts: moved })
      await waitUntil(() => placeOf(id)?.address === 'new-a.lab', 'it to be found')
      submitStop(id)
      await driving
      expect([kinds([id]), lines('ran')]).toEqual([['cancelled'], ['1']])
    })

    it('runs it nowhere again where its name is that of another machine, and says so', async () => {
      const stop = new AbortController()
      const driving = drive(stop.signal, store, { hosts: moved, port: swapped })
      await waitUntil(() => whyOf(id) !== undefined, 'the report to name it')
      const [other = 0] = submit(spec('while [ ! -e "$OUT/go" ]; do sleep 0.05; done', { request }))
      await waitUntil(() => kinds([other])[0] === 'running', 'another job to run there')
      // A report is older than what has just happened.
      await waitUntil(() => store.report()?.down.a === undefined, 'the report to know that its host answers')
      expect(whyOf(id)).toBe(
        `a had the address a.lab when this job was placed, and nothing of it is at new-a.lab. Put the address back in hosts.yaml, or give the job up: muster job cancel --forget ${id}`,
      )
      expect(hostsToForget([job(id)], store.report())).toEqual(['a'])
      // Given up with it, the other job would run on unseen.
      expect(hostsToForget([job(id), job(other)], store.report())).toEqual([])
      submitStop(other)
      await waitUntil(() => kinds([other])[0] === 'cancelled', 'the other job to end')
      stop.abort()
      await driving
      expect(kinds([id])).toEqual(['running'])
      writeFileSync(join(directory, 'go'), '')
      await drive()
      expect([kinds([id]), job(id).attempt, lines('ran')]).toEqual([['done'], 1, ['1']])
    })

    it('lets it be given up there', async () => {
      const driving = drive(undefined, store, { hosts: moved, port: swapped })
      await waitUntil(() => whyOf(id) !== undefined, 'the report to name it')
      applyEvent(store, id, { kind: 'stop', reason: 'cancelled' }, Date.now())
      applyEvent(store, id, { kind: 'forget', hosts: hostsToForget([job(id)], store.report()) }, Date.now())
      await driving
      expect(kinds([id])).toEqual(['cancelled'])
      writeFileSync(join(directory, 'go'), '')
    })
  })

  it('a gang that is given up is stopped on hosts that answer before their devices are free', async () => {
    const gang = submit(
      spec('echo $$ >"$OUT/pid.$MUSTER_RANK"; exec sleep 1000', { bundles: 2, strategy: 'STRICT_SPREAD' }),
    )
    const id = gang[0] as number
    const driving = drive()
    const pids = () => [0, 1].map((rank) => (exists(`pid.${rank}`) ? Number(lines(`pid.${rank}`)[0]) : 0))
    await waitUntil(() => kinds(gang)[0] === 'running' && pids().every((pid) => pid > 0), 'it to run')
    down.add('a')
    cut.get('a')?.()
    await waitUntil(() => store.report()?.down.a !== undefined, 'its host to be missed')
    const { state } = job(id)
    const rank = 'places' in state && state.places?.[0]?.host === 'a' ? 0 : 1
    const hosts = hostsToForget([job(id)], store.report())
    expect(hosts).toEqual(['a'])
    applyEvent(store, id, { kind: 'forget', hosts }, Date.now())
    await driving
    expect(kinds(gang)).toEqual(['cancelled'])
    expect([pids()[rank], pids()[1 - rank]].map((pid) => isAlive(Number(pid)))).toEqual([true, false])
    process.kill(Number(pids()[rank]), 'SIGKILL')
  })

  it('a job that ended while no scheduler ran has the times of its host, not of the next poll', async () => {
    const laterMs = 3_600_000
    const ids = submit(spec('while [ ! -e "$OUT/go" ]; do sleep 0.05; done; touch "$OUT/over"; exit 3'))
    const unheard = submit(spec('exit 0'))
    const controller = new AbortController()
    const driving = drive(controller.signal)
    await waitUntil(() => kinds(ids)[0] === 'running', 'it to run')
    controller.abort()
    await driving
    const beganMs = Date.now()
    writeFileSync(join(directory, 'go'), '')
    await waitUntil(() => exists('over'), 'its end')
    await drive(undefined, undefined, { clock: { ...systemClock, now: () => Date.now() + laterMs } })
    for (const id of [...ids, ...unheard]) {
      const { state } = job(id)
      if (state.kind !== 'failed' && state.kind !== 'done') throw new Error(state.kind)
      expect(state.endedMs - (state.startedMs ?? 0)).toBeLessThan(30_000)
    }
    expect(job(ids[0] as number).state).toMatchObject({ startedMs: expect.closeTo(beganMs, -4) })
    const [ranS] = store.accounting.runTimes().get('ann') ?? []
    expect(ranS).toBeLessThan(30)
  })

  it.each([
    ['ahead', 365],
    ['back', -365],
  ])("a host's clock that is set %s moves neither the times of a job nor its end", async (_, days) => {
    const jumpMs = days * 86_400_000
    const gated = (name: string) =>
      `trap 'sleep 0.3; echo saved >"$OUT/saved"; exit 9' TERM; touch "$OUT/${name}"; while [ ! -e "$OUT/go" ]; do sleep 0.05; done; touch "$OUT/over"; exit 3`
    // The clock shows in what date(1) prints and in the times of files.
    const date = execFileSync('sh', ['-c', 'command -v date'], { encoding: 'utf8' }).trim()
    mkdirSync(join(directory, 'bin'), { recursive: true })
    const setClock = () => {
      const asDate = `#!/bin/sh\nexec ${date} -d "$(${date} -R -d '${days} days')" "$@"\n`
      writeFileSync(join(directory, 'bin/date'), asDate, { mode: 0o755 })
      const at = new Date(Date.now() + jumpMs)
      for (const host of ['a', 'b']) {
        const jobs = join(directory, host, '.local/state/muster/jobs')
        if (!existsSync(jobs)) continue
        for (const name of readdirSync(jobs, { recursive: true, encoding: 'utf8' }))
          utimesSync(join(jobs, name), at, at)
      }
    }
    const [ends, stopped] = [submit(spec(gated('ends'))), submit(spec(gated('stopped')))]
    const controller = new AbortController()
    const driving = drive(controller.signal)
    await waitUntil(() => kinds([...ends, ...stopped]).every((kind) => kind === 'running'), 'both to run')
    await waitUntil(() => exists('ends') && exists('stopped'), 'both to listen')
    const seenMs = Date.now()
    setClock()
    submitStop(stopped[0] as number)
    await waitUntil(() => kinds(stopped)[0] === 'cancelled', 'the end of one')
    const later = submit(spec('date -R >"$OUT/date"'))
    await waitUntil(() => kinds(later)[0] === 'done', 'a job after the jump')
    controller.abort()
    await driving
    const goMs = Date.now()
    writeFileSync(join(directory, 'go'), '')
    await waitUntil(() => exists('over'), 'the end of the other')
    // An hour later, only the host can tell how long it ran.
    await drive(undefined, undefined, { clock: { ...systemClock, now: () => Date.now() + 3_600_000 } })
    expect(lines('saved')).toEqual(['saved'])
    expect(Math.abs(Date.parse(lines('date')[0] ?? '') - Date.now() - jumpMs)).toBeLessThan(3_600_000)
    expect(job(stopped[0] as number).state).toMatchObject({ bundles: [{ end: { code: 9 } }] })
    const { state } = job(ends[0] as number)
    expect(state).toMatchObject({ kind: 'failed', bundles: [{ end: { code: 3 } }] })
    if (state.kind !== 'failed') throw new Error(state.kind)
    const ranMs = state.endedMs - (state.startedMs ?? 0)
    // Hosts round to hundredths of a second.
    expect(ranMs).toBeGreaterThan(goMs - seenMs - 100)
    expect(ranMs).toBeLessThan(60_000)
  })

  it('a running job can be requeued: it ends, waits and runs again', async () => {
    const ids = submit(spec('echo $MUSTER_ATTEMPT >>"$OUT/again"; [ $MUSTER_ATTEMPT = 2 ] || sleep 1000'))
    const driving = drive()
    await waitUntil(() => kinds(ids)[0] === 'running' && exists('again'), 'it to run')
    expect(applyEvent(store, ids[0] as number, { kind: 'requeue' }, Date.now())).toBe(true)
    await driving
    expect(kinds(ids)).toEqual(['done'])
    expect(lines('again')).toEqual(['1', '2'])
    expect(job(ids[0] as number).failures).toBe(0)
  })

  it('recognises jobs from before a reboot of their host and retries them as declared', async () => {
    const ids = submit(spec('echo $$ >>"$OUT/pids"; [ $MUSTER_ATTEMPT = 2 ] || exec sleep 600', { retries: 1 }))
    const driving = drive()
    await waitUntil(() => kinds(ids)[0] === 'running' && exists('pids'), 'it to run')
    // As a new boot would find it: the directory is there, and was written under another boot id.
    const [key = ''] = store.keptDirectories()
    const host = ['a', 'b'].find((name) => existsSync(join(directory, name, '.local/state/muster/jobs', key))) ?? ''
    const id = join(directory, host, '.local/state/muster/jobs', key, 'id')
    const [pid, , start] = readFileSync(id, 'utf8').trim().split(' ')
    writeFileSync(id, `${pid} another-boot ${start}\n`)
    await waitUntil(() => job(ids[0] as number).attempt === 2, 'it to be missed')
    const { state } = job(ids[0] as number)
    if (state.kind === 'queued') expect(state.last).toBe('lost: the host rebooted')
    await driving
    expect(kinds(ids)).toEqual(['done'])
    process.kill(-Number(pid), 'SIGKILL')
  })

  it('a job of an older copy of the queue that was put back runs, whatever had its number before', async () => {
    const path = join(directory, 'queue.db')
    const copy = join(directory, 'copy.db')
    submit(spec('true'))
    await drive()
    store.file.all('VACUUM INTO ?', copy)
    const [lost] = submit(spec('echo of the lost job'))
    await drive()
    store[Symbol.dispose]()
    renameSync(copy, path)
    store = new JobStore(path)
    const ids = submit(spec('touch "$OUT/ran"; exit 3'))
    expect(ids).toEqual([lost])
    await drive()
    expect(kinds(ids)).toEqual(['failed'])
    expect(exists('ran')).toBe(true)
  })

  it('keeps the exit code even when no line can be written any more', async () => {
    const ids = submit(spec('mkdir "$(dirname "$(readlink /proc/$$/fd/1)")/exit"; exit 3'))
    await drive()
    const { state } = job(ids[0] as number)
    expect(state).toMatchObject({ kind: 'failed', reason: 'exit 3; the disk was full, so output may be missing' })
  })

  it('removes the files of ended jobs, and keeps those of running jobs and other queues', async () => {
    const ids = submit(spec('true'), { variants: [{}, {}] })
    await drive()
    const held = submit(spec('sleep 1000'))
    const controller = new AbortController()
    const driving = drive(controller.signal)
    await waitUntil(() => kinds(held)[0] === 'running', 'it to run')
    controller.abort()
    await driving
    const jobs = ['a', 'b'].map((host) => join(directory, host, '.local', 'state', 'muster', 'jobs'))
    const keysIn = (path: string) => (existsSync(path) ? readdirSync(path) : [])
    const left = () => jobs.flatMap(keysIn).sort()
    mkdirSync(join(jobs[0] as string, 'other-1-1-0'), { recursive: true })
    expect(left()).toHaveLength(ids.length + 2)
    for (const path of jobs) for (const name of keysIn(path)) utimesSync(join(path, name), 0, 0)
    for (const host of ['a', 'b']) {
      const answer = await run(host, formatCleanProgram(store.id, { kept: store.keptDirectories(), storages: [] }, 1))
      expect(parseCleaned(answer)?.count).toEqual(expect.any(Number))
    }
    expect(left()).toEqual(['other-1-1-0', ...store.keptDirectories()].sort())
  })

  it('a directory that another host is just removing is left to it, and goes later if that was cut off', async () => {
    const jobs = join(directory, 'a', '.local/state/muster/jobs')
    const name = `${store.id}-1-1-0-gone`
    mkdirSync(join(jobs, name), { recursive: true })
    utimesSync(join(jobs, name), 0, 0)
    const clean = formatCleanProgram(store.id, { kept: [], storages: [] }, 1)
    const cleaned = async () => [parseCleaned(await run('a', clean))?.count, ...readdirSync(jobs)]
    expect(await cleaned()).toEqual([0, name])
    // Nobody can set the time of a rename back, so `find` says that it was long ago.
    mkdirSync(join(directory, 'bin'))
    const find = 'case "$*" in *-cmin*) echo "$1";; *) PATH=/usr/bin:/bin; exec find "$@";; esac'
    writeProgram(join(directory, 'bin', 'find'), find)
    expect(await cleaned()).toEqual([0])
  })

  it('a host that is slow to remove old files runs jobs meanwhile', async () => {
    const onA = {
      request: {
        ...spec('').request,
        selectors: [{ label: 'host', is: 'in' as const, values: ['a'] }],
      },
    }
    const [old = 0] = submit(spec('true', onA))
    await drive()
    const key = bundleKeyOf(store, old)
    const path = join(directory, 'a', '.local/state/muster/jobs', key)
    utimesSync(path, 0, 0)
    mkdirSync(join(directory, 'bin'))
    const slow = `[ "$1" != -rf ] || { : >"$OUT/rm"; while [ -d "$OUT" ] && [ ! -e "$OUT/go" ]; do sleep 0.05; done; }`
    writeProgram(join(directory, 'bin', 'rm'), `${slow}\nPATH=/usr/bin:/bin; exec rm "$@"`)
    const first = submit(spec('while [ ! -e "$OUT/rm" ]; do sleep 0.05; done', onA))
    const next = submit(spec('true', onA), { after: first })
    const troubles: (string | undefined)[] = []
    const onEvent: DriverOptions['onEvent'] = (event) => void (event.kind === 'host' && troubles.push(event.trouble))
    await drive(undefined, undefined, { keepDays: 1, hosts: HOSTS.slice(0, 1), onEvent })
    // It is renamed before it is removed.
    expect([...kinds(next), existsSync(`${path}-gone`), ...troubles]).toEqual(['done', true, undefined])
    writeFileSync(join(directory, 'go'), '')
    await waitUntil(() => !existsSync(`${path}-gone`), 'the old directory to be removed')
  })

  it('reads what to keep once for all hosts, however many there are', async () => {
    const names = Array.from({ length: 12 }, (_, index) => `h${index}`)
    const hosts = names.map((name): DriverHost => ({ ...(HOSTS[0] as DriverHost), name }))
    submit(spec('sleep 1'))
    const reads = vi.spyOn(store.file, 'all')
    await drive(undefined, undefined, { keepDays: 1, hosts })
    const ofSweeps = reads.mock.calls.filter(([sql]) => sql.includes("kind IN ('held', 'queued'"))
    reads.mockRestore()
    expect(ofSweeps.length).toBeGreaterThan(0)
    expect(ofSweeps.length).toBeLessThanOrEqual(2)
  })

  /** Counts the signals that come; does not end by them. */
  const counts = (name: string) =>
    `trap 'echo TERM >>"$OUT/${name}.signals"' TERM; echo $$ >>"$OUT/${name}"; while :; do sleep 0.1; done`
  const pidsOf = (name: string) => (exists(name) ? lines(name).filter(Boolean).map(Number) : [])

  it('sends TERM once and then KILL for every kind of stop, and knows how the job ended', {
    timeout: 60_000,
  }, async () => {
    const on = (host: string) => ({
      ...{ cpuMilli: 4000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0 },
      selectors: [{ label: 'host', is: 'in' as const, values: [host] }],
    })
    const whole = { ...on('b'), cpuMilli: 8000 }
    const cancelled = submit(spec(counts('cancelled'), { request: on('a') }))
    const overdue = submit(spec(counts('overdue'), { request: on('a'), limitS: 1 }))
    const low = submit(
      spec(`[ $MUSTER_ATTEMPT = 2 ] && exit; ${counts('low')}`, { request: whole, isPreemptible: true }),
    )
    const driving = drive()
    await waitUntil(() => kinds([...cancelled, ...low]).every((kind) => kind === 'running'), 'all to run')
    await waitUntil(() => ['cancelled', 'overdue', 'low'].every(exists), 'all to listen')
    submitStop(cancelled[0] as number)
    const urgent = submit(spec('true', { request: whole }), { priority: 1 })
    await driving
    expect(kinds([...cancelled, ...overdue, ...low, ...urgent])).toEqual(['cancelled', 'timed-out', 'done', 'done'])
    for (const name of ['cancelled', 'overdue', 'low']) expect(lines(`${name}.signals`)).toEqual(['TERM'])
    for (const id of [...cancelled, ...overdue])
      expect(job(id).state).toMatchObject({ bundles: [{ kind: 'ended', end: { kind: 'exit', code: 137 } }] })
  })

  it('stops processes that left the group, each with one TERM, before the job has ended', {
    timeout: 60_000,
  }, async () => {
    const script = (name: string, text: string) => {
      writeFileSync(join(directory, name), `echo $$ >>"$OUT/pids"; ${text}`)
      return `sh "$OUT/${name}"`
    }
    const saves = (name: string) =>
      `trap 'echo TERM >>"$OUT/${name}"; sleep 0.5; exit 9' TERM; while :; do sleep 0.1; done`
    const worker = script('worker', saves('worker.signals'))
    const agent = script('agent', `setsid ${worker} & w=$!; trap 'kill -TERM $w; wait $w; exit' TERM; wait`)
    const jobs = [
      // A supervisor that hands the signal on to a worker in a session of its own, as torchrun does.
      `${agent}; echo more`,
      // In a process group of its own, and its parent ends at once.
      `timeout 1000 ${script('in-time', saves('in-time.signals'))}; echo more`,
      `exec setsid ${script('alone', saves('alone.signals'))}`,
      `(trap '' TERM; echo $$ >>"$OUT/pids"; sh -c 'echo $$ >>"$OUT/pids"; exec sleep 1000') & sleep 1000`,
    ]
    const ids = jobs.flatMap((command) => submit(spec(command)))
    const driving = drive()
    await waitUntil(() => pidsOf('pids').length === 6, 'all to run')
    for (const id of ids) submitStop(id)
    await driving
    expect(kinds(ids)).toEqual(ids.map(() => 'cancelled'))
    expect(pidsOf('pids').filter(isAlive)).toEqual([])
    for (const name of ['worker', 'alone']) expect(lines(`${name}.signals`)).toEqual(['TERM'])
    // timeout(1) itself sends it to its child and to its group.
    expect(new Set(lines('in-time.signals'))).toEqual(new Set(['TERM']))
  })

  it('cancelling stops a running job with its group, and a job being sent cannot begin any more', async () => {
    const ids = submit(spec('echo $$ >"$OUT/pid"; sleep 1000 & sleep 1001'))
    const driving = drive()
    await waitUntil(() => exists('pid') && lines('pid')[0] !== '', 'it to run')
    submitStop(ids[0] as number)
    await driving
    expect(kinds(ids)).toEqual(['cancelled'])
    const state = job(ids[0] as number).state
    expect(isActive(state)).toBe(false)
    const [pid] = lines('pid')
    await waitUntil(() => !isAlive(Number(pid)), 'the end of its shell')
  })
})

function isAlive(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.[0] !== 'Z'
  } catch {
    return false
  }
}
