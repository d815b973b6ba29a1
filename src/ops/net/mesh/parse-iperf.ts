/** Parses the output of iperf3 and iperf 2. Pure. */
import { defined } from '../../../base/defined.ts'
import { parseJson } from '../../../base/json-lines.ts'
import { amountOf } from '../amount.ts'
import type { Measured } from './link.ts'

/** `saidBy`: whose words the reason is; undefined: ours. A program may say anything. */
export type IperfFailure = { readonly reason: string; readonly saidBy?: 'client' | 'server' }

export type Parsed =
  | { readonly kind: 'measured'; readonly measured: Measured }
  | ({ readonly kind: 'failed' } & IperfFailure)

/** Rates of one measurement that differ by more than this factor contradict each other. */
const DISPUTE = 1.25

/** `sent`: undefined or 0 if that is unknown. A host can claim any rate. The lowest one counts, so that none makes a link faster than the other end has seen it. */
function agreed(
  sent: number | undefined,
  ...arrived: readonly number[]
): Pick<Measured, 'bitsPerSecond' | 'disputedBitsPerSecond'> {
  const [least, most] = [Math.min(sent || Number.POSITIVE_INFINITY, ...arrived), Math.max(...arrived)]
  return { bitsPerSecond: least, ...(most > DISPUTE * least ? { disputedBitsPerSecond: most } : {}) }
}

/** `[SUM]   0.00-2.00   sec  2.73 GBytes  11689150 Kbits/sec                  receiver` */
const ARRIVED = /^\[\s*(\d+|SUM)\]\s+[\d.]+-\s*[\d.]+\s+sec\s+[\d.]+ \w+\s+([\d.]+) Kbits\/sec(?:\s.*)?\sreceiver$/

/** What the server of iperf3 (`-f k`) has received, in bits a second; undefined: it printed no report. */
function arrivedAt(server: string): number | undefined {
  const reports = server.split('\n').flatMap((line) => {
    const [, stream = '', rate] = ARRIVED.exec(line.trim()) ?? []
    const thousands = amountOf(rate)
    return thousands === undefined
      ? []
      : [{ isSum: stream === 'SUM', bytes: 0, bitsPerSecond: thousands * 1000, rest: '' }]
  })
  return total(reports)?.bitsPerSecond
}

/**
 * `iperf3 --json` of the client, and what the server printed (undefined: the client is believed). The client's exit code means
 * nothing (3.12 ends with 0 when it fails, 3.19 when it was killed): there is a result if the JSON is whole, has no `error`, and
 * both say that something arrived. Made for 3.12; fields that other versions lack are unknown, and servers of some report no
 * rate of UDP.
 */
export function parseIperf3(text: string, server?: { readonly text: string; readonly isUdp: boolean }): Parsed {
  const start = text.indexOf('{')
  const report = start < 0 ? undefined : parseJson(text.slice(start))
  if (report === undefined) {
    const said = text.trim().split('\n').at(-1) ?? ''
    if (said === '' || said.length > 200) return { kind: 'failed', reason: 'the answer of iperf3 is incomplete' }
    return { kind: 'failed', reason: said, saidBy: 'client' }
  }
  const error = at(report, 'error')
  if (typeof error === 'string') return { kind: 'failed', reason: error.slice(0, 200), saidBy: 'client' }
  const end = at(report, 'end')
  const udp = at(end, 'sum', 'lost_percent') === undefined ? undefined : at(end, 'sum')
  const lost = udp === undefined ? undefined : scale(numberAt(udp, 'lost_percent'), 0.01)
  const lostFraction = lost === undefined ? undefined : Math.min(1, lost)
  const received = numberAt(end, 'sum_received', 'bits_per_second')
  // Before sum_received, the sum of UDP was what was sent.
  const bitsPerSecond = received ?? scale(numberAt(udp, 'bits_per_second'), 1 - (lostFraction ?? 0))
  if (bitsPerSecond === undefined || !(bitsPerSecond > 0)) return { kind: 'failed', reason: 'nothing arrived' }
  const arrived = server && arrivedAt(server.text)
  if (server?.isUdp === false && !arrived)
    return { kind: 'failed', reason: 'the receiver reports that nothing arrived' }
  const rates = agreed(numberAt(end, 'sum_sent', 'bits_per_second'), bitsPerSecond, arrived || bitsPerSecond)
  const streams = at(end, 'streams')
  const rtts = (Array.isArray(streams) ? streams : []).flatMap((stream) => numberAt(stream, 'sender', 'mean_rtt') || [])
  const cpu = ['host_total', 'remote_total'].map((name) => numberAt(end, 'cpu_utilization_percent', name) ?? -1)
  const known = {
    sentBytes: numberAt(end, 'sum_sent', 'bytes'),
    retransmits: numberAt(end, 'sum_sent', 'retransmits'),
    jitterMs: numberAt(udp, 'jitter_ms'),
    lostFraction,
    loadedRttMs: meanMs(rtts),
    cpuFraction: scale(Math.max(...cpu), 0.01),
  }
  return { kind: 'measured', measured: { ...rates, ...defined(known) } }
}

