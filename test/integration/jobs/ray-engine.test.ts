/** Jobs that Ray runs, with the program that is sent to its head and a dashboard that this process plays. */

import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { driverEngines, type EngineKind, engineLog } from '../../../src/cli/job/engines.ts'
import type { OpsHosts, ScriptResult } from '../../../src/ops/kernel/host-port.ts'
import { OUTPUT_MARK, openRay, RAY_ENGINE } from '../../../src/ops/ray/job-engine.ts'
import type { RayWanted } from '../../../src/ops/ray/wanted.ts'
import { driveJobs, LEASE_MS } from '../../../src/scheduler/jobs/driver.ts'
import type { Job, JobSpec } from '../../../src/scheduler/jobs/job.ts'
import { JobStore } from '../../../src/scheduler/jobs/store.ts'
import { applyEvent } from '../../support/apply-event.ts'
import { bundleKeyOf } from '../../support/bundle-key.ts'
import { writeProgram } from '../../support/program.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'

const canRun = requirement('python3')

type Known = {
  status: string
  driver_exit_code: number | null
  logs: string
  message?: string
  readonly order: Record<string, unknown>
}

const spec = (rest: Partial<JobSpec> = {}): JobSpec => ({
  name: 'train',
  command: 'echo hello',
  environment: { WORD: "it's" },
  request: { cpuMilli: 500, memoryBytes: 0, gpuCount: 1, gpuMilli: 500 },
  bundles: 1,
  strategy: 'PACK',
  retries: 0,
  isPreemptible: false,
  engine: 'ray',
  ...rest,
})

