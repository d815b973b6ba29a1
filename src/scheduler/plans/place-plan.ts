/** Places the groups of a plan one after the other, as the framework takes them: now, when jobs have ended, and with changes. */
import { placeGang } from '../gangs/place-gang.ts'
import { Cluster, type Placement } from '../model/cluster.ts'
import {
  type Gang,
  type HostCapacity,
  milliOf,
  type ResourceRequest,
  type Selector,
  type Strategy,
  WHOLE_MILLI,
} from '../model/resources.ts'
import { placeAsRay } from '../ray/ray-placement.ts'
import { type Amounts, checkSize, type Framework, type GroupsPlan, type PlanGroup, type Values } from './framework.ts'

/** What becomes free, and when; `placements` of the cluster that the plan is tried on. */
export type PlanTenant = {
  readonly id: number
  readonly endS: number
  /** Somebody said how long it runs. */
  readonly isEstimated: boolean
  readonly placements: readonly Placement[]
}

export type PlanRoom = {
  /** Its pools in thousandths (`inThousandths`). */
  readonly cluster: Cluster
  /** The first to end first. */
  readonly tenants: readonly PlanTenant[]
  /** Hosts that cannot be used now, by number. */
  readonly down: readonly number[]
  /** The number of the host of the framework's first process. */
  readonly driver: number
}

export type PlacedGroup = {
  readonly group: PlanGroup
  /** Undefined: it waits, or is not asked for because an earlier one waits. */
  readonly placements?: readonly Placement[]
  readonly lacks?: string
}

export type PlanOutcome = {
  readonly groups: readonly PlacedGroup[]
  readonly fits: 'now' | 'later' | 'never'
  /** What the framework would hold for ever while it waits, in milli. */
  readonly heldGpuMilli: number
  readonly refusal?: string
  /** With `later`: what has to end, and which hosts have to come back. */
  readonly after: { readonly tenants: readonly PlanTenant[]; readonly hosts: readonly number[] }
  /** The first change with which it fits now; with `never`, or with `onIdle` when these hosts are idle. */
  readonly change?: { readonly values: Values; readonly onIdle: boolean }
}

const MOST_TENANTS = 200

export function tryPlan(framework: Framework, values: Values, room: PlanRoom): PlanOutcome {
  const plan = framework.plan(values)
  checkSize(plan)
  const now = take(plan, room.cluster.copy(), room.driver)
  const outcome = { groups: now.groups, heldGpuMilli: now.heldGpuMilli, after: { tenants: [], hosts: [] } }
  if (now.fits) return { ...outcome, fits: 'now' }
  const why = now.refusal === undefined ? {} : { refusal: now.refusal }
  const after = whatHasToEnd(plan, room)
  const change = firstChange(framework, values, room, after === undefined)
  const rest = { ...why, ...(change === undefined ? {} : { change }) }
  return after === undefined ? { ...outcome, ...rest, fits: 'never' } : { ...outcome, ...rest, fits: 'later', after }
}

/** Pools are integers, and Ray takes a thousandth of a resource. */
export function inThousandths(hosts: readonly HostCapacity[]): readonly HostCapacity[] {
  return hosts.map((host) => ({
    ...host,
    custom: Object.fromEntries(
      Object.entries(host.custom ?? {}).map(([name, one]) => [
        name,
        one.kind === 'pool' ? { ...one, amount: one.amount * WHOLE_MILLI } : one,
      ]),
    ),
  }))
}

