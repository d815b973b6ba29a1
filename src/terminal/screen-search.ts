/** Search in the kept lines of a screen: newest first, so that a limit keeps what is near, and bounded by the number of lines. */

export type SearchHit = { readonly line: number; readonly column: number; readonly length: number }

export interface SearchSource {
  readonly lines: number
  /** Columns of a row. */
  readonly width: number
  /** Whether the row continues the one above. */
  isWrapped(line: number): boolean
  /** Right-trimmed, except that a row which the next one continues is whole. */
  text(line: number): string
  /** The column of each code unit of `text(line)`, and at the end the column after the last one. */
  columns(line: number): readonly number[]
}

const MOST_HITS = 1000

/** Case is ignored when the needle has no capital. Hits do not overlap; oldest first; the newest 1000 of them. */
export function searchLines(source: SearchSource, needle: string): SearchHit[] {
  if (needle === '') return []
  const isFolded = needle === foldCase(needle)
  const groups: SearchHit[][] = []
  let found = 0
  for (let last = source.lines - 1; last >= 0 && found < MOST_HITS; ) {
    let first = last
    while (first > 0 && source.isWrapped(first)) first--
    const hits = searchLogicalLine(source, first, last, needle, isFolded)
    if (hits.length > 0) groups.push(hits)
    found += hits.length
    last = first - 1
  }
  return groups.reverse().flat().slice(-MOST_HITS)
}

function searchLogicalLine(
  source: SearchSource,
  first: number,
  last: number,
  wanted: string,
  isFolded: boolean,
): SearchHit[] {
  let text = ''
  const starts: number[] = []
  for (let line = first; line <= last; line++) {
    starts.push(text.length)
    text += source.text(line)
  }
  const haystack = isFolded ? foldCase(text) : text
  let at = haystack.indexOf(wanted)
  if (at < 0) return []
  const hits: SearchHit[] = []
  for (; at >= 0; at = haystack.indexOf(wanted, at + wanted.length)) {
    const begin = locate(source, first, starts, at)
    const end = locate(source, first, starts, at + wanted.length - 1)
    // A hit over several rows is as long as if the rows stood side by side.
    const length = (end.line - begin.line) * source.width + end.nextColumn - begin.column
    hits.push({ line: begin.line, column: begin.column, length })
  }
  return hits
}

function locate(source: SearchSource, first: number, starts: readonly number[], at: number) {
  let row = starts.length - 1
  while (row > 0 && (starts[row] as number) > at) row--
  const line = first + row
  const columns = source.columns(line)
  const index = at - (starts[row] as number)
  const column = columns[index] ?? 0
  // The code units of one cell share its column.
  let next = index + 1
  while (next < columns.length && columns[next] === column) next++
  return { line, column, nextColumn: columns[next] ?? column + 1 }
}

/** Lower case of the same length, so that places in it are places in the text. */
function foldCase(text: string): string {
  const lower = text.toLowerCase()
  if (lower.length === text.length) return lower
  return Array.from(text, (character) => {
    const folded = character.toLowerCase()
    return folded.length === character.length ? folded : character
  }).join('')
}
