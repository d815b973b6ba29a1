/** The value of a key, made when it is new. */
export function getOrMake<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key)
  if (known !== undefined) return known
  const made = make()
  map.set(key, made)
  return made
}

/** Works on all items in their order, on `most` at once. Rejects with the first failure. */
export async function eachAtOnce<T>(items: Iterable<T>, most: number, work: (item: T) => Promise<void>): Promise<void> {
  const rest = [...items].values()
  const workOnRest = async () => {
    for (const item of rest) await work(item)
  }
  await Promise.all(Array.from({ length: most }, workOnRest))
}
