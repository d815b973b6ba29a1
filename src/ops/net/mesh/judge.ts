/**
 * Findings from the measurements of a mesh. A host can send as fast as its best outgoing link and receive as fast as its best
 * incoming one. A pair slower than both ends is a slow link; a host whose best is far below the others' is a slow host. Pure.
 */
import { counted } from '../../../base/counted.ts'
import { formatBitRate } from '../../../base/format-bit-rate.ts'
import { formatPercent } from '../../../base/format-percent.ts'
import { foldHostSet } from '../../../inventory/host-set.ts'
import { type Gravity, sortByGravity } from '../../kernel/finding.ts'
import { formatMs, type LinkResult, type Measured, type OrderedPair } from './link.ts'
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

type Ability = { readonly name: string; readonly sends?: number; readonly receives?: number }

export function measuredOf(links: readonly LinkResult[]): readonly Rated[] {
  return links.filter((link): link is Rated => link.outcome.kind === 'measured')
}

/** The fastest that each host was seen to send and to receive. */
function abilitiesOf(names: readonly string[], links: readonly LinkResult[]): readonly Ability[] {
  const measured = measuredOf(links)
  const best = (name: string, end: 'from' | 'to') =>
    measured.reduce((most, link) => (link[end] === name ? Math.max(most, link.outcome.bitsPerSecond) : most), 0)
  return names.map((name) => {
    const [sends, receives] = [best(name, 'from'), best(name, 'to')]
    return { name, ...(sends > 0 ? { sends } : {}), ...(receives > 0 ? { receives } : {}) }
  })
}

export function judgeMesh(report: MeshReport): readonly NetFinding[] {
  const { hosts, links, udpBitsPerSecond: asked } = report
  const ready = hosts.filter((host): host is ReadyHost => 'facts' in host)
  const measured = measuredOf(links)
  const names = hosts.map(({ name }) => name)
  const abilities = abilitiesOf(names, links)
  return sortByGravity([
    ...failures(report),
    ...disputes(measured),
    ...slowHosts(abilities, measured),
    ...slowLinks(abilities, measured),
    ...belowRate(measured, asked),
    // At a rate that was asked for, nothing shows what a card can do.
    ...cards(ready, asked === undefined ? abilities : []),
    ...frames(ready),
    ...wholePackets(report),
    ...losses(measured),
    ...limits(asked === undefined ? measured : measured.filter((link) => isBelow(link.outcome.bitsPerSecond, asked))),
    ...slowAnswers(report.pings),
    ...overSsh(measured),
  ])
}

/** One finding about all of these pairs; none without a pair. */
function aboutPairs(gravity: Gravity, id: string, pairs: readonly OrderedPair[], text: string): NetFinding[] {
  return pairs.length === 0 ? [] : [{ gravity, id, hosts: endsOf(pairs), text }]
}

export function endsOf(pairs: readonly OrderedPair[]): string[] {
  return [...new Set(pairs.flatMap(({ from, to }) => [from, to]))]
}

