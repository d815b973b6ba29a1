/** What an engine's cluster has and who holds it, as hosts with boxes: jobs of the queue have letters, other people's a star. Pure. */
import type { EngineUsage } from '../../scheduler/jobs/engine.ts'
import type { DeviceShare, PackedHost } from '../../scheduler/jobs/packing.ts'
import { WHOLE_MILLI } from '../../scheduler/model/resources.ts'
import { LOOSE_JOB } from './ray-picture.ts'

export type EnginePicture = {
  /** Of the engine, for people. */
  readonly title: string
  readonly hosts: readonly PackedHost[]
  /** Why nodes take no jobs, by name. */
  readonly down: Readonly<Record<string, string>>
  /** Running jobs of the queue, ascending. */
  readonly own: readonly number[]
  /** How many other jobs run. */
  readonly others: number
  /** Those of the queue first. */
  readonly waiting: readonly { readonly job: number; readonly name: string; readonly why: string }[]
}

/** `jobOf`: the number of a job of the queue; undefined: it is somebody else's. */
export function enginePicture(
  { nodes, jobs }: EngineUsage,
  title: string,
  jobOf: (name: string) => number | undefined,
): EnginePicture {
  const numbered = jobs.map((job) => ({ ...job, job: (job.isOwn ? jobOf(job.name) : undefined) ?? LOOSE_JOB }))
  const running = numbered.filter(({ waits }) => waits === undefined)
  const isOther = ({ job }: { readonly job: number }) => job === LOOSE_JOB
  return {
    title,
    hosts: nodes.map((node) => packNode(node, running)),
    down: Object.fromEntries(nodes.flatMap(({ name, trouble }) => (trouble === '' ? [] : [[name, trouble]]))),
    own: [...new Set(running.filter((job) => !isOther(job)).map(({ job }) => job))].toSorted((a, b) => a - b),
    others: running.filter(isOther).length,
    waiting: numbered
      .flatMap(({ id, user, job, waits }) =>
        waits === undefined ? [] : [{ job, name: job === LOOSE_JOB ? `${id} of ${user}` : `job ${job}`, why: waits }],
      )
      .toSorted((one, other) => Number(isOther(one)) - Number(isOther(other))),
  }
}

type Numbered = EngineUsage['jobs'][number] & { readonly job: number }

/** What no visible job explains counts as other people's, as an engine may hide them. */
function packNode(node: EngineUsage['nodes'][number], jobs: readonly Numbered[]): PackedHost {
  const { name, cpuMilli, cpuUsedMilli, memoryBytes, memoryUsedBytes } = node
  const own = jobs.flatMap(({ job, shares }) =>
    shares.flatMap((share) => (share.node === name ? [{ ...share, job }] : [])),
  )
  const devices = Array.from({ length: node.gpus }, (): DeviceShare[] => [])
  for (const { job, devices: indices } of own)
    for (const index of indices) devices[index]?.push({ job, milli: WHOLE_MILLI })
  const rest = (used: number, key: 'cpuMilli' | 'memoryBytes') =>
    Math.max(0, used - own.reduce((sum, share) => sum + share[key], 0))
  const hidden = { cpuMilli: rest(cpuUsedMilli, 'cpuMilli'), memoryBytes: rest(memoryUsedBytes, 'memoryBytes') }
  const holdings = [
    ...own.map((share) => ({ job: share.job, cpuMilli: share.cpuMilli, memoryBytes: share.memoryBytes })),
    ...(hidden.cpuMilli > 0 ? [{ job: LOOSE_JOB, ...hidden }] : []),
  ]
  return {
    ...{ name, devices, cpuMilli, cpuUsedMilli, memoryBytes, memoryUsedBytes, holdings },
    jobs: [...new Set(holdings.map(({ job }) => job))],
    strandedMilli: cpuUsedMilli >= cpuMilli ? devices.filter((shares) => shares.length === 0).length * WHOLE_MILLI : 0,
  }
}
