import { describe, expect, it } from 'vitest'
import {
  type JobSituation,
  jobObject,
  type KubernetesStart,
  whyNotKubernetes,
} from '../../../../src/ops/kubernetes/manifest.ts'
import { createWords, podWaitWords, schedulerWords } from '../../../../src/ops/kubernetes/reasons.ts'
import { reportOfJob } from '../../../../src/ops/kubernetes/report.ts'
import { freeRoom, nodeRoomOf, podClaimOf, reserveUnbound, takeGang } from '../../../../src/ops/kubernetes/room.ts'

const KEY = 'abc-4-1-0'
const ALONE: JobSituation = { isSuspended: false, hasPodGroup: false, isQueued: false }
const startOf = (spec: Partial<KubernetesStart['spec']> = {}): KubernetesStart => ({
  key: KEY,
  environment: { A: '$(RANK) $$(B) $C' },
  spec: {
    name: 'train',
    command: 'echo $(date) $$ "$HOME"',
    image: 'lab/train:1',
    request: { cpuMilli: 1500, memoryBytes: 1024, gpuCount: 2, gpuMilli: 1000 },
    bundles: 1,
    strategy: 'PACK',
    ...spec,
  },
})
const podSpec = (spec: Partial<KubernetesStart['spec']> = {}, k8s = {}) => {
  const object: unknown = jobObject(startOf(spec), k8s, ALONE)
  const { spec: job } = object as { spec: { template: { spec: Record<string, unknown> } } }
  const [container] = job.template.spec.containers as Record<string, unknown>[]
  return { ...job.template.spec, container: container ?? {} }
}

describe('the objects of a job for Kubernetes', () => {
  it('passes the command and variables on as they are, although Kubernetes replaces $(NAME) and $$', () => {
    const { container } = podSpec()
    expect(container.command).toEqual(['/bin/sh', '-c', 'echo $$(date) $$$ "$HOME"'])
    expect(container.env).toContainEqual({ name: 'A', value: '$$(RANK) $$$$(B) $C' })
  })

  it('asks for whole GPUs by the name that hosts.yaml gives them, and limits memory unless it must not', () => {
    expect(podSpec({}, { gpuResource: 'amd.com/gpu' }).container.resources).toEqual({
      requests: { cpu: '1500m', memory: '1024', 'amd.com/gpu': '2' },
      limits: { memory: '1024', 'amd.com/gpu': '2' },
    })
    expect(podSpec({ isUnlimited: true }).container.resources).toMatchObject({ limits: { 'nvidia.com/gpu': '2' } })
    expect(podSpec({ isUnlimited: true }).container.resources).not.toHaveProperty('limits.memory')
  })

  it('is not changed in what it must be by the fields of hosts.yaml', () => {
    const pod = { restartPolicy: 'Always', containers: [], tolerations: [{ operator: 'Exists' }] }
    const all = podSpec({}, { pod, container: { name: 'other', command: ['x'], imagePullPolicy: 'Never' } })
    expect(all).toMatchObject({ restartPolicy: 'Never', tolerations: [{ operator: 'Exists' }] })
    expect(all.container).toMatchObject({ name: 'main', imagePullPolicy: 'Never' })
    expect(all.container.command).toContain('-c')
  })

  it.each([
    ['PACK', { podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: expect.anything() } }],
    ['STRICT_PACK', { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: expect.anything() } }],
    ['SPREAD', { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: expect.anything() } }],
    ['STRICT_SPREAD', { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: expect.anything() } }],
  ])('places bundles by %s', (strategy, affinity) => {
    expect(podSpec({ bundles: 2, strategy })).toMatchObject({ affinity })
    expect(podSpec({ strategy })).not.toHaveProperty('affinity')
  })

  it('is refused without an image, and for a share of a GPU', () => {
    const { spec } = startOf()
    const { image: _, ...bare } = spec
    expect(whyNotKubernetes(bare, {})).toMatch(/needs a container image/)
    expect(whyNotKubernetes(bare, { image: 'a' })).toBeUndefined()
    expect(whyNotKubernetes({ ...spec, bundles: 1_801 }, {})).toBe(
      '--bundles: a job in Kubernetes can have at most 1800, not 1801',
    )
    const share = { ...spec, request: { ...spec.request, gpuCount: 1, gpuMilli: 500 } }
    expect(whyNotKubernetes(share, {})).toMatch(/cannot share a GPU/)
  })
})

const job = (conditions: readonly object[] = [], spec: object = {}) => ({ spec, status: { conditions } })
const failed = (reason = 'PodFailurePolicy', message = '') => job([{ type: 'Failed', status: 'True', reason, message }])
const ended = (exitCode: number, more: object = {}, pod: object = {}) => ({
  status: {
    phase: 'Failed',
    containerStatuses: [
      { name: 'main', state: { terminated: { exitCode, finishedAt: '2026-01-01T00:00:01Z', ...more } } },
    ],
    ...pod,
  },
})

