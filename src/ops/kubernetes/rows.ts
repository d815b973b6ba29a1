/** Pods and nodes as lists show them, and why one waits or how it ended. Pure; texts are printable. */
import { type JsonRecord, numberOf, record, textOf } from '../../base/json-lines.ts'
import type { KubernetesEvent } from './events.ts'
import { conditionOf, isDeleting, isSuspended, isTrue, metadataOf, nodeOfPod, phaseOf } from './objects.ts'
import { containersOf, createWords, plainWords, podWaitWords } from './reasons.ts'
import { byName, countOf, type KubernetesNode, type KubernetesPod, nodeUsage, podOf } from './usage.ts'

export type PodRow = {
  readonly namespace: string
  readonly name: string
  /** Empty: none yet. */
  readonly node: string
  /** `Running`, `Pending`, `Succeeded`, `Failed`, `Unknown`; `Ending` if it is being deleted. */
  readonly state: string
  readonly restarts: number
  readonly gpus: number
  /** ISO 8601; empty: unknown. */
  readonly created: string
  /** Why it waits, or how it ended. */
  readonly why: string
}

export function podRowOf(object: JsonRecord, gpuResource: string): PodRow | undefined {
  const metadata = metadataOf(object)
  const name = plainWords(textOf(metadata.name))
  if (name === '') return undefined
  const created = Date.parse(textOf(metadata.creationTimestamp))
  const restarts = containersOf(object).reduce((sum, each) => sum + (numberOf(each.status.restartCount) ?? 0), 0)
  // Without its phase, what an ended one asked for is read, too.
  const asked = podOf({ ...object, status: {} }, gpuResource)
  return {
    namespace: plainWords(textOf(metadata.namespace)),
    name,
    node: plainWords(nodeOfPod(object)),
    state: isDeleting(object) ? 'Ending' : plainWords(phaseOf(object)) || 'Unknown',
    restarts,
    gpus: asked === undefined ? 0 : countOf(asked.devices),
    created: Number.isFinite(created) ? new Date(created).toISOString() : '',
    why: podWaitWords(object) ?? endWords(object) ?? restartWords(object) ?? '',
  }
}

/** How a pod ended that failed; undefined: it has not. */
function endWords(pod: JsonRecord): string | undefined {
  const status = record(pod.status)
  if (phaseOf(pod) !== 'Failed') return undefined
  const said = plainWords(`${textOf(status?.reason)} ${textOf(status?.message)}`)
  const ends = containersOf(pod).flatMap(({ state }) => terminationWords(record(state.terminated)) ?? [])
  return said || ends[0] || 'it failed'
}

/** Why a running pod has no running container. */
function restartWords(pod: JsonRecord): string | undefined {
  const waiting = containersOf(pod).find(({ state }) => record(state.waiting) !== undefined)
  if (waiting === undefined) return undefined
  const last = terminationWords(record(record(waiting.status.lastState)?.terminated))
  const reason = plainWords(textOf(record(waiting.state.waiting)?.reason))
  return last === undefined ? reason : `its container keeps ending: ${last} (${reason})`
}

function terminationWords(terminated: JsonRecord | undefined): string | undefined {
  if (terminated === undefined) return undefined
  const code = numberOf(terminated.exitCode)
  if (code === 0) return undefined
  const reason = textOf(terminated.reason)
  if (reason === 'OOMKilled') return 'it used more memory than its limit (OOMKilled)'
  return plainWords(code === undefined ? reason : `exit ${code}${reason === 'Error' ? '' : ` (${reason})`}`)
}

export type NodeRow = Omit<KubernetesNode, 'devices'> & {
  readonly cpuUsedMilli: number
  readonly memoryUsedBytes: number
  readonly gpus: number
  readonly gpusUsed: number
  readonly pods: number
}

