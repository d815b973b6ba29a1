/**
 * What a job of an engine will ask it for (`--needs`): bundles that have to be placeable before the job is handed over, and what
 * keeps them from it. Pure.
 */

import { lowerBound } from '../../base/collections.ts'
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { parseMemorySize } from '../../inventory/hosts-yaml-schema.ts'
import { findGang } from '../gangs/place-gang.ts'
import { Cluster } from '../model/cluster.ts'
import { type Gang, type HostCapacity, milliOf, type Strategy, WHOLE_MILLI } from '../model/resources.ts'
import { type Amounts, checkSize, type GroupsPlan, parseAmounts, refusal, strategyOf, times } from './framework.ts'
import { gangOfBundles, placeBundles } from './place-plan.ts'

export type Needs = {
  readonly bundles: readonly { readonly count: number; readonly amounts: Amounts }[]
  readonly strategy: Strategy
}

/** A node of an engine, by Ray's names of resources. Infinity: not known, and taken as enough. */
export type EngineNode = { readonly host: string; readonly total: Amounts; readonly free: Amounts }

const MOST_LENGTH = 4096
/** Of any resource but memory. */
const MOST_AMOUNT = 1_000_000
const MOST_BYTES = 2 ** 50
const NAMES: Readonly<Record<string, string>> = { cpu: 'CPU', gpu: 'GPU' }
const FORM = 'write it as 4x{gpu:1,cpu:1} PACK, or {gpu:1,cpu:1} 2x{cpu:1}'

/** `4x{gpu:1,cpu:1} {cpu:2} SPREAD`. @throws MusterError `usage` */
export function parseNeeds(text: string): Needs {
  const wrong = (why: string) => refusal(`--needs ${printable(text.slice(0, 200))}: ${why}`)
  if (text.length > MOST_LENGTH) throw wrong(`it is longer than ${MOST_LENGTH} characters`)
  const bundles: { count: number; amounts: Amounts }[] = []
  const one = /\s*(?:(\d{1,6})\s*[x×*]\s*)?\{([^{}]*)\}\s*[+,]?/y
  let end = 0
  for (let match = one.exec(text); match !== null; match = one.exec(text)) {
    end = one.lastIndex
    bundles.push({ count: Number(match[1] ?? 1), amounts: amountsOf(match[2] as string) })
  }
  const rest = text.slice(end).trim()
  if (bundles.length === 0 || bundles.some(({ count }) => count === 0) || /[{}]/.test(rest)) throw wrong(FORM)
  const strategy = strategyOf(rest === '' ? 'PACK' : rest)
  const needs = { bundles, strategy }
  const group = { name: '--needs', bundles: bundlesOf(needs), strategy }
  checkSize({ groups: [group], shortage: 'hangs' })
  return needs
}

