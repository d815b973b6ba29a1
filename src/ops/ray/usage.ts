/**
 * What a Ray cluster does, from answers of its dashboard that are the same with both autoscalers: `/nodes?view=summary`,
 * `/api/v0/placement_groups?detail=1`, `/api/v0/actors` and `/api/cluster_status?format=1`. Pure.
 */
import { defined } from '../../base/defined.ts'
import { list, numberOf, parseJson, record, textOf } from '../../base/json-lines.ts'

/** Bytes for memory and object_store_memory. */
export type Amount = { readonly used: number; readonly total: number }

export type NodeUsage = {
  readonly id: string
  readonly ip: string
  readonly isHead: boolean
  readonly isAlive: boolean
  /** Why it is dead. */
  readonly message: string
  /** What Ray has assigned or reserved, by Ray's names; the rest of the total is free. */
  readonly logical: ReadonlyMap<string, Amount>
  /** Real usage, a few seconds old; undefined: its agent has not reported. */
  readonly cpuPercent?: number
  readonly memory?: Amount
  readonly objectStore?: Amount
  /** Percent, a device each. */
  readonly gpuPercents: readonly number[]
}

export type Bundle = {
  readonly index: number
  readonly resources: Readonly<Record<string, number>>
  /** Where it is; undefined: nowhere yet. */
  readonly nodeId?: string
}

export type PlacementGroup = {
  readonly id: string
  readonly name: string
  /** PENDING, PREPARED, CREATED, RESCHEDULING; removed ones are left out. */
  readonly state: string
  /** Why it waits: QUEUED, NO_RESOURCES, INFEASIBLE … */
  readonly scheduling: string
  readonly bundles: readonly Bundle[]
}

export type ClusterUsage = {
  readonly nodes: readonly NodeUsage[]
  readonly groups: readonly PlacementGroup[]
  /** Living and waiting actors by state. */
  readonly actors: ReadonlyMap<string, number>
  /** As Ray words them: `{'CPU': 3.0}: 6+ pending tasks/actors`. */
  readonly demands: readonly string[]
}

/**
 * `1.5/4.0 CPU (1.0 used of 2.0 reserved in placement groups)`, `0B/22.18GiB memory`, a line each. The first number leaves out
 * what groups hold and do not use (parse_usage in ray/autoscaler/_private/util.py), and nothing else can have that either.
 */
const AMOUNT =
  /^\s*(\d+(?:\.\d+)?)([KMGTPE]iB|B)?\/(\d+(?:\.\d+)?)([KMGTPE]iB|B)? (\S+)(?: \((\d+(?:\.\d+)?)([KMGTPE]iB|B)? used of (\d+(?:\.\d+)?)([KMGTPE]iB|B)? reserved)?/
const POWERS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB']

export function parseAmounts(text: string): ReadonlyMap<string, Amount> {
  const bytes = (value: string | undefined, unit: string | undefined) =>
    Number(value) * 1024 ** Math.max(0, POWERS.indexOf(unit ?? 'B'))
  const amounts = new Map<string, Amount>()
  for (const line of text.split('\n')) {
    const [, used, usedUnit, total, totalUnit, name, inUse, inUseUnit, held, heldUnit] = AMOUNT.exec(line) ?? []
    if (name === undefined) continue
    const unused = held === undefined ? 0 : Math.max(0, bytes(held, heldUnit) - bytes(inUse, inUseUnit))
    const amount = { used: bytes(used, usedUnit) + unused, total: bytes(total, totalUnit) }
    if (Number.isFinite(amount.used) && Number.isFinite(amount.total)) amounts.set(name, amount)
  }
  return amounts
}

/** The body of `/nodes?view=summary`. */
export function parseNodeUsages(body: unknown): readonly NodeUsage[] {
  const data = record(record(body)?.data)
  const logical = record(data?.nodeLogicalResources)
  return list(data?.summary).flatMap((entry): NodeUsage[] => {
    const raylet = record(entry.raylet)
    const id = textOf(raylet?.nodeId)
    if (raylet === undefined || id === '') return []
    const [total, , , used] = Array.isArray(entry.mem) ? entry.mem.map(numberOf) : []
    const [objectUsed, free] = [numberOf(raylet.objectStoreUsedMemory), numberOf(raylet.objectStoreAvailableMemory)]
    return [
      {
        id,
        ip: textOf(raylet.nodeManagerAddress) || textOf(entry.ip),
        isHead: raylet.isHeadNode === true,
        isAlive: raylet.state === 'ALIVE',
        message: textOf(raylet.stateMessage),
        logical: parseAmounts(textOf(logical?.[id])),
        gpuPercents: list(entry.gpus).map((gpu) => numberOf(gpu.utilizationGpu) ?? 0),
        ...defined({
          cpuPercent: numberOf(entry.cpu),
          memory: total === undefined || used === undefined ? undefined : { used, total },
          objectStore:
            objectUsed === undefined || free === undefined ? undefined : { used: objectUsed, total: objectUsed + free },
        }),
      },
    ]
  })
}

function resultOf(body: unknown) {
  return list(record(record(record(body)?.data)?.result)?.result)
}

export function parsePlacementGroups(body: unknown): readonly PlacementGroup[] {
  return resultOf(body).flatMap((group): PlacementGroup[] => {
    if (group.state === 'REMOVED') return []
    const bundles = list(group.bundles).map((bundle): Bundle => {
      const nodeId = textOf(bundle.node_id)
      const amounts = Object.entries(record(bundle.unit_resources) ?? {}).flatMap(([name, amount]) => {
        const number = numberOf(amount)
        return number === undefined ? [] : [[name, number] as const]
      })
      return {
        index: numberOf(record(bundle.bundle_id)?.bundle_index) ?? 0,
        resources: Object.fromEntries(amounts),
        ...(nodeId === '' ? {} : { nodeId }),
      }
    })
    const [id, name, state] = [group.placement_group_id, group.name, group.state].map(textOf) as [
      string,
      string,
      string,
    ]
    return [{ id, name, state, scheduling: textOf(record(group.stats)?.scheduling_state), bundles }]
  })
}

export function parseActors(body: unknown): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { state } of resultOf(body)) {
    if (typeof state === 'string' && state !== 'DEAD') counts.set(state, (counts.get(state) ?? 0) + 1)
  }
  return counts
}

