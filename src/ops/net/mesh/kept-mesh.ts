/** Earlier results, and how the new ones differ: `$XDG_STATE_HOME/muster/net/mesh-TIME.json`, mode 0600. */
import { readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { notKept } from '../../../base/errors.ts'
import { foreignDirectory, makeOwnDirectories } from '../../../base/foreign-place.ts'
import { formatBitRate } from '../../../base/format-bit-rate.ts'
import { timeText } from '../../../base/time-text.ts'
import { stateDirectory } from '../../../base/user-directories.ts'
import { endsOf, judgeMesh, listed, measuredOf, median, type NetFinding } from './judge.ts'
import type { LinkOutcome, LinkResult } from './link.ts'
import type { MeshHost, MeshReport } from './measure-mesh.ts'
import type { PingResult } from './scripts.ts'

const VERSION = 1
const KEPT = 200
const CHANGE = 0.2
const SHOWN = 6
/** A result of 64 hosts has 1 MB. */
const MOST_BYTES = 2 ** 24

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

type Environment = Readonly<Record<string, string | undefined>>

export function meshDirectory(environment: Environment): string {
  return join(stateDirectory(environment), 'net')
}

/** @throws when the directory cannot be written. */
export function keepMesh(
  environment: Environment,
  { links, pings }: MeshReport,
  way: string,
  timeMs: number,
  place: MeshPlace,
): string {
  const directory = meshDirectory(environment)
  makeOwnDirectories(directory)
  const time = new Date(timeMs).toISOString()
  const path = join(directory, `mesh-${time.replaceAll(':', '-')}.json`)
  const kept: KeptMesh = { version: VERSION, time, way, links, pings, ...place }
  writeFileSync(`${path}.${process.pid}`, JSON.stringify(kept), { mode: 0o600 })
  renameSync(`${path}.${process.pid}`, path)
  for (const name of filesIn(directory).slice(0, -KEPT)) rmSync(join(directory, name), { force: true })
  return path
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
    return { findings, last, problem: notKept(meshDirectory(environment), error) }
  }
}

/** The paths of all kept results, newest first. */
export function keptMeshes(environment: Environment): readonly string[] {
  const directory = meshDirectory(environment)
  return filesIn(directory)
    .toReversed()
    .map((name) => join(directory, name))
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
  return { hosts: hosts.toSorted((one, other) => byName.compare(one.name, other.name)), links, pings }
}

const byName = new Intl.Collator('en', { numeric: true })

/** The newest result with the same settings and a common pair. Files of others are skipped. */
export function lastMesh(environment: Environment, way: string, names: readonly string[]): KeptMesh | undefined {
  const directory = meshDirectory(environment)
  const wanted = new Set(names)
  for (const name of filesIn(directory).toReversed()) {
    const kept = readKept(join(directory, name))
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
  const directory = meshDirectory(environment)
  for (const name of filesIn(directory).slice(-MOST_READ).toReversed()) {
    const kept = readKept(join(directory, name))
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

function filesIn(directory: string): string[] {
  try {
    if (foreignDirectory(directory) !== undefined) return []
    return readdirSync(directory)
      .filter((name) => /^mesh-[\dTZ.-]+\.json$/.test(name))
      .toSorted()
  } catch {
    return []
  }
}

/** Undefined: not a result, or one of a later version. */
export function readKept(path: string): KeptMesh | undefined {
  try {
    if (statSync(path).size > MOST_BYTES) return undefined
    const value = JSON.parse(readFileSync(path, 'utf8')) as Partial<KeptMesh>
    const isOurs = value.version === VERSION && typeof value.time === 'string' && typeof value.way === 'string'
    if (!isOurs || !Array.isArray(value.links) || !value.links.every(isLink)) return undefined
    // Files of earlier versions have no addresses.
    const { addresses = {}, pings } = value
    const isPlain = typeof addresses === 'object' && addresses !== null
    const known = Array.isArray(pings) ? pings.filter(isPing) : []
    return isPlain ? { ...(value as KeptMesh), pings: known } : undefined
  } catch {
    return undefined
  }
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
  const since = timeText(Date.parse(time), nowMs)
  const old = new Map(earlier.map((link) => [JSON.stringify([link.from, link.to]), link.outcome]))
  const ratios: number[] = []
  const changes = measuredOf(links).flatMap(({ from, to, outcome }) => {
    const before = old.get(JSON.stringify([from, to]))
    if (before?.kind !== 'measured' || before.bitsPerSecond <= 0) return []
    const ratio = outcome.bitsPerSecond / before.bitsPerSecond
    ratios.push(ratio)
    return [{ from, to, was: before.bitsPerSecond, now: outcome.bitsPerSecond, ratio }]
  })
  const middle = median(ratios)
  if (middle === undefined) return []
  const tell = (all: typeof changes, isSlower: boolean): NetFinding[] => {
    if (all.length === 0) return []
    const sorted = all.toSorted((one, other) => (isSlower ? one.ratio - other.ratio : other.ratio - one.ratio))
    const words = listed(sorted, ({ was, now }) => `${formatBitRate(was)} → ${formatBitRate(now)}`, SHOWN)
    const [gravity, id] = isSlower ? (['risk', 'slower'] as const) : (['note', 'faster'] as const)
    return [{ gravity, id: `${id}-than-before`, hosts: endsOf(all), text: `${id} than at ${since}: ${words}` }]
  }
  const slower = changes.filter(({ ratio }) => ratio < 1 - CHANGE)
  const faster = changes.filter(({ ratio }) => ratio > 1 / (1 - CHANGE))
  if (slower.length > 0 || faster.length > 0) return [...tell(slower, true), ...tell(faster, false)]
  const text = `as fast as at ${since}, within ${CHANGE * 100} % on every link`
  return [{ gravity: 'note', id: 'as-before', hosts: [], text }]
}
