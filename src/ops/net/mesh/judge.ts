/**
 * Findings from the measurements of a mesh. A host can send as fast as its best outgoing link and receive as fast as its best
 * incoming one. A pair slower than both ends is a slow link; a host whose best is far below the others' is a slow host. Pure.
 */
import { foldHostSet } from '../../../inventory/host-set.ts'
import type { Gravity } from '../../kernel/finding.ts'
import { formatBitRate, formatMs, type LinkResult, type OrderedPair } from './link.ts'
import type { MeshReport, ReadyHost } from './measure-mesh.ts'

export type NetFinding = {
  readonly gravity: Gravity
  /** A stable word for scripts: `slow-host`, `slow-link`. */
  readonly id: string
  /** The hosts that it is about; of a link the sender first. */
  readonly hosts: readonly string[]
  /** Not printable yet: it may contain reasons from hosts. */
  readonly text: string
}

/** Below this part of what is to be expected a host or a link is slow. */
const SLOW = 0.6
const ASYMMETRY = 0.2
/** Of what its card has negotiated. */
const LINK_USE = 0.7
const RETRANSMITS_A_GB = 1000
const LOST = 0.01
const BUSY_CPU = 0.9
const MAX_LINKS = 8

type Rated = LinkResult & { readonly outcome: Extract<LinkResult['outcome'], { kind: 'measured' }> }

export type Ability = { readonly name: string; readonly sends?: number; readonly receives?: number }

export function measuredOf(links: readonly LinkResult[]): readonly Rated[] {
  return links.filter((link): link is Rated => link.outcome.kind === 'measured')
}

/** The fastest that each host was seen to send and to receive. */
export function abilitiesOf(names: readonly string[], links: readonly LinkResult[]): readonly Ability[] {
  const measured = measuredOf(links)
  const best = (name: string, end: 'from' | 'to') =>
    measured.reduce((most, link) => (link[end] === name ? Math.max(most, link.outcome.bitsPerSecond) : most), 0)
  return names.map((name) => {
    const [sends, receives] = [best(name, 'from'), best(name, 'to')]
    return { name, ...(sends > 0 ? { sends } : {}), ...(receives > 0 ? { receives } : {}) }
  })
}

export function judgeMesh(report: MeshReport): readonly NetFinding[] {
  const { hosts, links, pings } = report
  const ready = hosts.filter((host): host is ReadyHost => 'facts' in host)
  const abilities = abilitiesOf(
    hosts.map(({ name }) => name),
    links,
  )
  const findings = [
    ...failures(report),
    ...slowHosts(abilities),
    ...slowLinks(abilities, measuredOf(links)),
    ...cards(ready, abilities),
    ...frames(ready),
    ...wholePackets(report),
    ...losses(measuredOf(links)),
    ...processors(measuredOf(links)),
    ...slowAnswers(pings),
    ...plainOnes(measuredOf(links)),
  ]
  const order: readonly Gravity[] = ['blocker', 'risk', 'note']
  return findings.toSorted((one, other) => order.indexOf(one.gravity) - order.indexOf(other.gravity))
}

export function median(values: readonly number[]): number | undefined {
  const sorted = values.toSorted((one, other) => one - other)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1
    ? sorted[middle]
    : sorted.length === 0
      ? undefined
      : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2
}

/** Whether enough hosts were measured to distinguish a slow host from a slow link. */
function isComparable(abilities: readonly Ability[]): boolean {
  return abilities.filter(({ sends, receives }) => sends !== undefined || receives !== undefined).length >= 3
}

function slowHosts(abilities: readonly Ability[]): readonly NetFinding[] {
  if (!isComparable(abilities)) return []
  const others = (name: string, key: 'sends' | 'receives') =>
    median(abilities.flatMap((each) => (each.name === name ? [] : (each[key] ?? []))))
  return abilities.flatMap(({ name, sends, receives }): NetFinding[] => {
    const usual = { sends: others(name, 'sends'), receives: others(name, 'receives') }
    const isSlow = (value: number | undefined, of: number | undefined) =>
      value !== undefined && of !== undefined && value < SLOW * of
    const [out, into] = [isSlow(sends, usual.sends), isSlow(receives, usual.receives)]
    const say = (id: string, text: string): NetFinding[] => [{ gravity: 'risk', id, hosts: [name], text }]
    if (out && into) {
      const text = `${name} is slow to and from all hosts: it sends at most ${formatBitRate(sends ?? 0)} and receives at most ${formatBitRate(receives ?? 0)}, the others usually ${formatBitRate(usual.sends ?? 0)}: its card, its cable or its port at the switch`
      return say('slow-host', text)
    }
    if (out) {
      const text = `${name} sends slowly to all hosts: at most ${formatBitRate(sends ?? 0)}, the others usually ${formatBitRate(usual.sends ?? 0)}${receives === undefined ? '' : `; it receives ${formatBitRate(receives)}`}`
      return say('slow-sender', text)
    }
    if (into) {
      const text = `${name} receives slowly from all hosts: at most ${formatBitRate(receives ?? 0)}, the others usually ${formatBitRate(usual.receives ?? 0)}${sends === undefined ? '' : `; it sends ${formatBitRate(sends)}`}`
      return say('slow-receiver', text)
    }
    return []
  })
}

