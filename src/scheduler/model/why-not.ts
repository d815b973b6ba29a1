/** Why a request does not fit now: what each host lacks, and the smallest single change after which some host would hold it. */
import type { Cluster } from './cluster.ts'
import { countDevices, fits } from './fits.ts'
import { holds, WHOLE_MILLI } from './resources.ts'
import { type Shape, tolerates } from './shape.ts'

export type Reason =
  | { readonly kind: 'drained' }
  | { readonly kind: 'taint'; readonly taints: readonly string[] }
  | { readonly kind: 'label'; readonly labels: readonly string[] }
  /** None of its GPUs has an acceptable model; `models` are those that it has. */
  | { readonly kind: 'gpu-model'; readonly models: readonly string[] }
  /** In milli-CPU or bytes; `total`: of the idle host. */
  | { readonly kind: 'cpu' | 'memory'; readonly needed: number; readonly free: number; readonly total: number }
  | {
      readonly kind: 'custom'
      readonly name: string
      readonly needed: number
      readonly free: number
      /** Even the idle host has too little. */
      readonly isForEver: boolean
    }
  /**
   * `able`: GPUs that could each hold one device's part; fewer than needed. `total` and `freeMilli`: over all GPUs with an
   * acceptable model.
   */
  | {
      readonly kind: 'gpu'
      readonly needed: number
      readonly neededMilli: number
      readonly able: number
      readonly total: number
      readonly freeMilli: number
    }

export type HostReasons = { readonly host: number; readonly reasons: readonly Reason[] }

/** One change of the request or of a host: what the request would have to be, or what has to become free. */
export type Change =
  | { readonly kind: 'free'; readonly host: number; readonly reasons: readonly Reason[] }
  | { readonly kind: 'ask-less-cpu'; readonly host: number; readonly cpuMilli: number }
  | { readonly kind: 'ask-less-memory'; readonly host: number; readonly memoryBytes: number }
  | { readonly kind: 'ask-less-gpu'; readonly host: number; readonly gpuCount: number; readonly gpuMilli: number }
  | { readonly kind: 'allow-model'; readonly host: number; readonly models: readonly string[] }
  | { readonly kind: 'tolerate'; readonly host: number; readonly taints: readonly string[] }
  | { readonly kind: 'drop-selectors'; readonly host: number; readonly labels: readonly string[] }
  | { readonly kind: 'open-host'; readonly host: number }

export type WhyNot = {
  /** Even when all hosts are idle. */
  readonly isImpossible: boolean
  /** By host number; empty where the host holds it. */
  readonly hosts: readonly HostReasons[]
  /** Each suffices by itself, the smallest first; empty: every host lacks several things. */
  readonly changes: readonly Change[]
}

export function whyNot(cluster: Cluster, shape: Shape): WhyNot {
  const hosts = cluster.hosts.map((_, host) => ({ host, reasons: reasonsOf(cluster, shape, host) }))
  const changes = hosts
    .flatMap(({ host, reasons }) => changesFor(cluster, shape, host, reasons))
    .sort((one, other) => one.size - other.size || one.change.host - other.change.host)
  return {
    isImpossible: hosts.every(({ reasons }) => reasons.some(isForEver)),
    hosts,
    changes: changes.map(({ change }) => change),
  }
}

/** Empty when the host holds the shape. */
export function reasonsOf(cluster: Cluster, shape: Shape, host: number): readonly Reason[] {
  const spec = cluster.hosts[host]
  if (spec === undefined || fits(cluster, shape, host)) return []
  const { request } = shape
  const reasons: Reason[] = []
  if (cluster.isClosed[host] === 1) reasons.push({ kind: 'drained' })
  if (!tolerates(request, spec))
    reasons.push({ kind: 'taint', taints: (spec.taints ?? []).filter((taint) => !request.tolerates?.includes(taint)) })
  const missed = (request.selectors ?? []).filter((selector) => !holds(selector, spec))
  if (missed.length > 0) reasons.push({ kind: 'label', labels: [...new Set(missed.map(({ label }) => label))] })
  const amounts = [
    ['cpu', shape.cpuMilli, cluster.cpuLeftMilli[host] as number, spec.cpuMilli],
    ['memory', shape.memoryBytes, cluster.memoryLeftBytes[host] as number, spec.memoryBytes],
  ] as const
  for (const [kind, needed, free, total] of amounts) if (free < needed) reasons.push({ kind, needed, free, total })
  for (const { name, amount } of shape.custom) {
    const custom = cluster.custom.get(name)
    if (!custom?.fits(host, amount))
      reasons.push({
        kind: 'custom',
        name,
        needed: amount,
        free: custom?.leftOn(host) ?? 0,
        isForEver: custom?.wouldFit(host, amount) !== true,
      })
  }
  const gpu = gpuReason(cluster, shape, host)
  return gpu ? [...reasons, gpu] : reasons
}

