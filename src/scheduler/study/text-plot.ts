/** The plots of a study as text without colours, in braille dots: for terminals. Pure. */
import { counted } from '../../base/counted.ts'
import { printable } from '../../base/printable.ts'
import { clip, textWidth } from '../../base/text-width.ts'
import type { Metric } from '../jobs/metric.ts'
import type { Axis } from './axis.ts'
import type { Importance } from './importance.ts'
import { describeBest, type Place, type Places, type Plot, studyPlots } from './plots.ts'
import type { Study, Trial } from './study.ts'

const HISTORY_ROWS = 14
const PARAMETER_ROWS = 11
/** From so many columns on, two plots lie beside each other. */
const TWO_COLUMNS = 72
const GAP = 2
const LEAST_COLUMNS = 24
const LEAST_ROWS = 5
const MOST_LABEL = 9
const MOST_NAME = 24

/** All plots but the parallel coordinates, which need lines. `metric`: the first one of the study unless another one is given. */
export function studyText(
  study: Pick<Study, 'spec'>,
  trials: readonly Trial[],
  { columns, metric = study.spec.metrics[0] }: { readonly columns: number; readonly metric?: Metric | undefined },
): readonly string[] {
  if (metric === undefined) return ['no metric to plot']
  const plots = studyPlots(study, trials, metric)
  const best = clip(printable(describeBest(study, trials, metric)), columns)
  if (plots === undefined) return [best]
  const half = columns < TWO_COLUMNS ? columns : Math.floor((columns - GAP) / 2)
  const small = [...(plots.front === undefined ? [] : [plots.front]), ...plots.parameters]
  const drawn = small.map((plot) => textPlot(plot, { columns: half, rows: PARAMETER_ROWS }))
  const rows = columns < TWO_COLUMNS ? drawn : beside(drawn, half)
  return [
    best,
    '',
    ...textPlot(plots.history, { columns, rows: HISTORY_ROWS }),
    ...rows.flatMap((lines) => ['', ...lines]),
    ...(plots.importance === undefined ? [] : ['', ...importanceText(plots.importance, metric.name, columns)]),
  ]
}

const padded = (text: string, columns: number): string => text + ' '.repeat(Math.max(0, columns - textWidth(text)))

/** Each two of them in the same lines. */
function beside(all: readonly (readonly string[])[], columns: number): readonly (readonly string[])[] {
  return all.flatMap((left, index) => {
    if (index % 2 === 1) return []
    const right = all[index + 1] ?? []
    return [
      Array.from({ length: Math.max(left.length, right.length) }, (_, line) =>
        `${padded(left[line] ?? '', columns + GAP)}${right[line] ?? ''}`.trimEnd(),
      ),
    ]
  })
}

/** At most so many rows and columns: title, dots with the y axis on the left, labels of the x axis. `◆` is the best trial. */
export function textPlot(plot: Plot, size: { readonly columns: number; readonly rows: number }): readonly string[] {
  const columns = Math.max(LEAST_COLUMNS, size.columns)
  const hasName = !plot.title.endsWith(plot.x.label)
  const rows = Math.max(LEAST_ROWS, size.rows) - 3 - (hasName ? 1 : 0)
  const labels = new Map<number, string>()
  // At most every second row, so that their distances look the same.
  const every = Math.ceil(plot.y.ticks.length / Math.ceil(rows / 2))
  for (const { at, text } of plot.y.ticks.filter((_, index) => index % every === 0))
    labels.set(Math.round((1 - at) * (rows - 1)), clip(printable(text), MOST_LABEL))
  const left = Math.max(1, ...[...labels.values()].map(textWidth))
  const canvas = new Canvas(columns - left - 2, rows)
  canvas.dots(plot.pruned)
  canvas.dots(plot.done)
  canvas.line(plot.line)
  canvas.mark(plot.best)
  const note = plot.note === undefined ? '' : `  ${plot.note}`
  return [
    clip(printable(plot.title) + note, columns),
    ...canvas
      .rows()
      .map((line, row) =>
        `${' '.repeat(left - textWidth(labels.get(row) ?? ''))}${labels.get(row) ?? ''} ${labels.has(row) ? '┤' : '│'}${line}`.trimEnd(),
      ),
    `${' '.repeat(left + 1)}└${'─'.repeat(columns - left - 2)}`,
    `${' '.repeat(left + 2)}${labelsBelow(plot.x, columns - left - 2)}`.trimEnd(),
    ...(hasName ? [`${' '.repeat(left + 2)}${clip(printable(plot.x.label), columns - left - 2)}`] : []),
  ]
}