/** Links that are slower than both of their ends, in both directions or in one. */
function slowLinks(abilities: readonly Ability[], links: readonly Rated[]): readonly NetFinding[] {
  const byName = new Map(abilities.map((ability) => [ability.name, ability]))
  const key = (from: string, to: string) => JSON.stringify([from, to])
  const rates = new Map(links.map(({ from, to, outcome }) => [key(from, to), outcome.bitsPerSecond]))
  const possible = ({ from, to }: { readonly from: string; readonly to: string }) =>
    Math.min(byName.get(from)?.sends ?? 0, byName.get(to)?.receives ?? 0)
  const findings: (NetFinding & { readonly part: number })[] = []
  const canCompare = isComparable(abilities)
  for (const link of links) {
    const { from, to, outcome } = link
    const rate = outcome.bitsPerSecond
    const back = rates.get(key(to, from))
    const part = rate / possible(link)
    const backPart = back === undefined ? 1 : back / possible({ from: to, to: from })
    const isBoth = part < SLOW && backPart < SLOW
    // One finding if both directions are slow.
    if (isBoth && from > to) continue
    if (part < SLOW) {
      const arrow = isBoth ? '↔' : '→'
      const rest = isBoth || back === undefined ? '' : `; ${to} → ${from} is not: ${formatBitRate(back)}`
      const text = `${from} ${arrow} ${to} is slow: ${formatBitRate(rate)}, though with others both reach ${formatBitRate(possible(link))}: the path between these two${rest}`
      findings.push({ gravity: 'risk', id: 'slow-link', hosts: [from, to], text, part })
    } else if (back !== undefined && (!canCompare || part < backPart * (1 - ASYMMETRY))) {
      const finding = asymmetryOf({ from, to, rate, back })
      // With several hosts, the other links show which end is slow.
      if (finding !== undefined) findings.push({ ...finding, ...(canCompare ? { gravity: 'note' } : {}), part })
    }
  }
  const hosts = abilities.flatMap(({ name, sends, receives }): NetFinding[] => {
    if (sends === undefined || receives === undefined || !canCompare) return []
    const [less, more] = [Math.min(sends, receives), Math.max(sends, receives)]
    if (less >= more * (1 - ASYMMETRY) || less < SLOW * more) return []
    const text = `${name} sends at most ${formatBitRate(sends)} and receives at most ${formatBitRate(receives)}`
    return [{ gravity: 'note', id: 'asymmetric-host', hosts: [name], text }]
  })
  const worst = findings.toSorted((one, other) => one.part - other.part)
  const shown = worst.slice(0, MAX_LINKS).map(({ part: _, ...finding }) => finding)
  const left = worst.slice(MAX_LINKS)
  const names = [...new Set(left.flatMap((finding) => finding.hosts))]
  const more: NetFinding[] =
    left.length === 0
      ? []
      : [
          {
            gravity: 'note',
            id: 'more-links',
            hosts: names,
            text: `${left.length} more links are slower than expected`,
          },
        ]
  return [...shown, ...more, ...hosts]
}

/** A direction that is slower than the other one by more than a fifth; undefined: it is not. */
export function asymmetryOf({
  from,
  to,
  rate,
  back,
}: OrderedPair & { readonly rate: number; readonly back: number }): NetFinding | undefined {
  if (rate >= back * (1 - ASYMMETRY)) return undefined
  return {
    gravity: rate < SLOW * back ? 'risk' : 'note',
    id: 'asymmetric-link',
    hosts: [from, to],
    text: `${from} → ${to} is ${percent(1 - rate / back)} slower than ${to} → ${from}: ${formatBitRate(rate)} against ${formatBitRate(back)}`,
  }
}

