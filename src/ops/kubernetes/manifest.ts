/** The objects of a job for Kubernetes: an Indexed Job with a pod for each bundle, and of a gang a headless Service. Pure. */
import { defined } from '../../base/defined.ts'
import type { JsonRecord } from '../../base/json-lines.ts'
import { record } from '../../base/json-lines.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import type { KubernetesSpec } from './section.ts'

/** Of a job for Kubernetes; of `spec` only what it supports. */
export type KubernetesStart = {
  readonly key: string
  readonly environment: Readonly<Record<string, string>>
  readonly spec: {
    readonly name: string
    readonly command: string
    readonly directory?: string
    readonly image?: string
    readonly request: PodRequest
    readonly bundles: number
    readonly strategy: string
    readonly maxBundlesPerHost?: number
    readonly limitS?: number
    readonly isUnlimited?: boolean
    readonly roles?: readonly object[]
    readonly leaders?: readonly number[]
  }
}

/** Of each bundle. */
export type PodRequest = {
  readonly cpuMilli: number
  readonly memoryBytes: number
  readonly gpuCount: number
  readonly gpuMilli: number
}

export type KubernetesObject = JsonRecord & {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: JsonRecord & { readonly name: string }
}

const WHOLE_MILLI = 1000
/** As on Muster's own hosts. */
const FIRST_PORT = 20_000
const PORTS = 10_000
/** Between TERM and KILL, as for other jobs. */
const GRACE_S = 10
/** How long an ended job and the output of its pods are kept. */
export const KEPT_S = 7 * 86_400
const BARRED_S = 600
const MOST_NAME = 200
/** A variable has at most 128 KiB, and MUSTER_ADDRESSES up to 71 bytes for each bundle. */
export const MOST_BUNDLES = 1_800
/** Where Kubernetes reads why a container ended. */
const WHY_FILE = '/dev/termination-log'

export const KEY_LABEL = 'muster.dev/key'
const MANAGER = { 'app.kubernetes.io/managed-by': 'muster' }
export const INDEX_LABEL = 'batch.kubernetes.io/job-completion-index'
const INDEX_FIELD = `metadata.annotations['${INDEX_LABEL}']`
export const BARRED_LABEL = 'muster.dev/barred'
export const QUEUE_LABEL = 'kueue.x-k8s.io/queue-name'
export const STRATEGY = 'muster.dev/strategy'
export const CONTAINER = 'main'

/** Of the objects of a job; the name of a Service begins with a letter. */
export const objectName = (key: string): string => `muster-${key}`

export function labelsOf(key: string): Readonly<Record<string, string>> {
  const [queue = '', job = '', attempt = ''] = key.split('-')
  return {
    ...MANAGER,
    [KEY_LABEL]: key,
    'muster.dev/queue': queue,
    'muster.dev/job': job,
    'muster.dev/attempt': attempt,
  }
}

/** The resource that counts GPUs. */
export const gpuResourceOf = ({ gpuResource = 'nvidia.com/gpu' }: KubernetesSpec): string => gpuResource

/** Why Kubernetes cannot run it; undefined: it can. */
export function whyNotKubernetes(
  { request, bundles, maxBundlesPerHost, image, roles }: KubernetesStart['spec'],
  k8s: KubernetesSpec,
): string | undefined {
  if (bundles > MOST_BUNDLES) return `--bundles: a job in Kubernetes can have at most ${MOST_BUNDLES}, not ${bundles}`
  if (image === undefined && k8s.image === undefined)
    return 'a job in Kubernetes needs a container image. Name it: --from-env image:NAME, or image in the section k8s of hosts.yaml'
  if (request.gpuCount > 0 && request.gpuMilli < WHOLE_MILLI)
    return '--gpu: Kubernetes cannot share a GPU. Ask for whole GPUs; if a device plugin shares GPUs, set gpu_resource in the section k8s of hosts.yaml'
  if (maxBundlesPerHost !== undefined && maxBundlesPerHost > 1 && bundles > maxBundlesPerHost)
    return '--per-host: Kubernetes cannot limit how many bundles are on one node, except to 1 (--strategy STRICT_SPREAD)'
  if (new Set((roles ?? []).map((role) => JSON.stringify(record(role)?.request))).size > 1)
    return 'bundles that ask for different amounts cannot be one job in Kubernetes. Ask for the same in each role, or submit a job for each'
  return undefined
}

