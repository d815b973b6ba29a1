/**
 * What a Kubernetes cluster has and who holds it, from its nodes, pods and jobs. Pure. It does not tell which device of a node a pod
 * has, so pods get them from the first one on, the oldest pod first.
 */

import { type JsonRecord, numberOf, record, textOf } from '../../base/json-lines.ts'
import { naturalOrder } from '../../base/natural-order.ts'
import { printable } from '../../base/printable.ts'
import { drawnNodes } from '../drawn-nodes.ts'
import { KEY_LABEL } from './manifest.ts'
import {
  conditionOf,
  hasEnded,
  isOver,
  isSuspended,
  isTrue,
  labelsIn,
  metadataOf,
  nodeOfPod,
  ownerOf,
} from './objects.ts'
import { plainWords, podWaitWords } from './reasons.ts'
import { amountsOf, isDevice, type ResourceAmounts, requestsOf } from './resources.ts'

/** Counts of devices by resource, such as `nvidia.com/gpu` or `nvidia.com/mig-1g.5gb`. */
type Devices = Readonly<Record<string, number>>

/** What is kept of a node. */
export type KubernetesNode = {
  readonly name: string
  readonly cpuMilli: number
  readonly memoryBytes: number
  readonly devices: Devices
  /** Why it takes no pods; empty: it does. */
  readonly trouble: string
}

/** What is kept of a pod that has not ended. */
export type KubernetesPod = {
  readonly namespace: string
  readonly name: string
  /** Of what made it, such as a Job; its own name if it was made by hand. */
  readonly owner: string
  /** Of the queue's order; empty: it is not Muster's. */
  readonly key: string
  /** Empty: none yet. */
  readonly node: string
  readonly createdMs: number
  readonly cpuMilli: number
  readonly memoryBytes: number
  readonly devices: Devices
  /** Why it does not run yet. */
  readonly waits?: string
}

/** What is kept of a Job that has not ended and has no pods. */
export type KubernetesIdleJob = Pick<KubernetesPod, 'namespace' | 'name' | 'key'> & { readonly isSuspended: boolean }

export type KubernetesUsage = {
  readonly note?: string
  readonly nodes: readonly (Omit<KubernetesNode, 'devices'> & {
    readonly cpuUsedMilli: number
    readonly memoryUsedBytes: number
    readonly gpus: number
    readonly isBlind?: true
  })[]
  readonly jobs: readonly KubernetesHolder[]
}

type KubernetesHolder = {
  readonly id: string
  /** The key of the queue's order, else what made its pods. */
  readonly name: string
  /** Its namespace: Kubernetes does not tell who made it. */
  readonly user: string
  readonly isOwn: boolean
  readonly waits?: string
  readonly shares: readonly {
    readonly node: string
    readonly cpuMilli: number
    readonly memoryBytes: number
    readonly devices: readonly number[]
  }[]
}

export type KubernetesObjects = {
  /** Undefined: they may not be listed. */
  readonly nodes: Iterable<KubernetesNode> | undefined
  readonly pods: Iterable<KubernetesPod>
  readonly idleJobs: Iterable<KubernetesIdleJob>
  /** Of the queue's jobs. */
  readonly namespace: string
  readonly note?: string
}

const MOST_NAME = 253
/** Of one node; no more are drawn. */
const MOST_GPUS = 128

/** The API server allows no longer name; a slice would keep the whole string in memory. */
function nameOf(value: unknown): string {
  const text = textOf(value)
  return text.length > MOST_NAME ? '' : printable(text)
}

/** For `project` of a watch. `gpuResource`: the resource that counts GPUs, besides the usual names. */
export function nodeOf(object: JsonRecord, gpuResource: string): KubernetesNode | undefined {
  const [spec, status] = [record(object.spec), record(object.status)]
  const name = nameOf(metadataOf(object).name)
  if (name === '') return undefined
  const amounts = amountsOf(status?.allocatable ?? status?.capacity)
  const troubles = [
    ...(isTrue(object, 'Ready') ? [] : [notReadyWords(conditionOf(object, 'Ready'))]),
    ...(spec?.unschedulable === true ? ['cordoned'] : []),
  ]
  return { name, ...sizesOf(amounts, gpuResource), trouble: troubles.join(', ') }
}

