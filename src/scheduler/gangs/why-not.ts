/** Why a gang does not fit now: what each host lacks for a bundle, or that there is too little room for all bundles together. */

import { lowerBound } from '../../base/collections.ts'
import { counted } from '../../base/counted.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { Cluster } from '../model/cluster.ts'
import { fewerGpus, fewerGpusLines } from '../model/fewer-gpus.ts'
import { countDevices, fits } from '../model/fits.ts'
import { type Gang, holds, type Strategy, WHOLE_MILLI } from '../model/resources.ts'
import { type Shape, tolerates } from '../model/shape.ts'
import { findGang } from './place-gang.ts'

/**
 * Undefined: it fits. `isImpossible`: not even if all hosts were idle. `lines`: what is in the way, and which single changes would
 * help; of what is impossible, what would be in the way on idle hosts. The cluster stays as it is.
 */
export function whyNotGang(cluster: Cluster, gang: Gang) {
  if (goesIn(cluster, gang)) return undefined
  const idle = cluster.copy()
  for (const placement of cluster.placements()) idle.release(placement)
  for (let host = 0; host < idle.hostCount; host++) idle.close(host, false)
  if (goesIn(idle, gang)) return { isImpossible: false, lines: inTheWay(cluster, gang) }
  return { isImpossible: true, lines: ['Too large for these hosts, even when they are idle.', ...inTheWay(idle, gang)] }
}

const goesIn = (cluster: Cluster, gang: Gang): boolean => findGang(cluster.copy(), gang) !== undefined

function inTheWay(cluster: Cluster, gang: Gang): readonly string[] {
  const { bundles, strategy, maxBundlesPerHost, ...rest } = gang
  const seen = new Set<number>()
  const lines = bundles.flatMap((bundle, index) => {
    const shape = cluster.shapeOf(bundle)
    if (seen.has(shape.id)) return []
    seen.add(shape.id)
    if (goesIn(cluster, { name: '', strategy: 'PACK', bundles: [bundle] })) return []
    const byReason = Map.groupBy(cluster.hosts.keys(), (host) => reasonsOf(cluster, shape, host).join('; '))
    return [
      ...(bundles.length > 1 ? [`Bundle ${index + 1} fits on no host:`] : []),
      ...[...byReason].map(
        ([text, hosts]) => `${foldHostSet(hosts.map((host) => cluster.hosts[host]?.name ?? ''))}: ${text}`,
      ),
    ]
  })
  if (lines.length > 0) return lines
  const first = (count: number): Gang => ({ ...gang, bundles: bundles.slice(0, count) })
  const count = lowerBound(bundles.length - 1, (most) => goesIn(cluster, first(most + 1)))
  const softer: Strategy = strategy === 'STRICT_SPREAD' ? 'SPREAD' : 'PACK'
  return [
    `Only ${count} of ${bundles.length} bundles ${count === 1 ? 'fits' : 'fit'} (${strategy}).`,
    ...(strategy.startsWith('STRICT') && goesIn(cluster, { ...gang, strategy: softer })
      ? [`It would fit with ${softer}.`]
      : []),
    ...(maxBundlesPerHost !== undefined && goesIn(cluster, { ...rest, bundles, strategy })
      ? ['It would fit without a limit of bundles per host.']
      : []),
    ...(count > 0 ? [`It would fit with ${counted(count, 'bundle')}.`] : []),
    ...(bundles.some(({ gpuCount }) => gpuCount > 0) ? fewerGpusLines(cluster.hosts) : []),
  ]
}

/** In one line: sentences are kept as they are, other texts are cut at a semicolon. */
export const joinReasons = (lines: readonly string[]): string =>
  lines.map((line, at) => (at === lines.length - 1 || /[.:;]$/.test(line) ? line : `${line};`)).join(' ')

/** Empty when the host holds the shape. */
export function reasonsOf(cluster: Cluster, shape: Shape, host: number): readonly string[] {
  const spec = cluster.hosts[host]
  if (spec === undefined || fits(cluster, shape, host)) return []
  const { request, cpuMilli, memoryBytes } = shape
  const reasons: string[] = []
  if (cluster.isClosed[host] === 1) reasons.push('takes no new jobs now')
  if (!tolerates(request, spec)) {
    const taints = spec.taints?.filter((taint) => !request.tolerates?.includes(taint))
    reasons.push(`has taints: ${taints?.join(', ')}`)
  }
  const missed = new Set((request.selectors ?? []).flatMap((one) => (holds(one, spec) ? [] : [one.label])))
  if (missed.delete('host')) reasons.push('is left out by --on')
  if (missed.size > 0) reasons.push(`does not match on ${[...missed].join(', ')}`)
  const cpuLeft = cluster.cpuLeftMilli[host] as number
  if (cpuLeft < cpuMilli)
    reasons.push(`needs ${counted(cpuMilli / 1000, 'core')}, ${leftText(cpuLeft / 1000, spec.cpuMilli / 1000)}`)
  const memoryLeft = cluster.memoryLeftBytes[host] as number
  if (memoryLeft < memoryBytes)
    reasons.push(`needs ${gib(memoryBytes)} GiB of memory, ${leftText(gib(memoryLeft), gib(spec.memoryBytes))}`)
  for (const { name, amount } of shape.custom) {
    const custom = cluster.custom.get(name)
    if (!custom?.fits(host, amount)) reasons.push(`needs ${amount} ${name}, ${custom?.leftOn(host) ?? 0} free`)
  }
  return [...reasons, ...gpuReasons(cluster, shape, host)]
}

function gpuReasons(cluster: Cluster, shape: Shape, host: number): readonly string[] {
  const fewer = fewerGpus(cluster.hosts[host] ?? {})
  const gpu = gpuReason(cluster, shape, host, fewer !== undefined)
  return gpu === undefined ? [] : fewer === undefined ? [gpu] : [gpu, fewer]
}

/** `isFewer`: another reason says how many GPUs the host has. */
function gpuReason(cluster: Cluster, shape: Shape, host: number, isFewer: boolean): string | undefined {
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
    return able === total
      ? `needs ${counted(gpuCount, 'GPU')}${isFewer ? '' : `, has ${total}`}`
      : `needs ${counted(gpuCount, 'idle GPU')}, ${able} of ${total} idle`
  return `needs ${gpuMilli / 1000} of one GPU; none has that free (all ${total} together: ${freeMilli / 1000})`
}

const leftText = <A>(left: A, all: A): string => (left === all ? `has ${all}` : `${left} of ${all} free`)
const gib = (bytes: number): string => (bytes / 2 ** 30).toFixed(1)