/** Kubernetes replaces `$$` and `$(NAME)` in commands and variables. */
const literal = (text: string): string => text.replace(/\$(?=[$(])/g, '$$$$')

/** What other bundles reach each bundle at, by rank. */
function addressesOf({ key, spec: { bundles } }: KubernetesStart): readonly string[] {
  if (bundles === 1) return ['127.0.0.1']
  const name = objectName(key)
  return Array.from({ length: bundles }, (_, rank) => `${name}-${rank}.${name}`)
}

function variablesOf(start: KubernetesStart): readonly JsonRecord[] {
  const { key, environment, spec } = start
  const { bundles, request } = spec
  const [, job = '0'] = key.split('-')
  const addresses = addressesOf(start)
  const devices = request.gpuCount === 0 ? { CUDA_VISIBLE_DEVICES: '', ROCR_VISIBLE_DEVICES: '' } : {}
  const own = {
    WORLD_SIZE: String(bundles),
    // A pod sees its own devices only.
    LOCAL_RANK: '0',
    MUSTER_WORLD_SIZE: String(bundles),
    MUSTER_HOSTS: addresses.join(),
    MUSTER_ADDRESSES: addresses.join(),
    MUSTER_WHY: WHY_FILE,
    MASTER_ADDR: addresses[0] ?? '',
    MASTER_PORT: String(FIRST_PORT + (Number(job) % PORTS)),
  }
  const texts = { ...devices, ...environment, ...own }
  return [
    ...['RANK', 'MUSTER_RANK'].map((name) => ({ name, valueFrom: { fieldRef: { fieldPath: INDEX_FIELD } } })),
    { name: 'MUSTER_NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
    ...Object.entries(texts).map(([name, value]) => ({ name, value: literal(value) })),
  ]
}

/** As Kubernetes writes them. */
function amountsOf({ cpuMilli, memoryBytes, gpuCount }: PodRequest, k8s: KubernetesSpec) {
  const memory = memoryBytes > 0 ? { memory: String(memoryBytes) } : {}
  const gpus = gpuCount > 0 ? { [gpuResourceOf(k8s)]: String(gpuCount) } : {}
  return { cpu: { cpu: `${cpuMilli}m` }, memory, gpus }
}

export const strategyOf = ({ spec: { strategy, maxBundlesPerHost } }: Pick<KubernetesStart, 'spec'>): string =>
  maxBundlesPerHost === 1 ? 'STRICT_SPREAD' : strategy

function affinityOf({ key, spec }: KubernetesStart): JsonRecord {
  const strategy = strategyOf({ spec })
  if (spec.bundles === 1) return {}
  const term = { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { [KEY_LABEL]: key } } }
  const rule = strategy.startsWith('STRICT_')
    ? { requiredDuringSchedulingIgnoredDuringExecution: [term] }
    : { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm: term }] }
  return strategy.endsWith('SPREAD') ? { podAntiAffinity: rule } : { podAffinity: rule }
}

function containerOf(start: KubernetesStart, k8s: KubernetesSpec): JsonRecord {
  const { command, directory, image, request, isUnlimited } = start.spec
  const { cpu, memory, gpus } = amountsOf(request, k8s)
  const run =
    directory === undefined
      ? ['/bin/sh', '-c', command]
      : ['/bin/sh', '-c', `cd ${shellQuote(directory)} && exec /bin/sh -c "$0"`, command]
  return {
    ...k8s.container,
    name: CONTAINER,
    image: image ?? k8s.image ?? '',
    command: run.map(literal),
    env: [...listOf(k8s.container?.env), ...variablesOf(start)],
    resources: {
      requests: { ...cpu, ...memory, ...gpus },
      limits: { ...(isUnlimited ? {} : memory), ...gpus },
    },
  }
}

