/** The traffic between two hosts, as charts. Pure. */
import type { PairRecord } from '../../ops/net/pair/pair-record.ts'
import { boldStyle, type PaneView, type ThemeColour } from '../compositor/scene.ts'
import { documentOf, rowsPane, shortAmount, splitRows } from '../rows/rows-pane.ts'
import { conclusionRows } from './conclusion-rows.ts'
import type { LiveRun } from './network-view.ts'
import type { PaneContext } from './pane-screen.ts'

/** Round trips of fast networks take less than a millisecond. */
const LEAST_TOP = 0.1
/** Seconds; what has not come by then is not the state of now. */
const MOST_LATE = 2

export function pairPanes(run: LiveRun<PairRecord>, { rect, theme, chart }: PaneContext): readonly PaneView[] {
  const { first, second, there, back, roundTrips, pings } = run.record
  const trips: number[] = []
  for (const [index, ping] of pings.entries()) trips[ping - (pings[0] ?? 0)] = roundTrips[index] ?? Number.NaN
  const length = Math.max(there.length, back.length, trips.length)
  const [high, low] = splitRows(rect, Math.ceil((rect.height * 3) / 5))
  const told = conclusionRows(run, rect.width - 2, theme)
  const highRoom = { width: rect.width, height: high.height - 2 - told.length }
  const rows = (
    { width, height }: { readonly width: number; readonly height: number },
    ...lines: (readonly number[])[]
  ) => {
    const series = lines.map((line) => ({ values: Array.from({ length }, (_, index) => line[index] ?? Number.NaN) }))
    return chart?.({ columns: width - 2, rows: height, theme, seconds: [1, length], series, least: LEAST_TOP }) ?? []
  }
  const measured = Math.max(there.length, back.length)
  // Both directions begin together; the pings begin before them.
  const isLate = (seconds: number) => seconds === 0 || seconds < measured - MOST_LATE
  const latest = (values: readonly number[]) =>
    isLate(values.length) ? '–' : `${shortAmount(values.at(-1) ?? 0)}bit/s`
  // In the colours of the lines.
  const legend = (text: string, colour: ThemeColour) => ({ text: ` ${text} `, style: boldStyle(colour) })
  const rates = back.length === 0 ? rows(highRoom, there) : rows(highRoom, there, back)
  const roundTrip = roundTrips.at(-1)
  const trip = roundTrip === undefined || isLate(trips.length) ? '–' : `${roundTrip.toFixed(2)} ms`
  const progress = run.isMeasuring && run.seconds !== undefined ? ` · ${measured} of ${run.seconds} s` : ''
  const badges = [
    legend(`${first} → ${second} ${latest(there)}`, theme.accent),
    ...(back.length === 0 ? [] : [legend(`${second} → ${first} ${latest(back)}`, theme.receiving)]),
  ]
  return [
    rowsPane({
      id: ' rates',
      title: `bits a second, ${first} and ${second}${progress}`,
      document: documentOf([...told, ...rates]),
      badges,
      rect: high,
      theme,
      hasKeys: false,
    }),
    rowsPane({
      id: ' trips',
      title: 'round trip, ms',
      document: documentOf(rows({ width: low.width, height: low.height - 2 }, trips)),
      badges: roundTrip === undefined ? [] : [legend(trip, theme.accent)],
      rect: low,
      theme,
      hasKeys: true,
    }),
  ]
}
