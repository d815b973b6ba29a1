/** Which hosts measure with each other, and when: the circle method of round-robin tournaments (one-factorisation of a complete graph). Pure. */

export type OrderedPair = { readonly from: string; readonly to: string }

/** Pairs that are measured at the same time. No host is in two of them, except in both directions of one pair. */
export type Slot = readonly OrderedPair[]

export type SlotOptions = {
  /** One measurement at a time. */
  readonly isSerial: boolean
  /** Both directions of a pair at the same time. */
  readonly isBidirectional: boolean
}

/** Every pair once, no host twice in a round: N − 1 rounds, or N where N is odd. */
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
