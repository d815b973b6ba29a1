/** Watched hosts as panes: what fits, what is marked, what keys do. */
import { describe, expect, it } from 'vitest'
import { textWidth } from '../../../../src/base/text-width.ts'
import type { Sample } from '../../../../src/ops/net/watch/sample.ts'
import type { WatchedHost } from '../../../../src/ops/net/watch/watch-hosts.ts'
import { lineChart } from '../../../../src/ui/charts/line-chart.ts'
import { type PaneView, themes } from '../../../../src/ui/compositor/scene.ts'
import { watchPanes } from '../../../../src/ui/network/watch-panes.ts'
import { sparkBars } from '../../../../src/ui/network/watch-table.ts'
import { changeWatch, FIRST_VIEW, sortHosts } from '../../../../src/ui/network/watch-view.ts'
import { shortAmount } from '../../../../src/ui/rows/rows-pane.ts'

const sample = (atMs: number, more: Partial<Sample> = {}): Sample => ({
  atMs,
  cores: 8,
  cpu: 0.5,
  load: 1.5,
  memoryBytes: 64e9,
  memoryUsedBytes: 16e9,
  swapBytes: 0,
  swapUsedBytes: 0,
  readBytes: 0,
  writtenBytes: 2.5e6,
  receivedBytes: 117e6,
  sentBytes: 834_000,
  cards: [{ name: 'eno1', receivedBytes: 117e6, sentBytes: 834_000 }],
  gpus: [],
  ...more,
})

const host = (name: string, more: Partial<Sample> = {}): WatchedHost => ({
  host: name,
  samples: Array.from({ length: 200 }, (_, second) => sample(second * 1000, { cpu: (second % 100) / 120, ...more })),
})

const gpu = { id: '0', name: 'A100', busy: 0.7, usedBytes: 1, totalBytes: 2, celsius: 90 }
const hosts = [
  host('m1', { cpu: 0.95 }),
  host('m2', { memoryUsedBytes: 60e9 }),
  host('a-host-with-a-very-long-name', { gpus: [gpu] }),
  { host: 'm4', samples: [], trouble: 'unreachable: connection refused' },
]

const look = (width: number, height: number) => ({
  rect: { column: 0, row: 0, width, height },
  theme: themes.dark,
  nowMs: 200_000,
  chart: lineChart,
})
const textOf = ({ notice }: PaneView) => notice.map((row) => row.map(({ text }) => text).join(''))
/** The pane with the keys comes last: the table. */
const tableOf = (width: number, height: number) =>
  textOf(watchPanes(hosts, FIRST_VIEW, look(width, height)).at(-1) as PaneView)

describe('the table of watched hosts', () => {
  it.each([
    [80, 24],
    [120, 40],
    [240, 67],
  ])('fills %d columns and no more', (width, height) => {
    const lines = tableOf(width, height)
    for (const line of lines) expect(textWidth(line)).toBeLessThanOrEqual(width - 2)
    expect(lines[0]).toMatch(/^▾HOST +CPU (−\d+s)? +MEM +GPU/)
  })

  it('marks what is over its limit without colour too, and says why a host is silent', () => {
    const lines = tableOf(80, 24)
    expect(lines[1]).toMatch(/^ m1 +95%! ./)
    expect(lines[2]).toContain('94%!')
    expect(lines[4]).toMatch(/^ m4 +unreachable: connection refused$/)
  })

  it('shows the machine of the console last, without counting it; unknown values are not 0', () => {
    const { samples } = host('(here)', { cpu: 0.99 })
    const known = samples.map(({ readBytes: _, writtenBytes: __, ...rest }): Sample => rest)
    const own: WatchedHost = { host: '(here)', samples: known, isOwn: true }
    const all = [...hosts, own]
    expect(sortHosts(all, 'cpu').at(-1)).toBe(own)
    const pane = watchPanes(all, FIRST_VIEW, look(240, 24)).at(-1)
    expect(pane?.title.map(({ text }) => text).join('')).toMatch(/^ 3 of 4 hosts · 1 silent · in 351MB/)
    const last = pane?.notice
      .map((row) => row.map(({ text }) => text).join(''))
      .find((line) => line.startsWith(' (here)'))
    expect(last).toMatch(/ 117M █+ +834k █+ +– +– /)
    const details = watchPanes(all, { ...FIRST_VIEW, selected: '(here)', isDetailed: true }, look(80, 24))
    expect(
      details.map(({ title }) =>
        title
          .map(({ text }) => text)
          .join('')
          .trim(),
      ),
    ).toEqual(['CPU', 'memory', 'network', 'load', 'this machine'])
  })

  it.each([
    [80, 24, 2],
    [120, 40, 5],
    [240, 67, 5],
    // No room.
    [80, 14, 0],
  ])('of %d by %d leaves room for charts below it', (width, height, charts) => {
    const panes = watchPanes(hosts, FIRST_VIEW, look(width, height))
    expect(panes).toHaveLength(charts + 1)
    expect(panes.at(-1)?.rect.row).toBe(0)
    expect(panes.reduce((sum, { rect }) => sum + rect.width * rect.height, 0)).toBe(width * height)
    const words = panes
      .slice(0, -1)
      .flatMap(({ title, badges }) => [...title, ...badges].map(({ text }) => text.trim()))
    // Means of parts and sums of rates, of the three that are there.
    if (charts > 2)
      expect(words.slice(0, 7)).toEqual([
        'all hosts CPU',
        '86 %',
        'memory',
        '48 %',
        'network',
        'in 351MB/s',
        'out 2.5MB/s',
      ])
    const chosen = watchPanes(hosts, { ...FIRST_VIEW, selected: 'm2' }, look(width, height))
    if (charts > 0) expect(chosen[0]?.title.map(({ text }) => text).join('')).toBe(' m2 CPU ')
  })

  it('colours values near their limit, and the whole selected row', () => {
    const near = [host('m1', { cpu: 0.8 }), host('m2', { cpu: 0.3 })]
    const panes = watchPanes(near, { ...FIRST_VIEW, selected: 'm1' }, look(80, 8))
    const [, first = [], second = []] = panes.at(-1)?.notice ?? []
    const styleOfWord = (row: typeof first, word: string) => row.find(({ text }) => text.trim() === word)?.style
    expect(styleOfWord(first, '80%')?.foreground).not.toBe(styleOfWord(second, '30%')?.foreground)
    expect(new Set(first.map(({ style }) => style.background)).size).toBe(1)
    expect(first.reduce((sum, { text }) => sum + textWidth(text), 0)).toBe(78)
    expect(first[0]?.style.background).not.toBe(second[0]?.style.background)
  })

  it('sorts by a column, silent hosts last', () => {
    expect(sortHosts(hosts, 'cpu').map(({ host: name }) => name)).toEqual([
      'm1',
      'm2',
      'a-host-with-a-very-long-name',
      'm4',
    ])
    expect(sortHosts(hosts, 'gpu')[0]?.host).toBe('a-host-with-a-very-long-name')
    expect(sortHosts(hosts, 'gpu').at(-1)?.host).toBe('m4')
  })
})

