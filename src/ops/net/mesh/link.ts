/** A measurement of one direction between two hosts: options, result, and which hosts measure when. */

/** `ssh`: bytes through ssh(1) from host to host, where there is no iperf. */
export type NetTool = 'iperf3' | 'iperf2' | 'ssh'

export type MeasureOptions = {
  readonly seconds: number
  readonly streams: number
  /** UDP at this rate, in bits a second; undefined: TCP as fast as it goes. */
  readonly udpBitsPerSecond?: number
}

/** Unknown values are left out. */
export type Measured = {
  /** Received payload, without the headers of TCP and below. */
  readonly bitsPerSecond: number
  /** The highest rate that an end reports, where the two ends disagree; the lowest one counts. */
  readonly disputedBitsPerSecond?: number
  readonly sentBytes?: number
  readonly retransmits?: number
  readonly jitterMs?: number
  /** 0 to 1 */
  readonly lostFraction?: number
  /** Round-trip time of TCP during the measurement. */
  readonly loadedRttMs?: number
  /** Of the busier end, 0 to 1 of a core: near 1 the processor is the limit, not the network. */
  readonly cpuFraction?: number
}

export type LinkFailure =
  | 'away' // one of the hosts cannot be reached, or was lost
  | 'no-address' // a host has no address in the wanted network
  | 'no-tool' // no tool that both have
  | 'no-server' // the server did not start
  | 'refused' // a firewall rejects it, or the server has ended
  | 'no-answer' // packets vanish
  | 'broken' // it started, but gave no result
  | 'unsteady' // its results do not agree
  | 'cancelled'

export type LinkOutcome =
  | ({ readonly kind: 'measured'; readonly tool: NetTool } & Measured)
  | { readonly kind: 'failed'; readonly cause: LinkFailure; readonly reason: string }

export const failed = (cause: LinkFailure, reason: string) => ({ kind: 'failed', cause, reason }) as const

export type LinkResult = { readonly from: string; readonly to: string; readonly outcome: LinkOutcome }

/** `0.42 ms`, `12 ms` */
export function formatMs(ms: number): string {
  return `${ms < 1 ? ms.toFixed(2) : ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
}

export type OrderedPair = { readonly from: string; readonly to: string }

/** Pairs that are measured at the same time. No host is in two of them, except in both directions of one pair. */
export type Slot = readonly OrderedPair[]

export type SlotOptions = {
  /** One measurement at a time. */
  readonly isSerial: boolean
  /** Both directions of a pair at the same time. */
  readonly isBidirectional: boolean
}

/** Every pair once, no host twice in a round, by the circle method of tournaments: N − 1 rounds, or N where N is odd. */
export function roundRobin(hosts: readonly string[]): readonly (readonly OrderedPair[])[] {
  if (hosts.length < 2) return []
  const circle: readonly (string | undefined)[] = hosts.length % 2 === 0 ? hosts : [...hosts, undefined]
  const count = circle.length - 1
  const fixed = circle[count]
  const at = (index: number) => circle[(index + count) % count]
  return Array.from({ length: count }, (_, round) => {
    const pairs = [[at(round), fixed]]
    for (let step = 1; step < circle.length / 2; step += 1) pairs.push([at(round + step), at(round - step)])
    return pairs.flatMap(([from, to]) => (from === undefined || to === undefined ? [] : [{ from, to }]))
  })
}

/** Every ordered pair once. */
export function slotsOf(hosts: readonly string[], { isSerial, isBidirectional }: SlotOptions): readonly Slot[] {
  const rounds = roundRobin(hosts)
  const turned = ({ from, to }: OrderedPair): OrderedPair => ({ from: to, to: from })
  if (isSerial) {
    return rounds.flat().flatMap((pair) => (isBidirectional ? [[pair, turned(pair)]] : [[pair], [turned(pair)]]))
  }
  return rounds.flatMap((pairs) =>
    isBidirectional ? [pairs.flatMap((pair) => [pair, turned(pair)])] : [pairs, pairs.map(turned)],
  )
}

/** Only the pairs between these hosts, without slots in which no pair is left. */
export const slotsAmong = (slots: readonly Slot[], hosts: ReadonlySet<string>): readonly Slot[] =>
  slots
    .map((slot) => slot.filter(({ from, to }) => hosts.has(from) && hosts.has(to)))
    .filter(({ length }) => length > 0)
