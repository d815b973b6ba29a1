/** What Ray has placed, for `muster pack`: asked from the head, by node and placement group, as the Packing tab shows it. */
import { systemClock } from '../../base/clock.ts'
import { printable } from '../../base/printable.ts'
import type { ClusterUsage, PlacementGroup } from '../../ops/ray/usage.ts'
import { watchCluster } from '../../ops/ray/watch.ts'
import { signOf } from '../../ui/packing/blocks.ts'
import { LOOSE_JOB, rayPicture } from '../../ui/packing/ray-picture.ts'
import { type CliContext, EXIT, type GlobalOptions } from '../command-line/verb.ts'
import { jsonLine } from '../output/json-lines.ts'
import type { TableOutput } from '../output/table.ts'
import { prepareRay } from '../ray/jobs.ts'
import { formatGroup, inOrder } from '../ray/watch.ts'
import { formatHosts } from './host-table.ts'

/** `isAway`: the head cannot be reached. */
export type RaySnapshot =
  | { readonly kind: 'usage'; readonly usage: ClusterUsage; readonly names: ReadonlyMap<string, string> }
  | { readonly kind: 'none'; readonly head: string; readonly reason: string; readonly isAway: boolean }

/** The number of the job that a group belongs to. */
export type JobOfGroup = (group: PlacementGroup) => number | undefined

/** Only where hosts.yaml declares a cluster. */
export async function askRay(options: GlobalOptions, context: CliContext): Promise<RaySnapshot> {
  using prepared = await prepareRay(options, context)
  const { wanted, names } = prepared
  const head = wanted.head.host
  const silence = new AbortController()
  let snapshot: RaySnapshot = { kind: 'none', head, reason: '', isAway: true }
  const reason = await watchCluster(wanted, {
    hosts: prepared.hosts,
    clock: systemClock,
    signal: AbortSignal.any([context.signal, silence.signal]),
    intervalMs: 0,
    rounds: 1,
    onUsage(usage, why) {
      snapshot =
        usage === undefined ? { kind: 'none', head, reason: why, isAway: false } : { kind: 'usage', usage, names }
    },
    onSilent(why) {
      snapshot = { kind: 'none', head, reason: why, isAway: true }
      silence.abort()
    },
  })
  return reason === undefined ? snapshot : { kind: 'none', head, reason, isAway: true }
}

/** The exit code. */
export function showRay(
  snapshot: RaySnapshot,
  jobOf: JobOfGroup,
  { json }: GlobalOptions,
  context: CliContext,
): number {
  const { stdout, stderr } = context
  if (snapshot.kind === 'none') {
    stderr.write(`muster: Ray: the head on ${snapshot.head} does not answer: ${snapshot.reason}\n`)
    return snapshot.isAway ? EXIT.unreachable : EXIT.ok
  }
  const { usage, names } = snapshot
  stdout.write(
    json === true ? formatRayJson(usage, names, jobOf, context) : `\n${formatRay(usage, names, jobOf, stdout)}`,
  )
  return EXIT.ok
}

function numbersOf({ groups }: ClusterUsage): (group: PlacementGroup) => number {
  const numbers = new Map(groups.map(({ id }, index) => [id, index + 1]))
  return ({ id }) => numbers.get(id) ?? 0
}

export function formatRay(
  given: ClusterUsage,
  names: ReadonlyMap<string, string>,
  jobOf: JobOfGroup,
  out: TableOutput,
): string {
  const usage = inOrder(given, names)
  const numberOf = numbersOf(usage)
  const { hosts, dead, waiting, actors } = rayPicture(usage, names, numberOf)
  const alive = usage.nodes.filter(({ isAlive }) => isAlive)
  const hasLoose = hosts.some(({ jobs }) => jobs.includes(LOOSE_JOB))
  const lines = [
    ...dead.map((node) => `dead: ${node}`),
    ...usage.groups.map((group) => {
      const job = jobOf(group)
      const whose = job === undefined ? '' : `job ${job}: `
      return `${signOf(numberOf(group))} ${whose}${formatGroup(group, alive, ({ ip }) => names.get(ip) ?? ip)}`
    }),
    ...(hasLoose ? [`${signOf(LOOSE_JOB)} tasks and actors in no placement group`] : []),
    ...[...actors].map(([state, count]) => `actors ${state.toLowerCase()}: ${count}`),
    ...waiting.flatMap(({ group, why }) => (group === undefined ? [`waits: ${why}`] : [])),
  ]
  const table = formatHosts(
    'RAY NODE',
    hosts.map((host) => ({ host, trouble: '' })),
    out,
  )
  return table + lines.map((line) => `${printable(line)}\n`).join('')
}

export function formatRayJson(
  given: ClusterUsage,
  names: ReadonlyMap<string, string>,
  jobOf: JobOfGroup,
  context: Pick<CliContext, 'selection'> = {},
): string {
  const usage = inOrder(given, names)
  const { hosts } = rayPicture(usage, names, numbersOf(usage))
  const alive = usage.nodes.filter(({ isAlive }) => isAlive)
  const hostOf = (nodeId: string | undefined) => {
    const at = alive.findIndex(({ id }) => id === nodeId)
    return hosts[at]?.name ?? null
  }
  const amount = (index: number, name: string) => alive[index]?.logical.get(name) ?? { used: 0, total: 0 }
  const nodes = hosts.map((host, index) => ({
    type: 'node',
    name: host.name,
    isHead: alive[index]?.isHead === true,
    cpuUsedMilli: host.cpuUsedMilli,
    cpuMilli: host.cpuMilli,
    gpuUsedMilli: Math.round(amount(index, 'GPU').used * 1000),
    gpuMilli: Math.round(amount(index, 'GPU').total * 1000),
    memoryUsedBytes: host.memoryUsedBytes,
    memoryBytes: host.memoryBytes,
  }))
  const groups = usage.groups.map((group) => ({
    type: 'group',
    id: group.id,
    name: group.name,
    job: jobOf(group) ?? null,
    state: group.state,
    bundles: group.bundles.map(({ index, resources, nodeId }) => ({ index, host: hostOf(nodeId), resources })),
  }))
  return [...nodes, ...groups].map((event) => jsonLine(event, context)).join('')
}