/** The first of them in words, and how many more there are. */
export function listed<P extends OrderedPair>(pairs: readonly P[], words: (pair: P) => string, most = 3): string {
  const shown = pairs.slice(0, most).map((pair) => `${pair.from} → ${pair.to} ${words(pair)}`)
  return `${shown.join(', ')}${pairs.length > most ? ` and ${pairs.length - most} more` : ''}`
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

function slowHosts(abilities: readonly Ability[], links: readonly Rated[]): readonly NetFinding[] {
  if (!isComparable(abilities)) return []
  // One link cannot tell a slow host from a slow path: a measurement may have been stopped early.
  const lonely = new Map<Rated, NetFinding>()
  const hosts = abilities.flatMap(({ name, sends, receives }): NetFinding[] => {
    const usualOf = (key: 'sends' | 'receives') =>
      median(abilities.flatMap((each) => (each.name === name ? [] : (each[key] ?? []))))
    const [usualSends, usualReceives] = [usualOf('sends'), usualOf('receives')]
    const isSlow = (end: 'from' | 'to', value: number | undefined, usual: number | undefined) => {
      if (value === undefined || usual === undefined || value >= SLOW * usual) return false
      const [link, ...others] = links.filter((each) => each[end] === name)
      if (link === undefined || others.length > 0) return true
      const text = `${link.from} → ${link.to} is slow: ${rate(value)}, the others usually ${rate(usual)}; too few other links were measured to tell why`
      lonely.set(link, { gravity: 'risk', id: 'slow-link', hosts: [link.from, link.to], text })
      return false
    }
    const [out, into] = [isSlow('from', sends, usualSends), isSlow('to', receives, usualReceives)]
    const risk = (id: string, text: string) =>
      ({ gravity: 'risk', id, hosts: [name], text: `${name} ${text}` }) as const
    const both = `is slow to and from all hosts: it sends at most ${rate(sends)} and receives at most ${rate(receives)}, the others usually ${rate(usualSends)}: its card, its cable or its port at the switch`
    if (out && into) return [risk('slow-host', both)]
    const sending = `sends slowly to all hosts: at most ${rate(sends)}, the others usually ${rate(usualSends)}${receives === undefined ? '' : `; it receives ${rate(receives)}`}`
    if (out) return [risk('slow-sender', sending)]
    const receiving = `receives slowly from all hosts: at most ${rate(receives)}, the others usually ${rate(usualReceives)}${sends === undefined ? '' : `; it sends ${rate(sends)}`}`
    return into ? [risk('slow-receiver', receiving)] : []
  })
  return [...hosts, ...lonely.values()]
}

const rate = (bitsPerSecond = 0) => formatBitRate(bitsPerSecond)

/** A host that claims a rate, or a program that counts wrongly. */
function disputes(links: readonly Rated[]): readonly NetFinding[] {
  const disputed = links.flatMap(({ from, to, outcome: { bitsPerSecond, disputedBitsPerSecond } }) =>
    disputedBitsPerSecond === undefined ? [] : [{ from, to, bitsPerSecond, disputedBitsPerSecond }],
  )
  const rates = listed(disputed, (link) => `${rate(link.bitsPerSecond)} or ${rate(link.disputedBitsPerSecond)}`)
  const text = `the two ends do not report the same rate, and the lower one counts: ${rates}`
  return aboutPairs('risk', 'disputed-rate', disputed, text)
}

/** Links that are slower than both of their ends, in both directions or in one. */
function slowLinks(abilities: readonly Ability[], links: readonly Rated[]): readonly NetFinding[] {
  const byName = new Map(abilities.map((ability) => [ability.name, ability]))
  const key = (from: string, to: string) => JSON.stringify([from, to])
  const rates = new Map(links.map(({ from, to, outcome }) => [key(from, to), outcome.bitsPerSecond]))
  const possible = ({ from, to }: OrderedPair) => Math.min(byName.get(from)?.sends ?? 0, byName.get(to)?.receives ?? 0)
  const findings: (NetFinding & { readonly part: number })[] = []
  const canCompare = isComparable(abilities)
  for (const link of links) {
    const { from, to, outcome } = link
    const own = outcome.bitsPerSecond
    const back = rates.get(key(to, from))
    const part = own / possible(link)
    const backPart = back === undefined ? 1 : back / possible({ from: to, to: from })
    const isBoth = part < SLOW && backPart < SLOW
    // One finding if both directions are slow.
    if (isBoth && from > to) continue
    if (part < SLOW) {
      const arrow = isBoth ? '↔' : '→'
      const rest = isBoth || back === undefined ? '' : `; ${to} → ${from} is not: ${rate(back)}`
      const text = `${from} ${arrow} ${to} is slow: ${rate(own)}, though with others both reach ${rate(possible(link))}: the path between these two${rest}`
      findings.push({ gravity: 'risk', id: 'slow-link', hosts: [from, to], text, part })
    } else if (back !== undefined && (!canCompare || part < backPart * (1 - ASYMMETRY))) {
      const finding = asymmetryOf({ from, to, rate: own, back })
      // With several hosts, the other links show which end is slow.
      if (finding !== undefined) findings.push({ ...finding, ...(canCompare ? { gravity: 'note' } : {}), part })
    }
  }
  const hosts = abilities.flatMap(({ name, sends, receives }): NetFinding[] => {
    if (sends === undefined || receives === undefined || !canCompare) return []
    const [less, more] = [Math.min(sends, receives), Math.max(sends, receives)]
    if (less >= more * (1 - ASYMMETRY) || less < SLOW * more) return []
    // One link cannot tell what a host can do.
    if ((['from', 'to'] as const).some((end) => links.filter((link) => link[end] === name).length < 2)) return []
    const text = `${name} sends at most ${rate(sends)} and receives at most ${rate(receives)}`
    return [{ gravity: 'note', id: 'asymmetric-host', hosts: [name], text }]
  })
  const worst = findings.toSorted((one, other) => one.part - other.part)
  const shown = worst.slice(0, MAX_LINKS).map(({ part: _, ...finding }) => finding)
  const left = worst.slice(MAX_LINKS)
  const text = `${left.length} more links are slower than expected`
  const names = [...new Set(left.flatMap((finding) => finding.hosts))]
  const more: NetFinding[] = left.length === 0 ? [] : [{ gravity: 'note', id: 'more-links', hosts: names, text }]
  return [...shown, ...more, ...hosts]
}

/** A direction that is slower than the other one by more than a fifth; undefined: it is not. */
export function asymmetryOf({
  from,
  to,
  rate: there,
  back,
}: OrderedPair & { readonly rate: number; readonly back: number }): NetFinding | undefined {
  if (there >= back * (1 - ASYMMETRY)) return undefined
  const gravity = there < SLOW * back ? 'risk' : 'note'
  const text = `${from} → ${to} is ${formatPercent(1 - there / back)} slower than ${to} → ${from}: ${rate(there)} against ${rate(back)}`
  return { gravity, id: 'asymmetric-link', hosts: [from, to], text }
}

/** What arrives of UDP, in parts of what was sent; less is a loss. */
const DELIVERED = 0.9

const isBelow = (bitsPerSecond: number, asked: number): boolean => bitsPerSecond < DELIVERED * asked

/** Links on which less of UDP arrived than was asked for; undefined: it was TCP. */
export function belowRate(
  links: readonly (OrderedPair & { readonly outcome: Pick<Measured, 'bitsPerSecond'> })[],
  asked: number | undefined,
): readonly NetFinding[] {
  if (asked === undefined) return []
  const below = links
    .filter(({ outcome }) => isBelow(outcome.bitsPerSecond, asked))
    .toSorted((one, other) => one.outcome.bitsPerSecond - other.outcome.bitsPerSecond)
  const rates = listed(below, ({ outcome }) => rate(outcome.bitsPerSecond))
  return aboutPairs('risk', 'below-rate', below, `less than the ${rate(asked)} of --udp arrived: ${rates}`)
}

/** What the network cards report, apart from measurements. */
function cards(hosts: readonly ReadyHost[], abilities: readonly Ability[]): readonly NetFinding[] {
  const usual = median(hosts.flatMap(({ place }) => place.card?.linkBitsPerSecond ?? []))
  return hosts.flatMap(({ name, place: { card } }): NetFinding[] => {
    if (card === undefined) return []
    const link = card.linkBitsPerSecond ?? 0
    const ability = abilities.find((each) => each.name === name)
    const best = Math.max(ability?.sends ?? 0, ability?.receives ?? 0)
    const negotiated = `${name}: ${card.name} has negotiated`
    const judgements: readonly (readonly [isSo: boolean, id: string, text: string])[] = [
      [
        card.isHalfDuplex === true,
        'half-duplex',
        `${negotiated} half duplex: it cannot send and receive at the same time`,
      ],
      [
        link > 0 && usual !== undefined && link < usual / 2,
        'slow-card',
        `${name}: ${card.name} has auto-negotiated ${rate(link)} only, the others ${rate(usual)}: its cable, or its port at the switch`,
      ],
      [
        best > 0 && best < LINK_USE * link,
        'below-card',
        `${name} reaches ${rate(best)} at best, ${formatPercent(best / link)} of the ${rate(link)} that ${card.name} has negotiated`,
      ],
    ]
    return judgements.flatMap(([isSo, id, text]) => (isSo ? { gravity: 'risk', id, hosts: [name], text } : []))
  })
}

function frames(hosts: readonly ReadyHost[]): readonly NetFinding[] {
  const real = hosts.filter(({ place: { card } }) => card?.mtuBytes !== undefined && card.name !== 'lo')
  const sizes = Map.groupBy(real, ({ place }) => place.card?.mtuBytes)
  if (sizes.size < 2) return []
  const groups = [...sizes]
    .toSorted(([, one], [, other]) => other.length - one.length)
    .map(([size, group]) => ({ size, names: group.map(({ name }) => name) }))
  const words = groups.map(({ size, names }) => `${foldHostSet(names)} ${size}`)
  const text = `the MTU differs: ${words.join(', ')}: large packets may vanish between them`
  return [{ gravity: 'risk', id: 'mtu-differs', hosts: groups.slice(1).flatMap(({ names }) => names), text }]
}

function wholePackets({ pings }: MeshReport): readonly NetFinding[] {
  const cut = pings.filter(({ isWhole }) => isWhole === false)
  const byPair = Map.groupBy(cut, ({ from, to }) => JSON.stringify([from, to].toSorted()))
  return [...byPair.values()].slice(0, MAX_LINKS).map(([ping]) => {
    const { from = '', to = '' } = ping ?? {}
    const text = `packets of the full MTU of ${from} and ${to} do not pass between them: a device on the path has a smaller MTU`
    return { gravity: 'risk', id: 'mtu-path', hosts: [from, to], text }
  })
}

function losses(links: readonly Rated[]): readonly NetFinding[] {
  const above = (most: number, amount: (outcome: Rated['outcome']) => number | undefined) =>
    links
      .map(({ from, to, outcome }) => ({ from, to, value: amount(outcome) ?? 0 }))
      .filter(({ value }) => value > most)
      .toSorted((one, other) => other.value - one.value)
  const lossy = above(LOST, ({ lostFraction }) => lostFraction)
  const resent = above(RETRANSMITS_A_GB, retransmitsAGigabyte)
  const lost = `packet loss: ${listed(lossy, ({ value }) => formatPercent(value))}`
  const again = `retransmits: ${listed(resent, ({ value }) => `${Math.round(value)} a GB`)}`
  return [...aboutPairs('risk', 'loss', lossy, lost), ...aboutPairs('note', 'retransmits', resent, again)]
}

/** Undefined: unknown, or too little was sent. */
export function retransmitsAGigabyte({ retransmits, sentBytes }: Rated['outcome']): number | undefined {
  return retransmits === undefined || sentBytes === undefined || sentBytes < 1e6
    ? undefined
    : (retransmits / sentBytes) * 1e9
}

function limits(links: readonly Rated[]): readonly NetFinding[] {
  const busy = links.filter(({ outcome }) => (outcome.cpuFraction ?? 0) > BUSY_CPU)
  const where = busy.length === 1 ? 'one link' : `${busy.length} links`
  const text = `on ${where} a processor was busy all the time (${foldHostSet(endsOf(busy))}): the network may be faster than this; --parallel-streams with iperf3 from 3.16 on uses more cores`
  return aboutPairs('note', 'cpu-bound', busy, text)
}

function slowAnswers(pings: MeshReport['pings']): readonly NetFinding[] {
  const usual = median(pings.flatMap(({ meanMs }) => meanMs ?? [])) ?? 0
  const slow = pings.filter(({ meanMs = 0 }) => meanMs > Math.max(2, 5 * usual))
  const lossy = pings.filter(({ lostFraction }) => lostFraction > 0 && lostFraction < 1)
  const long = `long round-trip times: ${listed(slow, ({ meanMs = 0 }) => formatMs(meanMs))}; the median is ${formatMs(usual)}`
  const lost = `pings lost on an idle network: ${listed(lossy, ({ lostFraction }) => formatPercent(lostFraction))}`
  return [...aboutPairs('note', 'slow-answers', slow, long), ...aboutPairs('note', 'lost-pings', lossy, lost)]
}

/** What ssh does not measure. */
function overSsh(links: readonly Rated[]): readonly NetFinding[] {
  const plain = links.filter(({ outcome }) => outcome.tool === 'ssh')
  const were = plain.length === 1 ? 'one link was' : `${plain.length} links were`
  const text = `${were} measured over ssh, without iperf: encryption may be the limit; jitter, loss and retransmits are unknown`
  return aboutPairs('note', 'over-ssh', plain, text)
}

/** For a report without findings. */
export function noProblemsText({ links }: Pick<MeshReport, 'links'>): string {
  const measured = measuredOf(links).length
  if (measured === 0) return 'nothing was measured'
  return measured === links.length ? 'no problems found' : `no problems in the ${counted(measured, 'link')} measured`
}

/** One finding for each host that is away, and one for each reason and receiver. */
function failures({ hosts, links }: MeshReport): readonly NetFinding[] {
  const failed = links.flatMap(({ from, to, outcome }) =>
    outcome.kind === 'failed' && outcome.cause !== 'cancelled' ? [{ from, to, ...outcome }] : [],
  )
  const aways = hosts.flatMap((host): NetFinding[] => {
    if ('facts' in host) return []
    const text = `${host.name} was not measured: ${host.reason}`
    return [{ gravity: 'blocker', id: host.cause, hosts: [host.name], text }]
  })
  const known = new Set(aways.flatMap((finding) => finding.hosts))
  const others = failed.filter(({ from, to }) => !known.has(from) && !known.has(to))
  const [away, here] = [true, false].map((isAway) => others.filter(({ cause }) => (cause === 'away') === isAway))
  const lost = Map.groupBy(away ?? [], ({ reason }) => reason)
  // Rates that are not known differ from sender to sender.
  const pairs = Map.groupBy(here ?? [], ({ cause, to, from }) =>
    cause === 'unsteady' ? `${cause} ${to} ${from}` : `${cause} ${to}`,
  )
  return [
    ...aways,
    ...[...lost].map(([reason, each]): NetFinding => {
      const names = endsOf(each).filter((name) => reason.startsWith(`${name}:`))
      const [name] = names
      const why =
        name === undefined
          ? reason
          : reason
              .slice(name.length + 1)
              .trim()
              .replace(/^lost: /, '')
      const text = `${name ?? 'a host'} was lost while it was measured (${why}); ${counted(each.length, 'link')} not measured`
      return { gravity: 'blocker', id: 'lost', hosts: names, text }
    }),
    ...[...pairs.values()].map((each): NetFinding => {
      const [first] = each
      const froms = each.map(({ from }) => from)
      const text = `${foldHostSet(froms)} → ${first?.to}: ${first?.reason}`
      const gravity = first?.cause === 'unsteady' ? 'risk' : 'blocker'
      return { gravity, id: first?.cause ?? 'broken', hosts: [...froms, first?.to ?? ''], text }
    }),
  ]
}