/** The lines under `Pending Demands:` of `ray status`, of older versions under `Demands:`; both formats. */
export function parseDemands(text: string): readonly string[] {
  const lines = text.split('\n')
  const from = lines.findIndex((line) => /^(Pending |Total )?Demands:/.test(line))
  if (from < 0) return []
  const demands = lines.slice(from + 1)
  const end = demands.findIndex((line) => !line.startsWith(' '))
  return demands
    .slice(0, end < 0 ? demands.length : end)
    .map((line) => line.trim())
    .filter((line) => line !== '(no resource demands)' && line !== '')
}

/** What the script of `watch` printed: the four bodies by name; missing ones are left out. */
export function parseClusterUsage(answer: unknown): ClusterUsage | undefined {
  const bodies = record(answer)
  if (record(bodies?.nodes) === undefined) return undefined
  const status = record(record(record(bodies?.status)?.data))?.clusterStatus
  return {
    nodes: parseNodeUsages(bodies?.nodes),
    groups: parsePlacementGroups(bodies?.groups),
    actors: parseActors(bodies?.actors),
    demands: parseDemands(textOf(status)),
  }
}

/** The bundles that no node could ever hold. */
export const impossibleBundles = ({ bundles }: PlacementGroup, nodes: readonly NodeUsage[]): readonly Bundle[] =>
  bundles.filter(
    ({ resources }) =>
      !nodes.some(({ logical }) =>
        Object.entries(resources).every(([name, amount]) => (logical.get(name)?.total ?? 0) >= amount),
      ),
  )

/** `1 CPU, 8 GPU` */
export const amountsOf = (resources: Readonly<Record<string, number>> = {}): string =>
  Object.entries(resources)
    .map(([name, amount]) => `${amount} ${name}`)
    .join(', ')

/** A Ray cluster from its head's dashboard (`/api/version`, `/api/v0/nodes`), from Ray 2.9 on. Pure. */

export type ClusterNode = {
  readonly id: string
  readonly ip: string
  readonly isHead: boolean
  readonly isAlive: boolean
  /** Why it is dead. */
  readonly message: string
  /** By Ray's names: CPU, GPU, memory and object_store_memory in bytes, and what hosts.yaml names. */
  readonly resources: Readonly<Record<string, number>>
  /** Ray's own begin with `ray.io/`. */
  readonly labels: ReadonlyMap<string, string>
}

export type ClusterView =
  | {
      readonly kind: 'answers'
      readonly ray: string
      /** Undefined: this version of Ray does not report it. */
      readonly python?: string
      readonly session: string
      /** Whether it asks for a token. */
      readonly hasToken: boolean
      readonly nodes: readonly ClusterNode[]
    }
  /** Nothing listens where its dashboard should, or it does not answer. */
  | { readonly kind: 'silent'; readonly because: string }
  /** Something else than Ray's dashboard answers. */
  | { readonly kind: 'foreign'; readonly because: string }

/** What the script of facts.ts printed: one JSON object with the bodies of the three answers, or `error`. */
export function parseClusterView(text: string): ClusterView | undefined {
  const answer = record(parseJson(text))
  if (answer === undefined) return undefined
  const error = answer.error
  if (typeof error === 'string') return { kind: answer.answered === true ? 'foreign' : 'silent', because: error }
  const version = record(answer.version)
  const ray = version?.ray_version
  if (typeof ray !== 'string') return { kind: 'foreign', because: 'the answer does not come from Ray' }
  const python = record(record(answer.metadata)?.data)?.pythonVersion
  return {
    kind: 'answers',
    ray,
    hasToken: record(answer.authentication)?.authentication_mode === 'token',
    session: textOf(version?.session_name),
    nodes: parseNodes(answer.nodes),
    ...(typeof python === 'string' ? { python } : {}),
  }
}

/** The body of `/api/v0/nodes?detail=1`. */
export function parseNodes(body: unknown): readonly ClusterNode[] {
  return resultOf(body).flatMap((node): ClusterNode[] => {
    if (typeof node.node_id !== 'string') return []
    const amounts = Object.entries(record(node.resources_total) ?? {}).filter(
      (pair): pair is [string, number] => typeof pair[1] === 'number',
    )
    return [
      {
        id: node.node_id,
        ip: textOf(node.node_ip),
        isHead: node.is_head_node === true,
        isAlive: node.state === 'ALIVE',
        message: textOf(node.state_message),
        resources: Object.fromEntries(amounts),
        labels: new Map(Object.entries(record(node.labels) ?? {}).map(([name, label]) => [name, String(label)])),
      },
    ]
  })
}