/** What the network cards report, apart from measurements. */
function cards(hosts: readonly ReadyHost[], abilities: readonly Ability[]): readonly NetFinding[] {
  const speeds = hosts.flatMap(({ place }) => place.card?.linkBitsPerSecond ?? [])
  const usual = median(speeds)
  return hosts.flatMap(({ name, place }): NetFinding[] => {
    const { card } = place
    if (card === undefined) return []
    const link = card.linkBitsPerSecond
    const ability = abilities.find((each) => each.name === name)
    const best = Math.max(ability?.sends ?? 0, ability?.receives ?? 0)
    const say = (id: string, text: string): NetFinding => ({ gravity: 'risk', id, hosts: [name], text })
    return [
      ...(card.isHalfDuplex === true
        ? [
            say(
              'half-duplex',
              `${name}: ${card.name} has negotiated half duplex: it cannot send and receive at the same time`,
            ),
          ]
        : []),
      ...(link !== undefined && usual !== undefined && link < usual / 2
        ? [
            say(
              'slow-card',
              `${name}: ${card.name} has auto-negotiated ${formatBitRate(link)} only, the others ${formatBitRate(usual)}: its cable, or its port at the switch`,
            ),
          ]
        : []),
      ...(link !== undefined && best > 0 && best < LINK_USE * link
        ? [
            say(
              'below-card',
              `${name} reaches ${formatBitRate(best)} at best, ${percent(best / link)} of the ${formatBitRate(link)} that ${card.name} has negotiated`,
            ),
          ]
        : []),
    ]
  })
}

function frames(hosts: readonly ReadyHost[]): readonly NetFinding[] {
  const sizes = Map.groupBy(
    hosts.flatMap(({ name, place: { card } }) =>
      card?.mtuBytes === undefined || card.name === 'lo' ? [] : [{ name, size: card.mtuBytes, card: card.name }],
    ),
    ({ size }) => size,
  )
  if (sizes.size < 2) return []
  const groups = [...sizes].toSorted(([, one], [, other]) => other.length - one.length)
  const words = groups.map(([size, each]) => `${foldHostSet(each.map(({ name }) => name))} ${size}`)
  return [
    {
      gravity: 'risk',
      id: 'mtu-differs',
      hosts: groups.slice(1).flatMap(([, each]) => each.map(({ name }) => name)),
      text: `the MTU differs: ${words.join(', ')}: large packets may vanish between them`,
    },
  ]
}

function wholePackets({ pings }: MeshReport): readonly NetFinding[] {
  const cut = pings.filter(({ isWhole }) => isWhole === false)
  const byPair = Map.groupBy(cut, ({ from, to }) => JSON.stringify([from, to].toSorted()))
  return [...byPair.values()].slice(0, MAX_LINKS).map(([ping]) => {
    const { from = '', to = '' } = ping ?? {}
    return {
      gravity: 'risk',
      id: 'mtu-path',
      hosts: [from, to],
      text: `packets of the full MTU of ${from} and ${to} do not pass between them: a device on the path has a smaller MTU`,
    }
  })
}

function losses(links: readonly Rated[]): readonly NetFinding[] {
  const lossy = links
    .filter(({ outcome }) => (outcome.lostFraction ?? 0) > LOST)
    .toSorted((one, other) => (other.outcome.lostFraction ?? 0) - (one.outcome.lostFraction ?? 0))
  const resent = links
    .flatMap((link) => {
      const a = retransmitsAGigabyte(link.outcome)
      return a !== undefined && a > RETRANSMITS_A_GB ? [{ link, a }] : []
    })
    .toSorted((one, other) => other.a - one.a)
  const name = ({ from, to }: LinkResult) => `${from} → ${to}`
  const list = (words: readonly string[]) =>
    words.length <= 3 ? words.join(', ') : `${words.slice(0, 3).join(', ')} and ${words.length - 3} more`
  const ends = (all: readonly LinkResult[]) => [...new Set(all.flatMap(({ from, to }) => [from, to]))]
  return [
    ...(lossy.length === 0
      ? []
      : [
          {
            gravity: 'risk' as const,
            id: 'loss',
            hosts: ends(lossy),
            text: `packet loss: ${list(lossy.map((link) => `${name(link)} ${percent(link.outcome.lostFraction ?? 0)}`))}`,
          },
        ]),
    ...(resent.length === 0
      ? []
      : [
          {
            gravity: 'note' as const,
            id: 'retransmits',
            hosts: ends(resent.map(({ link }) => link)),
            text: `retransmits: ${list(resent.map(({ link, a }) => `${name(link)} ${Math.round(a)} a GB`))}`,
          },
        ]),
  ]
}

/** Undefined: unknown, or too little was sent. */
export function retransmitsAGigabyte({ retransmits, sentBytes }: Rated['outcome']): number | undefined {
  return retransmits === undefined || sentBytes === undefined || sentBytes < 1e6
    ? undefined
    : (retransmits / sentBytes) * 1e9
}

