/** Parallel coordinates in braille: an axis for each parameter and the metric, a line for each trial, the best ones in a colour of their own. Pure. */
import { printable } from '../../base/printable.ts'
import { clip, padEnd, textWidth } from '../../base/text-width.ts'
import type { Axis } from '../../scheduler/study/axis.ts'
import type { ParallelPlot } from '../../scheduler/study/plots.ts'
import { boldStyle, mutedStyle, type Style, styleOf, type Theme } from '../compositor/scene.ts'
import type { Row } from '../rows/rows-pane.ts'

/** Of the lines, those in the colour of the best: one of so many, but at least one. */
const BEST_PART = 10
const LEAST_AXIS_COLUMNS = 4
const MOST_NOTE = 9
const BRAILLE = 0x2800
const BITS = [
  [0x01, 0x08],
  [0x02, 0x10],
  [0x04, 0x20],
  [0x40, 0x80],
] as const

/** The names of the axes are above them. */
export function parallelRows(
  { axes, lines }: ParallelPlot,
  columns: number,
  rows: number,
  theme: Theme,
): readonly Row[] {
  // What does not fit is left out, but not the metric.
  const most = Math.max(2, Math.floor(columns / LEAST_AXIS_COLUMNS))
  const kept = axes.length <= most ? axes.map((_, at) => at) : [...Array(most - 1).keys(), axes.length - 1]
  const height = rows - 1
  const width = columns - 2
  if (height < 1 || kept.length < 2) return []
  const xOf = (at: number) => Math.round((at / (kept.length - 1)) * (width * 2 - 1))
  const cells = new Uint8Array(width * height)
  const isBest = new Uint8Array(width * height)
  const best = Math.max(1, Math.floor(lines.length / BEST_PART))
  // The best ones are drawn last.
  for (let at = lines.length - 1; at >= 0; at--) {
    const line = lines[at] ?? []
    for (let axis = 1; axis < kept.length; axis++) {
      const [from, to] = [line[kept[axis - 1] ?? 0], line[kept[axis] ?? 0]]
      if (from === undefined || to === undefined) continue
      const [left, right] = [xOf(axis - 1), xOf(axis)]
      for (let x = left; x <= right; x++) {
        const share = from + ((to - from) * (x - left)) / Math.max(1, right - left)
        const y = Math.round((1 - share) * (height * 4 - 1))
        const cell = (y >> 2) * width + (x >> 1)
        cells[cell] = (cells[cell] ?? 0) | (BITS[y & 3]?.[x & 1] ?? 0)
        if (at < best) isBest[cell] = 1
      }
    }
  }
  const marks = new Set(kept.map((_, at) => xOf(at) >> 1))
  const notes = tickNotes(
    kept.map((at) => axes[at]),
    (at) => xOf(at) >> 1,
    height,
    width,
  )
  const names = kept.map((at, index) => [xOf(index) >> 1, axes[at]?.label ?? ''] as const)
  const styles = {
    line: mutedStyle(theme),
    best: boldStyle(theme.ok),
    axis: styleOf(theme.frame),
    note: styleOf(theme.text),
  }
  return [
    [{ text: ` ${labels(names, width)}`, style: boldStyle(theme.text) }],
    ...Array.from({ length: height }, (_, row): Row => {
      const spans: { text: string; style: Style }[] = [{ text: ' ', style: styles.line }]
      const add = (text: string, style: Style) => {
        const last = spans.at(-1)
        if (last?.style === style) last.text += text
        else spans.push({ text, style })
      }
      for (let column = 0; column < width; column++) {
        const note = notes.get(row * width + column)
        if (note !== undefined) {
          add(note, styles.note)
          column += textWidth(note) - 1
          continue
        }
        const cell = row * width + column
        const bits = cells[cell] ?? 0
        if (isBest[cell] === 1) add(String.fromCharCode(BRAILLE + bits), styles.best)
        else if (marks.has(column)) add('│', styles.axis)
        else add(bits === 0 ? ' ' : String.fromCharCode(BRAILLE + bits), styles.line)
      }
      return spans
    }),
  ]
}

/** Each in the middle of its axis, with a gap to the next; the last one ends at the right. */
function labels(all: readonly (readonly [column: number, text: string])[], width: number): string {
  let line = ''
  let used = 0
  for (const [index, [column, text]] of all.entries()) {
    const [before, after] = [all[index - 1]?.[0] ?? -column, all[index + 1]?.[0] ?? 2 * width - column]
    const room = Math.max(1, Math.floor((after - before) / 2) - 1)
    const label = clip(printable(text), room)
    const own = textWidth(label)
    const start = Math.max(used === 0 ? 0 : used + 1, Math.min(width - own, column - Math.floor(own / 2)))
    line = padEnd(line, start) + label
    used = start + own
  }
  return clip(line, width)
}

/** The highest and the lowest value of each axis beside it, over the lines; at the right the last one's are before it. */
function tickNotes(
  shown: readonly (Axis | undefined)[],
  columnOf: (at: number) => number,
  rows: number,
  width: number,
): ReadonlyMap<number, string> {
  const found = new Map<number, string>()
  for (const [index, axis] of shown.entries()) {
    const [column, next] = [columnOf(index), columnOf(index + 1)]
    const isLast = index === shown.length - 1
    const room = isLast ? column - columnOf(index - 1) - 2 : next - column - 2
    const ticks = axis?.ticks ?? []
    for (const tick of new Set([ticks[0], ticks.at(-1)])) {
      const text = clip(printable(tick?.text ?? ''), Math.max(0, Math.min(MOST_NOTE, Math.floor(room / 2))))
      if (tick === undefined || text === '') continue
      const row = Math.round((1 - tick.at) * (rows - 1))
      found.set(row * width + (isLast ? column - textWidth(text) : column + 1), text)
    }
  }
  return found
}
