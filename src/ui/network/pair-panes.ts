/** The traffic between two hosts, as charts. Pure. */
import { boldStyle, type PaneView, styleOf, type ThemeColour } from '../compositor/scene.ts'
import { documentOf, rowsPane, shortAmount, splitRows } from '../rows/rows-pane.ts'
import type { PaneContext } from './pane-screen.ts'

export type PairView = {
  readonly first: string
  readonly second: string
  /** Bits a second, second by second, from the first to the second and back. */
  readonly there: readonly number[]
  readonly back: readonly number[]
  /** Milliseconds. */
  readonly roundTrips: readonly number[]
  /** What went wrong, or how it ended. */
  readonly words: readonly string[]
}

export function pairPanes(view: PairView, { rect, theme, chart }: PaneContext): readonly PaneView[] {
  const { first, second, there, back, roundTrips, words } = view
  const [high, low] = splitRows(rect, Math.ceil((rect.height * 3) / 5))
  const rows = ({ width, height }: typeof rect, ...lines: (readonly number[])[]) => {
    const length = Math.max(...lines.map((line) => line.length))
    const series = lines.map((line) => ({ values: Array.from({ length }, (_, index) => line[index] ?? Number.NaN) }))
    return chart?.({ columns: width - 2, rows: height - 2, theme, seconds: [1, length], series }) ?? []
  }
  const latest = (values: readonly number[]) => (values.length === 0 ? '–' : `${shortAmount(values.at(-1) ?? 0)}bit/s`)
  // In the colours of the lines.
  const legend = (text: string, colour: ThemeColour) => ({ text: ` ${text} `, style: boldStyle(colour) })
  const rates = back.length === 0 ? rows(high, there) : rows(high, there, back)
  const roundTrip = roundTrips.at(-1)
  const badges = [
    legend(`${first} → ${second} ${latest(there)}`, theme.accent),
    ...(back.length === 0 ? [] : [legend(`${second} → ${first} ${latest(back)}`, theme.receiving)]),
  ]
  return [
    rowsPane({
      id: ' rates',
      title: `bits a second, ${first} and ${second}`,
      document: documentOf([...words.map((text) => [{ text, style: styleOf(undefined) }]), ...rates]),
      badges,
      rect: high,
      theme,
      hasKeys: false,
    }),
    rowsPane({
      id: ' trips',
      title: 'round trip, ms',
      document: documentOf(rows(low, roundTrips)),
      badges: roundTrip === undefined ? [] : [legend(`${roundTrip.toFixed(2)} ms`, theme.accent)],
      rect: low,
      theme,
      hasKeys: true,
    }),
  ]
}