describe('how a job of Kubernetes goes on', () => {
  it('runs when a container of it has begun', () => {
    const status = { containerStatuses: [{ name: 'main', state: { running: {} } }] }
    const running = { spec: { nodeName: 'w1' }, status }
    expect(reportOfJob({ job: job(), pods: [] })).toBe('waiting')
    expect(reportOfJob({ job: job(), pods: [running, { status: { phase: 'Pending' } }] })).toBe('waiting')
    expect(reportOfJob({ job: job(), pods: [running] })).toBe('running')
    expect(reportOfJob({ job: job([], { suspend: true }), pods: [running] })).toBe('waiting')
    expect(reportOfJob({ job: job([{ type: 'Complete', status: 'True' }]), pods: [] })).toEqual({
      kind: 'exit',
      code: 0,
    })
  })

  it('has the exit code of the bundle that failed first, with what its launcher told', () => {
    const pods = [ended(9, { finishedAt: '2026-01-01T00:00:02Z' }), ended(7, { message: 'no port\u001b[2J\nmore' })]
    expect(reportOfJob({ job: failed(), pods })).toMatchObject({ kind: 'exit', code: 7 })
    const { why = '' } = reportOfJob({ job: failed(), pods }) as { why?: string }
    expect(why).toMatch(/^no port/)
    expect(why).not.toContain('\u001b')
  })

  it('has the exit code that the job tells when its pods are gone', () => {
    const message = 'Container main for pod default/x failed with exit code 4 matching FailJob rule at index 1'
    expect(reportOfJob({ job: failed('PodFailurePolicy', message), pods: [] })).toEqual({ kind: 'exit', code: 4 })
  })

  it('tells a time limit, too much memory, and a node that was drained apart', () => {
    expect(reportOfJob({ job: failed('DeadlineExceeded'), pods: [] })).toMatchObject({ isTimedOut: true })
    const killed = ended(137, { reason: 'OOMKilled' })
    expect(reportOfJob({ job: failed(), pods: [killed] })).toMatchObject({ code: 137, isOutOfMemory: true })
    const drained = {
      ...ended(
        143,
        {},
        { conditions: [{ type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI' }] },
      ),
      spec: { nodeName: 'w1' },
    }
    expect(reportOfJob({ job: failed(), pods: [drained] })).toEqual({
      kind: 'unable',
      reason: 'evicted from its node, which is being drained (w1)',
    })
  })

  it('is not misled by nonsense', () => {
    const nonsense = { status: { phase: 7, containerStatuses: [null, { name: 'main', state: { terminated: 'x' } }] } }
    expect(reportOfJob({ job: failed(), pods: [nonsense] })).toMatchObject({ kind: 'gone' })
    expect(reportOfJob({ job: failed(), pods: [ended(70_000)] })).toEqual({ kind: 'exit', code: 255 })
    expect(reportOfJob({ job: { status: { conditions: 'x' } }, pods: [] })).toBe('waiting')
  })
})

describe('why a pod waits', () => {
  it('is what the scheduler says, in words', () => {
    const message =
      '0/5 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu, 2 Insufficient nvidia.com/gpu. preemption: 0/5 nodes are available: 5 No preemption victims found.'
    expect(schedulerWords(message)).toBe(
      'no node has room for it: of 5 nodes, 1 has a taint that the pod does not tolerate, 2 have too few free cores, 2 have too few free GPUs (nvidia.com/gpu)',
    )
    expect(schedulerWords('0/3 nodes are available: 3 Insufficient cpu.')).toBe(
      'no node has room for it: of 3 nodes, all have too few free cores',
    )
    expect(schedulerWords('\u001b]0;x\u0007 something new')).not.toContain('\u001b')
  })

  it('is that no node is large enough, where the scheduler says that preemption would not help', () => {
    const message = (said: string, preemption: string) =>
      `0/6 nodes are available: ${said}. no new claims to deallocate, preemption: 0/6 nodes are available: ${preemption} for scheduling.`
    const gpus = '6 Insufficient nvidia.com/gpu'
    expect(schedulerWords(message(`2 Insufficient cpu, ${gpus}`, '6 Preemption is not helpful'))).toBe(
      'no node could hold it even when idle: of 6 nodes, 2 have too few cores, all have too few GPUs (nvidia.com/gpu)',
    )
    const others = [
      message(gpus, '2 No preemption victims found for incoming pod, 4 Preemption is not helpful'),
      message('1 node(s) were unschedulable, 5 Insufficient nvidia.com/gpu', '6 Preemption is not helpful'),
    ]
    for (const other of others) expect(schedulerWords(other)).toMatch(/^no node has room for it: .* too few free GPUs/)
  })

  it('is said in a line, however long and odd the text of the API server is', () => {
    const reason = `Insufficient ${'gpu'.repeat(500_000)}\nx`
    expect(schedulerWords(`0/2 nodes are available: 1 ${reason}, 1 ${reason}. `).length).toBeLessThan(500)
    expect(createWords(`exceeded quota: ${', requested: x'.repeat(300_000)}`).length).toBeLessThan(500)
  })

  it('is its image, with the code of Kubernetes', () => {
    const state = { waiting: { reason: 'ErrImageNeverPull', message: 'Container image "a" is not present' } }
    const pod = { status: { phase: 'Pending', containerStatuses: [{ name: 'main', state }] } }
    expect(podWaitWords(pod)).toMatch(
      /^its image is not on the node, and its pull policy is Never \(ErrImageNeverPull: /,
    )
  })

  it('is a quota', () => {
    const message = 'pods "x" is forbidden: exceeded quota: gpus, requested: cpu=2, used: cpu=3, limited: cpu=4'
    expect(createWords(message)).toBe('the quota gpus is used up: it asks for cpu=2; used cpu=3 of cpu=4')
  })
})

describe('whether a gang fits', () => {
  const node = (name: string, cpu: string, more: object = {}) => ({
    metadata: { name },
    spec: more,
    status: { conditions: [{ type: 'Ready', status: 'True' }], allocatable: { cpu, memory: '8Gi', pods: '10' } },
  })
  const wish = (count: number, strategy: string) => ({
    request: { cpuMilli: 1000, memoryBytes: 0, gpuCount: 0 },
    count,
    strategy,
  })
  const roomOf = (...nodes: object[]) =>
    freeRoom(
      nodes.flatMap((one) => nodeRoomOf(one as Record<string, unknown>, 'nvidia.com/gpu') ?? []),
      [],
    )

  it('takes as many of the pods without a node as there is room for, many alike at once', () => {
    const free = roomOf(node('a', '2'), node('b', '3500m'))
    const one = { cpuMilli: 1000, memoryBytes: 0, gpus: 0, node: '', key: KEY }
    reserveUnbound(free, [one, { ...one, cpuMilli: 4000 }, one, { ...one, node: 'a' }, { ...one, key: '' }, one])
    expect(takeGang(free, wish(9, 'PACK'))).toBe(2)
    reserveUnbound(
      free,
      Array.from({ length: 9 }, () => one),
    )
    expect(takeGang(free, wish(1, 'PACK'))).toBe(0)
    const big = roomOf(...Array.from({ length: 5000 }, (_, index) => node(`n${index}`, '2')))
    reserveUnbound(
      big,
      Array.from({ length: 20_000 }, () => one),
    )
    expect(takeGang(big, wish(1, 'PACK'))).toBe(0)
  })

  it('counts what pods hold, and takes nothing for a gang that does not fit', () => {
    const free = roomOf(node('a', '2'), node('b', '3500m'))
    expect(takeGang(free, wish(6, 'PACK'))).toBe(5)
    expect(takeGang(free, wish(4, 'STRICT_PACK'))).toBe(3)
    expect(takeGang(free, wish(3, 'STRICT_SPREAD'))).toBe(2)
    expect(takeGang(free, wish(5, 'PACK'))).toBe(5)
    expect(takeGang(free, wish(1, 'PACK'))).toBe(0)
  })

  it('leaves out nodes that are cordoned, tainted or not ready', () => {
    const taints = [{ key: 'a', effect: 'NoSchedule' }]
    const free = roomOf(node('a', '2', { unschedulable: true }), node('b', '2', { taints }), {
      metadata: { name: 'c' },
    })
    expect(free.size).toBe(0)
  })

  it('counts sidecars beside, and init containers before, the containers of a pod', () => {
    const asks = (cpu: string) => ({ resources: { requests: { cpu } } })
    const spec = {
      containers: [asks('1')],
      initContainers: [asks('1500m'), { ...asks('250m'), restartPolicy: 'Always' }],
    }
    expect(podClaimOf({ spec }, 'g', 'own')?.cpuMilli).toBe(1500)
    expect(podClaimOf({ spec, status: { phase: 'Succeeded' } }, 'g', 'own')).toBeUndefined()
  })

  it('keeps room free for pods without a node only in its own namespace', () => {
    const labels = { 'muster.dev/key': 'q-1-1-0' }
    const keyIn = (namespace: string) => podClaimOf({ metadata: { namespace, labels } }, 'g', 'own')?.key
    expect([keyIn('own'), keyIn('other')]).toEqual(['q-1-1-0', ''])
  })
})
