/** Watched hosts as panes: what fits, what is marked, what keys do. */
import { describe, expect, it } from 'vitest'
import { textWidth } from '../../../../src/base/text-width.ts'
import type { Sample } from '../../../../src/ops/net/watch/sample.ts'
import type { WatchedHost } from '../../../../src/ops/net/watch/watch-hosts.ts'
import { type ChartOptions, lineChart } from '../../../../src/ui/charts/line-chart.ts'
import { type PaneView, themes } from '../../../../src/ui/compositor/scene.ts'
import { shownHosts } from '../../../../src/ui/network/watch-columns.ts'
import { watchPanes } from '../../../../src/ui/network/watch-panes.ts'
import { sparkBars } from '../../../../src/ui/network/watch-table.ts'
import { changeWatch, FIRST_VIEW, type WatchView } from '../../../../src/ui/network/watch-view.ts'
import { shortAmount, shortMemory } from '../../../../src/ui/rows/rows-pane.ts'
import { FIRST_TABLE_VIEW } from '../../../../src/ui/rows/table-view.ts'

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
  tables: { hosts: FIRST_TABLE_VIEW, processes: FIRST_TABLE_VIEW },
})
const sorted = (rows: readonly WatchedHost[], sort: string) => shownHosts(rows, { ...FIRST_TABLE_VIEW, sort })
const textOf = ({ notice }: PaneView) => notice.map((row) => row.map(({ text }) => text).join(''))
/** The pane with the keys comes last: the table. */
const tableOf = (width: number, height: number) =>
  textOf(watchPanes(hosts, FIRST_VIEW, look(width, height)).at(-1) as PaneView)

