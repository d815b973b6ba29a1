/** Two hosts and what goes between them, as charts. Pure. */
import { BOLD } from '../../terminal/cells.ts'
import type { PaneView } from '../compositor/scene.ts'
import { styleOf } from '../theme/theme.ts'
import { framedPane } from './framed-pane.ts'
import type { PaneLook } from './pane-screen.ts'
import { shortAmount } from './traffic-words.ts'

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

export function pairPanes(view: PairView, { rect, theme, chart }: PaneLook): readonly PaneView[] {
  const { first, second, there, back, roundTrips, words } = view
  const upper = Math.ceil((rect.height * 3) / 5)
  const high = { ...rect, height: upper }
  const low = { ...rect, row: rect.row + upper, height: rect.height - upper }
  const now = (values: readonly number[]) => (values.length === 0 ? '–' : `${shortAmount(values.at(-1) ?? 0)}bit/s`)
  const length = Math.max(there.length, back.length)
  const padded = (values: readonly number[]) => Array.from({ length }, (_, index) => values[index] ?? 0)
  const labels = (count: number) => Array.from({ length: count }, (_, index) => `${index + 1}s`)
  const size = ({ width, height }: typeof rect) => ({ columns: width - 2, rows: height - 2 })
  const rates =
    chart?.({
      ...size(high),
      theme,
      labels: labels(length),
      series: back.length === 0 ? [{ values: padded(there) }] : [{ values: padded(there) }, { values: padded(back) }],
    }) ?? []
  const trips =
    chart?.({ ...size(low), theme, labels: labels(roundTrips.length), series: [{ values: roundTrips }] }) ?? []
  const said = words.map((text) => [{ text, style: { foreground: 0, background: 0, attributes: 0 } }])
  const latest = roundTrips.at(-1)
  // In the colours of the lines.
  const legend = (text: string, colour: typeof theme.accent) => ({
    text: ` ${text} `,
    style: styleOf(colour, undefined, BOLD),
  })
  const upperPane = framedPane({
    id: ' rates',
    title: `bits a second, ${first} and ${second}`,
    rows: [...said, ...rates],
    rect: high,
    theme,
    hasKeys: false,
  })
  const lowerPane = framedPane({ id: ' trips', title: 'round trip, ms', rows: trips, rect: low, theme, hasKeys: true })
  return [
    {
      ...upperPane,
      badges: [
        legend(`${first} → ${second} ${now(there)}`, theme.accent),
        ...(back.length === 0 ? [] : [legend(`${second} → ${first} ${now(back)}`, theme.receiving)]),
      ],
    },
    { ...lowerPane, badges: latest === undefined ? [] : [legend(`${latest.toFixed(2)} ms`, theme.accent)] },
  ]
}
