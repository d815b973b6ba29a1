/** The valid word that a mistyped one probably meant. */

/** Edits between two words: insertions, deletions, substitutions and swaps of neighbours (optimal string alignment). */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1
  let beforePrevious: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= b.length; column += 1) {
      const isSame = a[row - 1] === b[column - 1]
      let best = Math.min(
        (previous[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (previous[column - 1] ?? 0) + (isSame ? 0 : 1),
      )
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        best = Math.min(best, (beforePrevious[column - 2] ?? 0) + 1)
      }
      current.push(best)
    }
    beforePrevious = previous
    previous = current
  }
  return previous[b.length] ?? limit + 1
}

const MAX_COMPARED = 20_000

/** The candidate with the fewest edits, at most a third of the word's length (and at least one); undefined if all are further. */
export function nearestWord(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > 100) return undefined
  const lower = word.toLowerCase()
  let limit = Math.max(1, Math.floor(word.length / 3))
  let nearest: string | undefined
  let compared = 0
  for (const candidate of candidates) {
    compared += 1
    if (compared > MAX_COMPARED) break
    const distance = editDistance(lower, candidate.toLowerCase(), limit)
    if (distance < limit || (distance === limit && nearest === undefined)) {
      nearest = candidate
      limit = distance
    }
  }
  return nearest
}

/** `; did you mean m9?` or nothing. `sign`: what is written before the word. */
export function didYouMean(word: string, candidates: Iterable<string>, sign = ''): string {
  const nearest = nearestWord(word, candidates)
  return nearest === undefined ? '' : `; did you mean ${sign}${nearest}?`
}
