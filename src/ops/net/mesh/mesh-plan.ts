/** What a mesh would measure, how long that takes, and with which tool each link. Pure. */

import { counted } from '../../../base/counted.ts'
import { formatDuration } from '../../../base/time-text.ts'
import { foldHostSet } from '../../../inventory/host-set.ts'
import type { AddressWish } from './host-facts.ts'
import { type MeasureOptions, type NetTool, type Slot, slotsAmong, slotsOf } from './link.ts'
import { chooseTool, type MeshHost, type MeshOptions, type ReadyHost } from './measure-mesh.ts'

/** The overhead of a step, for the estimate. */
const OVERHEAD_S = 0.5

export type MeshPlan = {
  readonly slots: readonly Slot[]
  readonly links: number
  readonly seconds: number
  /** `56 links in 14 steps of 5 s, about 1 min 17 s` */
  readonly words: string
}

/** `ready`: only links between these are measured; undefined: it is not known yet which hosts are. */
export function planMesh(names: readonly string[], options: MeshOptions, ready?: ReadonlySet<string>): MeshPlan {
  const all = slotsOf(names, options)
  const slots = ready === undefined ? all : slotsAmong(all, ready)
  const links = slots.flat().length
  const seconds = slots.length * (options.seconds + OVERHEAD_S)
  const took = formatDuration(seconds * 1000)
  return {
    slots,
    links,
    seconds,
    words:
      links === 0
        ? 'no link can be measured without two hosts that answer'
        : `${counted(links, 'link')} in ${counted(slots.length, 'step')} of ${options.seconds} s, about ${took}`,
  }
}

/** `m1 → m2, m3 → m4` */
export const slotWords = (slot: Slot): string => slot.map(({ from, to }) => `${from} → ${to}`).join(', ')

type Way = Pick<MeasureOptions, 'udpBitsPerSecond' | 'streams'> &
  AddressWish & {
    readonly tool?: NetTool
    readonly isSerial?: boolean
    readonly isBidirectional?: boolean
    readonly isOneWay?: boolean
  }

/** Only results that were measured in the same way are compared. */
export function wayOf(options: Way): string {
  const { udpBitsPerSecond, streams, isSerial, isBidirectional, isOneWay, tool } = options
  return [
    udpBitsPerSecond === undefined ? 'tcp' : `udp ${udpBitsPerSecond}`,
    `${streams} streams`,
    ...(isSerial === true ? ['serial'] : []),
    ...(isBidirectional === true ? ['both ways'] : []),
    ...(isOneWay === true ? ['one way'] : []),
    ...[options.interface, options.network, tool].flatMap((word) => word ?? []),
  ].join(', ')
}

/** The rate of UDP in what `wayOf` returned, in bits a second; undefined: it was TCP. */
export function udpRateOf(way: string): number | undefined {
  const [, rate] = /^udp (\d{1,15}(?:\.\d{1,15})?)(?:,|$)/.exec(way) ?? []
  return Number(rate) > 0 ? Number(rate) : undefined
}

export type ToolPlan = {
  /** One sentence for each tool, with its hosts and links, and one for each host or link that is skipped. Not printable yet. */
  readonly lines: readonly { readonly text: string; readonly isSkipped: boolean }[]
  /** Hosts that lack iperf3, or the tool that the user asked for. */
  readonly lacking: readonly string[]
}

const TOOL_WORDS: Readonly<Record<NetTool, string>> = { iperf3: 'with iperf3', iperf2: 'with iperf 2', ssh: 'over ssh' }

/** From what the hosts have. */
export function planTools(hosts: readonly MeshHost[], options: MeshOptions): ToolPlan {
  const ready = hosts.filter((host): host is ReadyHost => 'facts' in host)
  const used = new Map<NetTool, { readonly ends: Set<string>; links: number }>()
  const without: { readonly from: string; readonly to: string; readonly reason: string }[] = []
  for (const from of ready) {
    for (const to of ready) {
      if (from === to) continue
      const tool = chooseTool(from.facts, to.facts, options)
      const pair = { from: from.name, to: to.name }
      if (typeof tool !== 'string') without.push({ ...pair, reason: tool.reason(pair) })
      else {
        const entry = used.get(tool) ?? { ends: new Set(), links: 0 }
        entry.links += 1
        entry.ends.add(from.name).add(to.name)
        used.set(tool, entry)
      }
    }
  }
  const { tool: wanted = 'iperf3' } = options
  const lacking =
    wanted === 'ssh' ? [] : ready.flatMap(({ name, facts }) => (facts[wanted] === undefined ? [name] : []))
  const away = hosts.flatMap((host) => ('facts' in host ? [] : [`${host.name} is skipped: ${host.reason}`]))
  const [first] = without
  return {
    lines: [
      ...(['iperf3', 'iperf2', 'ssh'] as const).flatMap((tool) => {
        const entry = used.get(tool)
        if (entry === undefined) return []
        const text = `${counted(entry.links, 'link')} ${TOOL_WORDS[tool]}, between ${foldHostSet(entry.ends)}`
        return [{ text, isSkipped: false }]
      }),
      ...(lacking.length === 0
        ? []
        : [
            {
              text: `${wanted === 'iperf2' ? 'iperf' : 'iperf3'} is not installed on ${foldHostSet(lacking)}`,
              isSkipped: false,
            },
          ]),
      ...away.map((text) => ({ text, isSkipped: true })),
      ...(first === undefined
        ? []
        : [{ text: `${counted(without.length, 'link')} skipped: ${first.reason}`, isSkipped: true }]),
    ],
    lacking,
  }
}
