/** The most frequent of these words, the first of them where several are equally frequent. */
export function mostCommon(words: readonly string[]): string | undefined {
  const counts = Map.groupBy(words, (word) => word)
  const most = Math.max(...[...counts.values()].map(({ length }) => length))
  return [...counts].find(([, { length }]) => length === most)?.[0]
}
