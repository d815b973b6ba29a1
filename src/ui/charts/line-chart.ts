/**
 * Lines over time. blessed-contrib draws lines and axes on a canvas of its own: no screen of blessed is made, and what it draws
 * comes back as rows of styled text that the compositor places as cells. The ticks are ours: its labels are neither round nor
 * evenly spaced.
 */
import Line from 'blessed-contrib/lib/widget/charts/line.js'
import { Canvas } from 'drawille-canvas-blessed-contrib'
import { mutedStyle, styleOf, type Theme } from '../compositor/scene.ts'
import type { Row } from '../rows/rows-pane.ts'
import { amountLabel, timeTicks, valueAxis } from './axis.ts'

/** Evenly spaced over the time of the chart; a value that is not finite is a gap in the line. */
export type Series = { readonly values: readonly number[] }

export type ChartOptions = {
  readonly columns: number
  readonly rows: number
  /** Seconds at both ends of the chart; below 0 is the past. */
  readonly seconds: readonly [from: number, to: number]
  /** What is below the chart instead of times: the ends are not seconds. */
  tickText?(value: number): string
  /** At most two, of equal length. */
  readonly series: readonly Series[]
  /** The upper end of the scale; undefined: what the values need. */
  readonly most?: number
  /** The upper end is never lower: 1 unless given. */
  readonly least?: number
  readonly theme: Theme
}

/** The chart leaves a row free below the labels of the time. */
const UNUSED_ROWS = 1
/** Height of its axis above the bottom, and of the labels of the time. */
const DOTS_BELOW = 11
const LABEL_DOTS_BELOW = 8
/** The library draws the lowest value this far above the axis, and the first value this far beside it. */
const LIFT = 2
/** A value at the upper end is drawn in the first row. */
const DOTS_ABOVE = 3
const LEAST_PLOT = 4
/** Below the lowest tick: the axis and the labels of the time. */
const ROWS_BELOW = 3

/** Blessed's colour names mark the parts of the chart; `readRow` replaces them by the theme's colours. */
const LINES = ['red', 'yellow'] as const
const TEXT = 'green'

export function lineChart(options: ChartOptions): readonly Row[] {
  const { columns, series, most, least = 1, theme, seconds } = options
  const values = series.map((each) => each.values)
  const length = values[0]?.length ?? 0
  const [from, to] = seconds
  if (length < 2 || to <= from || values.some((each) => each.length !== length)) return []
  const highest = values.flat().reduce((max, value) => (Number.isFinite(value) ? Math.max(max, value) : max), least)
  const span = Math.max(1, options.rows - ROWS_BELOW)
  const { top, step, unused } = valueAxis(most ?? highest, span, most !== undefined)
  const rows = options.rows - unused
  const ticks = Array.from({ length: Math.round(top / step) + 1 }, (_, index) => index * step)
  const labels = ticks.map(amountLabel)
  const labelColumns = Math.max(...labels.map((label) => label.length)) + 1

  const width = Math.max(labelColumns + LEAST_PLOT, columns) * 2
  const height = Math.max(16, (rows + UNUSED_ROWS) * 4)
  const canvas = new Canvas(width, height)
  const context = canvas.getContext()
  const scale = height - DOTS_BELOW
  const maxY = scale / (scale - DOTS_ABOVE)
  const padding = labelColumns * 2
  const pointDots = (width - 1 - padding - LIFT) / (length - 1)
  // The library leaves room for one more point at the end.
  const canvasSize = { width: padding + pointDots * length, height }
  const yOf = (part: number) => scale - (scale / maxY) * part - LIFT
  const chart = {
    ctx: brokenLines(context),
    canvasSize,
    options: {
      style: { line: LINES[0], text: TEXT, baseline: 'black' },
      showNthLabel: 1,
      xLabelPadding: 2,
      xPadding: padding,
      numYLabels: 1,
      legend: {},
      minY: 0,
      maxY,
    },
  }
  const noLabels = Array.from({ length }, () => '')
  Line.prototype.setData.call(
    chart,
    values.map((each, index) => {
      const y = each.map((value) => (Number.isFinite(value) ? Math.min(1, Math.max(0, value / top)) : Number.NaN))
      return { title: '', x: noLabels, y, style: { line: LINES[index] ?? LINES[0] } }
    }),
  )

  context.fillStyle = TEXT
  for (const [index, tick] of ticks.entries()) context.fillText(labels[index] ?? '', 0, yOf(tick / top))
  const room = columns - labelColumns
  const at = (time: number) => labelColumns + 1 + ((time - from) / (to - from)) * (room - 2)
  for (const { text, column } of timeLabels(options, { room, from: labelColumns, columns, at }))
    context.fillText(text, column * 2, height - LABEL_DOTS_BELOW)
  const drawn = context._canvas.frame().split('\n').slice(0, rows)
  return [...Array.from({ length: unused }, () => []), ...drawn.map((line) => readRow(line, theme))]
}

type LabelRoom = {
  readonly room: number
  /** The first column of the plot. */
  readonly from: number
  readonly columns: number
  at(seconds: number): number
}

/** As many labels as fit below their times, whole and two columns apart. */
function timeLabels({ seconds: [from, to], tickText }: ChartOptions, { room, from: first, columns, at }: LabelRoom) {
  for (let count = Math.floor(room / 6); count > 0; count -= 1) {
    const places = timeTicks(from, to, count, tickText).map(({ seconds, text }) => {
      const column = Math.round(at(seconds) - text.length / 2)
      return { text, column: Math.max(first, Math.min(columns - text.length, column)) }
    })
    const isApart = (index: number) =>
      (places[index]?.column ?? 0) + (places[index]?.text.length ?? 0) + 2 <= (places[index + 1]?.column ?? columns + 2)
    // At the left end there is no room to centre it.
    if (!isApart(0)) places.shift()
    if (places.length > 0 && places.every((_, index) => isApart(index))) return places
  }
  return []
}

/** Draws no text, and lifts the pen where a value is not known. */
function brokenLines<T extends ReturnType<Canvas['getContext']>>(context: T): T {
  let isDown = false
  return Object.assign(Object.create(context), {
    fillText() {},
    beginPath() {
      isDown = false
      context.beginPath.call(this)
    },
    lineTo(x: number, y: number) {
      if (!Number.isFinite(y)) isDown = false
      else {
        if (!isDown) context.moveTo.call(this, x, y)
        context.lineTo.call(this, x, y)
        isDown = true
      }
    },
  })
}

/** SGR of the canvas: 30 the axes, 32 the labels, 31 and 33 the lines. */
function readRow(line: string, theme: Theme): Row {
  const styles: Readonly<Record<string, ReturnType<typeof styleOf>>> = {
    30: styleOf(theme.frame),
    31: styleOf(theme.accent),
    32: mutedStyle(theme),
    33: styleOf(theme.receiving),
  }
  const plain = styleOf(theme.text)
  let style = plain
  const row: { text: string; style: typeof plain }[] = []
  for (const part of line.split(/(\x1b\[\d*m)/)) {
    const code = /^\x1b\[(\d*)m$/.exec(part)?.[1]
    if (code === undefined) {
      const last = row.at(-1)
      if (last?.style === style) last.text += part
      else if (part !== '') row.push({ text: part, style })
    } else if (code !== '49') style = styles[code] ?? plain
  }
  return row
}
