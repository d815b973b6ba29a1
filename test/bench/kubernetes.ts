/** `npm run bench -- kubernetes`: what it takes to follow a large Kubernetes cluster in the console. No cluster is needed. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type JsonRecord, list, parseJson, record, textOf } from '../../src/base/json-lines.ts'
import { type KubernetesUsage, kubernetesUsage, nodeOf, podOf } from '../../src/ops/kubernetes/usage.ts'
import { themes } from '../../src/ui/compositor/scene.ts'
import { enginePicture } from '../../src/ui/packing/engine-picture.ts'
import { drawPacking } from '../../src/ui/packing/packing-panes.ts'
import { formatPair, formatTable, median } from './support/statistics.ts'

const NODES = 50
const PODS = 1000
const GPUS_PER_NODE = 16
const ROUNDS = 30
const GPU = 'nvidia.com/gpu'
const GOALS = { parsedMs: 100, pictureMs: 20, keptBytes: 2 ** 20 }

export function benchKubernetes(): string {
  const makeTexts = () => ({ nodes: listText(NODES, nodeObject), pods: listText(PODS, podObject) })
  const texts = makeTexts()
  const mebibytes = ((texts.nodes.length + texts.pods.length) / 2 ** 20).toFixed(1)
  const read = ({ nodes, pods }: ReturnType<typeof makeTexts>) => ({
    nodes: itemsOf(nodes, (object) => nodeOf(object, GPU)),
    pods: itemsOf(pods, (object) => podOf(object, GPU)),
  })
  const parsed = measured(() => read(texts))
  const draw = (kept: ReturnType<typeof read>) => {
    const usage = kubernetesUsage({ nodes: kept.nodes.values(), pods: kept.pods.values(), idleJobs: [], namespace: '' })
    check(usage)
    const cluster = enginePicture(usage, 'K8s', () => undefined)
    const rect = { column: 0, row: 1, width: 240, height: 65 }
    return drawPacking({
      shown: [{ kind: 'engine', place: '@k8s', picture: cluster }],
      status: undefined,
      trouble: undefined,
      offset: 0,
      rect,
      theme: themes.dark,
      nowMs: 0,
    })
  }
  const kept = read(texts)
  const drawn = measured(() => draw(kept))
  const bytes = keptBytes(() => read(makeTexts()))
  const what = `${NODES} nodes and ${PODS} pods (${mebibytes} MiB of JSON)`
  const row = (part: string, times: readonly number[], goal: number) => ({
    what: `${what}: ${part}, ms of processor time p50 / p99`,
    ours: formatPair(times),
    peer: '–',
    goal: `p50 ≤ ${goal}`,
    isReached: median(times) <= goal,
  })
  return formatTable([
    row('read', parsed, GOALS.parsedMs),
    row('picture and panes on 240×67, at most once a second', drawn, GOALS.pictureMs),
    {
      what: `${what}: kept in memory, KiB`,
      ours: String(Math.round(bytes / 1024)),
      peer: '–',
      goal: `≤ ${GOALS.keptBytes / 1024}`,
      isReached: bytes <= GOALS.keptBytes,
    },
  ])
}

function measured(task: () => unknown): readonly number[] {
  return Array.from({ length: ROUNDS }, () => {
    const before = process.cpuUsage()
    task()
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  })
}

function keptBytes(make: () => unknown): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  const before = process.memoryUsage().heapUsed
  const made = make()
  collect()
  const after = process.memoryUsage().heapUsed
  if (made === undefined) throw new Error('nothing was made')
  return after - before
}

function check({ nodes, jobs }: KubernetesUsage): void {
  const waiting = jobs.filter(({ waits }) => waits !== undefined).length
  if (nodes.length !== NODES || jobs.length !== PODS || waiting !== PODS - NODES * GPUS_PER_NODE)
    throw new Error(`${nodes.length} nodes, ${jobs.length} jobs, ${waiting} waiting`)
}

function itemsOf<T>(text: string, project: (object: JsonRecord) => T | undefined): ReadonlyMap<string, T> {
  return new Map(
    list(record(parseJson(text))?.items).flatMap((object) => {
      const kept = project(object)
      return kept === undefined ? [] : [[textOf(record(object.metadata)?.uid), kept] as const]
    }),
  )
}

const listText = (count: number, object: (index: number) => object): string =>
  JSON.stringify({ kind: 'List', items: Array.from({ length: count }, (_, index) => object(index)) })

/** Most of an object is about who wrote which field. */
const metadata = (name: string, index: number) => ({
  name,
  namespace: 'default',
  uid: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
  creationTimestamp: '2026-11-23T12:00:00Z',
  labels: { app: 'train', 'kubernetes.io/hostname': name },
  managedFields: Array.from({ length: 4 }, (_, at) => ({
    manager: `manager-${at}`,
    operation: 'Update',
    fieldsType: 'FieldsV1',
    fieldsV1: Object.fromEntries(
      Array.from({ length: 12 }, (_, field) => [`f:field-${field}`, { '.': {}, 'f:x': {} }]),
    ),
  })),
})

const nodeObject = (index: number) => {
  const amounts = { cpu: '64', memory: '256Gi', pods: '110', [GPU]: String(GPUS_PER_NODE) }
  const conditions = ['MemoryPressure', 'DiskPressure', 'PIDPressure', 'Ready'].map((type) => ({
    ...{
      type,
      status: type === 'Ready' ? 'True' : 'False',
      reason: 'Kubelet',
      message: 'kubelet is posting ready status',
    },
  }))
  return {
    metadata: metadata(`node-${index}`, index),
    spec: {},
    status: { capacity: amounts, allocatable: amounts, conditions },
  }
}

const podObject = (index: number) => {
  const isPlaced = index < NODES * GPUS_PER_NODE
  const message = `0/${NODES} nodes are available: ${NODES} Insufficient ${GPU}. preemption: 0/${NODES} nodes are available.`
  const scheduled = { type: 'PodScheduled', ...(isPlaced ? { status: 'True' } : { status: 'False', message }) }
  const resources = { requests: { cpu: '500m', memory: '1Gi', [GPU]: '1' }, limits: { [GPU]: '1' } }
  return {
    metadata: metadata(`pod-${index}`, index),
    spec: {
      ...(isPlaced ? { nodeName: `node-${index % NODES}` } : {}),
      containers: [{ name: 'main', image: 'train:1', command: ['python3', 'train.py'], resources }],
    },
    status: { phase: isPlaced ? 'Running' : 'Pending', conditions: [scheduled] },
  }
}
