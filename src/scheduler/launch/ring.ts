/**
 * The order of hosts in which each sends to the next and the last one to the first, as a ring all-reduce does, with its slowest link
 * as fast as can be. Pure.
 */
import { formatBitRate } from '../../base/format-bit-rate.ts'

/** Bits a second of one direction; undefined: not measured. */
export type LinkSpeed = (from: string, to: string) => number | undefined

export type Ring = {
  readonly hosts: readonly string[]
  /** Of the slowest link that was measured. */
  readonly bitsPerSecond: number
  /** Links of the ring that were not measured, if any. */
  readonly unmeasured?: number
}

/** So many hosts are tried in every order. */
const EVERY_ORDER = 8
/** More hosts keep their order: a mesh does not measure as many. */
const MOST_HOSTS = 256
/** Links that are examined for one ring: some tens of milliseconds. */
const MOST_WORK = 4_000_000
/** Measurements of one link differ by that much; such differences are no reason for another order. */
const SAME = 1.05

/**
 * It begins with the first of `hosts`, which are distinct. First there are as few links as possible that were not measured, then
 * the slowest link is as fast as possible (within 5 %), then as few links as possible are that slow; else hosts keep their order.
 * More than 8 hosts are improved step by step (2-opt). Undefined: fewer than two hosts, or no link of the ring was measured.
 */
export function findRing(hosts: readonly string[], speed: LinkSpeed): Ring | undefined {
  if (hosts.length < 2) return undefined
  const count = hosts.length
  const isSearched = count <= MOST_HOSTS
  const given = hosts.map((_, index) => index)
  const levels = isSearched ? levelsOf(hosts, speed) : new Int16Array()
  const costOf = (order: readonly number[]) => ringCost(order, levels)
  const search = count <= EVERY_ORDER ? bestOfAll : improved
  const order = isSearched && count > 2 ? search(given, costOf) : given
  const ring = order.map((index) => hosts[index] ?? '')
  const speeds = ring.map((from, index) => usable(speed(from, ring[(index + 1) % count] ?? '')))
  const known = speeds.filter((one) => one !== undefined)
  if (known.length === 0) return undefined
  const unmeasured = count - known.length
  return { hosts: ring, bitsPerSecond: Math.min(...known), ...(unmeasured === 0 ? {} : { unmeasured }) }
}

const usable = (speed: number | undefined) => (speed !== undefined && speed > 0 ? speed : undefined)

const UNKNOWN = -1
const TOP = 9_999

/**
 * By `from * count + to`: the lower the slower, equal for speeds that are about the same. A level begins at the fastest link that no
 * faster level has, so that links of one kind share one wherever their speed lies.
 */
function levelsOf(hosts: readonly string[], speed: LinkSpeed): Int16Array {
  const speeds = hosts.flatMap((from) => hosts.map((to) => (from === to ? undefined : usable(speed(from, to)))))
  const descending = [...new Set(speeds.filter((one) => one !== undefined))].sort((one, other) => other - one)
  const levels = new Map<number | undefined, number>()
  let level = TOP
  let fastest = descending[0] ?? 0
  for (const one of descending) {
    if (one * SAME < fastest) {
      level = Math.max(0, level - 1)
      fastest = one
    }
    levels.set(one, level)
  }
  return Int16Array.from(speeds, (one) => levels.get(one) ?? UNKNOWN)
}

/** Lower is better: unknown links, then the speed of the slowest, then how many are as slow. */
function ringCost(order: readonly number[], levels: Int16Array): number {
  const count = order.length
  let unknown = 0
  let least = TOP
  let slow = 0
  let from = order[count - 1] ?? 0
  for (const to of order) {
    const level = levels[from * count + to] ?? UNKNOWN
    if (level === UNKNOWN) unknown += 1
    else if (level < least) {
      least = level
      slow = 1
    } else if (level === least) slow += 1
    from = to
  }
  return (unknown * (TOP + 1) + TOP - least) * (TOP + 1) + slow
}

type Search = (given: readonly number[], costOf: (order: readonly number[]) => number) => readonly number[]

