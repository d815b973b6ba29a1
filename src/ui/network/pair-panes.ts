/** The traffic between two hosts, as charts. Pure. */
import { formatBitRate } from '../../base/format-bit-rate.ts'
import { printable } from '../../base/printable.ts'
import { median } from '../../ops/net/mesh/judge.ts'
import { formatMs } from '../../ops/net/mesh/link.ts'
import type { PairEvent } from '../../ops/net/pair/measure-pair.ts'
import { boldStyle, type PaneView, styleOf, type ThemeColour } from '../compositor/scene.ts'
import { documentOf, rowsPane, shortAmount, splitRows, wrapRows } from '../rows/rows-pane.ts'
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

/** In the Network tab. */
export type PairRun = { readonly view: PairView; readonly isMeasuring: boolean }

/** As the events of a measurement fill it. */
export type PairRecord = { [K in keyof PairView]: PairView[K] extends readonly (infer V)[] ? V[] : PairView[K] }

export const newPairRecord = (first: string, second: string): PairRecord => ({
  first,
  second,
  there: [],
  back: [],
  roundTrips: [],
  words: [],
})

export function takePairEvent(view: PairRecord, event: PairEvent): void {
  switch (event.type) {
    case 'interval':
      ;(event.from === view.first ? view.there : view.back).push(event.bitsPerSecond)
      break
    case 'round-trip':
      view.roundTrips.push(event.ms)
      break
    case 'finding':
      view.words.push(`${event.finding.gravity}  ${printable(event.finding.text)}`)
      break
    case 'failed':
      view.words.push(printable(`${event.from} → ${event.to}: ${event.reason}`))
  }
}

/** What was measured in each direction, at the end. */
export function pairSummary({ first, second, there, back, roundTrips }: PairView): readonly string[] {
  const rates = (from: string, to: string, values: readonly number[]): string[] => {
    const middle = median(values)
    if (middle === undefined) return []
    const [least, most] = [Math.min(...values), Math.max(...values)].map(formatBitRate)
    return [`${from} → ${to}: median ${formatBitRate(middle)}, from ${least} to ${most} in ${values.length} s`]
  }
  const trip = median(roundTrips)
  return [
    ...rates(first, second, there),
    ...rates(second, first, back),
    ...(trip === undefined
      ? []
      : [`round trip: median ${formatMs(trip)}, at most ${formatMs(Math.max(...roundTrips))}`]),
  ]
}

export function pairPanes(view: PairView, { rect, theme, chart }: PaneContext): readonly PaneView[] {
  const { first, second, there, back, roundTrips, words } = view
  const [high, low] = splitRows(rect, Math.ceil((rect.height * 3) / 5))
  const told = words.flatMap((text) => wrapRows(text, rect.width - 2, ' ', styleOf(undefined)))
  const highRoom = { width: rect.width, height: high.height - 2 - told.length }
  const rows = (
    { width, height }: { readonly width: number; readonly height: number },
    ...lines: (readonly number[])[]
  ) => {
    const length = Math.max(...lines.map((line) => line.length))
    const series = lines.map((line) => ({ values: Array.from({ length }, (_, index) => line[index] ?? Number.NaN) }))
    return chart?.({ columns: width - 2, rows: height, theme, seconds: [1, length], series }) ?? []
  }
  const latest = (values: readonly number[]) => (values.length === 0 ? '–' : `${shortAmount(values.at(-1) ?? 0)}bit/s`)
  // In the colours of the lines.
  const legend = (text: string, colour: ThemeColour) => ({ text: ` ${text} `, style: boldStyle(colour) })
  const rates = back.length === 0 ? rows(highRoom, there) : rows(highRoom, there, back)
  const roundTrip = roundTrips.at(-1)
  const badges = [
    legend(`${first} → ${second} ${latest(there)}`, theme.accent),
    ...(back.length === 0 ? [] : [legend(`${second} → ${first} ${latest(back)}`, theme.receiving)]),
  ]
  return [
    rowsPane({
      id: ' rates',
      title: `bits a second, ${first} and ${second}`,
      document: documentOf([...told, ...rates]),
      badges,
      rect: high,
      theme,
      hasKeys: false,
    }),
    rowsPane({
      id: ' trips',
      title: 'round trip, ms',
      document: documentOf(rows({ width: low.width, height: low.height - 2 }, roundTrips)),
      badges: roundTrip === undefined ? [] : [legend(`${roundTrip.toFixed(2)} ms`, theme.accent)],
      rect: low,
      theme,
      hasKeys: true,
    }),
  ]
}