/** For pods that the operator of another kind of job starts, which sets their ranks and addresses itself. */
export function operatorTemplate(start: KubernetesStart, k8s: KubernetesSpec, name: string, line: string): JsonRecord {
  const { environment, spec } = start
  const own = Object.entries(environment).map(([key, value]) => ({ name: key, value: literal(value) }))
  const container = {
    ...containerOf(start, k8s),
    name,
    command: ['/bin/sh', '-c', literal(line)],
    ...defined({ workingDir: spec.directory }),
    env: [...listOf(k8s.container?.env), ...own],
  }
  return { spec: { ...k8s.pod, ...defined({ activeDeadlineSeconds: spec.limitS }), containers: [container] } }
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

export type JobSituation = {
  /** It starts when Muster or Kueue resumes it. */
  readonly isSuspended: boolean
  /** Its pods are placed together. */
  readonly hasPodGroup: boolean
  readonly isQueued: boolean
}

export function jobObject(
  start: KubernetesStart,
  k8s: KubernetesSpec,
  { isSuspended, hasPodGroup, isQueued }: JobSituation,
): KubernetesObject {
  const { key, spec } = start
  const name = objectName(key)
  const labels = labelsOf(key)
  const { bundles, limitS, leaders } = spec
  const affinity = { ...record(k8s.pod?.affinity), ...affinityOf(start) }
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name,
      labels: { ...labels, ...(isQueued && k8s.queue !== undefined ? { [QUEUE_LABEL]: k8s.queue } : {}) },
      annotations: { 'muster.dev/name': spec.name.slice(0, MOST_NAME), [STRATEGY]: strategyOf(start) },
    },
    spec: {
      completions: bundles,
      parallelism: bundles,
      completionMode: 'Indexed',
      backoffLimit: 0,
      ...(isSuspended ? { suspend: true } : {}),
      ttlSecondsAfterFinished: KEPT_S,
      ...(leaders === undefined ? {} : { successPolicy: { rules: [{ succeededIndexes: leaders.join() }] } }),
      // With these, the Job records how it failed, even when its pods are gone.
      podFailurePolicy: {
        rules: [
          { action: 'FailJob', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] },
          { action: 'FailJob', onExitCodes: { containerName: CONTAINER, operator: 'NotIn', values: [0] } },
        ],
      },
      template: {
        metadata: { labels },
        spec: {
          automountServiceAccountToken: false,
          terminationGracePeriodSeconds: GRACE_S,
          ...k8s.pod,
          restartPolicy: 'Never',
          ...defined({ activeDeadlineSeconds: limitS }),
          ...(bundles > 1 ? { subdomain: name } : {}),
          ...(hasPodGroup ? { schedulingGroup: { podGroupName: name } } : {}),
          ...(Object.keys(affinity).length > 0 ? { affinity } : {}),
          containers: [containerOf(start, k8s)],
        },
      },
    },
  }
}

/** Gives the bundles of a gang names in DNS. */
export const serviceObject = (key: string): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: objectName(key), labels: labelsOf(key) },
  // The ranks look for each other before all of them are ready.
  spec: { clusterIP: 'None', publishNotReadyAddresses: true, selector: { [KEY_LABEL]: key } },
})

/** `version`: of the API that the cluster has. */
export const podGroupObject = (key: string, bundles: number, version: string): KubernetesObject => ({
  apiVersion: version,
  kind: 'PodGroup',
  metadata: { name: objectName(key), labels: labelsOf(key) },
  spec: { schedulingPolicy: { gang: { minCount: bundles } } },
})

/** Occupies the name of a job that must not start any more, and ends at once. */
export const barredObject = (key: string): KubernetesObject => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: objectName(key), labels: { ...labelsOf(key), [BARRED_LABEL]: 'true' } },
  spec: {
    completions: 0,
    parallelism: 0,
    ttlSecondsAfterFinished: BARRED_S,
    template: {
      spec: { restartPolicy: 'Never', containers: [{ name: CONTAINER, image: 'none', command: ['/bin/true'] }] },
    },
  },
})