/** @throws MusterError `usage` */
function amountsOf(text: string): Amounts {
  const sized = text.replace(/(memory["']?\s*[:=]\s*)([\d.]+\s*[A-Za-z]+)/i, (whole, name: string, size: string) => {
    const bytes = parseMemorySize(size.replace(/\s/g, ''))
    return bytes === undefined ? whole : `${name}${bytes}`
  })
  const given = Object.entries(parseAmounts('--needs', sized)).map(([name, amount]) => {
    const known = name.toLowerCase() === 'memory' ? 'memory' : (NAMES[name.toLowerCase()] ?? name)
    const most = known === 'memory' ? MOST_BYTES : MOST_AMOUNT
    if (amount > most) throw refusal(`--needs: ${printable(known)} ${amount} is too much: at most ${most}`)
    return [known, amount] as const
  })
  const amounts = Object.fromEntries(given)
  times(1, amounts)
  return amounts
}

const bundlesOf = ({ bundles }: Needs): readonly Amounts[] =>
  bundles.flatMap(({ count, amounts }) => times(count, amounts))

/** `4 × {GPU 1, CPU 1} PACK` */
export const needsText = ({ bundles, strategy }: Needs): string =>
  `${bundles.map(({ count, amounts }) => `${count === 1 ? '' : `${count} × `}${bundleText(amounts)}`).join(' + ')} ${strategy}`

/** `{GPU 1, memory 4 GiB}` */
export const bundleText = (amounts: Amounts): string =>
  `{${Object.entries(amounts)
    .map(([name, amount]) => `${name} ${amountText(name, amount)}`)
    .join(', ')}}`

const GIB = 2 ** 30
const round = (amount: number) => Math.round(amount * 1000) / 1000
const amountText = (name: string, amount: number) =>
  name === 'memory' ? `${Math.round((amount / GIB) * 100) / 100} GiB` : String(round(amount))

/** As `parseNeeds` reads it. */
export const writeNeeds = ({ bundles, strategy }: Needs): string => {
  const parts = bundles.map(({ count, amounts }) => {
    const text = Object.entries(amounts).map(([name, amount]) => `${name}:${amount}`)
    return `${count === 1 ? '' : `${count}x`}{${text.join(',')}}`
  })
  return `${parts.join(' ')} ${strategy}`
}

/** What has to be free for the whole plan to go on; undefined: it is not Ray that makes its groups wait, or they differ too much. */
export function needsOf({ groups, shortage }: GroupsPlan): Needs | undefined {
  // Where groups queue behind each other, one is enough.
  const needed = shortage === 'queues' ? groups.slice(0, 1) : groups
  const [first] = needed
  if (first === undefined || shortage === 'fails') return undefined
  if (needed.length > 1 && needed.some(({ strategy }) => strategy !== 'PACK')) return undefined
  const alike = Map.groupBy(
    needed.flatMap(({ bundles }) => bundles),
    (amounts) => JSON.stringify(amounts),
  )
  const bundles = [...alike.values()].map((same) => ({ count: same.length, amounts: same[0] as Amounts }))
  return { bundles, strategy: first.strategy }
}

/** What a job asks an engine for: room for its own process, then for what that will ask for. */
export type Asked = { readonly own: Amounts; readonly needs: Needs }

/** The names of resources in it. */
export const namesIn = ({ own, needs }: Asked): readonly string[] => [
  ...new Set([...needs.bundles.map(({ amounts }) => amounts), own].flatMap(Object.keys)),
]

/** Nodes as they are declared: what none of them names may be on any of them. */
export function withUnknown(nodes: readonly EngineNode[], asked: Asked): readonly EngineNode[] {
  const names = namesIn(asked).filter((name) => !nodes.some(({ total }) => Object.hasOwn(total, name)))
  const unknown = Object.fromEntries(names.map((name) => [name, Number.POSITIVE_INFINITY]))
  return nodes.map(({ host, total, free }) => ({
    host,
    total: { ...unknown, ...total },
    free: { ...unknown, ...free },
  }))
}

/** What is free on these nodes, or all that they have. `names`: what may be asked for. */
export function clusterOfNodes(nodes: readonly EngineNode[], of: 'free' | 'total', names: readonly string[]): Cluster {
  const absent = Object.fromEntries(names.map((name) => [name, 0]))
  const cluster = new Cluster(nodes.map((node) => capacityOf(node.host, { ...absent, ...node[of] })))
  // Only sums are known: the free parts of GPUs in use are taken to be on one.
  for (const [host, node] of nodes.entries()) {
    const { length = 0 } = cluster.hosts[host]?.gpus ?? []
    const usedMilli = length * WHOLE_MILLI - milliOf(Math.min(node[of].GPU ?? 0, length), 'down')
    const request = { cpuMilli: 0, memoryBytes: 0, gpuCount: 1, gpuMilli: usedMilli }
    if (usedMilli > 0) cluster.take(cluster.shapeOf(request), { host, devices: [length - 1] })
  }
  return cluster
}

const MOST_GPUS = 128

function capacityOf(host: string, { CPU = 0, GPU = 0, memory = 0, ...rest }: Amounts): HostCapacity {
  const pools = Object.entries(rest).map(([name, most]) => {
    // In thousandths, as the bundles.
    const amount = milliOf(Math.min(most, MOST_AMOUNT), 'down')
    return [name, { kind: 'pool', amount }] as const
  })
  return {
    name: host,
    cpuMilli: milliOf(Math.min(CPU, MOST_AMOUNT), 'down'),
    memoryBytes: Math.floor(Math.min(memory, MOST_BYTES)),
    gpus: Array.from({ length: Math.min(Math.ceil(GPU), MOST_GPUS) }, () => ''),
    custom: Object.fromEntries(pools),
  }
}

/** Takes all of it where Ray would put it, or nothing: false. */
export function takeNeeds(cluster: Cluster, { own, needs }: Asked): boolean {
  const process = isNothing(own) ? [] : placeBundles(cluster, gangOf(cluster, [own]))
  if (process === undefined) return false
  if (placeBundles(cluster, gangOf(cluster, bundlesOf(needs), needs.strategy)) !== undefined) return true
  for (const placement of process) cluster.release(placement)
  return false
}

const gangOf = (
  cluster: Cluster,
  bundles: readonly Amounts[],
  strategy: Strategy = 'PACK',
  hosts?: readonly string[],
): Gang => gangOfBundles(cluster, 'needs', bundles, strategy, hosts)

/** Takes as much of it as there is. */
export function keepRoom(cluster: Cluster, asked: Asked): void {
  if (takeNeeds(cluster, asked)) return
  const bundles = [...(isNothing(asked.own) ? [] : [asked.own]), ...bundlesOf(asked.needs)]
  for (const bundle of bundles) placeBundles(cluster, gangOf(cluster, [bundle]))
}

const isNothing = (amounts: Amounts) => Object.keys(amounts).length === 0

/** Whether nodes on which nothing runs hold it in any way. */
export function fitsIdle(nodes: readonly EngineNode[], asked: Asked): boolean {
  const idle = clusterOfNodes(nodes, 'total', namesIn(asked))
  if (takeNeeds(idle.copy(), asked)) return true
  const { own, needs } = asked
  const places = isNothing(own) ? [undefined] : nodes.map(({ host }) => host)
  return places.some((place) => {
    const cluster = idle.copy()
    if (place !== undefined && placeBundles(cluster, gangOf(cluster, [own], 'PACK', [place])) === undefined)
      return false
    return findGang(cluster, gangOf(cluster, bundlesOf(needs), needs.strategy)) !== undefined
  })
}

/** Why there is no room in this cluster of free amounts, a line each; undefined: there is. The cluster stays as it is. */
export function whyNoRoom(
  cluster: Cluster,
  nodes: readonly EngineNode[],
  asked: Asked,
  title: string,
): readonly string[] | undefined {
  const fits = (needs: Needs) => takeNeeds(cluster.copy(), { ...asked, needs })
  if (fits(asked.needs)) return undefined
  const { strategy } = asked.needs
  const bundles = bundlesOf(asked.needs)
  const some = (count: number): Needs => ({
    bundles: bundles.slice(0, count).map((amounts) => ({ count: 1, amounts })),
    strategy,
  })
  const count = lowerBound(bundles.length, (most) => fits(some(most + 1)))
  const how = bundles.length === 1 ? '' : `: ${count} of ${bundles.length} bundles ${count === 1 ? 'fits' : 'fit'}`
  return [`${title} has no room for ${askedText(asked)}${how}.`, `Free: ${nodesText(cluster, nodes, asked)}.`]
}

/** For needs that do not fit even when the nodes are idle. */
export const neverWords = (nodes: readonly EngineNode[], asked: Asked, title: string): string => {
  if (nodes.length === 0) return `can never be placed: ${title} has no nodes`
  const all = nodesText(clusterOfNodes(nodes, 'total', namesIn(asked)), nodes, asked)
  return `can never be placed: ${title} has no room for ${askedText(asked)}, even when it is idle (${all})`
}

const askedText = ({ own, needs }: Asked): string =>
  isNothing(own) ? needsText(needs) : `${needsText(needs)} and ${bundleText(own)} for the job itself`

const MOST_LISTED = 8

/** `m1 0 of 2 GPU, 3 of 4 CPU; m[2-3] 2 of 2 GPU, 3 of 4 CPU` */
function nodesText(cluster: Cluster, nodes: readonly EngineNode[], asked: Asked): string {
  const names = namesIn(asked)
  const free = (name: string, host: number): number => {
    if (name === 'CPU') return (cluster.cpuLeftMilli[host] ?? 0) / WHOLE_MILLI
    if (name === 'GPU') return (cluster.gpuLeftMilli[host] ?? 0) / WHOLE_MILLI
    if (name === 'memory') return cluster.memoryLeftBytes[host] ?? 0
    return (cluster.custom.get(name)?.leftOn(host) ?? 0) / WHOLE_MILLI
  }
  const textOf = ({ total }: EngineNode, host: number) =>
    names
      .map((name) => {
        const { [name]: all = 0 } = total
        return all === Number.POSITIVE_INFINITY
          ? `${name} unknown`
          : `${amountText(name, free(name, host))} of ${amountText(name, all)} ${name}`
      })
      .join(', ')
  const byText = [...Map.groupBy(nodes.entries(), ([host, node]) => textOf(node, host))]
  const shown = byText
    .slice(0, MOST_LISTED)
    .map(([text, own]) => `${foldHostSet(own.map(([, { host }]) => host))} ${text}`)
  return [...shown, ...(byText.length > MOST_LISTED ? [`and ${byText.length - MOST_LISTED} more`] : [])].join('; ')
}
