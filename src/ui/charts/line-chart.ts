/**
 * Lines over time, drawn by blessed-contrib's line chart on a canvas of its own: no screen of blessed is made, and what it
 * draws comes back as rows of styled text that the compositor places as cells.
 */
import Line from 'blessed-contrib/lib/widget/charts/line.js'
import { Canvas } from 'drawille-canvas-blessed-contrib'
import { mutedStyle, styleOf, type Theme } from '../compositor/scene.ts'
import type { Row } from '../rows/rows-pane.ts'

export type Series = { readonly values: readonly number[] }

export type ChartOptions = {
  readonly columns: number
  readonly rows: number
  /** Oldest first, as many as the values. */
  readonly labels: readonly string[]
  /** At most two. */
  readonly series: readonly Series[]
  /** The upper end of the scale; undefined: what the values need. */
  readonly most?: number
  readonly theme: Theme
}

/** The chart leaves a row free below the labels of the time. */
const UNUSED_ROWS = 1
/** Height of its axis above the bottom. */
const DOTS_BELOW = 11

/** Blessed's colour names mark the parts of the chart; `readRow` replaces them by the theme's colours. */
const LINES = ['red', 'yellow'] as const

export function lineChart({ columns, rows, labels, series, most, theme }: ChartOptions): readonly Row[] {
  const size = { width: Math.max(24, columns * 2), height: Math.max(16, (rows + UNUSED_ROWS) * 4) }
  const canvas = new Canvas(size.width, size.height)
  const values = series.map((each) => each.values.map((value) => (Number.isFinite(value) ? value : 0)))
  if (labels.length < 2 || values.some((each) => each.length !== labels.length)) return []
  const top = most ?? Math.max(1, ...values.flat())
  // Its scale ends three dots above the highest value: what lies at its end is drawn outside.
  const scaleDots = size.height - DOTS_BELOW
  const maxY = (top * scaleDots) / (scaleDots - 3)
  const steps = rows < 6 ? 1 : rows < 12 ? 2 : rows < 20 ? 4 : 5
  const chart = {
    ctx: canvas.getContext(),
    canvasSize: size,
    options: {
      style: { line: LINES[0], text: 'green', baseline: 'black' },
      showNthLabel: 1,
      // Else 8.3m loses its m below 17m.
      xLabelPadding: 10,
      xPadding: 10,
      // So that its steps are parts of the highest value.
      numYLabels: (steps * maxY) / top,
      legend: {},
      wholeNumbersOnly: false,
      minY: 0,
      maxY,
      abbreviate: true,
    },
  }
  Line.prototype.setData.call(
    chart,
    values.map((y, index) => ({ title: '', x: labels, y, style: { line: LINES[index] ?? LINES[0] } })),
  )
  return chart.ctx._canvas
    .frame()
    .split('\n')
    .slice(0, rows)
    .map((line) =>
      readRow(
        line.replace(FACTOR, (_, number, factor) => `${number}${FACTORS[factor]}`),
        theme,
      ),
    )
}

/** Its suffixes for 10^6 and above, which would read as milli and bits. */
const FACTOR = /^((?:\x1b\[\d*m|\s)*[\d.]+)([mbt])/
const FACTORS: Readonly<Record<string, string>> = { m: 'M', b: 'G', t: 'T' }

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
