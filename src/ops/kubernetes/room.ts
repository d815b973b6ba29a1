/** Whether all pods of a gang fit on the nodes at once. Its bundles ask for the same, so counting them is exact. Pure. */
import { type JsonRecord, list, record, textOf } from '../../base/json-lines.ts'
import { cut } from './events.ts'
import { KEY_LABEL, type PodRequest } from './manifest.ts'
import { hasEnded, isTrue, labelsIn, metadataOf, nodeOfPod } from './objects.ts'
import { amountsOf, type ResourceAmounts, requestsOf } from './resources.ts'

type Sizes = { readonly cpuMilli: number; readonly memoryBytes: number; readonly gpus: number }

/** What a node has that takes pods; `pods`: how many. */
export type NodeRoom = Sizes & { readonly name: string; readonly pods: number }

/** What a pod holds, or will hold when it has a node. */
export type PodClaim = Sizes & { readonly node: string; readonly key: string }

export type GangWish = {
  readonly request: Omit<PodRequest, 'gpuMilli'>
  readonly count: number
  readonly strategy: string
}

/** Undefined: it accepts none of these pods. `pod`: additional fields of the pods. */
export function nodeRoomOf(node: JsonRecord, gpuResource: string, pod: JsonRecord = {}): NodeRoom | undefined {
  const spec = record(node.spec) ?? {}
  const isTolerated = (taint: JsonRecord) =>
    !['NoSchedule', 'NoExecute'].includes(textOf(taint.effect)) ||
    list(pod.tolerations).some((one) => tolerates(one, taint))
  const labels = labelsIn(node)
  const isSelected = Object.entries(record(pod.nodeSelector) ?? {}).every(([name, value]) => labels[name] === value)
  if (!isTrue(node, 'Ready') || spec.unschedulable === true || !isSelected || !list(spec.taints).every(isTolerated))
    return undefined
  const has = amountsOf(record(node.status)?.allocatable)
  return { name: cut(metadataOf(node).name), ...sizesOf(has, gpuResource), pods: has.pods ?? 0 }
}

function tolerates({ key, operator = 'Equal', value = '', effect = '' }: JsonRecord, taint: JsonRecord): boolean {
  if (effect !== '' && effect !== taint.effect) return false
  if (operator === 'Exists') return key === undefined || key === '' || key === taint.key
  return key === taint.key && value === (taint.value ?? '')
}

const sizesOf = (amounts: ResourceAmounts, gpuResource: string): Sizes => ({
  cpuMilli: Math.round((amounts.cpu ?? 0) * 1000),
  memoryBytes: amounts.memory ?? 0,
  gpus: amounts[gpuResource] ?? 0,
})

/** Undefined: it has ended. `namespace`: of the queue's jobs; labels in other namespaces do not count. */
export function podClaimOf(pod: JsonRecord, gpuResource: string, namespace: string): PodClaim | undefined {
  if (hasEnded(pod)) return undefined
  return {
    ...sizesOf(requestsOf(record(pod.spec)), gpuResource),
    node: cut(nodeOfPod(pod)),
    key: metadataOf(pod).namespace === namespace ? cut(labelsIn(pod)[KEY_LABEL]) : '',
  }
}

/** What is free on each node, by name. */
export type FreeRoom = Map<string, NodeRoom>

export function freeRoom(nodes: Iterable<NodeRoom>, claims: Iterable<PodClaim>): FreeRoom {
  const free: FreeRoom = new Map([...nodes].map((node) => [node.name, node]))
  for (const claim of claims) take(free, claim.node, claim, 1)
  return free
}

function take(free: FreeRoom, name: string, { cpuMilli, memoryBytes, gpus }: Sizes, count: number): void {
  const node = free.get(name)
  if (node === undefined) return
  free.set(name, {
    name,
    cpuMilli: node.cpuMilli - cpuMilli * count,
    memoryBytes: node.memoryBytes - memoryBytes * count,
    gpus: node.gpus - gpus * count,
    pods: node.pods - count,
  })
}

/** Of sizes of pods. */
const MOST_SIZES = 100

/** Takes room for pods of gangs that were let go and have no node yet, as far as there is some. */
export function reserveUnbound(free: FreeRoom, claims: Iterable<PodClaim>): void {
  const unbound = [...claims].filter(({ node, key }) => node === '' && key !== '')
  // One by one, thousands of them on thousands of nodes would keep the scheduler busy for minutes.
  const alike = Map.groupBy(unbound, ({ cpuMilli, memoryBytes, gpus }) => `${cpuMilli} ${memoryBytes} ${gpus}`)
  for (const pods of [...alike.values()].slice(0, MOST_SIZES)) {
    const [{ cpuMilli = 0, memoryBytes = 0, gpus = 0 } = {}] = pods
    const request = { cpuMilli, memoryBytes, gpuCount: gpus }
    const fit = takeGang(free, { request, count: pods.length, strategy: 'PACK' })
    if (fit > 0 && fit < pods.length) takeGang(free, { request, count: fit, strategy: 'PACK' })
  }
}

/** Reserves room for all of its pods, or for none; returns how many fit. */
export function takeGang(free: FreeRoom, { request, count, strategy }: GangWish): number {
  const { cpuMilli, memoryBytes, gpuCount: gpus } = request
  const each = { cpuMilli, memoryBytes, gpus }
  const holds = (node: NodeRoom): number =>
    Math.max(
      0,
      Math.floor(
        Math.min(
          node.pods,
          ...(['cpuMilli', 'memoryBytes', 'gpus'] as const).map((name) =>
            each[name] > 0 ? node[name] / each[name] : count,
          ),
        ),
      ),
    )
  const counts = [...free.values()].map((node) => ({ name: node.name, fit: Math.min(holds(node), count) }))
  if (strategy === 'STRICT_PACK') {
    const best = counts.reduce((one, other) => (other.fit > one.fit ? other : one), { name: '', fit: 0 })
    if (best.fit >= count) take(free, best.name, each, count)
    return best.fit
  }
  const perNode = strategy === 'STRICT_SPREAD' ? 1 : count
  const parts = counts
    .map(({ name, fit }) => ({ name, fit: Math.min(fit, perNode) }))
    .sort((one, other) => other.fit - one.fit)
  const all = parts.reduce((total, { fit }) => total + fit, 0)
  if (all < count) return all
  let left = count
  for (const { name, fit } of parts) {
    take(free, name, each, Math.min(fit, left))
    left -= Math.min(fit, left)
  }
  return count
}
