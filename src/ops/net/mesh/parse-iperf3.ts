/**
 * What `iperf3 --json` says at the client's end. Its exit code says nothing (3.12 ends with 0 when it fails, 3.19 when it was
 * killed): there is a result when the JSON is whole, has no `error`, and something arrived. Made for 3.12; fields of other
 * versions that are missing are unknown. Pure.
 */
import { amountOf } from '../amount.ts'
import type { Measured } from './link.ts'

export type Parsed =
  | { readonly kind: 'measured'; readonly measured: Measured }
  | { readonly kind: 'failed'; readonly reason: string }

export function parseIperf3(text: string): Parsed {
  const start = text.indexOf('{')
  let report: unknown
  try {
    report = JSON.parse(start < 0 ? '' : text.slice(start))
  } catch {
    const said = text.trim().split('\n').at(-1) ?? ''
    return { kind: 'failed', reason: said === '' || said.length > 200 ? 'iperf3 gave no whole answer' : said }
  }
  const error = at(report, 'error')
  if (typeof error === 'string') return { kind: 'failed', reason: error }
  const end = at(report, 'end')
  const udp = at(end, 'sum', 'lost_percent') === undefined ? undefined : at(end, 'sum')
  const lost = udp === undefined ? undefined : scale(numberAt(udp, 'lost_percent'), 0.01)
  const lostFraction = lost === undefined ? undefined : Math.min(1, lost)
  const received = numberAt(end, 'sum_received', 'bits_per_second')
  // Before sum_received, the sum of UDP was what was sent.
  const bitsPerSecond = received ?? scale(numberAt(udp, 'bits_per_second'), 1 - (lostFraction ?? 0))
  if (bitsPerSecond === undefined || !(bitsPerSecond > 0)) return { kind: 'failed', reason: 'nothing arrived' }
  const streams = at(end, 'streams')
  const rtts = (Array.isArray(streams) ? streams : []).flatMap((stream) => numberAt(stream, 'sender', 'mean_rtt') || [])
  const cpu = [
    numberAt(end, 'cpu_utilization_percent', 'host_total'),
    numberAt(end, 'cpu_utilization_percent', 'remote_total'),
  ]
  return {
    kind: 'measured',
    measured: {
      bitsPerSecond,
      ...known('sentBytes', numberAt(end, 'sum_sent', 'bytes')),
      ...known('retransmits', numberAt(end, 'sum_sent', 'retransmits')),
      ...known('jitterMs', numberAt(udp, 'jitter_ms')),
      ...known('lostFraction', lostFraction),
      ...known(
        'loadedRttMs',
        rtts.length === 0 ? undefined : rtts.reduce((sum, rtt) => sum + rtt, 0) / rtts.length / 1000,
      ),
      ...known('cpuFraction', scale(Math.max(...cpu.map((percent) => percent ?? -1)), 0.01)),
    },
  }
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

function known<K extends keyof Measured>(key: K, value: number | undefined): { readonly [key in K]?: number } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [key in K]: number })
}