const notReadyWords = (ready: JsonRecord | undefined): string => {
  const words = plainWords(textOf(ready?.message) || textOf(ready?.reason))
  return words === '' ? 'not ready' : `not ready: ${words}`
}

/** For `project` of a watch; undefined: it has ended. */
export function podOf(object: JsonRecord, gpuResource: string): KubernetesPod | undefined {
  const identity = identityOf(object)
  if (identity.name === '' || hasEnded(object)) return undefined
  const waits = podWaitWords(object)
  return {
    ...identity,
    owner: nameOf(ownerOf(object).name) || identity.name,
    node: nameOf(nodeOfPod(object)),
    createdMs: Date.parse(textOf(metadataOf(object).creationTimestamp)) || 0,
    ...sizesOf(requestsOf(record(object.spec)), gpuResource),
    ...(waits === undefined ? {} : { waits }),
  }
}

/** For `project` of a watch; undefined: it has ended, or has pods. */
export function idleJobOf(object: JsonRecord): KubernetesIdleJob | undefined {
  const identity = identityOf(object)
  if (isOver(object) || identity.name === '' || (numberOf(record(object.status)?.active) ?? 0) > 0) return undefined
  return { ...identity, isSuspended: isSuspended(object) }
}

const identityOf = (object: JsonRecord) => ({
  namespace: nameOf(metadataOf(object).namespace),
  name: nameOf(metadataOf(object).name),
  key: nameOf(labelsIn(object)[KEY_LABEL]),
})

export function kubernetesUsage({ nodes, pods, idleJobs, namespace, note }: KubernetesObjects): KubernetesUsage {
  const all = [...pods].toSorted((one, other) => one.createdMs - other.createdMs || (one.name < other.name ? -1 : 1))
  const byNode = Map.groupBy(all, ({ node }) => node)
  const found = (nodes === undefined ? blindNodes(byNode) : [...nodes]).toSorted(byName)
  const known = drawnNodes(found, ({ devices }) => boxesOf(devices))
  const left = found.length - known.length
  const notes = [...(note === undefined ? [] : [note]), ...(left === 0 ? [] : [`${left} more nodes are not shown`])]
  const devices = new Map(known.flatMap((node) => devicesOf(node, byNode.get(node.name) ?? [])))
  const holders = [...Map.groupBy(all, holderOf)].map(([holder, own]) => holderUsage(holder, own, namespace, devices))
  const placed = new Set(holders.map(({ user, id }) => `${user}/${id}`))
  const idle = [...idleJobs].filter((job) => !placed.has(holderOf({ ...job, owner: job.name })))
  return {
    ...(notes.length === 0 ? {} : { note: notes.join('; ') }),
    nodes: known.map((node) => nodeUsage(node, byNode.get(node.name) ?? [], nodes === undefined)),
    jobs: [...holders, ...idle.map((job) => idleUsage(job, namespace))],
  }
}

type Named = { readonly name: string }
/** `w2` before `w10`. */
export const byName = (one: Named, other: Named): number => naturalOrder(one.name, other.name)

const holderOf = ({ namespace, owner }: Pick<KubernetesPod, 'namespace' | 'owner'>): string => `${namespace}/${owner}`

/** Without the right to list nodes: the nodes that pods run on. */
const blindNodes = (byNode: ReadonlyMap<string, readonly KubernetesPod[]>): readonly KubernetesNode[] =>
  [...byNode].flatMap(([name, pods]) =>
    name === '' ? [] : [{ name, cpuMilli: 0, memoryBytes: 0, devices: sumOf(pods), trouble: '' }],
  )

