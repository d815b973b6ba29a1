/** Earlier results, and how the new ones differ. */
import { defined } from '../../../base/defined.ts'
import { notKept } from '../../../base/errors.ts'
import { formatBitRate } from '../../../base/format-bit-rate.ts'
import { naturalOrder } from '../../../base/natural-order.ts'
import { sortByGravity } from '../../kernel/finding.ts'
import { type Change, changeFindings } from '../compare.ts'
import { type Environment, keepResult, readResult, resultPaths, resultsDirectory } from '../kept-results.ts'
import type { NetworkCard } from './host-facts.ts'
import { judgeMesh, measuredOf, type NetFinding } from './judge.ts'
import type { LinkOutcome, LinkResult, OrderedPair } from './link.ts'
import type { MeshHost, MeshReport } from './measure-mesh.ts'
import { udpRateOf } from './mesh-plan.ts'
import type { PingResult } from './scripts.ts'

const VERSION = 1

export type KeptMesh = {
  readonly version: typeof VERSION
  /** ISO 8601 */
  readonly time: string
  /** What makes two measurements comparable, as one word. */
  readonly way: string
  readonly links: readonly LinkResult[]
  readonly pings: readonly PingResult[]
  readonly cards?: Cards
} & Partial<MeshPlace>

/** The card that was measured, by host. */
type Cards = Readonly<Record<string, NetworkCard>>

/** What was measured, so that it is not taken for other hosts of the same names. */
export type MeshPlace = {
  /** As hosts.yaml declares them, or names, by host. */
  readonly addresses: Readonly<Record<string, string>>
  /** The interface or network that was measured, if it was not the one that SSH connects to. */
  readonly at?: string
}

/** @throws when the directory cannot be written. */
export function keepMesh(
  environment: Environment,
  { hosts, links, pings }: MeshReport,
  way: string,
  timeMs: number,
  place: MeshPlace,
): string {
  const time = new Date(timeMs).toISOString()
  const cards = Object.fromEntries(
    hosts.flatMap((host) => ('facts' in host && host.place.card !== undefined ? [[host.name, host.place.card]] : [])),
  )
  const kept: KeptMesh = { version: VERSION, time, way, links, pings, cards, ...place }
  return keepResult(environment, 'mesh', time, kept)
}

export type MeshConclusion = {
  readonly findings: readonly NetFinding[]
  /** What it is compared with. */
  readonly earlier: EarlierLinks | undefined
  /** Why it was not kept. */
  readonly problem: string | undefined
}

/** Judges a measurement, compares each link with its last measurement of the same kind, and keeps it if anything was measured. */
export function concludeMesh(
  environment: Environment,
  report: MeshReport,
  way: string,
  timeMs: number,
  place: MeshPlace,
): MeshConclusion {
  const found = earlierLinks(report.links, keptBefore(environment, way))
  const earlier = found.timesMs.length === 0 ? undefined : found
  const findings = [...judgeMesh(report), ...compareMesh(report.links, found, timeMs)]
  if (measuredOf(report.links).length === 0) return { findings, earlier, problem: undefined }
  try {
    keepMesh(environment, report, way, timeMs, place)
    return { findings, earlier, problem: undefined }
  } catch (error) {
    return { findings, earlier, problem: notKept(resultsDirectory(environment), error) }
  }
}

/** As `judgeMesh` and the pictures take it. Of what was read from the hosts, only their cards are kept. */
export function reportOfKept({ way, links, pings, cards = {} }: KeptMesh): MeshReport {
  const cardOf = new Map(Object.entries(cards))
  const names = [...new Set(links.flatMap(({ from, to }) => [from, to]))]
  const tried = Map.groupBy(links, ({ from }) => from)
  const hosts = names.map((name): MeshHost => {
    const [first, ...others] = (tried.get(name) ?? []).map(({ outcome }) => outcome)
    const { cause, reason } = first?.kind === 'failed' ? first : {}
    const isOfHost = (cause === 'away' || cause === 'no-address') && reason?.startsWith(`${name}: `) === true
    if (isOfHost && others.every((other) => other.kind === 'failed' && other.reason === reason))
      return { name, cause, reason: reason.slice(name.length + 2) }
    const facts = { addresses: [], cards: [], hasPing: false, hasTimeout: false }
    return { name, facts, place: { address: '', ...defined({ card: cardOf.get(name) }) } }
  })
  const sorted = hosts.toSorted((one, other) => naturalOrder(one.name, other.name))
  return { hosts: sorted, links, pings, ...defined({ udpBitsPerSecond: udpRateOf(way) }) }
}

/** The results with the same settings, newest first. Files of others are skipped. */
function* keptBefore(environment: Environment, way: string): Iterable<KeptMesh> {
  for (const path of resultPaths(environment, ['mesh']).slice(0, MOST_READ)) {
    const kept = readKept(path)
    if (kept?.way === way) yield kept
  }
}

/** The last measurements of links. */
export type EarlierLinks = {
  /** Of the results that they are from, newest first. */
  readonly timesMs: readonly number[]
  of(pair: OrderedPair): { readonly bitsPerSecond: number; readonly timeMs: number } | undefined
}

const keyOf = ({ from, to }: OrderedPair) => JSON.stringify([from, to])

