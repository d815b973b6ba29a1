/** What a job of Kubernetes and its pods say, and what follows from that for the queue. Pure. */
import { type JsonRecord, numberOf, record, textOf } from '../../base/json-lines.ts'
import { CONTAINER, INDEX_LABEL } from './manifest.ts'
import {
  conditionOf,
  hasEnded,
  isBarred,
  isDeleting,
  isSuspended,
  isTrue,
  labelsIn,
  metadataOf,
  nodeOfPod,
  phaseOf,
} from './objects.ts'
import { containersOf, plainWords } from './reasons.ts'

export type KubernetesEnd =
  | { readonly kind: 'exit'; readonly code: number; readonly isOutOfMemory?: boolean; readonly why?: string }
  | { readonly kind: 'unable' | 'refused'; readonly reason: string }
  | { readonly kind: 'gone'; readonly reason: string; readonly isCancelled?: boolean; readonly isTimedOut?: boolean }

export type KubernetesReport = 'waiting' | 'running' | 'barred' | 'lost' | 'forgotten' | KubernetesEnd

/** Of one key. */
export type KubernetesSight = {
  readonly job: JsonRecord | undefined
  readonly pods: readonly JsonRecord[]
}

const MOST_WHY = 300
const OUT_OF_MEMORY_CODE = 137

/** A process of it has begun. */
const hasBegun = (pod: JsonRecord): boolean =>
  containersOf(pod).some(
    ({ status, state }) => status.name === CONTAINER && (state.running ?? state.terminated) !== undefined,
  )

/** How a job that is there goes on, or ended. */
export function reportOfJob({ job, pods }: KubernetesSight & { readonly job: JsonRecord }): KubernetesReport {
  if (isBarred(job)) return 'barred'
  if (isTrue(job, 'Complete')) return { kind: 'exit', code: 0 }
  if (isTrue(job, 'Failed')) return failureOf(job, pods)
  // A gang of which a pod has no node is not running yet.
  const isPartial = pods.some((pod) => nodeOfPod(pod) === '' && !hasEnded(pod) && !isDeleting(pod))
  if (isSuspended(job) || isPartial || !pods.some(hasBegun)) return 'waiting'
  return 'running'
}

type Ended = { readonly pod: JsonRecord; readonly state: JsonRecord; readonly atMs: number; readonly code: number }

function failureOf(job: JsonRecord, pods: readonly JsonRecord[]): KubernetesEnd {
  const { reason, message } = conditionOf(job, 'Failed') ?? {}
  const words = textOf(message)
  if (reason === 'DeadlineExceeded' || pods.some((pod) => podReason(pod) === 'DeadlineExceeded'))
    return { kind: 'gone', reason: 'stopped by Kubernetes at its time limit', isTimedOut: true }
  const disrupted = pods.find((pod) => isTrue(pod, 'DisruptionTarget'))
  if (disrupted !== undefined || /has condition DisruptionTarget/.test(words))
    return { kind: 'unable', reason: disruptionWords(disrupted, words) }
  const [first] = pods
    .flatMap(endsOf)
    .sort((one, other) => one.atMs - other.atMs || indexOf(one.pod) - indexOf(other.pod))
  if (first !== undefined) return exitOf(first)
  const [, code = ''] = /failed with exit code (\d{1,3}) /.exec(words) ?? []
  if (code !== '') return { kind: 'exit', code: Math.min(255, Number(code)) }
  const evicted = pods.find((pod) => podReason(pod) !== '')
  if (evicted !== undefined) return { kind: 'unable', reason: `${plainWords(podReason(evicted))} in Kubernetes` }
  return {
    kind: 'gone',
    reason: `it failed in Kubernetes: ${plainWords(words || textOf(reason)) || 'no reason given'}`,
  }
}

/** Of a pod whose command failed. */
function endsOf(pod: JsonRecord): readonly Ended[] {
  return containersOf(pod).flatMap(({ status, state }) => {
    const ended = record(state.terminated)
    const code = numberOf(ended?.exitCode)
    if (ended === undefined || status.name !== CONTAINER || code === undefined || code === 0) return []
    const atMs = Date.parse(textOf(ended.finishedAt))
    return [{ pod, state: ended, atMs: Number.isFinite(atMs) ? atMs : Number.MAX_SAFE_INTEGER, code }]
  })
}

function exitOf({ state, code }: Ended): KubernetesEnd {
  if (textOf(state.reason) === 'OOMKilled') return { kind: 'exit', code: OUT_OF_MEMORY_CODE, isOutOfMemory: true }
  if (/^(StartError|ContainerCannotRun)$/.test(textOf(state.reason)))
    return { kind: 'refused', reason: `its container cannot be started: ${plainWords(textOf(state.message))}` }
  const why = plainWords(textOf(state.message).split('\n', 1)[0] ?? '').slice(0, MOST_WHY)
  const byte = Number.isInteger(code) && code > 0 && code < 256 ? code : 255
  return { kind: 'exit', code: byte, ...(why === '' ? {} : { why }) }
}

const podReason = (pod: JsonRecord): string => (phaseOf(pod) === 'Failed' ? textOf(record(pod.status)?.reason) : '')

function indexOf(pod: JsonRecord): number {
  const text = textOf(labelsIn(pod)[INDEX_LABEL]) || textOf(record(metadataOf(pod).annotations)?.[INDEX_LABEL])
  return /^\d{1,6}$/.test(text) ? Number(text) : 0
}

/** Why pods are taken away that have done nothing wrong. */
const DISRUPTIONS: Readonly<Record<string, string>> = {
  PreemptionByScheduler: 'stopped by Kubernetes for a pod of higher priority',
  DeletionByTaintManager: 'its node has a taint that it does not tolerate, or does not answer',
  EvictionByEvictionAPI: 'evicted from its node, which is being drained',
  DeletionByPodGC: 'its node is gone',
  TerminationByKubelet: 'stopped by its node, which is shutting down or short of memory or disk',
}

function disruptionWords(pod: JsonRecord | undefined, message: string): string {
  const { reason, message: said } = (pod && conditionOf(pod, 'DisruptionTarget')) ?? {}
  const code = textOf(reason)
  const node = pod === undefined ? '' : nodeOfPod(pod)
  const words = Object.hasOwn(DISRUPTIONS, code)
    ? DISRUPTIONS[code]
    : `removed by Kubernetes: ${textOf(said) || message}`
  return plainWords(`${words}${node === '' ? '' : ` (${node})`}`)
}
