/** What an engine has room for: jobs that say what they need wait in the queue until it has that. Pure. */
import type { Cluster } from '../model/cluster.ts'
import { type Amounts, amounts } from '../plans/framework.ts'
import {
  type Asked,
  clusterOfNodes,
  type EngineNode,
  fitsIdle,
  keepRoom,
  namesIn,
  neverWords,
  whyNoRoom,
} from '../plans/needs.ts'
import type { EngineRoom } from './engine.ts'
import { isActive, isPlaced, type Job, type JobSpec } from './job.ts'
import { bundleKey } from './orders.ts'

/** A job that has not taken its placement groups this long after its start needs none, or has something else. */
const TAKES_MS = 120_000

/** Undefined: it does not say what it needs. */
export const askedOf = ({ request, needs }: JobSpec): Asked | undefined =>
  needs && { own: amounts(bundleOf(request)), needs }

/** What it takes of its engine's room: what it says, or else its bundles. */
export function takenBy(spec: JobSpec): Asked {
  const { request, bundles: count, strategy } = spec
  return askedOf(spec) ?? { own: {}, needs: { bundles: [{ count, amounts: amounts(bundleOf(request)) }], strategy } }
}

const bundleOf = ({ cpuMilli, gpuCount, gpuMilli, memoryBytes }: JobSpec['request']): Amounts => ({
  CPU: cpuMilli / 1000,
  GPU: (gpuCount * gpuMilli) / 1000,
  memory: memoryBytes,
})

/** What is free, without what jobs that were handed over will still take. `names`: what may be asked for. */
export function freeRoom(
  { nodes, taken }: EngineRoom,
  jobs: readonly Job[],
  storeId: string,
  nowMs: number,
  names: readonly string[],
): Cluster {
  const pending = jobs.flatMap((job): readonly Asked[] => {
    const asked = takenBy(job.spec)
    if (!isActive(job.state) || job.state.kind === 'ending') return []
    const count = asked.needs.bundles.reduce((sum, bundle) => sum + bundle.count, 0)
    const key = bundleKey(storeId, job, 0)
    if (Object.hasOwn(taken, key) && (taken[key] as number) >= count) return []
    if (isPlaced(job.state)) return [asked]
    // Its own process is no longer free room, nor are the bundles of a job without needs.
    if (job.spec.needs === undefined) return []
    return nowMs - job.state.startedMs > TAKES_MS ? [] : [{ ...asked, own: {} }]
  })
  const cluster = clusterOfNodes(nodes, 'free', [...new Set([...names, ...pending.flatMap(namesIn)])])
  // What can never be placed takes nothing.
  for (const asked of pending) if (fitsIdle(nodes, asked)) keepRoom(cluster, asked)
  return cluster
}

export type RoomVerdict = { readonly kind: 'fits' | 'later' | 'never'; readonly why: readonly string[] }

/** `cluster`: from `freeRoom`; it stays as it is. */
export function judgeRoom(nodes: readonly EngineNode[], cluster: Cluster, asked: Asked, title: string): RoomVerdict {
  const why = whyNoRoom(cluster, nodes, asked, title)
  if (why === undefined) return { kind: 'fits', why: [] }
  return fitsIdle(nodes, asked) ? { kind: 'later', why } : { kind: 'never', why: [neverWords(nodes, asked, title)] }
}