function processors(links: readonly Rated[]): readonly NetFinding[] {
  const busy = links.filter(({ outcome }) => (outcome.cpuFraction ?? 0) > BUSY_CPU)
  if (busy.length === 0) return []
  const names = [...new Set(busy.flatMap(({ from, to }) => [from, to]))]
  return [
    {
      gravity: 'note',
      id: 'cpu-bound',
      hosts: names,
      text: `on ${busy.length === 1 ? 'one link' : `${busy.length} links`} a processor was busy all the time (${foldHostSet(names)}): the network may be faster than this; --parallel-streams with iperf3 from 3.16 on uses more cores`,
    },
  ]
}

function slowAnswers(pings: MeshReport['pings']): readonly NetFinding[] {
  const times = pings.flatMap(({ meanMs }) => meanMs ?? [])
  const usual = median(times)
  const slow = pings.filter(
    ({ meanMs }) => meanMs !== undefined && usual !== undefined && meanMs > Math.max(2, 5 * usual),
  )
  const lossy = pings.filter(({ lostFraction }) => lostFraction > 0 && lostFraction < 1)
  const list = (all: typeof pings, words: (ping: (typeof pings)[number]) => string) =>
    `${all.slice(0, 3).map(words).join(', ')}${all.length > 3 ? ` and ${all.length - 3} more` : ''}`
  const ends = (all: typeof pings) => [...new Set(all.flatMap(({ from, to }) => [from, to]))]
  return [
    ...(slow.length === 0
      ? []
      : [
          {
            gravity: 'note' as const,
            id: 'slow-answers',
            hosts: ends(slow),
            text: `long round-trip times: ${list(slow, ({ from, to, meanMs = 0 }) => `${from} → ${to} ${formatMs(meanMs)}`)}; the median is ${formatMs(usual ?? 0)}`,
          },
        ]),
    ...(lossy.length === 0
      ? []
      : [
          {
            gravity: 'note' as const,
            id: 'lost-pings',
            hosts: ends(lossy),
            text: `pings lost on an idle network: ${list(lossy, ({ from, to, lostFraction }) => `${from} → ${to} ${percent(lostFraction)}`)}`,
          },
        ]),
  ]
}

/** What ssh does not measure. */
function plainOnes(links: readonly Rated[]): readonly NetFinding[] {
  const plain = links.filter(({ outcome }) => outcome.tool === 'ssh')
  if (plain.length === 0) return []
  const names = [...new Set(plain.flatMap(({ from, to }) => [from, to]))]
  return [
    {
      gravity: 'note',
      id: 'over-ssh',
      hosts: names,
      text: `${plain.length === 1 ? 'one link was' : `${plain.length} links were`} measured over ssh, as these hosts have no iperf in common: encryption may be the limit; jitter, loss and retransmits are unknown`,
    },
  ]
}

function percent(fraction: number): string {
  return `${fraction < 0.0995 ? Number((fraction * 100).toFixed(1)) : Math.round(fraction * 100)} %`
}

/** One finding for each host that is away, and one for each reason and receiver. */
function failures({ hosts, links }: MeshReport): readonly NetFinding[] {
  const failed = links.flatMap(({ from, to, outcome }) =>
    outcome.kind === 'failed' && outcome.cause !== 'cancelled' ? [{ from, to, ...outcome }] : [],
  )
  const aways = hosts.flatMap((host): NetFinding[] =>
    'facts' in host
      ? []
      : [
          {
            gravity: 'blocker',
            id: host.cause,
            hosts: [host.name],
            text: `${host.name} was not measured: ${host.reason}`,
          },
        ],
  )
  const known = new Set(aways.flatMap((finding) => finding.hosts))
  const lost = Map.groupBy(
    failed.filter(({ cause, from, to }) => cause === 'away' && !known.has(from) && !known.has(to)),
    ({ reason }) => reason,
  )
  const pairs = Map.groupBy(
    failed.filter(({ cause, from, to }) => cause !== 'away' && !known.has(from) && !known.has(to)),
    // Rates that are not known differ from sender to sender.
    ({ cause, to, from }) => (cause === 'unsteady' ? `${cause} ${to} ${from}` : `${cause} ${to}`),
  )
  return [
    ...aways,
    ...[...lost].map(
      ([reason, each]): NetFinding => ({
        gravity: 'blocker',
        id: 'lost',
        hosts: [...new Set(each.flatMap(({ from, to }) => [from, to]))].filter((name) => reason.startsWith(`${name}:`)),
        text: `lost while it was measured: ${reason} (${each.length} ${each.length === 1 ? 'link' : 'links'} not measured)`,
      }),
    ),
    ...[...pairs.values()].map((each): NetFinding => {
      const [first] = each
      const froms = each.map(({ from }) => from)
      const text = `${foldHostSet(froms)} → ${first?.to}: ${first?.reason}`
      const gravity = first?.cause === 'unsteady' ? 'risk' : 'blocker'
      return { gravity, id: first?.cause ?? 'broken', hosts: [...froms, first?.to ?? ''], text }
    }),
  ]
}