function gpuReason(cluster: Cluster, shape: Shape, host: number): Reason | undefined {
  const able = countDevices(cluster, shape, host)
  if (able >= shape.gpuCount) return undefined
  let total = 0
  let freeMilli = 0
  for (let device = cluster.deviceStart[host] as number; device < (cluster.deviceStart[host + 1] as number); device++) {
    if (shape.takesModel[cluster.deviceModel[device] as number] !== 1) continue
    total++
    freeMilli += cluster.deviceLeftMilli[device] as number
  }
  const own = [...new Set(cluster.hosts[host]?.gpus ?? [])]
  if (total === 0 && own.length > 0) return { kind: 'gpu-model', models: own }
  return { kind: 'gpu', needed: shape.gpuCount, neededMilli: shape.gpuMilli, able, total, freeMilli }
}

/** Whether the idle host lacks it too. */
function isForEver(reason: Reason): boolean {
  switch (reason.kind) {
    case 'cpu':
    case 'memory':
      return reason.needed > reason.total
    case 'gpu':
      return reason.needed > reason.total
    case 'taint':
    case 'label':
    case 'gpu-model':
      return true
    case 'custom':
      return reason.isForEver
    case 'drained':
      return false
  }
}

/** Larger changes ask more of people: waiting, then asking for less, then changing rules. */
const RULE_CHANGE = 10

function changesFor(cluster: Cluster, shape: Shape, host: number, reasons: readonly Reason[]) {
  const changes: { readonly size: number; readonly change: Change }[] = []
  if (reasons.length === 0) return changes
  if (!reasons.some((reason) => isForEver(reason) || reason.kind === 'drained')) {
    const size = reasons.reduce((sum, reason) => sum + lackOf(shape, reason), 0)
    changes.push({ size, change: { kind: 'free', host, reasons } })
  }
  const [reason, ...others] = reasons
  if (reason === undefined || others.length > 0) return changes
  switch (reason.kind) {
    case 'cpu':
      changes.push({ size: 1 + lackOf(shape, reason), change: { kind: 'ask-less-cpu', host, cpuMilli: reason.free } })
      break
    case 'memory':
      changes.push({
        size: 1 + lackOf(shape, reason),
        change: { kind: 'ask-less-memory', host, memoryBytes: reason.free },
      })
      break
    case 'gpu': {
      const less = lessGpu(cluster, shape, host, reason.able)
      if (less) changes.push({ size: 1 + lackOf(shape, reason), change: { kind: 'ask-less-gpu', host, ...less } })
      break
    }
    case 'gpu-model':
      // Allowing the model helps only when its GPUs are free.
      if (fits(cluster, withAnyModel(cluster, shape), host))
        changes.push({ size: RULE_CHANGE, change: { kind: 'allow-model', host, models: reason.models } })
      break
    case 'taint':
      changes.push({ size: RULE_CHANGE, change: { kind: 'tolerate', host, taints: reason.taints } })
      break
    case 'label':
      changes.push({ size: RULE_CHANGE, change: { kind: 'drop-selectors', host, labels: reason.labels } })
      break
    case 'drained':
      changes.push({ size: RULE_CHANGE, change: { kind: 'open-host', host } })
      break
    case 'custom':
      break
  }
  return changes
}

/** The most that the host could give: fewer whole GPUs, or a smaller share of one. */
function lessGpu(cluster: Cluster, shape: Shape, host: number, able: number) {
  if (able > 0) return { gpuCount: able, gpuMilli: shape.gpuMilli }
  let most = 0
  for (let device = cluster.deviceStart[host] as number; device < (cluster.deviceStart[host + 1] as number); device++)
    if (shape.takesModel[cluster.deviceModel[device] as number] === 1)
      most = Math.max(most, cluster.deviceLeftMilli[device] as number)
  return most > 0 ? { gpuCount: 1, gpuMilli: most } : undefined
}

/** As a fraction of what is requested. */
function lackOf(shape: Shape, reason: Reason): number {
  switch (reason.kind) {
    case 'cpu':
    case 'memory':
    case 'custom':
      return (reason.needed - reason.free) / Math.max(1, reason.needed)
    case 'gpu':
      return (reason.needed - reason.able) / Math.max(1, shape.gpuCount)
    default:
      return 0
  }
}

function withAnyModel(cluster: Cluster, shape: Shape): Shape {
  return cluster.shapeOf({ ...shape.request, gpuModels: [] })
}

export function formatReason(reason: Reason): string {
  switch (reason.kind) {
    case 'drained':
      return 'is drained'
    case 'taint':
      return `has taints: ${reason.taints.join(', ')}`
    case 'label':
      return `does not match on ${reason.labels.join(', ')}`
    case 'gpu-model':
      return `has other GPUs: ${reason.models.join(', ')}`
    case 'cpu':
      return `needs ${reason.needed / 1000} cores, ${reason.free / 1000} of ${reason.total / 1000} free`
    case 'memory':
      return `needs ${gib(reason.needed)} GiB of memory, ${gib(reason.free)} of ${gib(reason.total)} free`
    case 'custom':
      return `needs ${reason.needed} ${reason.name}, ${reason.free} free`
    case 'gpu':
      if (reason.total === 0) return 'has no GPU'
      if (reason.neededMilli < WHOLE_MILLI)
        return `needs ${reason.neededMilli / 1000} of one GPU; none has that free (all ${reason.total} together: ${reason.freeMilli / 1000})`
      return `needs ${reason.needed} idle GPUs, ${reason.able} of ${reason.total} idle`
  }
}

function gib(bytes: number): string {
  return (bytes / 2 ** 30).toFixed(1)
}
