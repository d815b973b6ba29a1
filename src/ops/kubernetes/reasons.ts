/** Why pods of Kubernetes wait, or how they ended, in words. Pure; texts of the API server are printable afterwards. */
import { type JsonRecord, list, record, textOf } from '../../base/json-lines.ts'
import { printable } from '../../base/printable.ts'
import { cut } from './events.ts'
import { conditionOf, nodeOfPod, phaseOf } from './objects.ts'

const MOST_WORDS = 400
/** Of what is read of a text: a server may send megabytes, and the words must not keep them in memory. */
const MOST_TEXT = 2_000

/** In one line. */
export function plainWords(text: string): string {
  const line = printable(cut(text, MOST_TEXT).replace(/\s+/g, ' ').trim())
  return line.length > MOST_WORDS ? `${line.slice(0, MOST_WORDS)}…` : line
}

/** What the scheduler says of nodes that cannot have a pod, and what that means after `2 `. */
const NODE_REASONS: readonly (readonly [pattern: RegExp, words: string])[] = [
  [/^Insufficient cpu$/, 'have too few free cores'],
  [/^Insufficient memory$/, 'have too little free memory'],
  [/^Insufficient ephemeral-storage$/, 'have too little free disk'],
  [/^Insufficient (.*gpu.*|.*mig-.*)$/i, 'have too few free GPUs ($1)'],
  [/^Insufficient (.*)$/, 'have too little free $1'],
  [/^Too many pods$/, 'have no room for more pods'],
  [/^node\(s\) had untolerated taints? ?\{(.*)\}$/, 'have a taint that the pod does not tolerate ($1)'],
  [/^node\(s\) had untolerated taint\(s\)$/, 'have a taint that the pod does not tolerate'],
  [/^node\(s\) were unschedulable$/, 'are cordoned'],
  [/^node\(s\) were not ready$/, 'are not ready'],
  [/^node\(s\) didn't match Pod's node affinity\/selector$/, 'do not match its node selector'],
  [/^node\(s\) didn't match pod anti-affinity rules$/, 'have a pod that it must not share a node with'],
  [/^node\(s\) didn't match pod affinity rules$/, 'do not have the pods that it must run next to'],
  [/^node\(s\) didn't match pod topology spread constraints/, 'would spread its pods too unevenly'],
  [/^node\(s\) had volume node affinity conflict$/, 'cannot reach its volume'],
  [/^node\(s\) didn't have free ports/, 'have a port in use that it needs'],
]

/** `0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient nvidia.com/gpu. no new claims …` */
export function schedulerWords(text: string): string {
  const message = cut(text, MOST_TEXT)
  const [, total = '', said = ''] = /^0\/(\d{1,6}) nodes are available: (.*?)(?:\. |\.?$)/s.exec(message) ?? []
  if (/pod ?group/i.test(message))
    return `its gang does not fit as a whole (${plainWords(message.replace(/\.\s.*$/s, ''))})`
  if (total === '0' || /^no nodes available/.test(message)) return 'the cluster has no nodes'
  // A taint may contain commas.
  const reasons = said.split(/, (?=\d+ )/)
  // From Kubernetes 1.32 on it says so of nodes that have too little in all.
  const isTooLarge =
    reasons.every((part) => /^\d{1,6} Insufficient /.test(part)) &&
    message.includes(` available: ${total} Preemption is not helpful for scheduling`)
  const parts = reasons.map((part) => {
    const [, count = '', reason = ''] = /^(\d{1,6}) (.*)$/s.exec(part) ?? []
    const [pattern, meaning = ''] = NODE_REASONS.find(([known]) => known.test(reason)) ?? []
    const missing = pattern === undefined ? reason : reason.replace(pattern, meaning)
    const why = isTooLarge ? missing.replace(/ free /, ' ') : missing
    if (count === '') return part
    const [number, words] = count === '1' ? ['1', singular(why)] : [count, why]
    return count === total && total !== '1' ? `all ${words}` : `${number} ${words}`
  })
  if (total === '' || said === '') return `Kubernetes cannot place it: ${plainWords(message) || 'no reason given'}`
  const start = isTooLarge ? 'no node could hold it even when idle' : 'no node has room for it'
  return plainWords(`${start}: of ${total} ${total === '1' ? 'node' : 'nodes'}, ${parts.join(', ')}`)
}

const singular = (words: string): string => words.replace(/^(?:have|are|do)\b/, (verb) => SINGULARS[verb] ?? verb)
const SINGULARS: Readonly<Record<string, string>> = { have: 'has', are: 'is', do: 'does' }

/** Codes of a container that does not start, and what to do. */
const CONTAINER_REASONS: Readonly<Record<string, string>> = {
  ErrImagePull: 'its image cannot be pulled',
  ImagePullBackOff: 'its image cannot be pulled',
  ErrImageNeverPull: 'its image is not on the node, and its pull policy is Never',
  InvalidImageName: 'the name of its image is not valid: it never starts',
  ImageInspectError: 'the node cannot read its image',
  RegistryUnavailable: 'the registry of its image does not answer',
  CreateContainerConfigError: 'its container cannot be created: a config map, secret or variable is missing or wrong',
  CreateContainerError: 'its container cannot be created',
  RunContainerError: 'its container cannot be started',
  PodInitializing: 'its init containers are running',
  ContainerCreating: 'its node is preparing the container',
}

type Container = { readonly status: JsonRecord; readonly state: JsonRecord }

export const containersOf = (pod: JsonRecord): readonly Container[] =>
  ['containerStatuses', 'initContainerStatuses'].flatMap((key) =>
    list(record(pod.status)?.[key]).map((status) => ({ status, state: record(status.state) ?? {} })),
  )

/** Why a pod does not run yet, with Kubernetes' own code; undefined: it runs, has ended, or nothing is known. */
export function podWaitWords(pod: JsonRecord): string | undefined {
  if (phaseOf(pod) !== 'Pending') return undefined
  const gates = list(record(pod.spec)?.schedulingGates).map(({ name }) => textOf(name))
  if (gates.length > 0) return `waiting for its scheduling gates to be removed: ${plainWords(gates.join(', '))}`
  const scheduled = conditionOf(pod, 'PodScheduled')
  if (scheduled?.status === 'False') return schedulerWords(textOf(scheduled.message))
  const waiting = containersOf(pod).flatMap<JsonRecord>(({ state }) => record(state.waiting) ?? [])
  // What is wrong tells more than that something is being made.
  const isPassing = ({ reason }: JsonRecord) => ['ContainerCreating', 'PodInitializing'].includes(textOf(reason))
  const said = waiting.find((one) => !isPassing(one)) ?? waiting[0]
  if (said !== undefined) return containerWords(textOf(said.reason), textOf(said.message))
  return nodeOfPod(pod) === '' ? 'the scheduler has not considered it yet' : undefined
}

function containerWords(reason: string, message: string): string {
  const words = Object.hasOwn(CONTAINER_REASONS, reason) ? CONTAINER_REASONS[reason] : undefined
  const code = plainWords(reason)
  if (words === undefined) return plainWords(`its container waits: ${reason} ${message}`)
  return message === '' ? `${words} (${code})` : plainWords(`${words} (${code}: ${message})`)
}

/** Why pods of a job cannot even be made, from its event `FailedCreate`. */
export function createWords(text: string): string {
  const message = cut(text, MOST_TEXT)
  const quota = /exceeded quota: ([^,]{1,253}), requested: (.{1,200}), used: (.{1,200}), limited: (.{1,200})$/s.exec(
    message,
  )
  if (quota === null) return `Kubernetes cannot create its pods: ${plainWords(message)}`
  const [, name = '', requested = '', used = '', limited = ''] = quota
  return plainWords(`the quota ${name} is used up: it asks for ${requested}; used ${used} of ${limited}`)
}