/** Each of these links in the newest result that has it. Reads no more results than it needs. */
export function earlierLinks(links: readonly OrderedPair[], newestFirst: Iterable<KeptMesh>): EarlierLinks {
  const missing = new Set(links.map(keyOf))
  const found = new Map<string, { readonly bitsPerSecond: number; readonly timeMs: number }>()
  for (const kept of newestFirst) {
    const timeMs = Date.parse(kept.time)
    for (const link of measuredOf(kept.links)) {
      const { bitsPerSecond } = link.outcome
      if (bitsPerSecond > 0 && missing.delete(keyOf(link))) found.set(keyOf(link), { bitsPerSecond, timeMs })
    }
    if (missing.size === 0) break
  }
  const timesMs = [...new Set([...found.values()].map(({ timeMs }) => timeMs))]
  return { timesMs: timesMs.toSorted((one, other) => other - one), of: (pair) => found.get(keyOf(pair)) }
}

const YOUNG_MS = 30 * 24 * 3_600_000
const MOST_READ = 50

export type MeasuredLinks = {
  readonly timeMs: number
  /** Bits a second; undefined: it could not be measured. */
  speed(from: string, to: string): number | undefined
}

/**
 * The newest result of the last 30 days that measured every link between these hosts over TCP, at the addresses that they still
 * have. `addresses`: as in `MeshPlace`.
 */
export function measuredLinks(
  environment: Environment,
  addresses: ReadonlyMap<string, string>,
  at: string | undefined,
  nowMs: number,
): MeasuredLinks | undefined {
  for (const path of resultPaths(environment, ['mesh']).slice(0, MOST_READ)) {
    const kept = readKept(path)
    const timeMs = Date.parse(kept?.time ?? '')
    if (kept?.addresses === undefined || kept.at !== at || !/^tcp\b/.test(kept.way)) continue
    if (!(nowMs - timeMs < YOUNG_MS)) continue
    const known = new Map(Object.entries(kept.addresses))
    if ([...addresses].some(([host, address]) => known.get(host) !== address)) continue
    const speeds = new Map<string, ReadonlyMap<string, number | undefined>>()
    for (const [from, links] of Map.groupBy(kept.links, (link) => link.from)) {
      const tried = links.filter(({ outcome }) => outcome.kind === 'measured' || outcome.cause !== 'cancelled')
      speeds.set(from, new Map(tried.map(({ to, outcome }) => [to, speedOf(outcome)])))
    }
    const hosts = [...addresses.keys()]
    const isWhole = hosts.every((from) => hosts.every((to) => from === to || speeds.get(from)?.has(to) === true))
    if (isWhole) return { timeMs, speed: (from, to) => speeds.get(from)?.get(to) }
  }
  return undefined
}

const speedOf = (outcome: LinkOutcome) => (outcome.kind === 'measured' ? outcome.bitsPerSecond : undefined)

/** Undefined: not a result, or one of a later version. */
export function readKept(path: string): KeptMesh | undefined {
  const value = (readResult(path) ?? {}) as Partial<KeptMesh>
  const isOurs = value.version === VERSION && typeof value.time === 'string' && typeof value.way === 'string'
  if (
    !isOurs ||
    Number.isNaN(Date.parse(value.time ?? '')) ||
    !Array.isArray(value.links) ||
    !value.links.every(isLink)
  )
    return undefined
  // Files of earlier versions have no addresses.
  const { addresses = {}, pings } = value
  const isPlain = typeof addresses === 'object' && addresses !== null
  const known = Array.isArray(pings) ? pings.filter(isPing) : []
  return isPlain ? { ...(value as KeptMesh), pings: known, cards: cardsOf(value.cards) } : undefined
}

/** Those that are cards. */
function cardsOf(value: unknown): Cards {
  const all = typeof value === 'object' && value !== null ? Object.entries(value) : []
  return Object.fromEntries(all.filter(([, card]) => isCard(card)))
}

function isCard(value: unknown): value is NetworkCard {
  const { name, mtuBytes = 0, linkBitsPerSecond = 0 } = (value ?? {}) as Partial<NetworkCard>
  return typeof name === 'string' && typeof mtuBytes === 'number' && typeof linkBitsPerSecond === 'number'
}

function isLink(value: unknown): value is LinkResult {
  const link = value as Partial<LinkResult> | null
  const { outcome } = link ?? {}
  if (typeof link?.from !== 'string' || typeof link.to !== 'string' || outcome === undefined) return false
  return outcome.kind === 'failed' ? typeof outcome.reason === 'string' : typeof outcome.bitsPerSecond === 'number'
}

function isPing(value: unknown): value is PingResult {
  const { from, to, lostFraction } = (value ?? {}) as Partial<PingResult>
  return typeof from === 'string' && typeof to === 'string' && typeof lostFraction === 'number'
}

/** The differences, by the time of what they are compared with. Pure. */
export function compareMesh(links: readonly LinkResult[], earlier: EarlierLinks, nowMs: number): readonly NetFinding[] {
  const measured = measuredOf(links)
  const findings = earlier.timesMs.flatMap((timeMs) => {
    const changes = measured.flatMap((link): Change[] => {
      const { from, to, outcome } = link
      const before = earlier.of(link)
      if (before?.timeMs !== timeMs) return []
      const words = `${from} → ${to} ${formatBitRate(before.bitsPerSecond)} → ${formatBitRate(outcome.bitsPerSecond)}`
      return [{ words, hosts: [from, to], ratio: outcome.bitsPerSecond / before.bitsPerSecond }]
    })
    const { length } = changes
    const where = length === measured.length ? ' on every link' : ` on ${length} of ${measured.length} links`
    return changeFindings(changes, timeMs, nowMs, where)
  })
  return sortByGravity(findings)
}