/** The first one of the best. */
const bestOfAll: Search = ([first = 0, ...others], costOf) => {
  let best: readonly number[] = [first, ...others]
  let cost = costOf(best)
  const extend = (order: readonly number[], rest: readonly number[]) => {
    if (rest.length > 0) {
      for (const [index, next] of rest.entries()) extend([...order, next], rest.toSpliced(index, 1))
      return
    }
    const own = costOf(order)
    if (own < cost) [best, cost] = [order, own]
  }
  extend([first], others)
  return best
}

/** Turns parts of the ring round and moves single hosts, as long as that helps. */
const improved: Search = (given, costOf) => {
  let order = given
  let cost = costOf(order)
  let tries = Math.floor(MOST_WORK / order.length)
  for (let before = Number.POSITIVE_INFINITY; cost < before && tries > 0; ) {
    before = cost
    for (let from = 1; from < order.length - 1; from += 1) {
      for (let to = from + 1; to < order.length && tries > 0; to += 1) {
        for (const change of [turned, movedBack, movedOn]) {
          const next = change(order, from, to)
          const own = costOf(next)
          tries -= 1
          if (own < cost) [order, cost] = [next, own]
        }
      }
    }
  }
  return order
}

const turned = (order: readonly number[], from: number, to: number) => [
  ...order.slice(0, from),
  ...order.slice(from, to + 1).reverse(),
  ...order.slice(to + 1),
]
const movedOn = (order: readonly number[], from: number, to: number) =>
  order.toSpliced(from, 1).toSpliced(to, 0, order[from] ?? 0)
const movedBack = (order: readonly number[], from: number, to: number) =>
  order.toSpliced(to, 1).toSpliced(from, 0, order[to] ?? 0)

/** Seconds in which a ring all-reduce of so many bytes cannot but pass over the slowest link. */
export function allReduceS({ hosts, bitsPerSecond }: Ring, bytes: number): number {
  return (((2 * (hosts.length - 1)) / hosts.length) * bytes * 8) / bitsPerSecond
}

export type RingDirection = 'next' | 'previous'

/**
 * Places in the order of ranks: bundles of one role are exchanged among themselves, those of one host are adjacent, and hosts follow
 * the best ring. `counts`: bundles of each role; `sendsTo`: the rank to which each rank sends. The ring is that of the largest role,
 * in the direction in which data go.
 */
export function orderOnRing<Place extends { readonly host: string }>(
  places: readonly Place[],
  counts: readonly number[],
  sendsTo: RingDirection,
  speed: LinkSpeed,
): { readonly places: readonly Place[]; readonly ring: Ring | undefined } {
  let begin = 0
  const roles = counts.map((count) => {
    const own = places.slice(begin, begin + count)
    begin += count
    const hosts = [...new Set(own.map(({ host }) => host))]
    const ring = findRing(hosts, sendsTo === 'next' ? speed : (from, to) => speed(to, from))
    const byRank = new Map(ring?.hosts.map((host, index) => [host, index]))
    const sorted = own.toSorted((one, other) => (byRank.get(one.host) ?? 0) - (byRank.get(other.host) ?? 0))
    return { count, sorted, ring }
  })
  const [largest] = roles.toSorted((one, other) => other.count - one.count)
  const ring = largest?.ring
  return {
    places: [...roles.flatMap(({ sorted }) => sorted), ...places.slice(begin)],
    ring: ring && sendsTo === 'previous' ? { ...ring, hosts: againstRanks(ring.hosts) } : ring,
  }
}

const againstRanks = ([first = '', ...others]: readonly string[]) => [first, ...others.reverse()]

const EXAMPLE_MB = 100
const MOST_SHOWN = 12

/** `m1 → m3 → m2 → m1, slowest 941 Mbit/s; an all-reduce of 100 MB takes about 1.1 s or longer` */
export function formatRing(ring: Ring): string {
  const { hosts, bitsPerSecond, unmeasured = 0 } = ring
  const shown = hosts.length > MOST_SHOWN ? [...hosts.slice(0, MOST_SHOWN - 2), '…', hosts.at(-1)] : hosts
  const missing = unmeasured === 0 ? '' : ` (${unmeasured} of ${hosts.length} links not measured)`
  const seconds = Number(allReduceS(ring, EXAMPLE_MB * 1e6).toPrecision(2))
  return `${[...shown, hosts[0]].join(' → ')}, slowest ${formatBitRate(bitsPerSecond)}${missing}; an all-reduce of ${EXAMPLE_MB} MB takes about ${seconds} s or longer`
}
