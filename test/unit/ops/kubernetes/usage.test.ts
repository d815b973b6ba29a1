import { describe, expect, it } from 'vitest'
import { quantityOf, requestsOf } from '../../../../src/ops/kubernetes/resources.ts'
import { idleJobOf, kubernetesUsage, nodeOf, podOf } from '../../../../src/ops/kubernetes/usage.ts'

const GIB = 2 ** 30
const node = (name: string, allocatable: object, rest: object = {}) => ({
  metadata: { name },
  spec: {},
  status: { allocatable, conditions: [{ type: 'Ready', status: 'True' }] },
  ...rest,
})
const pod = (
  name: string,
  requests: object,
  { nodeName, ...metadata }: Record<string, unknown> = {},
  status: object = {},
) => ({
  metadata: { name, namespace: 'team-a', ...metadata },
  spec: { nodeName, containers: [{ resources: { requests } }] },
  status: { phase: 'Running', ...status },
})
const ownedBy = (name: string) => [{ controller: true, name }]
const all = <T>(
  of: readonly object[],
  project: (object: Readonly<Record<string, unknown>>, gpu: string) => T | undefined,
) => of.flatMap((object) => project(object as Readonly<Record<string, unknown>>, 'example.com/accelerator') ?? [])
const usageOf = (nodes: readonly object[] | undefined, pods: readonly object[], jobs: readonly object[] = []) =>
  kubernetesUsage({
    nodes: nodes && all(nodes, nodeOf),
    pods: all(pods, podOf),
    idleJobs: all(jobs, idleJobOf),
    namespace: 'team-a',
  })

describe('quantities', () => {
  it.each([
    ['4', 4],
    ['1500m', 1.5],
    ['.5', 0.5],
    ['16Gi', 16 * GIB],
    ['2k', 2000],
    ['3M', 3e6],
    ['1e3', 1000],
    ['2E', 2 ** 53],
    [7, 7],
    ['-1', 0],
    ['1 Gi', 0],
    ['9'.repeat(30), 0],
    [{ toString: () => '1' }, 0],
    ['', 0],
  ])('reads %j as %d', (text, amount) => {
    expect(quantityOf(text)).toBe(amount)
  })
})

describe('what a pod asks for', () => {
  const of = (cpu: string, rest: object = {}) => ({ resources: { requests: { cpu } }, ...rest })

  it('is the sum of its containers and sidecars, or the largest init container with the sidecars before it', () => {
    const containers = [of('1'), of('500m')]
    expect(requestsOf({ containers })).toEqual({ cpu: 1.5 })
    expect(requestsOf({ containers, initContainers: [of('4'), of('2')] })).toEqual({ cpu: 4 })
    const sidecar = of('1', { restartPolicy: 'Always' })
    expect(requestsOf({ containers, initContainers: [sidecar, of('1')] })).toEqual({ cpu: 2.5 })
    expect(requestsOf({ containers, initContainers: [sidecar, of('2')] })).toEqual({ cpu: 3 })
  })

  it('is its limits where it has no requests, what it asks for as a whole, and its overhead', () => {
    const containers = [{ resources: { limits: { 'nvidia.com/gpu': '2', cpu: '3' }, requests: { cpu: '1' } } }]
    expect(requestsOf({ containers })).toEqual({ 'nvidia.com/gpu': 2, cpu: 1 })
    const whole = { containers, resources: { requests: { cpu: '6' } }, overhead: { cpu: '250m' } }
    expect(requestsOf(whole)).toMatchObject({ 'nvidia.com/gpu': 2, cpu: 6.25 })
  })
})

