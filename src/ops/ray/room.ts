/** What the nodes of a Ray cluster have, and what of it is free, from the line that the program of a round prints. Pure. */

import { list, numberOf, parseJson, record, textOf } from '../../base/json-lines.ts'
import { printable } from '../../base/printable.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { parseAmounts } from './usage.ts'
import { nodesOf, type RayWanted, wantedRay } from './wanted.ts'

type Amounts = Readonly<Record<string, number>>

/** `host`: its name in hosts.yaml, or the address that Ray knows. `taken`: by key of a job, bundles of its groups. */
export type RayRoom = {
  readonly nodes: readonly { readonly host: string; readonly total: Amounts; readonly free: Amounts }[]
  readonly taken: Readonly<Record<string, number>>
}

/** As hosts.yaml declares them. Infinity: Ray counts by itself. */
export function declaredNodes(inventory: Inventory): RayRoom['nodes'] {
  const wanted = wantedRay({ inventory, endpoints: new Map() })
  return (wanted === undefined ? [] : nodesOf(wanted)).map(
    ({ host, cpu = UNKNOWN, gpu = UNKNOWN, memoryBytes = UNKNOWN, custom }) => {
      const total = { CPU: cpu, GPU: gpu, memory: memoryBytes, ...custom }
      return { host, total, free: total }
    },
  )
}

const UNKNOWN = Number.POSITIVE_INFINITY
const MOST_NODES = 300
const MOST_RESOURCES = 50
const MOST_NAME = 100
const MOST_AMOUNT = 2 ** 50

/** Undefined: not what the program prints. `keys`: jobs that the head was asked about. */
export function parseRoom(wanted: RayWanted, keys: ReadonlySet<string>, text: string): RayRoom | undefined {
  const answer = record(parseJson(text))
  if (answer === undefined || !Array.isArray(answer.nodes)) return undefined
  const names = new Map(
    nodesOf(wanted).flatMap(({ host, address, ip = address }) => [[address, host] as const, [ip, host] as const]),
  )
  const nodes = new Map<string, RayRoom['nodes'][number]>()
  for (const node of list(answer.nodes).slice(0, MOST_NODES)) {
    const ip = textOf(node.ip)
    const host = names.get(ip) ?? printable(ip).slice(0, MOST_NAME)
    if (host === '' || nodes.has(host)) continue
    const held = record(node.held) ?? {}
    const amounts = [...parseAmounts(textOf(node.text))]
      .filter(([name, { total }]) => name.length <= MOST_NAME && total <= MOST_AMOUNT)
      .slice(0, MOST_RESOURCES)
      .map(([name, { used, total }]) => {
        // What is used is a few seconds old; placement groups are not.
        const inGroups = Object.hasOwn(held, name) ? (numberOf(held[name]) ?? 0) : 0
        return [printable(name), { total, free: Math.max(0, total - Math.max(used, inGroups)) }] as const
      })
    // It is new, and Ray does not say yet what it has.
    if (amounts.length === 0) return undefined
    const of = (part: 'total' | 'free') => Object.fromEntries(amounts.map(([name, amount]) => [name, amount[part]]))
    nodes.set(host, { host, total: of('total'), free: of('free') })
  }
  const taken = Object.entries(record(answer.taken) ?? {}).flatMap(([key, count]) => {
    const number = numberOf(count)
    return keys.has(key) && number !== undefined && number >= 0 ? [[key, number] as const] : []
  })
  return { nodes: [...nodes.values()], taken: Object.fromEntries(taken) }
}