describe('keys of the watched hosts', () => {
  it('select a host, show its charts, and go back', () => {
    const down = changeWatch(FIRST_VIEW, hosts, 'Down')
    expect(down).toMatchObject({ selected: 'm1' })
    const next = changeWatch({ ...FIRST_VIEW, selected: 'm1' }, hosts, 'j')
    expect(next).toMatchObject({ selected: 'm2' })
    const details = changeWatch({ ...FIRST_VIEW, selected: 'm2' }, hosts, 'Enter')
    expect(details).toMatchObject({ selected: 'm2', isDetailed: true })
    expect(changeWatch({ ...FIRST_VIEW, isDetailed: true }, hosts, 'Esc')).toMatchObject({ isDetailed: false })
    expect(changeWatch(FIRST_VIEW, hosts, 'q')).toBe('leave')
    expect(changeWatch(FIRST_VIEW, hosts, 's')).toMatchObject({ sort: 'cpu' })
    expect(changeWatch(FIRST_VIEW, hosts, 'x')).toBeUndefined()
  })
})

describe('the charts of a host', () => {
  it.each([
    [80, 24],
    [240, 67],
  ])('fit into %d by %d', (width, height) => {
    const panes = watchPanes(hosts, { ...FIRST_VIEW, selected: 'm1', isDetailed: true }, look(width, height))
    expect(panes).toHaveLength(5)
    for (const { rect, notice } of panes) {
      expect(notice).toHaveLength(rect.height - 2)
      for (const row of notice) {
        expect(row.reduce((sum, { text }) => sum + textWidth(text), 0)).toBeLessThanOrEqual(rect.width - 2)
      }
    }
    const cells = panes.reduce((sum, { rect }) => sum + rect.width * rect.height, 0)
    expect(cells).toBe(width * height)
    // The line of the processor, in braille.
    expect(panes[0]?.notice.flat().some(({ text }) => /[\u2801-\u28ff]/.test(text))).toBe(true)
  })

  it('write round numbers on their scale, and use every row', () => {
    const values = [0, 3.2e6, 6e9]
    const rows = lineChart({
      columns: 38,
      rows: 6,
      labels: ['-2s', '-1s', '-0s'],
      series: [{ values }],
      theme: themes.dark,
    })
    const lines = rows.map((row) => row.map(({ text }) => text).join(''))
    expect(lines.join('\n')).toMatch(/^ *\d[\d.]*G/m)
    expect(lines.at(-1)).toContain('-1s')
  })

  it('show what is at the end of the scale', () => {
    const series = [{ values: [100, 100, 100] }]
    const rows = lineChart({
      columns: 38,
      rows: 7,
      labels: ['-2s', '-1s', '-0s'],
      series,
      most: 100,
      theme: themes.dark,
    })
    const [first = ''] = rows.map((row) => row.map(({ text }) => text).join(''))
    expect(first).toMatch(/^100 +.[\u2801-\u28ff]{10}/)
  })

  it('draw nothing without values, and a line for values that are all 0', () => {
    const options = { columns: 40, rows: 10, theme: themes.dark }
    expect(lineChart({ ...options, labels: [], series: [{ values: [] }] })).toEqual([])
    expect(lineChart({ ...options, labels: ['a', 'b'], series: [{ values: [0, Number.NaN] }] })).toHaveLength(10)
  })
})

it('writes amounts in five columns, and bars for known values', () => {
  expect([0, 999, 1500, 999_700, 12_300_000, 4.2e12].map(shortAmount)).toEqual([
    '0',
    '999',
    '1.5k',
    '1.0M',
    '12M',
    '4.2T',
  ])
  const sparkline = (values: readonly (number | undefined)[], columns: number, step: number, most: number) =>
    sparkBars(values, (value) => value, { columns, step, most })
      .map(({ text }) => text)
      .join('')
  expect(sparkline([0, 0.5, 1], 5, 1, 1)).toBe('  ▁▅█')
  expect(sparkline([0, 1, 1, 1], 2, 2, 1)).toBe('▅█')
  expect(sparkline([0, undefined, 1], 3, 1, 1)).toBe('▁ █')
})