function sumOf(pods: readonly KubernetesPod[]): Devices {
  const sums: Record<string, number> = {}
  for (const { devices } of pods)
    for (const [name, count] of Object.entries(devices)) sums[name] = (sums[name] ?? 0) + count
  return sums
}

export const countOf = (devices: Devices): number => Object.values(devices).reduce((sum, count) => sum + count, 0)

const boxesOf = (devices: Devices): number => Math.min(MOST_GPUS, countOf(devices))

export function nodeUsage(
  { devices, ...node }: KubernetesNode,
  pods: readonly KubernetesPod[],
  isBlind: boolean,
): KubernetesUsage['nodes'][number] {
  const sum = (key: 'cpuMilli' | 'memoryBytes') => pods.reduce((total, pod) => total + pod[key], 0)
  return {
    ...node,
    cpuUsedMilli: sum('cpuMilli'),
    memoryUsedBytes: sum('memoryBytes'),
    gpus: boxesOf(devices),
    ...(isBlind ? { isBlind } : {}),
  }
}

/** By pod: the boxes of its devices. Each kind has boxes of its own. */
function devicesOf(
  { devices }: KubernetesNode,
  pods: readonly KubernetesPod[],
): readonly (readonly [pod: KubernetesPod, devices: readonly number[]])[] {
  const free = new Map<string, number[]>()
  let from = 0
  for (const name of Object.keys(devices).toSorted()) {
    const count = Math.min(devices[name] ?? 0, MOST_GPUS - from)
    free.set(
      name,
      Array.from({ length: count }, (_, index) => from + index),
    )
    from += count
  }
  return pods.map((pod) => {
    const own = Object.entries(pod.devices).flatMap(([name, count]) => free.get(name)?.splice(0, count) ?? [])
    return [pod, own]
  })
}

function holderUsage(
  holder: string,
  pods: readonly KubernetesPod[],
  ownNamespace: string,
  devices: ReadonlyMap<KubernetesPod, readonly number[]>,
): KubernetesHolder {
  const [namespace = '', id = ''] = holder.split('/')
  const waiting = pods.flatMap(({ waits }) => waits ?? [])
  const [why] = waiting
  const part = waiting.length === pods.length && pods.length === 1 ? '' : `${waiting.length} of ${pods.length} pods: `
  return {
    ...holderNames({ namespace, name: id, key: pods[0]?.key ?? '' }, ownNamespace),
    ...(why === undefined ? {} : { waits: part + why }),
    shares: pods.flatMap((pod) => {
      const { node, cpuMilli, memoryBytes } = pod
      return node === '' ? [] : [{ node, cpuMilli, memoryBytes, devices: devices.get(pod) ?? [] }]
    }),
  }
}

function idleUsage({ isSuspended, ...job }: KubernetesIdleJob, ownNamespace: string): KubernetesHolder {
  const own = holderNames(job, ownNamespace)
  const suspended = own.isOwn ? 'it holds nothing until all its pods fit at once' : 'suspended'
  return { ...own, waits: isSuspended ? suspended : 'it has no pods yet', shares: [] }
}

/** Anybody may set labels in their own namespaces, so those of other namespaces do not count. */
const holderNames = (
  { namespace, name, key }: Pick<KubernetesPod, 'namespace' | 'name' | 'key'>,
  ownNamespace: string,
) => {
  const isOwn = key !== '' && namespace === ownNamespace
  return { id: name, name: isOwn ? key : name, user: namespace, isOwn }
}

const sizesOf = (amounts: ResourceAmounts, gpuResource: string) => ({
  cpuMilli: Math.round((amounts.cpu ?? 0) * 1000),
  memoryBytes: Math.round(amounts.memory ?? 0),
  devices: Object.fromEntries(
    Object.entries(amounts).flatMap(([name, count]) =>
      (name === gpuResource || isDevice(name)) && count >= 1 ? [[name, Math.floor(count)]] : [],
    ),
  ),
})
