/** What `muster pack` and the console show of a real Kubernetes: its nodes, everybody's pods, and why they wait. */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { connectUnixSocket } from '../../../src/base/connect-stream.ts'
import { KubernetesApi } from '../../../src/ops/kubernetes/api.ts'
import type { KubernetesUsage } from '../../../src/ops/kubernetes/usage.ts'
import { watchKubernetesUsage } from '../../../src/ops/kubernetes/usage-watch.ts'
import { openConsole } from '../../support/console-driver.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { KUBERNETES_HOST, KUBERNETES_PARTS, type KubernetesLab } from '../cluster/kubernetes-lab.ts'
import type { Lab } from '../cluster/lab.ts'
import { hostsFileOf, type LabQueue, labQueue } from '../jobs/lab-queue.ts'
import { kubernetesQueue } from './kubernetes-queue.ts'

const PATIENCE_MS = 120_000

const pod = (name: string, gpus: number) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: {
    tolerations: [{ operator: 'Exists' }],
    containers: [
      {
        name: 'main',
        image: 'x',
        resources: { requests: { cpu: '500m' }, limits: { 'nvidia.com/gpu': String(gpus) } },
      },
    ],
  },
})

describe.skipIf(!requirement(...KUBERNETES_PARTS))('the picture of a real Kubernetes', { timeout: 400_000 }, () => {
  let lab: Lab
  let kubernetes: KubernetesLab
  let queue: LabQueue
  let file: string

  const kubernetesFiles = () => join(lab.directory, 'hosts', KUBERNETES_HOST, 'kubernetes')
  const create = async (namespace: string, object: object): Promise<void> => {
    const path = `/api/v1/namespaces/${namespace}/pods`
    const { status, body } = await kubernetes.request('POST', path, object)
    if (status !== 201) throw new Error(JSON.stringify(body))
  }
  const nodeOf = async (name: string, namespace = 'default'): Promise<string> =>
    (await kubernetes.kubectl(`get pod ${name} -n ${namespace} -o jsonpath={.spec.nodeName}`)).trim()

  beforeAll(async () => {
    ;({ lab, kubernetes, queue, file } = await kubernetesQueue())
    await kubernetes.kubectl('create namespace team-b')
  })
  beforeEach(async () => {
    await queue.stop()
    await kubernetes.kubectl('uncordon w3')
    await kubernetes.kubectl('delete jobs --all -A --cascade=foreground --now')
    await kubernetes.kubectl('delete pods --all -A --now')
  })
  afterAll(async () => {
    await queue?.stop()
    await lab?.stop()
  })

  it('shows the pods of the queue and of others on their nodes, and why pods wait', async () => {
    await create('team-b', pod('foreign', 1))
    await waitUntil(
      async () => (await nodeOf('foreign', 'team-b')) !== '',
      'the foreign pod to have a node',
      PATIENCE_MS,
    )
    const gang = await queue.submit(
      ...['--engine', 'k8s', '--cpu', '0.5', '--bundles', '2', '--gpu', '1', '--strategy', 'STRICT_SPREAD', '--', 'x'],
    )
    queue.work()
    await waitUntil(async () => (await queue.find(gang)).state === 'running', 'the gang to run', PATIENCE_MS)
    const waiting = await queue.submit('--engine', 'k8s', '--cpu', '0.5', '--gpu', '2', '--', 'x')
    await waitUntil(async () => (await queue.find(waiting)).state === 'pending', 'the hand-over', PATIENCE_MS)
    await kubernetes.kubectl('cordon w3')

    const lines = async () =>
      (await queue.muster('pack', '--engine', 'k8s', '--json')).stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
    let placements: Awaited<ReturnType<typeof lines>> = []
    await waitUntil(
      async () => {
        placements = (await lines()).filter(({ type }) => type === 'placement')
        return placements.some(({ job, waits }) => String(job) === waiting && /too few free GPUs/.test(waits ?? ''))
      },
      'the reason of the waiting job',
      PATIENCE_MS,
    )
    const own = placements.find(({ job }) => String(job) === gang)
    expect(own.shares.map(({ node }: { node: string }) => node).toSorted()).toEqual(['w1', 'w2'])
    const foreign = placements.find(({ id }) => id === 'foreign')
    expect(foreign).toMatchObject({ user: 'team-b', isOwn: false, job: null })
    expect(foreign.shares).toMatchObject([{ node: await nodeOf('foreign', 'team-b'), cpuMilli: 500, devices: [0] }])

    const { stdout } = await queue.muster('pack')
    expect(stdout).toMatch(/^HOST\tGPUS/m)
    expect(stdout).toMatch(/^\S+ NODE\tGPUS\tCORES\tMEMORY/m)
    expect(stdout).toMatch(/^w3\t.*cordoned$/m)
    expect(stdout).toMatch(new RegExp(`^waits: job ${waiting}: no node has room for it`, 'm'))

    await using console = await openConsole({ in: lab, args: ['--hosts', file] })
    await console.leader('4')
    await console.expectScreen(/y: \[all\] +own hosts +K8s/)
    await console.expectScreen(/── own hosts[\s\S]*── K8s +GPUs 3\/4/)
    await console.key('y', 'y')
    await console.expectScreen(/GPUs 3\/4 .* of 3 nodes +1 down or drained/)
    await console.expectScreen(/1 of the queue +\* 1 other job/)
    await console.expectScreen(new RegExp(`job ${waiting} x[^*]*no node has room`))
    // What changes in the cluster is told by watches.
    await kubernetes.kubectl('delete pod foreign -n team-b --now')
    await console.expectScreen(/GPUs 2\/4/)
    await console.leader('5')
    await console.key('y')
    await console.expectScreen(new RegExp(`job ${gang} x +running +w\\[1-2\\], 2 GPUs`))
  })

  it('shows only the pods of its namespace if nodes may not be listed, and says so', async () => {
    await create('default', pod('mine', 2))
    await create('team-b', pod('hidden', 1))
    await waitUntil(async () => (await nodeOf('mine')) !== '', 'the pod to have a node', PATIENCE_MS)
    const viewer = hostsFileOf(lab, 'viewer')
    appendFileSync(viewer, 'k8s: { context: viewer, namespace: default }\n')
    const { stdout, stderr, code } = await labQueue(lab, viewer).muster('pack', '--engine', 'k8s')
    expect(code, stderr).toBe(0)
    expect(stdout).toMatch(
      /do not allow listing nodes: .*; the credentials allow listing pods only in the namespace default/,
    )
    expect(stdout).toMatch(/^w[12]\t\[\*{8}\] \[\*{8}\]\t-\t-\t\*\t$/m)
    expect(stdout).not.toContain('hidden')
  })

  it('follows 1,000 pods on 50 nodes over cut watches, a restart of the API server and a lost right, without storms', async () => {
    const nodes = Array.from({ length: 50 }, (_, index) => ({
      ...{ name: `node-${index}`, cpus: 64, memoryMb: 256_000, gpus: 16, labels: { pool: 'large' } },
    }))
    await kubernetes.addNodes(nodes)
    // Most have their node from here, as the scheduler would take half a minute; the others are too large for each node.
    const rest = Array.from({ length: 1000 }, (_, index) => {
      const { spec, ...object } = pod(`pod-${index}`, index < 800 ? 1 : 17)
      const place = index < 800 ? { nodeName: `node-${index % 50}` } : { nodeSelector: { pool: 'large' } }
      return { ...object, spec: { ...spec, ...place } }
    })
    const createRest = async () => {
      for (let next = rest.pop(); next !== undefined; next = rest.pop()) await create('default', next)
    }
    await Promise.all(Array.from({ length: 16 }, createRest))

    using admin = pictureOf(join(kubernetesFiles(), 'api.sock'))
    await admin.shows(isAll, 'all pods in the picture')
    const { nodes: shown } = admin.usage as KubernetesUsage
    expect(shown.filter(({ name }) => name.startsWith('node-'))).toHaveLength(50)
    expect(shown.filter(({ gpus, cpuUsedMilli }) => gpus === 16 && cpuUsedMilli === 8000)).toHaveLength(50)
    // Nodes, pods and jobs: at most five pages and a watch of each.
    expect(admin.dials).toBeLessThanOrEqual(30)
    await kubernetes.host.exec(
      `setsid kubectl proxy --context viewer --unix-socket=/run/lab/kubernetes/viewer.sock > /dev/null 2>&1 < /dev/null &`,
    )
    const viewerSocket = join(kubernetesFiles(), 'viewer.sock')
    await waitUntil(() => existsSync(viewerSocket), 'the proxy of the user without rights', PATIENCE_MS)
    using viewer = pictureOf(viewerSocket)
    await viewer.shows(isAll, 'all pods in the picture of the user without rights')

    const beforeCut = admin.dials
    const lists = admin.lists
    admin.cut()
    await kubernetes.kubectl('delete pod pod-8 --now')
    await admin.shows(({ jobs }) => jobs.every(({ id }) => id !== 'pod-8'), 'a change after the cut')
    expect(admin.lists).toBe(lists)
    expect(admin.dials - beforeCut).toBeLessThanOrEqual(30)

    const beforeEnd = admin.dials
    await kubernetes.killServer()
    await admin.shows(({ note = '' }) => /^not up to date: /.test(note), 'that the picture is not up to date')
    expect((admin.usage as KubernetesUsage).jobs).toHaveLength(999)
    const tokens = join(kubernetesFiles(), 'tokens.csv')
    writeFileSync(tokens, readFileSync(tokens, 'utf8').replace(/.*,viewer,.*\n/, ''))
    await kubernetes.startServer()
    await kubernetes.kubectl('delete pod pod-7 --now')
    await admin.shows(
      ({ note, jobs }) => note === undefined && jobs.every(({ id }) => id !== 'pod-7'),
      'a picture up to date',
    )
    expect(admin.expired).toBeGreaterThan(0)
    expect(admin.dials - beforeEnd).toBeLessThanOrEqual(150)
    await viewer.shows(
      ({ note = '' }) => /not up to date: .*does not accept the credentials/.test(note),
      'the refusal of the old token',
    )
    expect(viewer.dials).toBeLessThanOrEqual(200)
  })
})

