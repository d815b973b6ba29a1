/** `muster ray watch`: what the nodes do, what waits and why, until Ctrl-C. */
import { systemClock } from '../../base/clock.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import { printable } from '../../base/printable.ts'
import {
  type Amount,
  amountsOf,
  type ClusterUsage,
  impossibleBundles,
  type NodeUsage,
  type PlacementGroup,
} from '../../ops/ray/usage.ts'
import { watchCluster } from '../../ops/ray/watch.ts'
import { numberFrom } from '../command-line/options.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { isDumb } from '../output/dumb-terminal.ts'
import { writeEvent } from '../output/json-lines.ts'
import { formatTable, type TableOutput } from '../output/table.ts'
import { prepareRay } from './jobs.ts'

type WatchOptions = GlobalOptions & { readonly interval: number; readonly once?: boolean }

export const verb: VerbCode = {
  define: (command) =>
    command
      .option('--interval <s>', 'check every S seconds', numberFrom(0.5), 2)
      .option('--once', 'check once and exit'),
  help: `
Examples:
  muster ray watch                  nodes, placement groups and pending requests, until Ctrl-C
  muster ray watch --json           one object for each check
`,
  async run(options: WatchOptions, context: CliContext) {
    using prepared = await prepareRay(options, context)
    const { wanted, names } = prepared
    const { stdout, stderr, signal, environment } = context
    const canRedraw = stdout.isTTY === true && !isDumb(environment)
    const isScreen = canRedraw && options.once !== true && options.json !== true
    let isSilent = true
    let rowCount = 0
    let reported = ''
    const report = (reason: string) => {
      rowCount = 0
      if (reason === reported) return
      reported = reason
      stderr.write(`muster: Ray: the head on ${wanted.head.host} does not answer: ${reason}\n`)
    }
    const reason = await watchCluster(wanted, {
      hosts: prepared.hosts,
      clock: systemClock,
      signal,
      intervalMs: options.interval * 1000,
      rounds: options.once === true ? 1 : 0,
      onUsage: (usage, why) => {
        isSilent = usage === undefined
        if (usage !== undefined) reported = ''
        if (usage === undefined) report(why)
        else if (options.json === true) writeEvent(usageEvent(usage), context)
        else if (isScreen) rowCount = redraw(stdout, formatUsage(usage, names, stdout), rowCount)
        else stdout.write(formatUsage(usage, names, stdout))
      },
      onSilent: report,
    })
    if (reason !== undefined) {
      stderr.write(`muster: ${wanted.head.host}: ${reason}\n`)
      return EXIT.unreachable
    }
    if (options.once === true) return isSilent ? EXIT.failed : EXIT.ok
    return EXIT.interrupted
  },
}

/** Replaces what was drawn before, as far as the terminal has room; returns the rows it takes. */
function redraw(stdout: CliContext['stdout'], text: string, oldRowCount: number): number {
  const lines = text.split('\n').slice(0, -1)
  // A terminal that does not know its size says 0.
  const shown = lines.slice(0, Math.max(1, (stdout.rows || 24) - 1))
  const back = oldRowCount > 0 ? `\x1b[${oldRowCount}A` : ''
  // No wrapping: a line that is too long still takes one row.
  stdout.write(`${back}\r\x1b[J\x1b[?7l${shown.join('\n')}\n\x1b[?7h`)
  return shown.length
}

/** With its nodes in the order of hosts.yaml, then the others. */
export function inOrder({ nodes, ...rest }: ClusterUsage, names: ReadonlyMap<string, string>): ClusterUsage {
  const order = [...names.keys()]
  const place = ({ ip }: NodeUsage) => (names.has(ip) ? order.indexOf(ip) : order.length)
  return { ...rest, nodes: nodes.toSorted((left, right) => place(left) - place(right)) }
}