/** Each label begins below its place, or ends there at the right; those without room are left out. */
function labelsBelow(axis: Axis, columns: number): string {
  let line = ''
  let width = 0
  for (const { at, text } of axis.ticks) {
    const label = clip(printable(text), Math.max(3, Math.floor(columns / 2) - 1))
    const own = textWidth(label)
    const start = Math.min(columns - own, Math.max(0, Math.round(at * (columns - 1) - (own - 1) / 2)))
    if (start < (width === 0 ? 0 : width + 1)) continue
    line += ' '.repeat(start - width) + label
    width = start + own
  }
  return line
}

/** A title and one bar each. */
export function importanceText(importance: readonly Importance[], metric: string, columns: number): readonly string[] {
  const name = Math.min(MOST_NAME, Math.max(...importance.map((one) => textWidth(one.name))))
  const most = Math.max(...importance.map(({ trials }) => trials))
  const rest = columns - name - 1 - `  100 % of ${counted(most, 'trial')}`.length
  return [
    clip(`importance for ${clip(metric, MOST_NAME)} (variance of ranks, each parameter alone)`, columns),
    ...importance.map(({ name: own, share, trials }) => {
      const bar = '█'.repeat(Math.round(share * Math.max(0, rest)))
      return clip(
        `${padded(clip(own, name), name)} ${bar} ${Math.round(share * 100)} % of ${counted(trials, 'trial')}`,
        columns,
      )
    }),
  ]
}

const BRAILLE = 0x2800
/** The bit of each dot of a cell, two across and four down. */
const BITS = [
  [0x01, 0x08],
  [0x02, 0x10],
  [0x04, 0x20],
  [0x40, 0x80],
] as const
const MARK = '◆'

/** Two dots across and four down in each cell. */
class Canvas {
  readonly #cells: Uint8Array
  readonly #marks = new Set<number>()
  readonly #columns: number
  readonly #rows: number

  constructor(columns: number, rows: number) {
    this.#columns = columns
    this.#rows = rows
    this.#cells = new Uint8Array(columns * rows)
  }

  dots(places: Places): void {
    for (let index = 0; index < places.length; index += 2) this.#dot(this.#x(places[index]), this.#y(places[index + 1]))
  }

  /** Along the sides of rectangles, as the corners of steps lie. */
  line(corners: readonly Place[]): void {
    for (const [index, corner] of corners.entries()) {
      const before = corners[index - 1] ?? corner
      const [fromX, toX] = [this.#x(before.x), this.#x(corner.x)]
      const [fromY, toY] = [this.#y(before.y), this.#y(corner.y)]
      for (let x = Math.min(fromX, toX); x <= Math.max(fromX, toX); x++) this.#dot(x, fromY)
      for (let y = Math.min(fromY, toY); y <= Math.max(fromY, toY); y++) this.#dot(toX, y)
    }
  }

  mark(places: Places): void {
    for (let index = 0; index < places.length; index += 2)
      this.#marks.add(this.#cellOf(this.#x(places[index]), this.#y(places[index + 1])))
  }

  rows(): readonly string[] {
    return Array.from({ length: this.#rows }, (_, row) => {
      let line = ''
      for (let column = 0; column < this.#columns; column++) {
        const cell = row * this.#columns + column
        const bits = this.#cells[cell] ?? 0
        line += this.#marks.has(cell) ? MARK : bits === 0 ? ' ' : String.fromCharCode(BRAILLE + bits)
      }
      return line
    })
  }

  #x = (share = 0): number => Math.round(share * (this.#columns * 2 - 1))
  #y = (share = 0): number => Math.round((1 - share) * (this.#rows * 4 - 1))
  #cellOf = (x: number, y: number): number => (y >> 2) * this.#columns + (x >> 1)

  #dot(x: number, y: number): void {
    const cell = this.#cellOf(x, y)
    this.#cells[cell] = (this.#cells[cell] ?? 0) | (BITS[y & 3]?.[x & 1] ?? 0)
  }
}