describe('the table of watched hosts', () => {
  it('is filtered by what its rows show, why a host does not answer included', () => {
    const silent = { ...host('m5'), trouble: 'no route to host' }
    const all = [...hosts, silent, { host: 'm6', samples: [] }]
    const left = (text: string) =>
      shownHosts(all, { ...FIRST_TABLE_VIEW, filter: { text, cursor: 0 } }).map((one) => one.host)
    expect(left('95%')).toEqual(['m1'])
    expect(left('95')).toEqual([])
    expect(left('cpu:95')).toEqual(['m1'])
    expect(left('route')).toEqual(['m5'])
    expect(left('!route !refused !collecting')).toEqual(['m1', 'm2', 'a-host-with-a-very-long-name'])
    // The last values of a host that does not answer are not shown.
    expect(left('117M')).not.toContain('m5')
  })

  it.each([
    [80, 24],
    [120, 40],
    [240, 67],
  ])('fills %d columns and no more', (width, height) => {
    const lines = tableOf(width, height)
    for (const line of lines) expect(textWidth(line)).toBeLessThanOrEqual(width - 2)
    expect(lines[0]).toMatch(/^ HOST▴ +CPU(, \d+ s)? +MEM +GPU/)
  })

  it('marks what is over its limit without colour too, and says why a host is silent', () => {
    const lines = tableOf(80, 24)
    expect(lines[1]).toMatch(/^ m1 +95%! ./)
    expect(lines[2]).toContain('94%!')
    expect(lines[4]).toMatch(/^ m4 +unreachable: connection refused$/)
  })

  it('keeps its columns whatever a host reports', () => {
    const wild = {
      load: 1e19,
      receivedBytes: 1e19,
      fullest: { point: '/', used: 1e7 },
      gpus: [{ ...gpu, celsius: 1e19 }],
    }
    const panes = watchPanes([host('m1', { gpus: [gpu] }), host('m2', wild)], FIRST_VIEW, look(200, 20))
    const lines = textOf(panes.at(-1) as PaneView)
    const [plain = '', of2 = ''] = ['m1', 'm2'].map((name) => lines.find((line) => line.includes(name)))
    expect(textWidth(of2)).toBe(textWidth(plain))
    expect(of2).toMatch(/ {2}50% 1000… .* 100…! 100…! 10…!$/)
  })

  it('shows the machine of the console last, without counting it; unknown values are not 0', () => {
    const { samples } = host('(here)', { cpu: 0.99 })
    const known = samples.map(({ readBytes: _, writtenBytes: __, ...rest }): Sample => rest)
    const own: WatchedHost = { host: '(here)', samples: known, isOwn: true }
    const all = [...hosts, own]
    expect(sorted(all, 'CPU').at(-1)).toBe(own)
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

  it('calls no host silent that has not answered yet', () => {
    const fresh = ['m1', 'm2'].map((host): WatchedHost => ({ host, samples: [] }))
    const pane = watchPanes(fresh, FIRST_VIEW, look(80, 24)).at(-1)
    expect(pane?.title.map(({ text }) => text).join('')).toMatch(/^ 0 of 2 hosts · in 0B/)
  })

  it('sorts by a column, silent hosts last', () => {
    expect(sorted(hosts, 'CPU').map(({ host: name }) => name)).toEqual([
      'm1',
      'm2',
      'a-host-with-a-very-long-name',
      'm4',
    ])
    expect(sorted(hosts, 'GPU')[0]?.host).toBe('a-host-with-a-very-long-name')
    expect(sorted(hosts, 'GPU').at(-1)?.host).toBe('m4')
  })

  it('names the column that it is sorted by if that column does not fit', () => {
    const title = (sort: string, width: number) => {
      const tables = { hosts: { ...FIRST_TABLE_VIEW, sort }, processes: FIRST_TABLE_VIEW }
      const pane = watchPanes(hosts, FIRST_VIEW, { ...look(width, 24), tables }).at(-1)
      return pane?.title.map(({ text }) => text).join('')
    }
    expect(title('LOAD', 80)).toMatch(/out \S+ by LOAD▾ $/)
    expect(title('LOAD', 240)).not.toContain('LOAD')
    expect(title('CPU', 80)).not.toContain('CPU')
  })
})

it('writes invisible characters in names of cards and file systems as escapes', () => {
  const card = { name: 'eth\u202e0', receivedBytes: 1, sentBytes: 1 }
  const sample = { fullest: { point: '/mnt\u202e/x', used: 0.5 }, cards: [card] }
  const view = { ...FIRST_VIEW, selected: 'm1', isDetailed: true }
  const text = watchPanes([host('m1', sample)], view, look(120, 38))
    .flatMap(textOf)
    .join('\n')
  expect(text).toContain('/mnt\\u202e/x 50%')
  expect(text).toContain('eth\\u202e0 in ')
})

describe('the page of a host with many GPUs', () => {
  const processes = Array.from({ length: 50 }, (_, pid) => ({
    ...{ pid, state: 'R', threads: 1, command: 'train', memoryBytes: 1e9 },
  }))
  const page = (count: number, width: number, height: number, name = (_: number): string => 'A100', use = {}) => {
    const gpus = Array.from({ length: count }, (_, id) => ({ ...gpu, id: String(id), name: name(id) }))
    const view = { ...FIRST_VIEW, selected: 'm1', isDetailed: true }
    const last = { atMs: 200_000, processes: processes.map((each) => ({ ...each, ...use })), isCut: false }
    const watched = { ...look(width, height), processes: { host: 'm1', last } }
    const lines = textOf(watchPanes([host('m1', { gpus })], view, watched).at(-1) as PaneView)
    for (const line of lines) expect(textWidth(line)).toBeLessThanOrEqual(width - 2)
    return lines.map((line) => line.trimEnd())
  }

  it.each([
    [2, 80, 22],
    [8, 120, 38],
  ])('has a line for each of %d at %d by %d', (count, width, height) => {
    const lines = page(count, width, height).filter((line) => line.startsWith('GPU '))
    expect(lines).toHaveLength(count)
    expect(lines[1]).toBe('GPU 1 A100 · 70% · 1 B of 2 B · 90 °C')
  })

  it.each([
    [8, 80, 22],
    [20, 120, 38],
    [64, 240, 65],
  ])('shows several of %d in a line at %d by %d', (count, width, height) => {
    const shown = page(count, width, height)
    const [first = '', ...rest] = shown.slice(1)
    expect(first).toMatch(new RegExp(`^${count} GPUs A100 · 0: 70% 1 · 1: 70% 1 · `))
    expect([first, ...rest].join(' · ').match(/\b\d+: 70% 1/g)).toHaveLength(count)
    expect(shown.filter((line) => / train$/.test(line)).length).toBeGreaterThan(5)
  })

  it('shows control characters of a name as elsewhere, and all GPUs beside it', () => {
    const name = (id: number) => `\u001b[31m${'B'.repeat(10)}\r${id}`
    expect(page(2, 80, 22, name)[1]).toBe('GPU 0 \\x1b[31mBBBBBBBBBB\\x0d0 · 70% · 1 B of 2 B · 90 °C')
    const lines = page(8, 80, 22, () => name(0))
      .slice(1, 4)
      .join(' · ')
    expect(lines).toMatch(/^8 GPUs \\x1b\[31mB{10}\\x0d0 · 0: 70% 1 · /)
    expect(lines.match(/\b\d+: 70% 1/g)).toHaveLength(8)
  })

  it('keeps the columns of its processes apart, whatever a host says', () => {
    const use = { gpu: 1, gpuBytes: 1e18, readBytes: 1e18, writtenBytes: 1e18 }
    const row = page(2, 120, 38, undefined, use).find((line) => line.endsWith(' train')) ?? ''
    expect(row.trim().split(/ +/)).toHaveLength(8)
  })

  it('marks the selected process also without colour', () => {
    const last = { atMs: 200_000, processes: processes.slice(0, 3), isCut: false }
    const view = { ...FIRST_VIEW, selected: 'm1', isDetailed: true, pid: 1 }
    const pane = watchPanes([host('m1')], view, { ...look(80, 22), processes: { host: 'm1', last } }).at(-1)
    const rows = textOf(pane as PaneView).filter((line) => / train *$/.test(line))
    expect(rows.map((row) => row.slice(0, 9))).toEqual(['       0 ', '▸      1 ', '       2 '])
  })

  it('says how many do not fit', () => {
    const lines = page(64, 80, 22, (id) => (id === 0 ? 'A100' : 'H100')).slice(1, 3)
    expect(lines[0]).toMatch(/^64 GPUs · 0: 70% 1 · /)
    const shown = lines.join(' · ').match(/\d+: 70% 1/g)?.length ?? 0
    expect(lines[1]).toMatch(new RegExp(` · … ${64 - shown} more$`))
  })

  it('says how old the numbers of a host are that is silent, and titles no chart with them', () => {
    const silent = { ...host('m1'), trouble: 'no data for 30 s' }
    const view = { ...FIRST_VIEW, selected: 'm1', isDetailed: true }
    const at = (nowMs: number) => watchPanes([silent], view, { ...look(80, 22), nowMs })
    const badgesOf = (panes: readonly PaneView[]) =>
      panes.slice(0, 2).map(({ badges }) => badges.map(({ text }) => text.trim()).join(' '))
    expect(textOf(at(200_000).at(-1) as PaneView)[1]?.trimEnd()).toMatch(/^CPU 83% of 8 cores/)
    expect(badgesOf(at(200_000))).toEqual(['83 %', '25 %'])
    expect(textOf(at(229_000).at(-1) as PaneView)[1]?.trimEnd()).toMatch(/^30 s ago · CPU 83% of 8 cores/)
    expect(badgesOf(at(229_000))).toEqual(['–', '–'])
  })

  it('also where the processes are not known, as in a recording', () => {
    const gpus = Array.from({ length: 8 }, (_, id) => ({ ...gpu, id: String(id) }))
    const view = { ...FIRST_VIEW, selected: 'm1', isDetailed: true }
    const lines = textOf(watchPanes([host('m1', { gpus })], view, look(80, 22)).at(-1) as PaneView)
    expect(lines.map((line) => line.trimEnd()).slice(1)).toEqual([
      '8 GPUs A100 · 0: 70% 1 · 1: 70% 1 · 2: 70% 1 · 3: 70% 1 · 4: 70% 1 · 5: 70% 1',
      '6: 70% 1 · 7: 70% 1',
      expect.stringMatching(/^eno1 in/),
    ])
  })
})

describe('keys of the watched hosts', () => {
  it('select a host, show its charts, and go back', () => {
    const press = (view: WatchView, label: string) => changeWatch(view, { hosts, processes: [] }, label)
    expect(press(FIRST_VIEW, 'Down')).toMatchObject({ selected: 'm1' })
    expect(press(FIRST_VIEW, 'G')).toMatchObject({ selected: hosts.at(-1)?.host })
    expect(press({ ...FIRST_VIEW, selected: 'm1' }, 'j')).toMatchObject({ selected: 'm2' })
    const page = press({ ...FIRST_VIEW, selected: 'm2' }, 'Enter')
    expect(page).toMatchObject({ selected: 'm2', isDetailed: true })
    expect(press(page as WatchView, 'Left')).toMatchObject({ selected: 'm1', isDetailed: true })
    expect(press(page as WatchView, 'Esc')).toMatchObject({ selected: 'm2', isDetailed: false })
    expect(press(FIRST_VIEW, 'q')).toBe('leave')
    expect(press(FIRST_VIEW, 'x')).toBeUndefined()
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

  const drawn = (options: Partial<ChartOptions>): string[] => {
    const series = [{ values: [0, 3.2e6, 6e9] }]
    const rows = lineChart({ columns: 38, rows: 6, seconds: [-60, 0], series, theme: themes.dark, ...options })
    return rows.map((row) => row.map(({ text }) => text).join(''))
  }
  const scaleOf = (lines: readonly string[]) =>
    lines.flatMap((line) => /^[\d.]+[kMG]?(?= )/.exec(line)?.[0] ?? []).reverse()
  const timesOf = (lines: readonly string[]) => lines.at(-1)?.trim().split(/ {2,}/)

  it.each([
    [6e9, 6, ['0', '10G']],
    [6e9, 7, ['0', '5G', '10G']],
    [6e9, 18, ['0', '2G', '4G', '6G']],
    [0.7, 18, ['0', '0.2', '0.4', '0.6', '0.8', '1']],
    [941e6, 18, ['0', '200M', '400M', '600M', '800M', '1G']],
    [1340, 12, ['0', '500', '1k', '1.5k']],
    [0, 12, ['0', '0.5', '1']],
  ])('have a scale of round numbers in equal steps up to %d in %d rows', (most, rows, scale) => {
    expect(scaleOf(drawn({ rows, series: [{ values: [0, most] }] }))).toEqual(scale)
  })

  it('have a percent scale to exactly 100', () => {
    const scales = [6, 9, 12, 18].map((rows) => scaleOf(drawn({ rows, most: 100 })))
    expect(scales).toEqual([
      ['0', '100'],
      ['0', '50', '100'],
      ['0', '50', '100'],
      ['0', '20', '40', '60', '80', '100'],
    ])
  })

  it.each([undefined, 100])('have ticks that are equally many rows apart, whatever their height (to %j)', (most) => {
    for (let rows = 4; rows < 60; rows += 1) {
      for (const value of [0.03, 1, 3, 41, 64, 700, 1340, 6e9, 7.1e9]) {
        const lines = drawn({ rows, series: [{ values: [0, value] }], ...(most === undefined ? {} : { most }) })
        expect(lines).toHaveLength(rows)
        const ticks = lines.flatMap((line, row) => (/^[\d.]+[kMG]? /.test(line) ? [row] : []))
        const distances = ticks.slice(1).map((row, index) => row - (ticks[index] ?? 0))
        expect(new Set(distances).size, `${value} in ${rows} rows: ${ticks}`).toBe(1)
        expect(ticks.length).toBeGreaterThan(rows < 9 ? 1 : 2)
      }
    }
  })

  it.each([
    [-60, 0, 38, ['-60 s', '-45 s', '-30 s', '-15 s', 'now']],
    [-900, 0, 38, ['-15 min', '-10 min', '-5 min', 'now']],
    [-900, 0, 120, ['-14 min', '-12 min', '-10 min', '-8 min', '-6 min', '-4 min', '-2 min', 'now']],
    [1, 10, 80, ['1 s', '2 s', '3 s', '4 s', '5 s', '6 s', '7 s', '8 s', '9 s', '10 s']],
    [-300, 0, 24, ['-4 min', '-2 min', 'now']],
    [-300, 0, 230, ['-5 min', '-4 min', '-3 min', '-2 min', '-1 min', 'now']],
  ])('from %d to %d seconds in %d columns have whole labels of the time, in equal steps', (from, to, columns, labels) => {
    const lines = drawn({ columns, seconds: [from, to], series: [{ values: [1, 2, 3] }] })
    expect(timesOf(lines)).toEqual(labels)
    expect(Math.max(...lines.map(textWidth))).toBeLessThanOrEqual(columns)
  })

  it('name what is below them if that is no time', () => {
    const tickText = (number: number) => `file ${number}`
    const lines = drawn({ columns: 60, seconds: [1, 200], series: [{ values: [1, 2, 3] }], tickText })
    expect(lines.join('\n')).toMatch(/file 60 +file 120 +file 180/)
  })

  it('show what is at both ends of the scale and of the time', () => {
    const [first = ''] = drawn({ rows: 7, series: [{ values: [100, 100, 100] }], most: 100 })
    expect(first).toMatch(/^100 +.[\u2801-\u28ff]{10}/)
    expect(first).toHaveLength(38)
  })

  it('draw nothing without values, a line for values that are all 0, and a gap where nothing is known', () => {
    expect(drawn({ series: [{ values: [] }] })).toEqual([])
    const values = [0, 0, 0, 0, Number.NaN, Number.NaN, Number.NaN, 0, 0, 0]
    expect(drawn({ rows: 10, series: [{ values }] })[7]).toMatch(/^0 .*[\u2801-\u28ff]{8} {8,}[\u2801-\u28ff]{3}/)
  })

  it('keep a gap where a host was away, and bridge a sample that came late', () => {
    const at = (...seconds: number[]) => seconds.map((second) => sample(second * 1000, { cpu: 0.5 }))
    const seconds = Array.from({ length: 60 }, (_, second) => second)
    const line = (missing: (second: number) => boolean) => {
      const samples = at(...seconds.filter((second) => !missing(second)))
      const chosen = { ...FIRST_VIEW, selected: 'm1', isDetailed: true }
      const [cpu] = watchPanes([{ host: 'm1', samples }], chosen, { ...look(80, 40), nowMs: 60_000 })
      const row = textOf(cpu as PaneView).find((text) => /[\u2801-\u28ff] *[\u2801-\u28ff]{8}/.test(text)) ?? ''
      return row.replace(/^.*?[\u2801-\u28ff]/, '').trim()
    }
    expect(line((second) => second % 7 === 3)).not.toContain(' ')
    expect(line((second) => second > 20 && second < 40)).toMatch(/^ *[\u2801-\u28ff]+ {8,}[\u2801-\u28ff]+$/)
  })
})

it('writes amounts in five columns', () => {
  const amounts = [0, 999, 1500, 999_700, 12_300_000, 4.2e12].map(shortAmount)
  expect(amounts).toEqual(['0', '999', '1.5k', '1.0M', '12M', '4.2T'])
})

it('counts memory in powers of 1024: a card of 140 GiB is not one of 151', () => {
  const amounts = [0, 999, 1000, 512 * 2 ** 20, 1023 * 2 ** 20, 150_754_820_096].map(shortMemory)
  expect(amounts).toEqual(['0', '999', '1.0k', '512M', '1.0G', '140G'])
})

describe('sparklines', () => {
  const sparkline = (values: Readonly<Record<number, number | undefined>>, columns: number, seconds = 1) =>
    sparkBars(
      Object.entries(values).map(([second, value]) => ({ atMs: Number(second) * 1000 + 200, value })),
      ({ value }) => value,
      { columns, stepMs: seconds * 1000, newestMs: 10_200, most: 1 },
    )
      .map(({ text }) => text)
      .join('')

  it('fill their width from the beginning, dotted where nothing is known', () => {
    expect(sparkline({ 8: 0, 9: 0.5, 10: 1 }, 5)).toBe('··▁▅█')
    expect(sparkline({ 8: 0, 9: undefined, 10: undefined }, 3)).toBe('▁▁▁')
    expect(sparkline({}, 4)).toBe('····')
    expect(sparkline({ 7: 0, 8: 1, 9: 1, 10: 1 }, 2, 2)).toBe('██')
    expect(sparkline({ 6: 0, 8: 1, 9: 0, 10: 1 }, 3, 2)).toBe('▁▅█')
  })

  it('bridge a late sample, and show for how long a host was away', () => {
    expect(sparkline({ 0: 1, 1: 1, 2: 1, 4: 0, 5: 1, 7: 0, 9: 1, 10: 1 }, 11)).toBe('████▁██▁▁██')
    expect(sparkline({ 0: 0, 1: 1, 9: 0, 10: 1 }, 11)).toBe('▁████····▁█')
  })
})