/** `names`: hosts by the addresses of their nodes. */
export function formatUsage(usage: ClusterUsage, names: ReadonlyMap<string, string>, out: TableOutput): string {
  const { nodes, groups, actors, demands } = inOrder(usage, names)
  const nameOf = ({ ip, isHead }: NodeUsage) => `${names.get(ip) ?? ip}${isHead ? ' (head)' : ''}`
  const alive = nodes.filter(({ isAlive }) => isAlive)
  const custom = [...new Set(alive.flatMap(({ logical }) => [...logical.keys()]))].filter(
    (name) => !['CPU', 'GPU', 'memory', 'object_store_memory'].includes(name),
  )
  const table = formatTable(
    [
      'NODE',
      'CPU',
      'GPU',
      'MEMORY',
      ...custom.map((name) => name.toUpperCase()),
      'OBJECTS',
      'BUSY',
      'USED MEMORY',
      'BUSY GPUS',
    ],
    alive.map((node) => [
      nameOf(node),
      plain(node.logical.get('CPU')),
      plain(node.logical.get('GPU')),
      bytes(node.logical.get('memory')),
      ...custom.map((name) => plain(node.logical.get(name))),
      bytes(node.objectStore),
      node.cpuPercent === undefined ? '' : `${Math.round(node.cpuPercent)} %`,
      bytes(node.memory),
      node.gpuPercents.map((percent) => `${Math.round(percent)} %`).join(' '),
    ]),
    out,
  )
  const back = new Set(alive.map(({ ip }) => ip))
  const dead = nodes.filter(({ isAlive, ip }) => !isAlive && !back.has(ip))
  const lines = [
    ...dead.map((node) => `dead: ${nameOf(node)}${node.message === '' ? '' : `: ${node.message}`}`),
    ...groups.map((group) => formatGroup(group, alive, nameOf)),
    ...[...actors].map(([state, count]) => `actors ${state.toLowerCase()}: ${count}`),
    ...demands.map((demand) => `waits: ${demand}`),
  ]
  return table + lines.map((line) => `${printable(line)}\n`).join('')
}

export function formatGroup(
  group: PlacementGroup,
  alive: readonly NodeUsage[],
  nameOf: (node: NodeUsage) => string,
): string {
  const places = Map.groupBy(group.bundles, ({ nodeId }) => {
    const node = alive.find(({ id }) => id === nodeId)
    return nodeId === undefined ? 'nowhere' : node === undefined ? 'on a dead node' : `on ${nameOf(node)}`
  })
  const where = [...places].map(([place, bundles]) => {
    const words = bundles.map(({ index, resources }) => `#${index} (${amountsOf(resources)})`)
    return `${words.join(', ')} ${place}`
  })
  const why =
    group.state === 'CREATED'
      ? ''
      : ` (${group.scheduling.toLowerCase().replaceAll('_', ' ')}${whyNowhere(group, alive)})`
  return `placement group ${group.name || group.id.slice(0, 8)} ${group.state.toLowerCase()}${why}: ${where.join('; ')}`
}

/** A bundle that no node could ever hold. */
function whyNowhere(group: PlacementGroup, alive: readonly NodeUsage[]): string {
  const [first] = impossibleBundles(group, alive)
  return first === undefined ? '' : `: no node has ${amountsOf(first.resources)}`
}

function plain(amount: Amount | undefined): string {
  return amount === undefined ? '' : `${Number(amount.used.toFixed(2))}/${Number(amount.total.toFixed(2))}`
}

function bytes(amount: Amount | undefined): string {
  return amount === undefined ? '' : `${formatBytes(amount.used)}/${formatBytes(amount.total)}`
}

function usageEvent({ nodes, groups, actors, demands }: ClusterUsage): object {
  return {
    type: 'usage',
    nodes: nodes.map((node) => ({ ...node, logical: Object.fromEntries(node.logical) })),
    groups,
    actors: Object.fromEntries(actors),
    demands,
  }
}
