/** Measures two hosts, both directions at once: bandwidth and round-trip time for each second. */

import { defined } from '../../../base/defined.ts'
import { LineReader } from '../../../base/line-reader.ts'
import { shellQuote } from '../../../base/shell-quote.ts'
import { reasonOfResult, type ScriptResult } from '../../kernel/host-port.ts'
import { formatOutcome } from '../../run/outcome.ts'
import { amountOf } from '../amount.ts'
import type { MeasureOptions, NetTool, OrderedPair } from '../mesh/link.ts'
import {
  chooseTool,
  explainFailure,
  type InspectOptions,
  inspectHosts,
  type MeshContext,
  probeAddress,
  type ReadyHost,
  serverOptions,
} from '../mesh/measure-mesh.ts'
import { type IperfFailure, parseIperf3 } from '../mesh/parse-iperf.ts'
import { clientScript, limitSeconds } from '../mesh/scripts.ts'
import { startServer } from '../mesh/server.ts'

/** One a second: an hour. */
export const MOST_RATES = 3_600

export type PairOptions = MeasureOptions &
  InspectOptions & {
    readonly tool?: Exclude<NetTool, 'ssh'>
    readonly ports: { readonly first: number; readonly last: number }
    /** From the first to the second only. */
    readonly isOneWay: boolean
  }

export type PairEvent =
  | ({ readonly type: 'interval' } & OrderedPair & Interval)
  /** `sequence`: of the ping that was answered, as ping counts them, about one a second. */
  | ({ readonly type: 'round-trip'; readonly ms: number; readonly sequence?: number } & OrderedPair)
  | ({ readonly type: 'failed'; readonly isAway: boolean; readonly reason: string } & OrderedPair)

export type PairContext = Omit<MeshContext, 'onEvent'> & { onEvent(event: PairEvent): void }

/** Resolves when both directions have ended, or after the signal. */
export async function measurePair(
  first: string,
  second: string,
  options: PairOptions,
  context: PairContext,
): Promise<void> {
  const [one, other] = await inspectHosts([first, second], options, context)
  for (const host of [one, other]) {
    if (host === undefined || 'facts' in host) continue
    const reason = `${host.name}: ${host.reason}`
    context.onEvent({ type: 'failed', from: first, to: second, isAway: host.cause === 'away', reason })
  }
  if (one === undefined || other === undefined || !('facts' in one) || !('facts' in other)) return
  const pinging = new AbortController()
  const ping = pingAlong(one, other, options, { ...context, signal: AbortSignal.any([context.signal, pinging.signal]) })
  const ways = options.isOneWay
    ? [measureWay(one, other, options, context)]
    : [measureWay(one, other, options, context), measureWay(other, one, options, context)]
  await Promise.all(ways)
  pinging.abort()
  await ping
}

async function measureWay(from: ReadyHost, to: ReadyHost, options: PairOptions, context: PairContext): Promise<void> {
  const { hosts, signal, clock, onEvent } = context
  const pair = { from: from.name, to: to.name }
  const fail = (reason: string, isAway = false): void => {
    onEvent({ type: 'failed', ...pair, isAway, reason })
  }
  let count = 0
  const tool = chooseTool(from.facts, to.facts, options)
  if (typeof tool !== 'string') return fail(tool.reason(pair))
  if (tool === 'ssh') return fail(`${pair.from} and ${pair.to} have no iperf in common`)
  const reader = new IntervalReader(options.streams)
  const { first, last } = options.ports
  // Two hosts may be one machine, where iperf 2 listens twice on a port of UDP.
  const start = from.name < to.name ? 0 : Math.floor((last - first + 1) / 2)
  const unproven = await probeAddress(tool, from, to, { ...options, start }, context)
  if (unproven !== undefined) return signal.aborted ? undefined : fail(unproven.reason, unproven.cause === 'away')
  const server = await startServer(hosts, {
    host: pair.to,
    ...serverOptions(tool, to, start, { ...options, isLive: true }),
    signal,
    clock,
    onTaken() {},
    onText(text) {
      for (const interval of reader.push(text)) {
        if (count >= MOST_RATES) return
        count += 1
        onEvent({ type: 'interval', ...pair, ...interval })
      }
    },
  })
  if (server.kind === 'failed') {
    if (!signal.aborted) fail(`${pair.to}: ${server.reason}`, server.isAway)
    return
  }
  const place = { address: to.place.address, port: server.port, ownAddress: from.place.address, facts: from.facts }
  const result = await hosts.exec(pair.from, clientScript(tool, place, options), {
    timeoutMs: limitSeconds(options) * 1000,
    signal,
  })
  server.stop()
  const end = await server.ended
  const failure = signal.aborted ? undefined : failureOf(result, tool)
  if (failure === undefined) return
  const isAway = result.outcome.kind === 'unreachable'
  // No firewall, and no route that is missing.
  if (count > 0) return fail(`it was cut off after ${count} s: ${failure.reason}`, isAway)
  const explained = explainFailure(failure, { from: from.name, to }, { port: server.port, tool, end })
  fail(explained.reason, isAway)
}

