/** What an engine's cluster has and who holds it, as hosts with boxes: jobs of the queue have letters, other people's a star. Pure. */
import { ownEntries } from '../../base/collections.ts'
import type { EngineUsage } from '../../scheduler/jobs/engine.ts'
import type { Job } from '../../scheduler/jobs/job.ts'
import type { DeviceShare, PackedHost } from '../../scheduler/jobs/packing.ts'
import { WHOLE_MILLI } from '../../scheduler/model/resources.ts'
import { LOOSE_JOB } from './ray-picture.ts'

export type EnginePicture = {
  /** Of the engine, for people. */
  readonly title: string
  /** What could not be read, in a sentence. */
  readonly note?: string
  /** Nothing has been read since; the note says why. */
  readonly isOld?: true
  readonly hosts: readonly PackedHost[]
  /** Why nodes take no jobs, by name. */
  readonly down: Readonly<Record<string, string>>
  /** Running jobs of the queue, ascending. */
  readonly own: readonly number[]
  /** How many other jobs run. */
  readonly others: number
  /** Of everybody: those of the queue first. */
  readonly jobs: readonly ClusterJob[]
}

export type ClusterJob = {
  /** In the engine. */
  readonly id: string
  /** As its users call it. */
  readonly label: string
  readonly user: string
  /** Of the queue; LOOSE_JOB: of somebody else. */
  readonly job: number
  /** `job 17`, or `9 of bob`. */
  readonly name: string
  /** Its name in the engine, where it is somebody else's. */
  readonly title: string
  readonly places: readonly { readonly node: string; readonly devices: readonly number[] }[]
  /** Why it waits, or a part of it; undefined: nothing of it waits. */
  readonly why?: string
  readonly expectedMs?: number
}

/** `jobOf`: the number of a job of the queue; undefined: it is somebody else's. */
export function enginePicture(
  { nodes, jobs, note }: EngineUsage,
  title: string,
  jobOf: (name: string) => number | undefined,
): EnginePicture {
  const numbered = jobs.map((job) => ({ ...job, job: (job.isOwn ? jobOf(job.name) : undefined) ?? LOOSE_JOB }))
  const running = numbered.filter(({ waits, shares }) => waits === undefined || shares.length > 0)
  const isOther = ({ job }: { readonly job: number }) => job === LOOSE_JOB
  const shares = running.flatMap((job) => job.shares.map((share) => ({ ...share, job: job.job })))
  const byNode = Map.groupBy(shares, ({ node }) => node)
  return {
    title,
    ...(note === undefined ? {} : { note }),
    hosts: nodes.map((node) => packNode(node, byNode.get(node.name) ?? [])),
    down: ownEntries(
      Object.fromEntries(nodes.flatMap(({ name, trouble }) => (trouble === '' ? [] : [[name, trouble]]))),
    ),
    own: [...new Set(running.filter((job) => !isOther(job)).map(({ job }) => job))].toSorted((a, b) => a - b),
    others: running.filter(isOther).length,
    jobs: numbered
      .map(clusterJob)
      .toSorted(
        (one, other) => Number(isOther(one)) - Number(isOther(other)) || (isOther(one) ? 0 : one.job - other.job),
      ),
  }
}

/** `job 17 train`, or `9 of bob: sweep`. */
export function nameWithTitle({ label, job, name, title }: ClusterJob, active: readonly Job[]): string {
  if (job === LOOSE_JOB) return title === '' || title === label ? name : `${name}: ${title}`
  return [name, active.find((own) => own.id === job)?.spec.name ?? ''].join(' ').trimEnd()
}

export const isWaiting = (job: ClusterJob): job is ClusterJob & { readonly why: string } => job.why !== undefined

type Numbered = EngineUsage['jobs'][number] & { readonly job: number }

const clusterJob = ({ id, label = id, job, name, user, shares, waits, startS }: Numbered): ClusterJob => ({
  id,
  label,
  user,
  job,
  name: job === LOOSE_JOB ? `${label} of ${user}` : `job ${job}`,
  title: job === LOOSE_JOB ? name : '',
  places: shares.map(({ node, devices }) => ({ node, devices })),
  ...(waits === undefined ? {} : { why: waits }),
  ...(startS === undefined ? {} : { expectedMs: startS * 1000 }),
})

type Share = Numbered['shares'][number] & { readonly job: number }

/** What no visible job explains counts as other people's, as an engine may hide them. */
function packNode(node: EngineUsage['nodes'][number], own: readonly Share[]): PackedHost {
  const { name, cpuMilli, cpuUsedMilli, memoryBytes, memoryUsedBytes } = node
  const devices = Array.from({ length: node.gpus }, (): DeviceShare[] => [])
  for (const { job, devices: indices } of own)
    for (const index of indices) devices[index]?.push({ job, milli: WHOLE_MILLI })
  for (const index of node.heldDevices ?? [])
    if (devices[index]?.length === 0) devices[index].push({ job: LOOSE_JOB, milli: WHOLE_MILLI })
  const rest = (used: number, key: 'cpuMilli' | 'memoryBytes') =>
    Math.max(0, used - own.reduce((sum, share) => sum + share[key], 0))
  const hidden = { cpuMilli: rest(cpuUsedMilli, 'cpuMilli'), memoryBytes: rest(memoryUsedBytes, 'memoryBytes') }
  const holdings = [
    ...own.map((share) => ({ job: share.job, cpuMilli: share.cpuMilli, memoryBytes: share.memoryBytes })),
    ...(hidden.cpuMilli > 0 ? [{ job: LOOSE_JOB, ...hidden }] : []),
  ]
  const isFull = cpuUsedMilli >= cpuMilli && !node.isBlind
  return {
    ...{ name, devices, cpuMilli, cpuUsedMilli, memoryBytes, memoryUsedBytes, holdings },
    jobs: [...new Set(holdings.map(({ job }) => job))],
    ...(node.isBlind ? { unknown: ['cores', 'memory'] as const } : {}),
    strandedMilli: isFull ? devices.filter((shares) => shares.length === 0).length * WHOLE_MILLI : 0,
  }
}
