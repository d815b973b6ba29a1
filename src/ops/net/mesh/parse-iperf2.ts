/**
 * What iperf 2 says with `-f b -e`. The client counts what it has handed to its kernel, which is far more than what has arrived
 * when the link is slow: TCP's rate is read from the server's report, everything else from the client's. UDP's server sends its
 * report to the client. Made for 2.1.8; its CSV has no sum, no retransmits and wrong times. Pure.
 */
import { amountOf } from '../amount.ts'
import type { Measured } from './link.ts'
import type { Parsed } from './parse-iperf3.ts'

/** `[  1] 0.0000-1.0239 sec  576716860 Bytes  4506146135 bits/sec  …`; columns that follow depend on the line. */
const REPORT = /^\[\s*(\d+|SUM)(?:-\d+)?\]\s+([\d.]+)-\s*([\d.]+) sec\s+(\d+) Bytes\s+(\d+) bits\/sec(?:\s+(.*))?$/

type Report = { readonly isSum: boolean; readonly bytes: number; readonly bitsPerSecond: number; readonly rest: string }

export function parseIperf2(client: string, server: string, isUdp: boolean): Parsed {
  return isUdp ? parseUdp(client) : parseTcp(client, server)
}

function parseTcp(client: string, server: string): Parsed {
  const arrived = total(reportsOf(server))
  if (arrived === undefined || arrived.bitsPerSecond === 0) return failed(client, server)
  const sent = reportsOf(client)
  const sum = total(sent)
  // `4400/0  2  2557K/3417(5816) us`: writes/errors, retransmits, window/round-trip time.
  const retransmits = amountOf(/^\d+\/\d+\s+(\d+)/.exec(sum?.rest ?? '')?.[1])
  const rtts = sent.flatMap(({ rest }) => amountOf(/K\/(\d+)(?:\(\d+\))? us/.exec(rest)?.[1]) ?? [])
  return {
    kind: 'measured',
    measured: {
      bitsPerSecond: arrived.bitsPerSecond,
      ...(sum === undefined ? {} : { sentBytes: sum.bytes }),
      ...(retransmits === undefined ? {} : { retransmits }),
      ...(rtts.length === 0 ? {} : { loadedRttMs: rtts.reduce((all, rtt) => all + rtt, 0) / rtts.length / 1000 }),
    },
  }
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

/** The sum where there is one, else the one stream; streams without a sum are added up. */
function total(reports: readonly Report[]): Report | undefined {
  const sum = reports.find(({ isSum }) => isSum)
  if (sum !== undefined || reports.length <= 1) return sum ?? reports[0]
  const add = (key: 'bytes' | 'bitsPerSecond') => reports.reduce((all, report) => all + report[key], 0)
  return { isSum: true, bytes: add('bytes'), bitsPerSecond: add('bitsPerSecond'), rest: '' }
}

function failed(client: string, server: string): Parsed {
  const said = /^.*(?:failed|error).*$/im.exec(`${client}\n${server}`)?.[0].trim()
  return { kind: 'failed', reason: said === undefined || said.length > 200 ? 'nothing arrived' : said }
}
