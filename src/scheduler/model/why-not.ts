/** Why a request does not fit now: what each host lacks, in words. */
import type { Cluster } from './cluster.ts'
import { countDevices, fits } from './fits.ts'
import { holds, WHOLE_MILLI } from './resources.ts'
import { type Shape, tolerates } from './shape.ts'

/** Empty when the host holds the shape. */
export function reasonsOf(cluster: Cluster, shape: Shape, host: number): readonly string[] {
  const spec = cluster.hosts[host]
  if (spec === undefined || fits(cluster, shape, host)) return []
  const { request, cpuMilli, memoryBytes } = shape
  const reasons: string[] = []
  if (cluster.isClosed[host] === 1) reasons.push('is drained')
  if (!tolerates(request, spec)) {
    const taints = spec.taints?.filter((taint) => !request.tolerates?.includes(taint))
    reasons.push(`has taints: ${taints?.join(', ')}`)
  }
  const missed = (request.selectors ?? []).filter((selector) => !holds(selector, spec))
  if (missed.length > 0) reasons.push(`does not match on ${[...new Set(missed.map(({ label }) => label))].join(', ')}`)
  const cpuLeft = cluster.cpuLeftMilli[host] as number
  if (cpuLeft < cpuMilli)
    reasons.push(`needs ${cpuMilli / 1000} cores, ${cpuLeft / 1000} of ${spec.cpuMilli / 1000} free`)
  const memoryLeft = cluster.memoryLeftBytes[host] as number
  if (memoryLeft < memoryBytes)
    reasons.push(`needs ${gib(memoryBytes)} GiB of memory, ${gib(memoryLeft)} of ${gib(spec.memoryBytes)} free`)
  for (const { name, amount } of shape.custom) {
    const custom = cluster.custom.get(name)
    if (!custom?.fits(host, amount)) reasons.push(`needs ${amount} ${name}, ${custom?.leftOn(host) ?? 0} free`)
  }
  const gpu = gpuReason(cluster, shape, host)
  return gpu === undefined ? reasons : [...reasons, gpu]
}

function gpuReason(cluster: Cluster, shape: Shape, host: number): string | undefined {
  const { gpuCount, gpuMilli } = shape
  const able = countDevices(cluster, shape, host)
  if (able >= gpuCount) return undefined
  let [total, freeMilli] = [0, 0]
  for (let device = cluster.deviceStart[host] as number; device < (cluster.deviceStart[host + 1] as number); device++) {
    if (shape.takesModel[cluster.deviceModel[device] as number] !== 1) continue
    total++
    freeMilli += cluster.deviceLeftMilli[device] as number
  }
  const own = [...new Set(cluster.hosts[host]?.gpus ?? [])]
  if (total === 0) return own.length > 0 ? `has other GPUs: ${own.join(', ')}` : 'has no GPU'
  if (gpuMilli === WHOLE_MILLI)
    return `needs ${gpuCount} idle GPU${gpuCount === 1 ? '' : 's'}, ${able} of ${total} idle`
  return `needs ${gpuMilli / 1000} of one GPU; none has that free (all ${total} together: ${freeMilli / 1000})`
}

const gib = (bytes: number): string => (bytes / 2 ** 30).toFixed(1)