/** In the given cluster, whose amounts it takes. */
function take(plan: GroupsPlan, cluster: Cluster, driver: number) {
  const others = [...cluster.hosts.keys()].filter((host) => host !== driver)
  const free = [driver, ...others].map((host) =>
    cluster.isClosed[host] === 1 ? 0 : Math.floor((cluster.gpuLeftMilli[host] ?? 0) / WHOLE_MILLI),
  )
  const refusal = plan.refuses?.(free)
  const groups: PlacedGroup[] = []
  const before = cluster.usedGpuMilli
  let isWaiting = refusal !== undefined
  for (const group of plan.groups) {
    const placements = isWaiting ? undefined : placeGroup(cluster, group, driver, groups)
    groups.push({
      group,
      ...(placements === undefined ? {} : { placements }),
      ...(placements === undefined && !isWaiting ? { lacks: whatLacks(cluster, group) } : {}),
    })
    isWaiting ||= placements === undefined
  }
  const heldGpuMilli = cluster.usedGpuMilli - before
  const fits = !isWaiting || (plan.shortage === 'queues' && groups[0]?.placements !== undefined)
  return { groups, heldGpuMilli, fits, refusal }
}

function placeGroup(
  cluster: Cluster,
  group: PlanGroup,
  driver: number,
  before: readonly PlacedGroup[],
): readonly Placement[] | undefined {
  const place = (bundles: readonly Amounts[], hosts?: readonly string[]) =>
    placeBundles(cluster, gangOfBundles(cluster, group.name, bundles, group.strategy, hosts))
  const name = cluster.hosts[driver]?.name ?? ''
  if (group.on === 'driver') return place(group.bundles, [name])
  if (group.on !== undefined) {
    const used =
      group.on === 'others' ? [] : before.flatMap(({ placements = [] }) => placements.map(({ host }) => host))
    for (const [host, { name: other }] of cluster.hosts.entries()) {
      const placements = host === driver || used.includes(host) ? undefined : place(group.bundles, [other])
      if (placements !== undefined) return placements
    }
    return undefined
  }
  if (group.isLoose !== true) return place(group.bundles)
  // Actors that were placed before one that waits stay, as a job that hangs holds them.
  const placed = group.bundles.map((bundle) => place([bundle]))
  return placed.includes(undefined) ? undefined : (placed.flat() as Placement[])
}

export function gangOfBundles(
  cluster: Cluster,
  name: string,
  bundles: readonly Amounts[],
  strategy: Strategy,
  hosts?: readonly string[],
): Gang {
  const selectors = hosts && [{ label: 'host', is: 'in', values: hosts } as const]
  return { name, strategy, bundles: bundles.map((bundle) => requestOf(cluster, bundle, selectors)) }
}

/** Takes a place for each bundle where Ray would put it, or none: undefined. */
export function placeBundles(cluster: Cluster, gang: Gang): readonly Placement[] | undefined {
  // What Ray does with custom resources is not predicted.
  const hasCustom = gang.bundles.some(({ custom }) => custom !== undefined)
  return hasCustom ? placeGang(cluster, gang) : placeAsRay(cluster, gang)
}

/** Ray finds out by itself which GPU models a host has; where no host declares the model, any host may have it. */
export const isUndeclaredModel = (cluster: Cluster, resource: string) =>
  resource.startsWith('accelerator_type:') && !cluster.custom.has(resource)

function requestOf(cluster: Cluster, bundle: Amounts, selectors: readonly Selector[] | undefined): ResourceRequest {
  const { CPU = 0, GPU = 0, memory = 0, ...rest } = bundle
  const custom = Object.fromEntries(
    Object.entries(rest).flatMap(([name, amount]) =>
      isUndeclaredModel(cluster, name) ? [] : [[name, milliOf(amount, 'up')]],
    ),
  )
  return {
    cpuMilli: milliOf(CPU, 'up'),
    memoryBytes: Math.ceil(memory),
    gpuCount: Math.ceil(GPU),
    gpuMilli: GPU < 1 ? milliOf(GPU, 'up') : WHOLE_MILLI,
    ...(Object.keys(custom).length === 0 ? {} : { custom }),
    ...(selectors === undefined ? {} : { selectors }),
  }
}

