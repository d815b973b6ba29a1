/** Kept results of pairs and of NFS mounts, and how a new one differs from the last of the same kind. */
import { counted } from '../../base/counted.ts'
import { notKept } from '../../base/errors.ts'
import { formatBitRate } from '../../base/format-bit-rate.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import { type Change, changeFindings } from './compare.ts'
import { type Environment, keepResult, kindOf, readResult, resultPaths, resultsDirectory } from './kept-results.ts'
import { asymmetryOf, belowRate, median, type NetFinding } from './mesh/judge.ts'
import { formatMs } from './mesh/link.ts'
import { udpRateOf } from './mesh/mesh-plan.ts'
import { type NfsRecord, newNfsRecord } from './nfs/measure-nfs.ts'
import { longestIdle, lostPings, newPairRecord, type PairRecord } from './pair/pair-record.ts'

const VERSION = 1
const MOST_VALUES = 100_000
const MOST_FAILURES = 100
const MOST_TEXT = 4096
/** A smaller change of a time may be chance. */
const TIME_FACTOR = 2

type Kept<K extends string, R> = {
  readonly version: typeof VERSION
  readonly kind: K
  /** ISO 8601 */
  readonly time: string
  /** What makes two measurements comparable, in words. */
  readonly way: string
  readonly record: R
}

export type KeptPair = Kept<'pair', PairRecord>
export type KeptNfs = Kept<'nfs', NfsRecord>
export type KeptTest = KeptPair | KeptNfs

export type TestConclusion = {
  readonly test: KeptTest
  readonly findings: readonly NetFinding[]
  /** The earlier result that it is compared with. */
  readonly last: KeptTest | undefined
  /** Why it was not kept. */
  readonly problem: string | undefined
}

export const pairTest = (record: PairRecord, way: string, timeMs: number): KeptPair => ({
  version: VERSION,
  kind: 'pair',
  time: new Date(timeMs).toISOString(),
  way,
  record,
})

/** A measurement shorter than a second has no full second: then its blocks make one rate. */
export function nfsTest(record: NfsRecord, timeMs: number): KeptNfs {
  const { writes, reads, pending } = record
  const rates = (values: number[], { bytes, seconds }: { readonly bytes: number; readonly seconds: number }) =>
    values.length === 0 && seconds > 0 ? [bytes / seconds] : values
  const whole = { ...record, writes: rates(writes, pending.write), reads: rates(reads, pending.read) }
  return { version: VERSION, kind: 'nfs', time: new Date(timeMs).toISOString(), way: 'nfs', record: whole }
}

export type SeriesUnit = 'bit/s' | 'B/s' | 'ms'

/** Measured values, one for each second or file. */
export type TestSeries = {
  readonly name: string
  readonly unit: SeriesUnit
  readonly values: readonly number[]
  readonly hosts: readonly string[]
}

export function seriesOf({ kind, record }: KeptTest): readonly TestSeries[] {
  if (kind === 'pair') {
    const { first, second, there, back, roundTrips } = record
    const hosts = [first, second]
    return [
      { name: `${first} → ${second}`, unit: 'bit/s', values: there, hosts },
      { name: `${second} → ${first}`, unit: 'bit/s', values: back, hosts },
      { name: 'round trip', unit: 'ms', values: roundTrips, hosts },
    ]
  }
  const { host, writes, reads, smallFiles } = record
  return [
    { name: 'write', unit: 'B/s', values: writes, hosts: [host] },
    { name: 'read', unit: 'B/s', values: reads, hosts: [host] },
    { name: 'small file', unit: 'ms', values: smallFiles, hosts: [host] },
  ]
}

/** Whether anything was measured. */
export const hasValues = (test: KeptTest): boolean => seriesOf(test).some(({ values }) => values.length > 0)

export function formatValue(value: number, unit: SeriesUnit): string {
  return unit === 'bit/s' ? formatBitRate(value) : unit === 'ms' ? formatMs(value) : `${formatBytes(value)}/s`
}

export const hostsOf = ({ kind, record }: KeptTest): readonly string[] =>
  kind === 'pair' ? [record.first, record.second] : [record.host]

/** Two results can be compared if this is equal: the same hosts or mount, measured the same way. */
function subjectOf(test: KeptTest): string {
  if (test.kind === 'pair') return JSON.stringify([test.kind, test.way, hostsOf(test).toSorted()])
  const { host, directory, mount, isCached } = test.record
  return JSON.stringify([test.kind, host, directory, mount?.source, isCached])
}

export const isSameTest = (one: KeptTest, other: KeptTest): boolean => subjectOf(one) === subjectOf(other)

export function judgeTest({ kind, record, way }: KeptTest): readonly NetFinding[] {
  if (kind !== 'pair') return []
  const { first, second } = record
  const [there, back] = [median(record.there), median(record.back)]
  const links = [
    { from: first, to: second, rate: there },
    { from: second, to: first, rate: back },
  ].flatMap(({ from, to, rate }) => (rate === undefined ? [] : [{ from, to, outcome: { bitsPerSecond: rate } }]))
  // Its rates say nothing about the link.
  const cut = interrupted(record)
  if (cut.length > 0) return cut
  return [...belowRate(links, udpRateOf(way)), ...asymmetry(first, second, there, back)]
}

