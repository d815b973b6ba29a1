/** The value of a key, made when it is new. */
export function getOrMake<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key)
  if (known !== undefined) return known
  const made = make()
  map.set(key, made)
  return made
}

/** The same entries and nothing inherited: a host may be called `constructor`. */
export const ownEntries = <T>(record: Readonly<Record<string, T>>): Readonly<Record<string, T>> =>
  Object.assign(Object.create(null) as Record<string, T>, record)

/** The item at this index, or the first or the last one if it is outside. */
export const nearest = <T>(items: readonly T[], index: number): T | undefined =>
  items[Math.max(0, Math.min(items.length - 1, index))]

/** The first index from which `isBefore` is false, if it is true for all earlier ones. */
export function lowerBound(length: number, isBefore: (index: number) => boolean): number {
  let [low, high] = [0, length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (isBefore(middle)) low = middle + 1
    else high = middle
  }
  return low
}

/** Works on all items in their order, on `most` at once. Rejects with the first failure. */
export async function eachAtOnce<T>(items: Iterable<T>, most: number, work: (item: T) => Promise<void>): Promise<void> {
  const rest = [...items].values()
  const workOnRest = async () => {
    for (const item of rest) await work(item)
  }
  await Promise.all(Array.from({ length: most }, workOnRest))
}

const inverses = new WeakMap<ReadonlyMap<string, string>, ReadonlyMap<string, string>>()

/** From the values of a map to its keys. Made once for each map, which must not change any more. */
export function inverseOf(map: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const known = inverses.get(map)
  if (known !== undefined) return known
  const inverse = new Map([...map].map(([key, value]) => [value, key]))
  inverses.set(map, inverse)
  return inverse
}