/** In a few words, by sums; then by host. */
function whatLacks(cluster: Cluster, { bundles, strategy, on }: PlanGroup): string {
  const asked = (resource: string) => bundles.reduce((sum, bundle) => sum + (bundle[resource] ?? 0), 0)
  const isOpen = (host: number) => cluster.isClosed[host] !== 1
  const free = (left: Int32Array) => left.reduce((sum, amount, host) => (isOpen(host) ? sum + amount : sum), 0) / 1000
  for (const [resource, total] of [
    ['GPU', free(cluster.gpuLeftMilli)],
    ['CPU', free(cluster.cpuLeftMilli)],
  ] as const)
    if (asked(resource) > total) return `needs ${countOf(asked(resource), resource)}, ${round(total)} free`
  const custom = Object.keys(Object.assign({}, ...bundles)).find(
    (name) =>
      !['GPU', 'CPU', 'memory'].includes(name) && !cluster.custom.has(name) && !isUndeclaredModel(cluster, name),
  )
  if (custom !== undefined) return `no host declares ${custom}`
  if (on === 'driver') return 'does not fit on the first host'
  if (strategy === 'STRICT_PACK' || bundles.length === 1) return 'no host has enough'
  return strategy === 'STRICT_SPREAD' ? `needs ${bundles.length} different hosts` : 'some bundle fits on no host'
}

const round = (amount: number) => Math.round(amount * 1000) / 1000

/** `1 GPU`, `3 cores` */
export const countOf = (amount: number, resource: 'GPU' | 'CPU') =>
  `${round(amount)} ${resource === 'GPU' ? 'GPU' : 'core'}${round(amount) === 1 ? '' : 's'}`

/** The first tenants to end after whose end the plan fits, without those that do not matter; undefined: nothing helps. */
function whatHasToEnd(
  plan: GroupsPlan,
  { cluster, tenants, down, driver }: PlanRoom,
): PlanOutcome['after'] | undefined {
  const isEnough = (ended: readonly PlanTenant[], back: readonly number[]) => {
    const later = cluster.copy()
    for (const { placements } of ended) for (const placement of placements) later.release(placement)
    for (const host of back) later.close(host, false)
    return take(plan, later, driver).fits
  }
  const first = tenants.slice(0, MOST_TENANTS)
  const steps = [...first.map((_, index) => tenants.slice(0, index + 1)), tenants]
  const step = steps.find((ended) => isEnough(ended, []))
  const hosts = step === undefined ? down : []
  let needed = step ?? tenants
  if (step === undefined && (down.length === 0 || !isEnough(needed, down))) return undefined
  if (needed.length <= MOST_TENANTS)
    for (const tenant of needed.slice(0, step === undefined ? undefined : -1)) {
      const without = needed.filter((one) => one !== tenant)
      if (isEnough(without, hosts)) needed = without
    }
  return {
    tenants: needed,
    hosts: hosts.filter(
      (host) =>
        !isEnough(
          needed,
          hosts.filter((one) => one !== host),
        ),
    ),
  }
}

const MOST_CHANGES = 300

function firstChange(framework: Framework, values: Values, room: PlanRoom, isNever: boolean): PlanOutcome['change'] {
  const idle = new Cluster(room.cluster.hosts)
  for (const host of room.down) idle.close(host, true)
  let count = 0
  let onIdle: Values | undefined
  for (const change of framework.changes(values)) {
    if (Object.entries(change).every(([word, value]) => values[word] === value)) continue
    if (++count > MOST_CHANGES) break
    const plan = planned(framework, { ...values, ...change })
    if (plan === undefined) continue
    if (take(plan, room.cluster.copy(), room.driver).fits) return { values: change, onIdle: false }
    if (isNever && onIdle === undefined && take(plan, idle.copy(), room.driver).fits) onIdle = change
  }
  return onIdle === undefined ? undefined : { values: onIdle, onIdle: true }
}

/** Undefined for a change that the framework refuses. */
function planned(framework: Framework, values: Values): GroupsPlan | undefined {
  try {
    const plan = framework.plan(values)
    checkSize(plan)
    return plan
  } catch {
    return undefined
  }
}