/** A link that lost its host, or was busy. */
function interrupted(record: PairRecord): readonly NetFinding[] {
  const { first, second, there, back } = record
  // What a host that was away has not reported is missing in one direction.
  const missing = back.length === 0 ? 0 : Math.abs(there.length - back.length)
  const [idle, lost] = [Math.max(longestIdle(there), longestIdle(back), missing), lostPings(record)]
  if (Math.max(idle, lost) < LEAST_INTERRUPTION) return []
  const words = [
    ...(idle > 0 ? [`no traffic for ${idle} s`] : []),
    ...(lost > 0 ? [`no answer to ${counted(lost, 'ping')}`] : []),
  ]
  const text = `${first} ↔ ${second} was interrupted: ${words.join(', ')}`
  return [{ gravity: 'risk', id: 'interrupted', hosts: [first, second], text }]
}

/** Seconds; the directions do not end in the same one. */
const LEAST_INTERRUPTION = 3

function asymmetry(first: string, second: string, there: number | undefined, back: number | undefined) {
  if (there === undefined || back === undefined) return []
  const found =
    asymmetryOf({ from: first, to: second, rate: there, back }) ??
    asymmetryOf({ from: second, to: first, rate: back, back: there })
  return found === undefined ? [] : [found]
}

/** Compares medians: all rates, and times that are at least twice or half as long. Nothing of a link that was interrupted. */
export function compareTests(test: KeptTest, earlier: KeptTest, nowMs: number): readonly NetFinding[] {
  if ([test, earlier].some(({ kind, record }) => kind === 'pair' && interrupted(record).length > 0)) return []
  const old = new Map(seriesOf(earlier).map((series) => [series.name, series]))
  const changes = seriesOf(test).flatMap(({ name, unit, values, hosts }): Change[] => {
    const [now, was] = [median(values), median(old.get(name)?.values ?? [])]
    if (now === undefined || was === undefined || now <= 0 || was <= 0) return []
    const ratio = unit === 'ms' ? was / now : now / was
    if (unit === 'ms' && ratio < TIME_FACTOR && ratio > 1 / TIME_FACTOR) return []
    return [{ words: `${name} ${formatValue(was, unit)} → ${formatValue(now, unit)}`, hosts, ratio }]
  })
  return changeFindings(changes, Date.parse(earlier.time), nowMs, '')
}

/** Judges a measurement, compares it with the last one of the same kind, and keeps it if anything was measured. */
export function concludeTest(environment: Environment, test: KeptTest, nowMs: number): TestConclusion {
  const last = lastTest(environment, test)
  const findings = [...judgeTest(test), ...(last === undefined ? [] : compareTests(test, last, nowMs))]
  const conclusion = { test, findings, last }
  if (!hasValues(test)) return { ...conclusion, problem: undefined }
  try {
    keepResult(environment, test.kind, test.time, test)
    return { ...conclusion, problem: undefined }
  } catch (error) {
    return { ...conclusion, problem: notKept(resultsDirectory(environment), error) }
  }
}

function lastTest(environment: Environment, test: KeptTest): KeptTest | undefined {
  for (const path of resultPaths(environment, [test.kind])) {
    const kept = readTest(path)
    if (kept !== undefined && isSameTest(kept, test)) return kept
  }
  return undefined
}

/** Undefined: not a result, or one of a later version. */
export function readTest(path: string): KeptTest | undefined {
  const value = (readResult(path) ?? {}) as Partial<Record<keyof KeptTest, unknown>>
  const { version, kind, time, way } = value
  if (version !== VERSION || kind !== kindOf(path) || !isText(time) || !isText(way)) return undefined
  if (Number.isNaN(Date.parse(time))) return undefined
  const shared = { version: VERSION, time, way } as const
  const read = (value.record ?? {}) as Partial<Record<string, unknown>>
  const { failures } = read
  if (!Array.isArray(failures) || failures.length > MOST_FAILURES || !failures.every(isText)) return undefined
  if (kind === 'pair') {
    const { first, second, there, back, roundTrips } = read
    if (!isText(first) || !isText(second) || !isValues(there) || !isValues(back) || !isValues(roundTrips))
      return undefined
    const pings = isValues(read.pings) && read.pings.length === roundTrips.length ? read.pings : []
    return { ...shared, kind, record: { ...newPairRecord(first, second), there, back, roundTrips, pings, failures } }
  }
  const { host, directory, mount, isCached, writes, reads, smallFiles } = read
  if (!isText(host) || !isText(directory) || typeof isCached !== 'boolean') return undefined
  if (!isValues(writes) || !isValues(reads) || !isValues(smallFiles)) return undefined
  const { point, source, version: nfsVersion } = (mount ?? {}) as Partial<Record<string, unknown>>
  const known =
    isText(point) && isText(source)
      ? { point, source, ...(isText(nfsVersion) ? { version: nfsVersion } : {}) }
      : undefined
  const record = { ...newNfsRecord(host), directory, mount: known, isCached, writes, reads, smallFiles, failures }
  return { ...shared, kind: 'nfs', record }
}

const isText = (value: unknown): value is string => typeof value === 'string' && value.length <= MOST_TEXT

const isValues = (value: unknown): value is number[] =>
  Array.isArray(value) && value.length <= MOST_VALUES && value.every((each) => Number.isFinite(each) && each >= 0)