/** `pods`: of all namespaces; undefined: they may not be listed. */
export function nodeRows(
  nodes: Iterable<KubernetesNode>,
  pods: Iterable<KubernetesPod> | undefined,
): readonly (Omit<NodeRow, 'cpuUsedMilli' | 'memoryUsedBytes' | 'gpusUsed' | 'pods'> & Partial<NodeRow>)[] {
  const byNode = pods && Map.groupBy(pods, ({ node }) => node)
  return [...nodes]
    .map((node) => {
      const own = byNode?.get(node.name) ?? []
      const { cpuUsedMilli, memoryUsedBytes, ...has } = { ...nodeUsage(node, own, false), gpus: countOf(node.devices) }
      if (byNode === undefined) return has
      const gpusUsed = own.reduce((sum, pod) => sum + countOf(pod.devices), 0)
      return { ...has, cpuUsedMilli, memoryUsedBytes, gpusUsed, pods: own.length }
    })
    .toSorted(byName)
}

function stateWords({ state, node }: PodRow): string {
  switch (state) {
    case 'Running':
      return `it runs on ${node}`
    case 'Pending':
      return node === '' ? 'it waits for a node' : `it starts on ${node}`
    case 'Succeeded':
      return 'it has succeeded'
    case 'Ending':
      return 'it is being deleted'
    default:
      return 'its state is unknown'
  }
}

/** Why a pod is as it is, a sentence each; the API server's own text comes last. */
export function whyPod(pod: JsonRecord, events: readonly KubernetesEvent[], gpuResource: string): readonly string[] {
  const row = podRowOf(pod, gpuResource)
  if (row === undefined) return []
  const scheduled = conditionOf(pod, 'PodScheduled')
  const said = scheduled?.status === 'False' ? plainWords(textOf(scheduled.message)) : ''
  const gang = plainWords(textOf(record(record(pod.spec)?.schedulingGroup)?.podGroupName))
  return [
    row.why || stateWords(row),
    ...(row.state === 'Pending' && gang !== '' ? [`it starts only together with its gang ${gang}`] : []),
    ...(said === '' ? warningsOf(events) : [`the scheduler says: ${said}`]),
  ]
}

/** The same of a Job. `pods`: its own. */
export function whyJob(
  job: JsonRecord,
  pods: readonly JsonRecord[],
  events: readonly KubernetesEvent[],
): readonly string[] {
  const failed = conditionOf(job, 'Failed')
  if (failed !== undefined && isTrue(job, 'Failed'))
    return [plainWords(`it failed: ${textOf(failed.reason)} ${textOf(failed.message)}`), ...endedPods(pods)]
  if (isTrue(job, 'Complete')) return ['it is complete']
  if (isSuspended(job)) return ['it is suspended and holds nothing', ...warningsOf(events)]
  const creates = events.filter(({ reason }) => reason === 'FailedCreate')
  const last = creates.at(-1)
  const waiting = Map.groupBy(
    pods.flatMap((pod) => podWaitWords(pod) ?? []),
    (words) => words,
  )
  const groups = [...waiting].map(([words, all]) => `${all.length} of ${pods.length} pods: ${words}`)
  const running = pods.filter((pod) => phaseOf(pod) === 'Running').length
  const states = [...(last === undefined || waiting.size > 0 ? [] : [createWords(last.message)]), ...groups]
  return states.length > 0
    ? states
    : [pods.length === 0 ? 'it has no pods yet' : `${running} of ${pods.length} pods run`]
}

const endedPods = (pods: readonly JsonRecord[]): readonly string[] =>
  pods.flatMap((pod) => {
    const words = endWords(pod)
    return words === undefined ? [] : [`${plainWords(textOf(metadataOf(pod).name))}: ${words}`]
  })

const MOST_WARNINGS = 5

const warningsOf = (events: readonly KubernetesEvent[]): readonly string[] =>
  events
    .filter(({ type }) => type === 'Warning')
    .slice(-MOST_WARNINGS)
    .map(({ reason, message }) => plainWords(`${reason}: ${message}`))
