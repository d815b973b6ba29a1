/** A unified diff of two short texts (Myers, An O(ND) Difference Algorithm, 1986), in lines. Pure. */

export type DiffLine = { readonly kind: ' ' | '-' | '+'; readonly text: string }

const CONTEXT = 3
/** With more differences the middle is shown as replaced. */
const MAX_DIFFERENCES = 400

/** Hunks as `diff -u` prints them, without the two lines of file names; empty when nothing differs. */
export function unifiedDiff(before: readonly string[], after: readonly string[]): readonly string[] {
  const lines = diffLines(before, after)
  const output: string[] = []
  let beforeLine = 1
  let afterLine = 1
  for (let at = 0; at < lines.length; ) {
    if (lines[at]?.kind === ' ') {
      at += 1
      beforeLine += 1
      afterLine += 1
      continue
    }
    const start = Math.max(0, at - CONTEXT)
    const end = hunkEnd(lines, at)
    const hunk = lines.slice(start, end)
    const removed = hunk.filter(({ kind }) => kind !== '+').length
    const added = hunk.filter(({ kind }) => kind !== '-').length
    const lead = at - start
    output.push(`@@ -${place(beforeLine - lead, removed)} +${place(afterLine - lead, added)} @@`)
    output.push(...hunk.map(({ kind, text }) => kind + text))
    beforeLine += removed - lead
    afterLine += added - lead
    at = end
  }
  return output
}

function place(line: number, count: number): string {
  return count === 1 ? String(line) : `${count === 0 ? line - 1 : line},${count}`
}

/** Past the last change that is near enough to the one before, and its context. */
function hunkEnd(lines: readonly DiffLine[], start: number): number {
  let last = start
  for (let at = start; at < lines.length && at - last <= CONTEXT * 2; at += 1) if (lines[at]?.kind !== ' ') last = at
  return Math.min(lines.length, last + CONTEXT + 1)
}

export function diffLines(before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  let head = 0
  while (head < before.length && head < after.length && before[head] === after[head]) head += 1
  let tail = 0
  const shorter = Math.min(before.length, after.length) - head
  while (tail < shorter && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1
  const same = (text: string): DiffLine => ({ kind: ' ', text })
  return [
    ...before.slice(0, head).map(same),
    ...diffMiddle(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ...before.slice(before.length - tail).map(same),
  ]
}

function diffMiddle(before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  const trace = searchPath(before, after)
  if (trace === undefined) {
    return [
      ...before.map((text): DiffLine => ({ kind: '-', text })),
      ...after.map((text): DiffLine => ({ kind: '+', text })),
    ]
  }
  const lines: DiffLine[] = []
  let x = before.length
  let y = after.length
  for (let d = trace.length - 1; d >= 0; d -= 1) {
    const reached = (k: number): number => trace[d]?.[k + d + 1] ?? -1
    const k = x - y
    const isDown = k === -d || (k !== d && reached(k - 1) < reached(k + 1))
    const previousK = isDown ? k + 1 : k - 1
    const previousX = d === 0 ? 0 : reached(previousK)
    const previousY = d === 0 ? 0 : previousX - previousK
    while (x > previousX && y > previousY) {
      x -= 1
      y -= 1
      lines.push({ kind: ' ', text: before[x] ?? '' })
    }
    if (d === 0) break
    if (isDown) y -= 1
    else x -= 1
    lines.push(isDown ? { kind: '+', text: after[y] ?? '' } : { kind: '-', text: before[x] ?? '' })
  }
  return lines.reverse()
}

/** Of each number of differences, how far the diagonals -d-1 … d+1 were reached before it; undefined: too many differences. */
function searchPath(before: readonly string[], after: readonly string[]): readonly Int32Array[] | undefined {
  const limit = Math.min(before.length + after.length, MAX_DIFFERENCES)
  const middle = limit + 1
  const reached = new Int32Array(2 * middle + 1).fill(-1)
  reached[middle + 1] = 0
  const trace: Int32Array[] = []
  for (let d = 0; d <= limit; d += 1) {
    trace.push(reached.slice(middle - d - 1, middle + d + 2))
    for (let k = -d; k <= d; k += 2) {
      const below = reached[middle + k - 1] ?? -1
      const above = reached[middle + k + 1] ?? -1
      let x = k === -d || (k !== d && below < above) ? above : below + 1
      let y = x - k
      while (x < before.length && y < after.length && before[x] === after[y]) {
        x += 1
        y += 1
      }
      reached[middle + k] = x
      if (x >= before.length && y >= after.length) return trace
    }
  }
  return undefined
}
