/** Rounds with an API server that keeps objects as Kubernetes does, without anything that acts on them. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { OpsHosts } from '../../../../src/ops/kernel/host-port.ts'
import { openKubernetesJobs } from '../../../../src/ops/kubernetes/job-engine.ts'
import type { KubernetesStart } from '../../../../src/ops/kubernetes/manifest.ts'
import type { KubernetesSpec } from '../../../../src/ops/kubernetes/section.ts'
import { type ApiRequest, FakeApiServer, refuse, sendJson } from '../../../support/fake-api-server.ts'
import { ManualClock } from '../../../unit/ssh/manual-clock.ts'

const SPEC: KubernetesSpec = { namespace: 'team', image: 'lab:1' }
const KEY = 'abc-4-1-0'
const NAME = `muster-${KEY}`
const NO_HOSTS = {} as OpsHosts
const never = new AbortController().signal

type Fields = Record<string, unknown>
type Stored = Fields & {
  metadata: Fields & { name: string; uid: string; labels?: Record<string, string> }
  spec: Fields
  status: Fields
}

const KINDS = ['jobs', 'pods', 'services', 'nodes', 'events']

/** Objects by their path. */
class Cluster {
  readonly objects = new Map<string, Stored>()
  /** Instead of its own answer. */
  override: ((request: ApiRequest, response: ServerResponse) => boolean) | undefined

  of(kind: string): readonly Stored[] {
    return [...this.objects].flatMap(([path, object]) => (path.split('/').at(-2) === kind ? [object] : []))
  }

  /** `team` is the namespace. */
  put(kind: 'pods' | 'nodes' | 'services' | 'events', name: string, object: Fields): void {
    const { metadata, ...rest } = object
    const path = kind === 'nodes' ? `/api/v1/nodes/${name}` : `/api/v1/namespaces/team/${kind}/${name}`
    const own = { name, uid: `uid-${name}`, ...(metadata as Fields) }
    this.objects.set(path, { spec: {}, status: {}, ...rest, metadata: own })
  }

  answer(request: ApiRequest, response: ServerResponse): void {
    const { method, path, body } = request
    if (this.override?.(request, response)) return
    if (path === '/apis') return sendJson(response, { groups: [] })
    const found = this.objects.get(path)
    if (method === 'POST') {
      const object = body as Stored
      const at = `${path}/${object.metadata.name}`
      if (this.objects.has(at)) return refuse(response, 409, 'AlreadyExists')
      const metadata = { ...object.metadata, uid: `uid-${object.metadata.name}` }
      this.objects.set(at, { ...object, metadata, status: {} })
      return sendJson(response, object, 201)
    }
    const kind = path.split('/').at(-1) ?? ''
    if (method === 'GET' && KINDS.includes(kind)) return sendJson(response, { metadata: {}, items: this.of(kind) })
    if (found === undefined) return refuse(response, 404, 'NotFound')
    if (method === 'PATCH') {
      const { metadata, spec } = body as Stored
      Object.assign(found.spec, spec)
      found.metadata.labels = { ...found.metadata.labels, ...metadata.labels }
    }
    if (method === 'DELETE') found.metadata.deletionTimestamp = '2026-01-01T00:00:00Z'
    sendJson(response, found)
  }
}

const start = (spec: Partial<KubernetesStart['spec']> = {}) => ({
  kind: 'start' as const,
  key: KEY,
  environment: {},
  spec: {
    name: 'train',
    command: 'true',
    request: { cpuMilli: 1000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0 },
    bundles: 1,
    strategy: 'PACK',
    ...spec,
  },
})
const check = { kind: 'check' as const, key: KEY }
const stop = { kind: 'stop' as const, key: KEY }

const node = (cpu: string) => ({
  status: { conditions: [{ type: 'Ready', status: 'True' }], allocatable: { cpu, memory: '8Gi', pods: '10' } },
})
const OWNED = {
  labels: { 'muster.dev/key': KEY },
  ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: NAME, uid: `uid-${NAME}`, controller: true }],
}
const pod = (nodeName: string, more: Fields = {}) => ({
  metadata: OWNED,
  spec: { nodeName, containers: [] },
  status: { phase: 'Running', containerStatuses: [{ name: 'main', state: { running: {} } }] },
  ...more,
})