/** Undefined: it went well. */
function failureOf(result: ScriptResult, tool: NetTool): IperfFailure | undefined {
  const { outcome, stdout, stderr } = result
  if (outcome.kind !== 'exit') return { reason: formatOutcome(outcome) }
  const said = Buffer.from(stdout.length > 0 ? stdout : stderr).toString()
  if (tool === 'iperf3') {
    const parsed = parseIperf3(said)
    return parsed.kind === 'failed' ? parsed : undefined
  }
  const failure = /^.*failed.*$/m.exec(`${said}\n${Buffer.from(stderr).toString()}`)?.[0]
  const reason = failure ?? (outcome.code === 0 ? undefined : reasonOfResult(result, formatOutcome))
  return reason === undefined ? undefined : { reason, saidBy: 'client' }
}

async function pingAlong(
  from: ReadyHost,
  to: ReadyHost,
  { seconds }: PairOptions,
  context: PairContext,
): Promise<void> {
  if (!from.facts.hasPing) return
  const lines = new LineReader(MOST_LINE)
  await context.hosts.exec(from.name, `LC_ALL=C exec ping -n ${shellQuote(to.place.address)}`, {
    timeoutMs: (seconds + 60) * 1000,
    signal: context.signal,
    onOutput(_, text) {
      for (const line of lines.push(text)) {
        const ms = amountOf(/ time[=<]([\d.]+) ?ms/.exec(line)?.[1])
        const sequence = amountOf(/ (?:icmp_)?seq=(\d+)/.exec(line)?.[1])
        if (ms !== undefined)
          context.onEvent({ type: 'round-trip', from: from.name, to: to.name, ms, ...defined({ sequence }) })
      }
    },
  })
}

/** `[  5]   1.00-2.00   sec   112 MBytes  941000 Kbits/sec`, `[SUM] 0.0000-1.0000 sec  1 Bytes  2 bits/sec` */
const LINE = /^\[\s*(\d+|SUM)\]\s+([\d.]+)-\s*([\d.]+)\s+sec\s+[\d.]+ \w+\s+([\d.]+) (K?)bits\/sec/
/** Characters. */
const MOST_LINE = 4096
/** A report over a longer interval is the final one. */
const MOST_SECONDS = 1.5

export type Interval = { readonly second: number; readonly bitsPerSecond: number }

/** What a server of iperf3 (`-f k`) or iperf 2 (`-f b`) reports each second while it receives. */
export class IntervalReader {
  readonly #isSummed: boolean
  readonly #lines = new LineReader(MOST_LINE)

  /** With several streams only their sum is used. */
  constructor(streams: number) {
    this.#isSummed = streams > 1
  }

  push(text: string): readonly Interval[] {
    return this.#lines.push(text).flatMap((line): Interval[] => {
      const match = LINE.exec(line.trim())
      if (match === null || (match[1] === 'SUM') !== this.#isSummed) return []
      const [begin, end, rate] = [match[2], match[3], match[4]].map(amountOf)
      if (begin === undefined || end === undefined || rate === undefined) return []
      // The last interval may be a few empty milliseconds.
      if (end - begin > MOST_SECONDS || end - begin < 0.5) return []
      return [{ second: Math.round(end), bitsPerSecond: rate * (match[5] === 'K' ? 1000 : 1) }]
    })
  }
}