describe.skipIf(!canRun)('jobs that Ray runs', () => {
  let directory: string
  let store: JobStore
  let server: Server
  let wanted: RayWanted
  const known = new Map<string, Known>()
  const placed = new Set<string>()
  const counts = { posts: 0 }
  let broken = false
  /** By key of a job: what Ray answers instead. */
  const statuses = new Map<string, readonly [number, string]>()

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'muster-ray-jobs-'))
    mkdirSync(join(directory, 'bin'))
    writeFileSync(join(directory, 'bin', 'ray'), '', { mode: 0o755 })
    writeProgram(join(directory, 'bin', 'python'), 'exec python3 "$@"')
    store = new JobStore(join(directory, 'queue.db'))
    known.clear()
    placed.clear()
    counts.posts = 0
    broken = false
    statuses.clear()
    server = createServer(async (request, response) => {
      const answer = (status: number, body: unknown): void => {
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
      }
      let text = ''
      for await (const piece of request.setEncoding('utf8')) text += piece
      const url = new URL(request.url ?? '', 'http://ray')
      if (broken) return answer(500, 'Internal error')
      if (url.pathname === '/api/version') return answer(200, { ray_version: '2.60.0' })
      if (url.pathname === '/api/v0/placement_groups') {
        const name = url.searchParams.get('filter_values') ?? ''
        return answer(200, { data: { result: { result: placed.has(name) ? [{ state: 'CREATED' }] : [] } } })
      }
      if (url.pathname === '/api/v0/nodes') return answer(200, { data: { result: { result: [] } } })
      const [, key = '', verb] = /^\/api\/jobs\/([^/]*)(?:\/(stop|logs))?$/.exec(url.pathname) ?? []
      if (key === '') {
        const order = JSON.parse(text) as Record<string, unknown>
        const status = statuses.get(String(order.submission_id))
        if (status !== undefined) return answer(...status)
        counts.posts += 1
        if (known.has(String(order.submission_id))) return answer(500, 'already exists')
        known.set(String(order.submission_id), { status: 'PENDING', driver_exit_code: null, logs: '', order })
        return answer(200, { submission_id: order.submission_id })
      }
      const job = known.get(key)
      const status = statuses.get(key)
      if (status !== undefined && job !== undefined) return answer(...status)
      if (job === undefined) return answer(404, 'no such job')
      if (verb === 'logs') return answer(200, { logs: job.logs })
      if (verb === 'stop') job.status = 'STOPPED'
      return answer(200, job)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const head = { host: 'm10', isHead: true, address: '10.0.0.1', custom: {}, labels: {} }
    wanted = {
      head,
      workers: [],
      port: 6379,
      dashboardHost: '127.0.0.1',
      dashboardPort: (server.address() as AddressInfo).port,
      hasToken: false,
      ports: {},
      tempDirectory: '/tmp/ray',
      variables: {},
      isSupervised: false,
    }
  })
  afterEach(async () => {
    await new Promise((resolve) => server.close(resolve))
    store[Symbol.dispose]()
    rmSync(directory, { recursive: true, force: true })
  })

  /** The head is this machine. */
  const hosts: OpsHosts = {
    async exec(host, script, { stdin }): Promise<ScriptResult> {
      expect(host).toBe('m10')
      const environment = { PATH: `${join(directory, 'bin')}:${process.env.PATH}`, HOME: directory }
      const child = spawn('/bin/sh', ['-c', script], { env: environment })
      child.stdin.end(stdin)
      const read = async (stream: NodeJS.ReadableStream) => {
        const pieces: Buffer[] = []
        for await (const piece of stream) pieces.push(piece as Buffer)
        return Buffer.concat(pieces)
      }
      const [stdout, stderr] = await Promise.all([read(child.stdout), read(child.stderr)])
      const code = child.exitCode ?? (await new Promise<number>((resolve) => child.on('close', resolve)))
      return { outcome: { kind: 'exit', code }, stdout, stderr, durationMs: 0 }
    },
  }
  const engines = () => new Map([['ray', { ...(RAY_ENGINE as EngineKind), ...openRay(wanted) }]])
  const submit = (own: JobSpec): number =>
    store.submit({ spec: own, user: 'ann', priority: 0, isHeld: false, after: [], variants: [{}] }, Date.now())[0] ?? 0
  const drive = async (signal = new AbortController().signal): Promise<void> => {
    const lease = store.lease.take('test', Date.now(), LEASE_MS)
    if (lease === undefined) throw new Error('somebody else drives')
    const port = { open: () => ({ write() {}, [Symbol.dispose]() {} }) }
    const rest = { isPreempting: false, isUntilEmpty: true, clock: systemClock, port }
    await driveJobs({ store, lease, hosts: [], engines: driverEngines(engines(), hosts), signal, ...rest })
    store.lease.give(lease)
  }
  const job = (id: number): Job => store.get(id) as Job
  const kind = (id: number) => job(id).state.kind
  const keyOf = (id: number) => bundleKeyOf(store, id)
  const ended = (id: number, own: Partial<Known>): void => {
    Object.assign(known.get(keyOf(id)) ?? {}, own)
  }

  it("follow Ray's states and end with the exit code of their command", async () => {
    const [well, bad, gone] = [submit(spec()), submit(spec()), submit(spec())]
    const driving = drive()
    await waitUntil(() => known.size === 3, 'Ray to have them')
    expect(known.get(keyOf(well))?.order).toMatchObject({
      entrypoint_num_cpus: 0.5,
      entrypoint_num_gpus: 0.5,
      runtime_env: {
        env_vars: {
          ...{ WORD: "it's", MUSTER_JOB: String(well), MUSTER_ATTEMPT: '1', MUSTER_GPU_MILLI: '500' },
          RAY_JOB_STOP_WAIT_TIME_S: '10',
        },
      },
    })
    expect(kind(well)).toBe('pending')
    ended(well, { status: 'RUNNING' })
    await waitUntil(() => kind(well) === 'running', 'one to run')
    ended(well, { status: 'SUCCEEDED', driver_exit_code: 0 })
    ended(bad, { status: 'FAILED', driver_exit_code: 3 })
    known.delete(keyOf(gone))
    ended(gone, {})
    await waitUntil(() => kind(bad) === 'failed', 'one to fail')
    await waitUntil(() => known.has(keyOf(gone)), 'the one that was not begun to be sent again')
    ended(gone, { status: 'FAILED' })
    await driving
    expect([well, bad, gone].map(kind)).toEqual(['done', 'failed', 'lost'])
    expect(job(bad).state).toMatchObject({ reason: 'exit 3' })
  })

  it('are one Ray job as a gang, which runs when its placement group is placed', async () => {
    const id = submit(spec({ bundles: 3, strategy: 'STRICT_SPREAD' }))
    const driving = drive()
    await waitUntil(() => known.size === 1, 'Ray to have it')
    const key = keyOf(id)
    expect(known.get(key)?.order.entrypoint).toContain('STRICT_SPREAD')
    expect(known.get(key)?.order).not.toHaveProperty('entrypoint_num_cpus')
    ended(id, { status: 'RUNNING' })
    placed.add(key)
    await waitUntil(() => kind(id) === 'running', 'it to run')
    const logs = `setting up\n${OUTPUT_MARK}\n[0] zero\n[1] one\n[0] two\n[10] ten\n`
    ended(id, { logs })
    const log = async (own: { rank: number; fromByte: number }) => {
      const read = engineLog(engines(), store.id, job(id), own.rank)
      const { signal } = new AbortController()
      return Buffer.from((await read?.({ mostBytes: 100, fromByte: own.fromByte }, hosts, signal)) ?? '').toString()
    }
    expect(await log({ rank: 0, fromByte: 0 })).toBe('zero\ntwo\n')
    expect(await log({ rank: 0, fromByte: 5 })).toBe('two\n')
    expect(await log({ rank: 1, fromByte: -3 })).toBe('ne\n')
    // The end of a log of any length, whatever Ray has to escape in it.
    for (const piece of ['x', '\\', '\\n', '"', 'é\u{1f600}', '\\\\"\r', '\u0001']) {
      ended(id, { logs: `${logs}${`[0] ${piece.repeat(999)}\n`.repeat(900)}[0] loss=${piece}\n[1] no\n` })
      const end = await log({ rank: 0, fromByte: -100 })
      expect(end.slice(-2 * piece.length - 7)).toBe(`${piece}\nloss=${piece}\n`)
    }
    ended(id, { status: 'SUCCEEDED', driver_exit_code: 0 })
    await driving
    expect(kind(id)).toBe('done')
  })

  it('are found again by another scheduler, started once and stopped when cancelled', async () => {
    const id = submit(spec())
    const first = new AbortController()
    const driving = drive(first.signal)
    await waitUntil(() => known.size === 1, 'Ray to have it')
    first.abort()
    await driving
    ended(id, { status: 'RUNNING' })
    const again = drive()
    await waitUntil(() => kind(id) === 'running', 'it to be found')
    applyEvent(store, id, { kind: 'stop', reason: 'cancelled' }, Date.now())
    await again
    expect([kind(id), known.get(keyOf(id))?.status, counts.posts]).toEqual(['cancelled', 'STOPPED', 1])
  })

  it('wait while Ray does not answer, and only a few wait inside it', async () => {
    broken = true
    const ids = Array.from({ length: 12 }, () => submit(spec()))
    const driving = drive()
    await waitUntil(() => store.report()?.down['@ray'] !== undefined, 'the trouble to be told')
    expect(store.report()?.down['@ray']).toContain('Ray answers with HTTP 500')
    broken = false
    await waitUntil(() => known.size === 8, 'the first to be sent')
    expect(ids.map(kind).filter((one) => one === 'queued')).toHaveLength(4)
    for (const id of ids) applyEvent(store, id, { kind: 'stop', reason: 'cancelled' }, Date.now())
    await driving
    expect(new Set(ids.map(kind))).toEqual(new Set(['cancelled']))
  })

  it('continue when Ray answers with an error for one of them', async () => {
    const [running, stuck, refused] = [submit(spec()), submit(spec()), submit(spec())]
    statuses.set(keyOf(stuck), [500, 'No available agent to submit job, please try again later.'])
    statuses.set(keyOf(refused), [500, 'RuntimeError: Request failed with status code 400: ValueError: no such thing'])
    const driving = drive()
    await waitUntil(() => known.has(keyOf(running)), 'Ray to have the one')
    ended(running, { status: 'RUNNING' })
    await waitUntil(() => kind(running) === 'running', 'one to run')
    // Nothing is known of it for a while: it stays as it is.
    statuses.set(keyOf(running), [500, 'Internal error'])
    const others = Array.from({ length: 9 }, () => submit(spec()))
    await waitUntil(() => {
      for (const id of others) ended(id, { status: 'SUCCEEDED', driver_exit_code: 0 })
      return others.every((id) => kind(id) === 'done')
    }, 'the end of all others')
    expect([running, stuck, refused].map(kind)).toEqual(['running', 'pending', 'lost'])
    expect(job(refused).state).toMatchObject({ reason: 'Ray refused it' })
    expect(store.report()?.down['@ray']).toBeUndefined()
    statuses.clear()
    await waitUntil(() => known.has(keyOf(stuck)), 'the one to be sent after all')
    for (const id of [running, stuck]) ended(id, { status: 'SUCCEEDED', driver_exit_code: 0 })
    await driving
    expect([running, stuck].map(kind)).toEqual(['done', 'done'])
  })

  it('are queued again when Ray gave up on waiting for resources', async () => {
    const id = submit(spec())
    const driving = drive()
    await waitUntil(() => known.has(keyOf(id)), 'Ray to have it')
    const message = 'Job supervisor actor failed to start within 900.0 seconds. This timeout can be configured'
    ended(id, { status: 'FAILED', message })
    await waitUntil(() => job(id).attempt === 2, 'another attempt')
    expect(job(id).failures).toBe(0)
    applyEvent(store, id, { kind: 'stop', reason: 'cancelled' }, Date.now())
    await driving
  })

  it('end when the cluster is gone if they ran or were being stopped, and wait for it otherwise', async () => {
    const ids = [submit(spec()), submit(spec()), submit(spec())] as const
    const [running, stopped, waiting] = ids
    const end = new AbortController()
    const driving = drive(end.signal)
    await waitUntil(() => ids.every((id) => known.has(keyOf(id))), 'Ray to have them')
    ended(running, { status: 'RUNNING' })
    await waitUntil(() => kind(running) === 'running', 'one to run')
    await new Promise((resolve) => {
      server.close(resolve)
      server.closeAllConnections()
    })
    await waitUntil(() => store.report()?.down['@ray'] !== undefined, 'the trouble to be told')
    expect(store.report()?.down['@ray']).toBe('Ray is not running on m10. Start it: muster ray up')
    applyEvent(store, stopped, { kind: 'stop', reason: 'cancelled' }, Date.now())
    await waitUntil(() => kind(stopped) === 'cancelled', 'the end of the one')
    expect([kind(running), kind(waiting)]).toEqual(['lost', 'pending'])
    expect(job(running).state).toMatchObject({ reason: 'Ray no longer knows it' })
    end.abort()
    await driving
  })

  it('are not asked about one by one when Ray refuses access', async () => {
    const ids = [submit(spec()), submit(spec())]
    statuses.set(keyOf(ids[0] ?? 0), [401, 'Unauthorized'])
    const end = new AbortController()
    const driving = drive(end.signal)
    await waitUntil(() => store.report()?.down['@ray'] !== undefined, 'the trouble to be told')
    expect(store.report()?.down['@ray']).toContain('Ray answers with HTTP 401')
    expect(known.size).toBe(0)
    end.abort()
    await driving
  })
})
