/** Two hosts second by second: what the servers of iperf3 3.12 and iperf 2.1.8 print while they receive. */
import { expect, it } from 'vitest'
import { compareTests, judgeTest, pairTest } from '../../../../src/ops/net/kept-test.ts'
import { IntervalReader } from '../../../../src/ops/net/pair/measure-pair.ts'
import { newPairRecord, pairSummary, takePairEvent } from '../../../../src/ops/net/pair/pair-record.ts'
import { lineChart } from '../../../../src/ui/charts/line-chart.ts'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { pairPanes } from '../../../../src/ui/network/pair-panes.ts'

const IPERF3 = `Server listening on 5301 (test #1)
[ ID] Interval           Transfer     Bitrate
[  5]   0.00-1.00   sec  5472 KBytes  44826 Kbits/sec  0.010 ms  0/171 (0%)
[  5]   1.00-2.00   sec  6112 KBytes  50069 Kbits/sec  0.012 ms  0/191 (0%)
[  5]   2.00-2.04   sec   250 KBytes  51234 Kbits/sec  0.012 ms  0/7 (0%)
- - - - - - - - - - - - - - - - - - - - - - - - -
[  5]   0.00-2.04   sec  11.6 MBytes  47632 Kbits/sec  0.012 ms  0/369 (0%)  receiver
`
const IPERF2 = `[  1] 0.0000-1.0000 sec  461250000 Bytes  3690000000 bits/sec
[  2] 0.0000-1.0000 sec  100 Bytes  800 bits/sec
[SUM] 0.0000-1.0000 sec  461250100 Bytes  3690000800 bits/sec
[SUM] 0.0000-2.0012 sec  900000000 Bytes  3600000000 bits/sec
`

it.each([1, 7, 1000])('reads each second however the output is cut (%d), without the final report', (size) => {
  const reader = new IntervalReader(1)
  const parts = Array.from({ length: Math.ceil(IPERF3.length / size) }, (_, at) =>
    IPERF3.slice(at * size, (at + 1) * size),
  )
  expect(parts.flatMap((part) => reader.push(part))).toEqual([
    { second: 1, bitsPerSecond: 44_826_000 },
    { second: 2, bitsPerSecond: 50_069_000 },
  ])
})

it('uses the sum of several streams', () => {
  expect(new IntervalReader(2).push(IPERF2)).toEqual([{ second: 1, bitsPerSecond: 3_690_000_800 }])
})

it.each([
  [80, 24],
  [240, 67],
])('is two charts over %d by %d', (width, height) => {
  const record = {
    first: 'm8',
    second: 'm9',
    there: [941e6, 940e6, 200e6],
    back: [900e6, 930e6],
    roundTrips: [0.2, 1.5, 0.3],
    pings: [1, 2, 3],
    failures: [],
  }
  const rect = { column: 0, row: 0, width, height }
  const panes = pairPanes(
    { record, isMeasuring: true, conclusion: undefined },
    { rect, theme: themes.dark, chart: lineChart },
  )
  expect(panes.map(({ title, badges }) => [...title, ...badges].map(({ text }) => text).join(''))).toEqual([
    ' bits a second, m8 and m9  m8 → m9 200Mbit/s  m9 → m8 930Mbit/s ',
    ' round trip, ms  0.30 ms ',
  ])
  // The words have the colours of the lines.
  expect(new Set(panes[0]?.badges.map(({ style }) => style.foreground)).size).toBe(2)
  expect(panes.reduce((sum, pane) => sum + pane.rect.height, 0)).toBe(height)
  for (const { notice } of panes) expect(notice.flat().some(({ text }) => /[\u2801-\u28ff]/.test(text))).toBe(true)
})

it('shows no old value as that of now, and says that a link was interrupted', () => {
  const record = newPairRecord('m8', 'm9')
  const [there, back] = [
    { from: 'm8', to: 'm9' },
    { from: 'm9', to: 'm8' },
  ]
  const ping = (sequence: number) => takePairEvent(record, { type: 'round-trip', ...there, ms: 0.04, sequence })
  const rate = (way: typeof there, bitsPerSecond: number) =>
    takePairEvent(record, { type: 'interval', ...way, second: 0, bitsPerSecond })
  for (const second of [1, 2, 3, 4, 5]) {
    ping(second)
    rate(there, 1e9)
    rate(back, 1e9)
  }
  for (let second = 0; second < 6; second += 1) rate(back, 0)
  const rect = { column: 0, row: 0, width: 80, height: 24 }
  const shown = () =>
    pairPanes({ record, isMeasuring: true, conclusion: undefined }, { rect, theme: themes.dark, chart: lineChart })
      .flatMap(({ badges }) => badges.map(({ text }) => text))
      .join('')
  expect(shown()).toBe(' m8 → m9 –  m9 → m8 0bit/s  – ')
  ping(12)
  // What cannot be is taken for the next one.
  ping(3)
  ping(1e9)
  expect(record.pings).toEqual([1, 2, 3, 4, 5, 12, 13, 14])
  expect(pairSummary(record).at(-1)).toBe('round trip: median 0.04 ms, at most 0.04 ms, 6 of 14 pings not answered')
  // Its rates say nothing about the link.
  const kept = pairTest(record, 'tcp', 0)
  expect([...compareTests(kept, kept, 0), ...judgeTest(kept)]).toEqual([
    {
      gravity: 'risk',
      id: 'interrupted',
      hosts: ['m8', 'm9'],
      text: 'm8 ↔ m9 was interrupted: no traffic for 6 s, no answer to 6 pings',
    },
  ])
})