describe('rounds with Kubernetes', () => {
  let directory: string
  let server: FakeApiServer
  let cluster: Cluster
  let clock: ManualClock
  let opened: Disposable[]

  const open = (spec = SPEC) => {
    const environment = { PATH: `${directory}:/usr/bin:/bin` }
    const engine = openKubernetesJobs(spec, { environment, signal: never, clock })
    opened.push(engine)
    return engine
  }
  const posted = () =>
    server.requests.filter(({ method }) => method === 'POST').map(({ path }) => path.split('/').at(-1))
  const job = () => cluster.of('jobs')[0] as Stored

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'muster-test-kubectl-'))
    cluster = new Cluster()
    clock = new ManualClock()
    opened = []
    server = await FakeApiServer.start((request, response) => cluster.answer(request, response))
    const program = `#!/bin/sh\ncase "$*" in *proxy*) echo "Starting to serve on ${server.path}"; exec sleep 600;; esac\n`
    writeFileSync(join(directory, 'kubectl'), program, { mode: 0o755 })
  })
  afterEach(() => {
    for (const engine of opened) engine[Symbol.dispose]()
    server[Symbol.dispose]()
    rmSync(directory, { recursive: true, force: true })
  })

  it('hands a job over once, also by another scheduler', async () => {
    const first = open()
    expect((await first.round([start()], NO_HOSTS, never)).reports.get(KEY)).toBe('waiting')
    expect((await first.round([start()], NO_HOSTS, never)).reports.get(KEY)).toBe('waiting')
    expect((await open().round([start()], NO_HOSTS, never)).reports.get(KEY)).toBe('waiting')
    expect(posted()).toEqual(['jobs'])
  })

  it('takes a job as its own that was made while it looked', async () => {
    let isHidden = true
    cluster.override = ({ method, path }, response) => {
      if (!isHidden || method !== 'GET' || !path.endsWith('/jobs')) return false
      sendJson(response, { metadata: {}, items: [] })
      return true
    }
    await open().round([start()], NO_HOSTS, never)
    const { reports, trouble } = await open().round([start()], NO_HOSTS, never)
    expect([reports.get(KEY), trouble]).toEqual(['waiting', undefined])
    isHidden = false
    expect(cluster.of('jobs')).toHaveLength(1)
  })

  it('bars the name of a job that is stopped before it is handed over', async () => {
    expect((await open().round([stop], NO_HOSTS, never)).reports.get(KEY)).toBe('barred')
    expect(job()).toMatchObject({ metadata: { name: NAME }, spec: { completions: 0 } })
    expect((await open().round([start()], NO_HOSTS, never)).reports.get(KEY)).toBe('barred')
  })

  it('tells a job that was deleted from one that it never saw', async () => {
    const engine = open()
    await engine.round([start()], NO_HOSTS, never)
    cluster.objects.clear()
    const cancelled = { kind: 'gone', reason: 'deleted in Kubernetes', isCancelled: true }
    expect((await engine.round([check], NO_HOSTS, never)).reports.get(KEY)).toEqual(cancelled)
    expect((await open().round([check], NO_HOSTS, never)).reports.get(KEY)).toBe('forgotten')
  })

  it('deletes a job with its pods, and knows its end only when they have ended', async () => {
    const engine = open()
    await engine.round([start()], NO_HOSTS, never)
    cluster.put('pods', 'p', pod('w1'))
    expect((await engine.round([stop], NO_HOSTS, never)).reports.get(KEY)).toBeUndefined()
    const deleted = server.requests.find(({ method }) => method === 'DELETE')
    expect(deleted?.body).toMatchObject({ propagationPolicy: 'Foreground', preconditions: { uid: `uid-${NAME}` } })
    expect((await engine.round([stop], NO_HOSTS, never)).reports.get(KEY)).toBeUndefined()
    cluster.objects.clear()
    expect((await engine.round([stop], NO_HOSTS, never)).reports.get(KEY)).toBe('lost')
  })

  it('lets a gang start when all of it fits, and takes it back when only a part gets nodes', async () => {
    cluster.put('nodes', 'w1', node('1'))
    const engine = open()
    const gang = start({ bundles: 2 })
    await engine.round([gang], NO_HOSTS, never)
    expect(job().spec.suspend).toBe(true)
    expect((await engine.round([gang], NO_HOSTS, never)).waits?.get(KEY)?.why).toBe(
      'all of its 2 bundles must fit at once; now there is room for 1',
    )
    expect(posted()).toEqual(['jobs', 'services'])
    cluster.put('nodes', 'w2', node('1'))
    clock.advance(6_000)
    await engine.round([gang], NO_HOSTS, never)
    expect(job().spec.suspend).toBe(false)
    cluster.put('pods', 'p', pod('w1'))
    cluster.put('pods', 'q', pod('', { status: { phase: 'Pending' } }))
    await engine.round([gang], NO_HOSTS, never)
    clock.advance(44_000)
    await engine.round([gang], NO_HOSTS, never)
    expect(job().spec.suspend).toBe(false)
    clock.advance(2_000)
    expect((await engine.round([check], NO_HOSTS, never)).reports.get(KEY)).toBe('waiting')
    expect(job().spec.suspend).toBe(true)
    for (const name of ['p', 'q']) cluster.objects.delete(`/api/v1/namespaces/team/pods/${name}`)
    expect((await engine.round([check], NO_HOSTS, never)).waits?.get(KEY)?.why).toMatch(/tries again in 30 s$/)
    clock.advance(31_000)
    await engine.round([check], NO_HOSTS, never)
    expect(job().spec.suspend).toBe(false)
  })

  it('gives a job up whose node does not answer, and ends its other pods', async () => {
    const engine = open()
    await engine.round([start()], NO_HOSTS, never)
    const metadata = { ...OWNED, deletionTimestamp: '2026-01-01T00:00:00Z' }
    const spec = { nodeName: 'w\u001b[2J1', terminationGracePeriodSeconds: 10, containers: [] }
    cluster.put('pods', 'p', pod('', { metadata, spec }))
    const first = await engine.round([check], NO_HOSTS, never)
    expect([first.reports.get(KEY), first.nodes?.get(KEY)]).toEqual(['running', '"w\\u001b[2J1"'])
    clock.advance(125_000)
    expect((await engine.round([check], NO_HOSTS, never)).reports.get(KEY)).toBe('running')
    clock.advance(6_000)
    const report = (await engine.round([check], NO_HOSTS, never)).reports.get(KEY) as { reason: string }
    expect(report).toMatchObject({ kind: 'gone', reason: expect.stringMatching(/^its node does not answer: w/) })
    expect(report.reason).not.toContain('\u001b')
    expect(job().metadata.deletionTimestamp).toBeDefined()
  })

  it('believes only the job of its own name, and survives objects that are none', async () => {
    const status = { conditions: [{ type: 'Complete', status: 'True' }] }
    const foreign = { metadata: { name: 'other', uid: 'u', labels: { 'muster.dev/key': KEY } }, spec: {}, status }
    cluster.override = ({ method, path }, response) => {
      if (method !== 'GET' || !/\/(jobs|pods)$/.test(path)) return false
      const odd = [
        ...(path.endsWith('/jobs') ? [foreign] : []),
        null,
        7,
        { metadata: 'x' },
        { metadata: { uid: 'v', labels: [] } },
      ]
      sendJson(response, { metadata: {}, items: odd })
      return true
    }
    const { reports, trouble } = await open().round([check], NO_HOSTS, never)
    expect([trouble, reports.get(KEY)]).toEqual([undefined, 'forgotten'])
  })

  it('takes no pod for its own that its job does not control, whatever its labels say', async () => {
    const labels = { 'muster.dev/key': KEY }
    const neighbour = { ...OWNED.ownerReferences[0], uid: 'other' }
    cluster.put('pods', 'bare', pod('w1', { metadata: { labels } }))
    cluster.put(
      'pods',
      'other',
      pod('w1', { metadata: { labels, ownerReferences: [{ ...neighbour, name: 'other' }] } }),
    )
    const engine = open()
    await engine.round([start({ bundles: 2 })], NO_HOSTS, never)
    cluster.put('pods', 'alike', pod('w1', { metadata: { labels, ownerReferences: [neighbour] } }))
    cluster.put('nodes', 'w1', node('9'))
    await engine.round([check], NO_HOSTS, never)
    expect(job().spec.suspend).toBe(false)
    expect((await engine.round([check], NO_HOSTS, never)).reports.get(KEY)).toBe('waiting')
    clock.advance(60_000)
    await engine.round([check], NO_HOSTS, never)
    expect(job().spec.suspend).toBe(false)
    cluster.override = ({ path }, response) => path.endsWith('/log') && response.end('what it prints') !== undefined
    const piece = { key: KEY, rank: undefined, fromByte: 0, mostBytes: 100 }
    expect(await engine.log(piece, NO_HOSTS, never)).toEqual(new Uint8Array())
    job().status.conditions = [{ type: 'Failed', status: 'True', reason: 'PodFailurePolicy', message: '' }]
    const failed = { phase: 'Failed', containerStatuses: [{ name: 'main', state: { terminated: { exitCode: 7 } } }] }
    cluster.put('pods', 'alike', pod('w1', { metadata: { labels, ownerReferences: [neighbour] }, status: failed }))
    expect((await engine.round([check], NO_HOSTS, never)).reports.get(KEY)).toMatchObject({ kind: 'gone' })
    cluster.put('pods', 'own', pod('w1', { status: failed }))
    expect((await engine.round([check], NO_HOSTS, never)).reports.get(KEY)).toEqual({ kind: 'exit', code: 7 })
  })

  it('survives values of every kind in jobs, pods, nodes and events', async () => {
    const odd = { toString: 1, valueOf: 1 }
    const engine = open()
    await engine.round([start({ bundles: 2 })], NO_HOSTS, never)
    for (const value of [odd, [odd], null, 7, '', 'x'.repeat(100_000), true]) {
      const all = { name: value, kind: value, reason: value, message: value, state: value, exitCode: value }
      const entries = [all, { ...all, state: { terminated: all } }, { ...all, state: { waiting: all } }]
      const status = { phase: 'Pending', conditions: entries, containerStatuses: entries, allocatable: { cpu: value } }
      const spec = {
        nodeName: value,
        schedulingGates: entries,
        containers: entries,
        parallelism: value,
        taints: entries,
      }
      cluster.put('pods', 'p', { metadata: { ...OWNED, creationTimestamp: value }, spec, status })
      cluster.put('nodes', 'n', { spec, status: { ...status, conditions: [{ type: 'Ready', status: 'True' }] } })
      cluster.put('events', 'e', { ...all, involvedObject: all, count: value, lastTimestamp: value })
      Object.assign(job(), { spec: { ...spec, suspend: value }, status })
      expect((await engine.round([check], NO_HOSTS, never)).trouble).toBeUndefined()
      Object.assign(job(), { spec: { parallelism: 2, suspend: true, template: { spec } }, status: {} })
      expect((await engine.round([check], NO_HOSTS, never)).trouble).toBeUndefined()
    }
  })

  it('says what is wrong with the cluster, and reports nothing about jobs', async () => {
    cluster.override = ({ method }, response) => {
      if (method !== 'POST') return false
      refuse(response, 404, 'NotFound', 'namespaces "team" not found')
      return true
    }
    const { reports, trouble } = await open().round([start()], NO_HOSTS, never)
    expect([trouble, reports.size]).toEqual([
      'the namespace team does not exist. Create it: kubectl create namespace team',
      0,
    ])
    cluster.override = (_, response) => {
      refuse(response, 503, 'ServiceUnavailable', 'etcd\u001b[31m is away')
      return true
    }
    const down = await open().round([start(), { ...check, key: 'abc-5-1-0' }], NO_HOSTS, never)
    expect([down.trouble, down.reports.size]).toEqual([expect.stringMatching(/^etcd.*is away$/), 0])
    expect(down.trouble).not.toContain('\u001b')
  })

  it.each([
    [413, 'Request entity too large: limit is 3145728'],
    [500, 'etcdserver: request is too large'],
    [403, 'admission webhook "images" denied the request: no'],
  ])('fails only the job that the API server refuses with %i %s', async (status, message) => {
    const other = { ...start(), key: 'abc-5-1-0' }
    cluster.override = ({ method, body }, response) => {
      if (method !== 'POST' || (body as Stored).metadata.name !== NAME) return false
      refuse(response, status, 'Refused', message)
      return true
    }
    const { reports, trouble } = await open().round([start(), other], NO_HOSTS, never)
    expect(trouble).toBeUndefined()
    expect(reports.get(KEY)).toEqual({ kind: 'refused', reason: `Kubernetes refused it: ${message}` })
    expect(reports.get(other.key)).toBe('waiting')
  })

  it('keeps jobs while their namespace is being deleted', async () => {
    cluster.override = ({ method }, response) => {
      if (method !== 'POST') return false
      const message = `jobs.batch "x" is forbidden: unable to create new content in namespace team because it is being terminated`
      refuse(response, 403, 'Forbidden', message)
      return true
    }
    const { reports, trouble } = await open().round([start()], NO_HOSTS, never)
    expect([reports.size, trouble]).toEqual([0, 'the namespace team is being deleted'])
  })

  it("does not start a gang whose Service is a neighbour's, or is left from an earlier job", async () => {
    cluster.put('nodes', 'w1', node('9'))
    const engine = open()
    const gang = start({ bundles: 2 })
    cluster.put('services', NAME, { metadata: { labels: OWNED.labels } })
    await engine.round([gang], NO_HOSTS, never)
    expect((await engine.round([gang], NO_HOSTS, never)).waits?.get(KEY)?.why).toBe(
      `the namespace team has a Service ${NAME} that is not Muster's. Delete it: kubectl delete service ${NAME}`,
    )
    cluster.put('services', NAME, { metadata: { ownerReferences: [{ kind: 'Job', name: NAME, uid: 'earlier' }] } })
    const left = await engine.round([gang], NO_HOSTS, never)
    expect(left.waits?.get(KEY)?.why).toBe('leftovers of an earlier job are being deleted')
    expect(job().spec.suspend).toBe(true)
    cluster.objects.delete(`/api/v1/namespaces/team/services/${NAME}`)
    await engine.round([gang], NO_HOSTS, never)
    expect(cluster.of('services')[0]?.metadata.ownerReferences).toMatchObject([{ uid: `uid-${NAME}` }])
    expect(job().spec.suspend).toBe(false)
    // Another scheduler finds it.
    job().spec.suspend = true
    await open().round([gang], NO_HOSTS, never)
    expect(job().spec.suspend).toBe(false)
  })

  it('tries one gang after the other where it may not read nodes', async () => {
    cluster.override = ({ path }, response) => {
      if (path !== '/api/v1/nodes') return false
      refuse(response, 403, 'Forbidden', 'nodes is forbidden: User "viewer" cannot list resource "nodes"')
      return true
    }
    const gang = start({ bundles: 2 })
    const other = { ...gang, key: 'abc-5-1-0' }
    const engine = open()
    const round = async () => await engine.round([gang, other], NO_HOSTS, never)
    const areSuspended = () => cluster.of('jobs').map(({ spec }) => spec.suspend)
    await round()
    expect((await round()).waits?.get(other.key)?.why).toBe('another gang is being placed first')
    expect(areSuspended()).toEqual([false, true])
    cluster.put('pods', 'p', pod('w1'))
    cluster.put('pods', 'q', pod('', { status: { phase: 'Pending' } }))
    await round()
    clock.advance(46_000)
    await round()
    expect(areSuspended()).toEqual([true, true])
    for (const name of ['p', 'q']) cluster.objects.delete(`/api/v1/namespaces/team/pods/${name}`)
    await round()
    expect(areSuspended()).toEqual([true, false])
  })

  it.each([
    ['exceeded quota: few, requested: services=1, used: services=1, limited: services=1', /^the quota few is used up/],
    ['admission webhook "mesh" denied the request: no', /^Kubernetes refuses the Service of this gang: admission/],
  ])('starts other gangs while Kubernetes refuses what one of them needs: %s', async (message, why) => {
    cluster.put('nodes', 'w1', node('9'))
    const gang = start({ bundles: 2 })
    const other = { ...gang, key: 'abc-5-1-0' }
    cluster.override = ({ method, path, body }, response) => {
      if (method !== 'POST' || !path.endsWith('/services') || (body as Stored).metadata.name !== NAME) return false
      refuse(response, 403, 'Forbidden', message)
      return true
    }
    const engine = open()
    await engine.round([gang, other], NO_HOSTS, never)
    const { waits } = await engine.round([gang, other], NO_HOSTS, never)
    expect(waits?.get(KEY)?.why).toMatch(why)
    expect(cluster.of('jobs').map(({ spec }) => spec.suspend)).toEqual([true, false])
  })

  it('puts a gang into the queue of Kueue when it is whole, and says where it waits', async () => {
    const group = { name: 'kueue.x-k8s.io', preferredVersion: { groupVersion: 'kueue.x-k8s.io/v1beta1' } }
    cluster.override = ({ path }, response) => {
      if (path === '/apis') sendJson(response, { groups: [group] })
      else if (path.endsWith('/kueue.x-k8s.io/v1beta1')) sendJson(response, { resources: [{ name: 'localqueues' }] })
      else return false
      return true
    }
    cluster.put('services', NAME, { metadata: { labels: OWNED.labels } })
    const engine = open({ ...SPEC, queue: 'gpu' })
    const one = { ...start(), key: 'abc-5-1-0' }
    const round = async () => await engine.round([start({ bundles: 2 }), one], NO_HOSTS, never)
    await round()
    expect((await round()).waits?.get(KEY)?.why).toMatch(/has a Service/)
    const queues = () => cluster.of('jobs').map(({ metadata }) => metadata.labels?.['kueue.x-k8s.io/queue-name'])
    expect(queues()).toEqual([undefined, 'gpu'])
    cluster.objects.delete(`/api/v1/namespaces/team/services/${NAME}`)
    await round()
    expect(queues()).toEqual(['gpu', 'gpu'])
    expect(cluster.of('jobs').map(({ spec }) => spec.suspend)).toEqual([true, true])
    const { waits } = await round()
    expect([waits?.get(KEY)?.why, waits?.get(one.key)?.why]).toEqual(Array(2).fill('waiting in the queue gpu of Kueue'))
    cluster.override = undefined
    const without = open({ ...SPEC, queue: 'gpu' })
    expect((await without.round([{ ...start(), key: 'abc-6-1-0' }], NO_HOSTS, never)).trouble).toBe(
      'hosts.yaml names a queue, but Kueue is not installed in the cluster',
    )
  })

  it('waits with a job whose hand-over a quota forbids', async () => {
    const message =
      'jobs "x" is forbidden: exceeded quota: few, requested: count/jobs=1, used: count/jobs=1, limited: count/jobs=1'
    cluster.override = ({ method }, response) => {
      if (method !== 'POST') return false
      refuse(response, 403, 'Forbidden', message)
      return true
    }
    const { reports, trouble, waits } = await open().round([start()], NO_HOSTS, never)
    expect([reports.size, trouble]).toEqual([0, undefined])
    expect(waits?.get(KEY)?.why).toMatch(/^the quota few is used up/)
  })

  it('reads pieces of what a bundle printed, from its newest pod', async () => {
    const made = (creationTimestamp: string) => pod('w1', { metadata: { ...OWNED, creationTimestamp } })
    const engine = open()
    await engine.round([start()], NO_HOSTS, never)
    cluster.put('pods', 'old', made('2026-01-01T00:00:00Z'))
    cluster.put('pods', 'new', made('2026-01-02T00:00:00Z'))
    cluster.override = ({ path, query }, response) => {
      if (!path.endsWith('/pods/new/log')) return false
      response.end(`${query.has('timestamps') ? '2026-01-02T00:00:01.5Z ' : ''}0123456789`)
      return true
    }
    const piece = async (fromByte: number, mostBytes: number) => {
      const bytes = await engine.log({ key: KEY, rank: undefined, fromByte, mostBytes }, NO_HOSTS, never)
      return typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString()
    }
    expect([await piece(0, 4), await piece(4, 4), await piece(8, 4), await piece(20, 4)]).toEqual([
      '0123',
      '4567',
      '89',
      '',
    ])
    expect(await piece(-3, 100)).toBe('789')
    cluster.objects.clear()
    expect(await piece(0, 4)).toBe('Kubernetes no longer has its pods, and with them their output')
  })

  it('searches no output, and goes on, where a pod has an impossible name', async () => {
    const engine = open()
    await engine.round([start()], NO_HOSTS, never)
    cluster.put('pods', 'odd', pod('w1', { metadata: { ...OWNED, name: 'a\ud800' } }))
    const search = { jobs: [{ key: KEY, isGang: false }], mostBytes: 10, programOf: () => 'echo found' }
    expect(await engine.searchOutput(search, NO_HOSTS, never)).toBe('found\n')
  })
})
