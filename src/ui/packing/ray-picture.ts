/** What Ray has placed, as hosts with boxes: placement groups have letters, tasks and actors outside groups a star. Pure. */
import {
  amountsOf,
  type ClusterUsage,
  impossibleBundles,
  type NodeUsage,
  type PlacementGroup,
} from '../../ops/ray/usage.ts'
import type { DeviceShare, Holding, PackedHost } from '../../scheduler/jobs/packing.ts'
import { WHOLE_MILLI } from '../../scheduler/model/resources.ts'

export type RayPicture = {
  readonly hosts: readonly PackedHost[]
  /** Living nodes. */
  readonly dead: readonly string[]
  readonly waiting: readonly { readonly group: number | undefined; readonly name: string; readonly why: string }[]
  readonly groupCount: number
  /** Their names, by number. */
  readonly groups: ReadonlyMap<number, string>
  /** By state. */
  readonly actors: ReadonlyMap<string, number>
}

/** The job number of tasks and actors outside placement groups. */
export const LOOSE_JOB = -1

/**
 * `names`: hosts by the addresses of nodes; `numberOf`: the job of the queue that has the group, else a lasting number of
 * its own.
 */
export function rayPicture(
  { nodes, groups, actors, demands }: ClusterUsage,
  names: ReadonlyMap<string, string>,
  numberOf: (group: PlacementGroup) => number,
): RayPicture {
  const nameOf = ({ ip }: NodeUsage) => names.get(ip) ?? ip
  const alive = nodes.filter(({ isAlive }) => isAlive)
  const there = new Set(alive.map(({ ip }) => ip))
  const pending = groups.filter(({ state }) => state !== 'CREATED')
  return {
    hosts: alive.map((node) => packNode(node, nameOf(node), groups, numberOf)),
    dead: nodes.filter(({ isAlive, ip }) => !isAlive && !there.has(ip)).map(nameOf),
    groupCount: groups.length,
    groups: new Map(groups.map((group) => [numberOf(group), nameOfGroup(group)])),
    actors,
    waiting: [
      ...pending.map((group) => ({
        group: numberOf(group),
        name: nameOfGroup(group),
        why: whyPending(group, alive),
      })),
      ...demands
        .filter((demand) => !demand.includes('placement group'))
        .map((demand) => ({ group: undefined, name: 'tasks and actors', why: demand })),
    ],
  }
}

const nameOfGroup = ({ id, name }: PlacementGroup): string => name || id.slice(0, 8)

function packNode(
  node: NodeUsage,
  name: string,
  groups: readonly PlacementGroup[],
  numberOf: (group: PlacementGroup) => number,
): PackedHost {
  const amount = (resource: string) => node.logical.get(resource) ?? { used: 0, total: 0 }
  const [cpu, memory, gpu] = [amount('CPU'), amount('memory'), amount('GPU')]
  const own = groups.flatMap((group) => {
    const bundles = group.bundles.filter(({ nodeId }) => nodeId === node.id)
    const sum = (resource: string) => bundles.reduce((total, { resources }) => total + (resources[resource] ?? 0), 0)
    if (bundles.length === 0) return []
    return [{ job: numberOf(group), cpu: sum('CPU'), gpu: sum('GPU'), memory: sum('memory') }]
  })
  // Ray counts what groups reserve as used.
  const rest = (used: number, key: 'cpu' | 'gpu' | 'memory') =>
    Math.max(0, used - own.reduce((total, one) => total + one[key], 0))
  const loose = {
    job: LOOSE_JOB,
    cpu: rest(cpu.used, 'cpu'),
    gpu: rest(gpu.used, 'gpu'),
    memory: rest(memory.used, 'memory'),
  }
  const all = [...own, ...(loose.cpu + loose.gpu + loose.memory > 1e-6 ? [loose] : [])]
  const holdings = all.map(
    (one): Holding => ({ job: one.job, cpuMilli: Math.round(one.cpu * 1000), memoryBytes: one.memory }),
  )
  const devices = spreadOverDevices(Math.round(gpu.total), all)
  const freeMilli = Math.round((gpu.total - all.reduce((total, one) => total + one.gpu, 0)) * WHOLE_MILLI)
  const cpuUsedMilli = holdings.reduce((total, one) => total + one.cpuMilli, 0)
  const cpuMilli = Math.round(cpu.total * 1000)
  return {
    name,
    devices,
    cpuMilli,
    cpuUsedMilli,
    memoryBytes: memory.total,
    memoryUsedBytes: all.reduce((total, one) => total + one.memory, 0),
    jobs: holdings.map(({ job }) => job),
    holdings,
    strandedMilli: cpuUsedMilli >= cpuMilli ? Math.max(0, freeMilli) : 0,
  }
}

/** Ray does not report which device a bundle has: fills them from the first on, whole GPUs first to free devices. */
function spreadOverDevices(count: number, all: readonly { readonly job: number; readonly gpu: number }[]) {
  const devices: DeviceShare[][] = Array.from({ length: count }, () => [])
  const free = devices.map(() => WHOLE_MILLI)
  for (const { job, gpu } of all) {
    let left = Math.round(gpu * WHOLE_MILLI)
    while (left > 0) {
      const part = Math.min(left, WHOLE_MILLI)
      const fitting = free.findIndex((room) => room >= part)
      const at = fitting < 0 ? free.findIndex((room) => room > 0) : fitting
      if (at < 0) break
      const milli = Math.min(part, free[at] ?? 0)
      devices[at]?.push({ job, milli })
      free[at] = (free[at] ?? 0) - milli
      left -= milli
    }
  }
  return devices
}

function whyPending(group: PlacementGroup, alive: readonly NodeUsage[]): string {
  const { scheduling, state, bundles } = group
  const words = (scheduling || state).toLowerCase().replaceAll('_', ' ')
  const [never] = impossibleBundles(group, alive)
  if (never === undefined) return `${words}: ${bundles.length} bundles of ${amountsOf(bundles[0]?.resources)}`
  return `${words}: no node has ${amountsOf(never.resources)}`
}
