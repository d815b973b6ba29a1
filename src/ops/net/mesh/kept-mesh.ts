/** Earlier results, and how the new ones differ. */
import { notKept } from '../../../base/errors.ts'
import { formatBitRate } from '../../../base/format-bit-rate.ts'
import { naturalOrder } from '../../../base/natural-order.ts'
import { type Change, changeFindings } from '../compare.ts'
import { type Environment, keepResult, readResult, resultPaths, resultsDirectory } from '../kept-results.ts'
import { judgeMesh, measuredOf, type NetFinding } from './judge.ts'
import type { LinkOutcome, LinkResult } from './link.ts'
import type { MeshHost, MeshReport } from './measure-mesh.ts'
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
} & Partial<MeshPlace>

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
  { links, pings }: MeshReport,
  way: string,
  timeMs: number,
  place: MeshPlace,
): string {
  const time = new Date(timeMs).toISOString()
  const kept: KeptMesh = { version: VERSION, time, way, links, pings, ...place }
  return keepResult(environment, 'mesh', time, kept)
}

export type MeshConclusion = {
  readonly findings: readonly NetFinding[]
  /** The result that it is compared with. */
  readonly last: KeptMesh | undefined
  /** Why it was not kept. */
  readonly problem: string | undefined
}

/** Judges a measurement, compares it with the last one of the same kind, and keeps it if anything was measured. */
export function concludeMesh(
  environment: Environment,
  report: MeshReport,
  way: string,
  timeMs: number,
  place: MeshPlace,
): MeshConclusion {
  const names = report.hosts.map(({ name }) => name)
  const last = lastMesh(environment, way, names)
  const findings = [...judgeMesh(report), ...(last === undefined ? [] : compareMesh(report.links, last, timeMs))]
  if (measuredOf(report.links).length === 0) return { findings, last, problem: undefined }
  try {
    keepMesh(environment, report, way, timeMs, place)
    return { findings, last, problem: undefined }
  } catch (error) {
    return { findings, last, problem: notKept(resultsDirectory(environment), error) }
  }
}

/** As `judgeMesh` and the pictures take it. What was read from the hosts is not kept. */
export function reportOfKept({ links, pings }: KeptMesh): MeshReport {
  const names = [...new Set(links.flatMap(({ from, to }) => [from, to]))]
  const tried = Map.groupBy(links, ({ from }) => from)
  const hosts = names.map((name): MeshHost => {
    const reasons = (tried.get(name) ?? []).map(({ outcome }) =>
      outcome.kind === 'failed' && outcome.cause === 'away' ? outcome.reason : undefined,
    )
    const [reason] = reasons
    if (reason?.startsWith(`${name}: `) && reasons.every((each) => each === reason))
      return { name, cause: 'away', reason: reason.slice(name.length + 2) }
    return { name, facts: { addresses: [], cards: [], hasPing: false, hasTimeout: false }, place: { address: '' } }
  })
  return { hosts: hosts.toSorted((one, other) => naturalOrder(one.name, other.name)), links, pings }
}

/** The newest result with the same settings and a common pair. Files of others are skipped. */
export function lastMesh(environment: Environment, way: string, names: readonly string[]): KeptMesh | undefined {
  const wanted = new Set(names)
  for (const path of resultPaths(environment, ['mesh'])) {
    const kept = readKept(path)
    const isSame =
      kept?.way === way && measuredOf(kept.links).some(({ from, to }) => wanted.has(from) && wanted.has(to))
    if (isSame) return kept
  }
  return undefined
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
  if (!isOurs || !Array.isArray(value.links) || !value.links.every(isLink)) return undefined
  // Files of earlier versions have no addresses.
  const { addresses = {}, pings } = value
  const isPlain = typeof addresses === 'object' && addresses !== null
  const known = Array.isArray(pings) ? pings.filter(isPing) : []
  return isPlain ? { ...(value as KeptMesh), pings: known } : undefined
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

/** The differences. Pure. */
export function compareMesh(
  links: readonly LinkResult[],
  { time, links: earlier }: KeptMesh,
  nowMs: number,
): readonly NetFinding[] {
  const old = new Map(earlier.map((link) => [JSON.stringify([link.from, link.to]), link.outcome]))
  const changes = measuredOf(links).flatMap(({ from, to, outcome }): Change[] => {
    const before = old.get(JSON.stringify([from, to]))
    if (before?.kind !== 'measured' || before.bitsPerSecond <= 0) return []
    const words = `${from} → ${to} ${formatBitRate(before.bitsPerSecond)} → ${formatBitRate(outcome.bitsPerSecond)}`
    return [{ words, hosts: [from, to], ratio: outcome.bitsPerSecond / before.bitsPerSecond }]
  })
  return changeFindings(changes, Date.parse(time), nowMs, ' on every link')
}