const isAll = ({ jobs }: KubernetesUsage): boolean =>
  jobs.length === 1000 &&
  jobs.filter(({ shares }) => shares.length > 0).length === 800 &&
  jobs.filter(({ waits = '' }) => /too few free GPUs/.test(waits)).length === 200

/** What a proxy of the API server lets Muster see, and how much Muster asks it for. */
function pictureOf(socket: string) {
  const life = new AbortController()
  const open = new Set<Duplex>()
  const counts = { dials: 0, lists: 0, expired: 0 }
  const dial = async (signal: AbortSignal): Promise<Duplex> => {
    counts.dials += 1
    const connection = await connectUnixSocket(socket, signal)
    open.add(connection)
    connection.once('close', () => open.delete(connection))
    return connection
  }
  const api = new CountingApi(dial, life.signal, counts)
  const cluster = { api, namespace: async () => ({ ok: true, name: 'default' }) as const, [Symbol.dispose]() {} }
  const options = { clock: systemClock, gpuResource: 'nvidia.com/gpu', random: Math.random }
  let usage: KubernetesUsage | string | undefined
  const watch = watchKubernetesUsage(cluster, options, (now) => {
    usage = now
  })
  return {
    get usage() {
      return usage
    },
    get dials() {
      return counts.dials
    },
    get lists() {
      return counts.lists
    },
    get expired() {
      return counts.expired
    },
    cut() {
      for (const connection of open) connection.destroy()
    },
    async shows(test: (usage: KubernetesUsage) => boolean, what: string): Promise<void> {
      await waitUntil(() => typeof usage === 'object' && test(usage), what, PATIENCE_MS)
    },
    [Symbol.dispose]() {
      watch[Symbol.dispose]()
      life.abort()
    },
  }
}

class CountingApi extends KubernetesApi {
  readonly #counts: { lists: number; expired: number }

  constructor(
    dial: (signal: AbortSignal) => Promise<Duplex>,
    signal: AbortSignal,
    counts: { lists: number; expired: number },
  ) {
    super(dial, systemClock, signal)
    this.#counts = counts
  }

  override async request(...order: Parameters<KubernetesApi['request']>): ReturnType<KubernetesApi['request']> {
    this.#counts.lists += 1
    return await super.request(...order)
  }

  override async stream(...[path, options, onBytes]: Parameters<KubernetesApi['stream']>) {
    return await super.stream(path, options, async (bytes) => {
      // What the API server says when it no longer knows the version of a watch.
      if (Buffer.from(bytes).includes('"code":410')) this.#counts.expired += 1
      await onBytes(bytes)
    })
  }
}