describe('a Kubernetes cluster', () => {
  it('gives pods the devices of their node from the first one on, the oldest pod first', () => {
    const usage = usageOf(
      [node('n10', { cpu: '8', memory: '32Gi', 'nvidia.com/gpu': '4' }), node('n2', { cpu: '8' })],
      [
        pod(
          'late',
          { cpu: '1', 'nvidia.com/gpu': '1' },
          { nodeName: 'n10', creationTimestamp: '2026-01-01T00:00:02Z' },
        ),
        pod(
          'early',
          { cpu: '2', memory: '1Gi', 'nvidia.com/gpu': '2' },
          { nodeName: 'n10', creationTimestamp: '2026-01-01T00:00:01Z' },
        ),
        pod('ended', { cpu: '9' }, { nodeName: 'n10' }, { phase: 'Succeeded' }),
      ],
    )
    expect(usage.nodes.map(({ name }) => name)).toEqual(['n2', 'n10'])
    expect(usage.nodes[1]).toEqual({
      ...{
        name: 'n10',
        cpuMilli: 8000,
        cpuUsedMilli: 3000,
        memoryBytes: 32 * GIB,
        memoryUsedBytes: GIB,
        gpus: 4,
        trouble: '',
      },
    })
    expect(usage.jobs.map(({ id, shares }) => [id, shares[0]?.devices])).toEqual([
      ['early', [0, 1]],
      ['late', [2]],
    ])
  })

  it('draws whole GPUs, shared ones and their instances as boxes, and no memory or cores of GPUs', () => {
    const usage = usageOf(
      [
        node('n1', {
          ...{ 'nvidia.com/gpu': '2', 'nvidia.com/gpu.shared': '4', 'nvidia.com/mig-1g.5gb': '7', 'amd.com/gpu': '1' },
          ...{ 'nvidia.com/gpumem': '80000', 'koordinator.sh/gpu-core': '200', 'example.com/accelerator': '1' },
        }),
      ],
      [
        pod('mig', { 'nvidia.com/mig-1g.5gb': '2' }, { nodeName: 'n1' }),
        pod('shared', { 'nvidia.com/gpu.shared': '1' }, { nodeName: 'n1' }),
        pod('whole', { 'nvidia.com/gpu': '2' }, { nodeName: 'n1' }),
      ],
    )
    expect(usage.nodes[0]?.gpus).toBe(15)
    expect(usage.jobs.map(({ id, shares }) => [id, shares[0]?.devices])).toEqual([
      ['mig', [8, 9]],
      ['shared', [4]],
      ['whole', [2, 3]],
    ])
  })

  it('says that a node is cordoned or not ready', () => {
    const notReady = {
      allocatable: {},
      conditions: [{ type: 'Ready', status: 'Unknown', message: 'Kubelet stopped\u001b[2J' }],
    }
    const usage = usageOf(
      [
        node('n1', {}, { spec: { unschedulable: true } }),
        node('n2', {}, { status: notReady }),
        node('n3', {}, { status: {} }),
      ],
      [],
    )
    expect(usage.nodes.map(({ trouble }) => trouble)).toEqual([
      'cordoned',
      'not ready: Kubelet stopped\\x1b[2J',
      'not ready',
    ])
  })

  it('shows of nodes that may not be listed what their pods hold', () => {
    const usage = usageOf(undefined, [
      pod('a', { cpu: '1', 'nvidia.com/gpu': '2' }, { nodeName: 'n1' }),
      pod('b', { cpu: '1' }),
    ])
    expect(usage.nodes).toEqual([
      {
        ...{ name: 'n1', cpuMilli: 0, cpuUsedMilli: 1000, memoryBytes: 0, memoryUsedBytes: 0 },
        gpus: 2,
        trouble: '',
        isBlind: true,
      },
    ])
    expect(usage.jobs[0]?.shares[0]?.devices).toEqual([0, 1])
  })

  it('takes the pods of a job together, and says how many of them wait and why', () => {
    const message = '0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: none'
    const pending = {
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }],
    }
    const own = { ownerReferences: ownedBy('train') }
    const { jobs } = usageOf(
      [node('n1', { 'nvidia.com/gpu': '1' })],
      [
        pod('train-0', { 'nvidia.com/gpu': '1' }, { ...own, nodeName: 'n1' }),
        pod('train-1', { 'nvidia.com/gpu': '1' }, own, pending),
        pod('z-alone', {}, {}, pending),
      ],
    )
    expect(jobs).toMatchObject([
      { id: 'train', user: 'team-a', isOwn: false, shares: [{ node: 'n1', devices: [0] }] },
      { id: 'z-alone', shares: [] },
    ])
    expect(jobs.map(({ waits }) => waits)).toEqual([
      expect.stringMatching(/^1 of 2 pods: no node has room for it: .*all have too few free GPUs/),
      expect.stringMatching(/^no node has room for it/),
    ])
  })

  it('knows the jobs of the queue by their label, in its own namespace only, and those that are suspended', () => {
    const labels = { 'muster.dev/key': 'abc-17-1-0' }
    const job = (name: string, rest: object, status: object = {}, spec: object = { suspend: true }) => ({
      metadata: { name, namespace: 'team-a', ...rest },
      ...{ spec, status },
    })
    const { jobs } = usageOf(
      [],
      [
        pod('p', {}, { labels, ownerReferences: ownedBy('muster-abc-17-1-0'), nodeName: 'n1' }),
        pod('q', {}, { labels, namespace: 'team-b', nodeName: 'n1' }),
      ],
      [
        job('muster-abc-17-1-0', { labels }, { active: 1 }, {}),
        job('muster-abc-18-1-0', { labels: { 'muster.dev/key': 'abc-18-1-0' } }),
        job('theirs', {}),
        job('quota', {}, {}, {}),
        job('over', {}, { conditions: [{ type: 'Complete', status: 'True' }] }),
      ],
    )
    expect(jobs.map(({ name, isOwn, waits }) => [name, isOwn, waits])).toEqual([
      ['abc-17-1-0', true, undefined],
      ['q', false, undefined],
      ['abc-18-1-0', true, 'it holds nothing until all its pods fit at once'],
      ['theirs', false, 'suspended'],
      ['quota', false, 'it has no pods yet'],
    ])
  })

  it('leaves out nodes of a cluster that is too large to be drawn again and again, and says so', () => {
    const gpus = (count: number) => (count === 0 ? {} : { 'nvidia.com/gpu': String(count) })
    const many = (count: number, each: number) =>
      usageOf(
        Array.from({ length: count }, (_, index) => node(`n${index}`, gpus(each))),
        [],
      )
    expect(many(5000, 8)).toMatchObject({ nodes: { length: 5000 } })
    expect(many(5000, 8).note).toBeUndefined()
    expect(many(5002, 0)).toMatchObject({ note: '2 more nodes are not shown', nodes: { length: 5000 } })
    expect(many(2000, 128)).toMatchObject({ note: '1488 more nodes are not shown', nodes: { length: 512 } })
  })

  it('ignores what makes no sense', () => {
    const odd = [
      {},
      { metadata: 7 },
      { metadata: { name: '' } },
      { metadata: { name: 'x' }, spec: [], status: 'Running' },
    ]
    const usage = usageOf(odd, [
      ...odd,
      { metadata: { name: 'y' }, spec: { nodeName: 7, containers: [7, { resources: [] }] } },
    ])
    expect(usage.nodes).toMatchObject([{ name: 'x', gpus: 0 }])
    expect(usage.jobs.every(({ shares }) => shares.length === 0)).toBe(true)
    const many = usageOf(
      [node('n', { 'nvidia.com/gpu': '1000000000' })],
      [pod('p', { 'nvidia.com/gpu': '99999999' }, { nodeName: 'n' })],
    )
    expect(many.nodes[0]?.gpus).toBe(128)
    expect(many.jobs[0]?.shares[0]?.devices).toHaveLength(128)
  })
})