/** Of times in microseconds. */
function meanMs(times: readonly number[]): number | undefined {
  return times.length === 0 ? undefined : times.reduce((sum, time) => sum + time, 0) / times.length / 1000
}

function at(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (inner, key) => (typeof inner === 'object' && inner !== null ? (inner as Record<string, unknown>)[key] : undefined),
    value,
  )
}

function numberAt(value: unknown, ...path: readonly string[]): number | undefined {
  const number = at(value, ...path)
  return typeof number === 'number' ? amountOf(number) : undefined
}

function scale(value: number | undefined, factor: number): number | undefined {
  return value === undefined || value < 0 ? undefined : value * factor
}

/** `[  1] 0.0000-1.0239 sec  576716860 Bytes  4506146135 bits/sec  …`; columns that follow depend on the line. */
const REPORT = /^\[\s*(\d+|SUM)(?:-\d+)?\]\s+([\d.]+)-\s*([\d.]+) sec\s+(\d+) Bytes\s+(\d+) bits\/sec(?:\s+(.*))?$/

type Report = { readonly isSum: boolean; readonly bytes: number; readonly bitsPerSecond: number; readonly rest: string }

/**
 * `-f b -e` of iperf 2. The client counts what it handed to its kernel, far more than what arrived on a slow link: TCP's rate comes
 * from the server's report, the rest from the client's. With UDP the server sends its report to the client. Made for 2.1.8; its CSV
 * has no sum, no retransmits and wrong times.
 */
export function parseIperf2(client: string, server: string, isUdp: boolean): Parsed {
  if (isUdp) return parseUdp(client)
  const arrived = total(reportsOf(server))
  if (arrived === undefined || arrived.bitsPerSecond === 0) return failed(client, server)
  const sent = reportsOf(client)
  const sum = total(sent)
  // `4400/0  2  2557K/3417(5816) us`: writes/errors, retransmits, window/round-trip time.
  const retransmits = amountOf(/^\d+\/\d+\s+(\d+)/.exec(sum?.rest ?? '')?.[1])
  const rtts = sent.flatMap(({ rest }) => amountOf(/K\/(\d+)(?:\(\d+\))? us/.exec(rest)?.[1]) ?? [])
  const known = defined({ sentBytes: sum?.bytes, retransmits, loadedRttMs: meanMs(rtts) })
  return { kind: 'measured', measured: { ...agreed(sum?.bitsPerSecond, arrived.bitsPerSecond), ...known } }
}

/** The lines after `Server Report:`, one a stream. */
function parseUdp(client: string): Parsed {
  const lines = client.split('\n')
  const reports = lines.flatMap((line, index) =>
    line.trimEnd().endsWith('Server Report:') ? reportsOf(lines.slice(index + 1, index + 3).join('\n')) : [],
  )
  if (reports.length === 0) return failed(client, '')
  let lost = 0
  let packets = 0
  let jitterMs = 0
  for (const { rest } of reports) {
    // `0.001 ms 0/1786 (0%)`
    const match = /^([\d.]+) ms\s+(\d+)\/\s*(\d+)/.exec(rest)
    jitterMs += (amountOf(match?.[1]) ?? 0) / reports.length
    lost += amountOf(match?.[2]) ?? 0
    packets += amountOf(match?.[3]) ?? 0
  }
  const measured: Measured = {
    bitsPerSecond: reports.reduce((sum, { bitsPerSecond }) => sum + bitsPerSecond, 0),
    jitterMs,
    ...(packets === 0 ? {} : { lostFraction: Math.min(1, lost / packets) }),
  }
  return measured.bitsPerSecond > 0 ? { kind: 'measured', measured } : { kind: 'failed', reason: 'nothing arrived' }
}

function reportsOf(text: string): Report[] {
  return text.split('\n').flatMap((line) => {
    const match = REPORT.exec(line.trimEnd())
    if (match === null) return []
    const [bytes, bitsPerSecond] = [amountOf(match[4]), amountOf(match[5])]
    if (bytes === undefined || bitsPerSecond === undefined) return []
    return [{ isSum: match[1] === 'SUM', bytes, bitsPerSecond, rest: match[6] ?? '' }]
  })
}

/** The line of the sum, or of the only stream; streams without a sum are added up. */
function total(reports: readonly Report[]): Report | undefined {
  const sum = reports.find(({ isSum }) => isSum)
  if (sum !== undefined || reports.length <= 1) return sum ?? reports[0]
  const add = (key: 'bytes' | 'bitsPerSecond') => reports.reduce((all, report) => all + report[key], 0)
  return { isSum: true, bytes: add('bytes'), bitsPerSecond: add('bitsPerSecond'), rest: '' }
}

function failed(client: string, server: string): Parsed {
  for (const [saidBy, text] of [
    ['client', client],
    ['server', server],
  ] as const) {
    const reason = /^.*(?:failed|error).*$/im.exec(text)?.[0].trim() ?? ''
    if (reason !== '' && reason.length <= 200) return { kind: 'failed', reason, saidBy }
  }
  return { kind: 'failed', reason: 'nothing arrived' }
}
