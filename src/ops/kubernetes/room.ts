/** Whether all pods of a gang fit on the nodes at once. Its bundles ask for the same, so counting them is exact. Pure. */
import { type JsonRecord, list, record, textOf } from '../../base/json-lines.ts'
import { KEY_LABEL, type PodRequest } from './manifest.ts'

type Amounts = { readonly cpuMilli: number; readonly memoryBytes: number; readonly gpus: number }

/** What a node has that takes pods; `pods`: how many. */
export type NodeRoom = Amounts & { readonly name: string; readonly pods: number }

/** What a pod holds, or will hold when it has a node. */
export type PodClaim = Amounts & { readonly node: string; readonly key: string }

export type GangWish = {
  readonly request: Omit<PodRequest, 'gpuMilli'>
  readonly count: number
  readonly strategy: string
}

const SUFFIXES: Readonly<Record<string, number>> = {
  '': 1,
  ...{ n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 },
  ...{ Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60 },
}

/** `1500m`, `8Gi`, `1e3`; 0 where it is nothing of that kind. */
export function quantityOf(value: unknown): number {
  const [, digits = '', suffix = ''] =
    /^([+-]?[\d.]{1,20}(?:[eE][+-]?\d{1,3})?)([A-Za-z]{0,2})$/.exec(
      typeof value === 'number' ? String(value) : textOf(value),
    ) ?? []
  const number = digits === '' ? 0 : Number(digits) * (SUFFIXES[suffix] ?? 0)
  return Number.isFinite(number) && number > 0 ? number : 0
}

/** Undefined: it takes none of these pods, now or at all. `pod`: further fields of the pods. */
export function nodeRoomOf(node: JsonRecord, gpuResource: string, pod: JsonRecord = {}): NodeRoom | undefined {
  const [spec, status, metadata] = [record(node.spec) ?? {}, record(node.status) ?? {}, record(node.metadata) ?? {}]
  const isReady = list(status.conditions).some(({ type, status: is }) => type === 'Ready' && is === 'True')
  const isTolerated = (taint: JsonRecord) =>
    !['NoSchedule', 'NoExecute'].includes(textOf(taint.effect)) ||
    list(pod.tolerations).some((one) => tolerates(one, taint))
  const labels = record(metadata.labels) ?? {}
  const isSelected = Object.entries(record(pod.nodeSelector) ?? {}).every(([name, value]) => labels[name] === value)
  if (!isReady || spec.unschedulable === true || !isSelected || !list(spec.taints).every(isTolerated)) return undefined
  const has = record(status.allocatable) ?? {}
  return { name: textOf(metadata.name), ...amountsOf(has, gpuResource), pods: quantityOf(has.pods) }
}

function tolerates({ key, operator = 'Equal', value = '', effect = '' }: JsonRecord, taint: JsonRecord): boolean {
  if (effect !== '' && effect !== taint.effect) return false
  if (operator === 'Exists') return key === undefined || key === '' || key === taint.key
  return key === taint.key && value === (taint.value ?? '')
}

const amountsOf = (resources: JsonRecord, gpuResource: string): Amounts => ({
  cpuMilli: Math.round(quantityOf(resources.cpu) * 1000),
  memoryBytes: quantityOf(resources.memory),
  gpus: quantityOf(resources[gpuResource]),
})

/** Undefined: it has ended. */
export function podClaimOf(pod: JsonRecord, gpuResource: string): PodClaim | undefined {
  const spec = record(pod.spec) ?? {}
  if (['Succeeded', 'Failed'].includes(textOf(record(pod.status)?.phase))) return undefined
  const asked = (container: JsonRecord) => amountsOf(record(record(container.resources)?.requests) ?? {}, gpuResource)
  const inits = list(spec.initContainers)
  // Init containers that go on beside the others.
  const isBeside = ({ restartPolicy }: JsonRecord) => restartPolicy === 'Always'
  const together = [...list(spec.containers), ...inits.filter(isBeside)].map(asked).reduce(sum, NOTHING)
  const needed = inits
    .filter((one) => !isBeside(one))
    .map(asked)
    .reduce(most, together)
  const labels = record(record(pod.metadata)?.labels)
  return {
    ...sum(needed, amountsOf(record(spec.overhead) ?? {}, gpuResource)),
    node: textOf(spec.nodeName),
    key: textOf(labels?.[KEY_LABEL]),
  }
}

const NOTHING: Amounts = { cpuMilli: 0, memoryBytes: 0, gpus: 0 }
const both =
  (take: (one: number, other: number) => number) =>
  (one: Amounts, other: Amounts): Amounts => ({
    cpuMilli: take(one.cpuMilli, other.cpuMilli),
    memoryBytes: take(one.memoryBytes, other.memoryBytes),
    gpus: take(one.gpus, other.gpus),
  })
const sum = both((one, other) => one + other)
const most = both(Math.max)

/** What is free on each node, by name. */
export type FreeRoom = Map<string, NodeRoom>

export function freeRoom(nodes: Iterable<NodeRoom>, claims: Iterable<PodClaim>): FreeRoom {
  const free: FreeRoom = new Map([...nodes].map((node) => [node.name, node]))
  for (const { node, ...claim } of claims) take(free, node, claim, 1)
  return free
}

function take(free: FreeRoom, name: string, each: Amounts, count: number): void {
  const node = free.get(name)
  if (node === undefined) return
  const rest = both((has, asked) => has - asked * count)(node, each)
  free.set(name, { name, ...rest, pods: node.pods - count })
}

/** Takes room for all of its pods, or for none; how many would fit. */
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
