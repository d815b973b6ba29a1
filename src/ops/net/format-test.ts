/** A pair or an NFS mount that was measured, as CSV and as charts (SVG). Pure. */
import { csvCell } from '../../base/csv-cell.ts'
import { escapeHtml } from '../../base/escape-html.ts'
import { printable } from '../../base/printable.ts'
import { clockText, dayText } from '../../base/time-text.ts'
import { formatValue, type KeptTest, seriesOf, type TestSeries } from './kept-test.ts'
import type { NetFinding } from './mesh/judge.ts'
import { nfsPlace, nfsSummary } from './nfs/measure-nfs.ts'
import { pairSummary } from './pair/pair-record.ts'

/** The results in words. Not printable yet. */
export const testSummary = (test: KeptTest): readonly string[] =>
  test.kind === 'pair' ? pairSummary(test.record) : nfsSummary(test.record)

/** `m1 and m2, 2026-11-22 13:51` */
export function testTitle(test: KeptTest): string {
  const { kind, record, time } = test
  const what = kind === 'pair' ? `${record.first} and ${record.second}` : nfsPlace(record)
  const timeMs = Date.parse(time)
  return printable(`${what}, ${dayText(timeMs)} ${clockText(timeMs)}`)
}

/** A line for each second and direction, or for each file. */
export function testCsv(test: KeptTest): string {
  const rows = seriesOf(test).flatMap(({ name, unit, values }) =>
    values.map((value, index) => [name, unit, index + 1, value].map(csvCell).join(',')),
  )
  return ['measured,unit,number,value', ...rows].map((line) => `${line}\n`).join('')
}

const WIDTH = 760
const PLOT = 120
const LEFT = 110
const RIGHT = 20
const CHART = PLOT + 48
const COLOURS = ['#2f6fde', '#d1495b'] as const

export function testSvg(test: KeptTest, findings: readonly NetFinding[]): string {
  const charts = [...Map.groupBy(seriesOf(test), ({ name, unit }) => (unit === 'bit/s' ? unit : name)).values()].filter(
    (chart) => chart.some(({ values }) => values.length > 0),
  )
  const words = [...testSummary(test), ...findings.map(({ gravity, text }) => `${gravity}: ${text}`)]
  const below = 52 + charts.length * CHART + 12
  const height = below + words.length * 18 + 8
  const lines = words.map(
    (line, index) => `<text x="20" y="${below + index * 18}" font-size="12">${escapeHtml(printable(line))}</text>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="ui-sans-serif, sans-serif" font-size="13" fill="#20242c">
<rect width="100%" height="100%" fill="#ffffff"/>
<text x="20" y="28" font-size="17" font-weight="600">${escapeHtml(testTitle(test))}</text>
${[...charts.map((chart, index) => chartSvg(chart, 52 + index * CHART)), ...lines].join('\n')}
</svg>
`
}

function chartSvg(chart: readonly TestSeries[], top: number): string {
  const all = chart.flatMap(({ values }) => values)
  const most = all.reduce((max, value) => Math.max(max, value), 0)
  const count = chart.reduce((longest, { values }) => Math.max(longest, values.length), 0)
  const [first] = chart
  const bottom = top + 18 + PLOT
  const x = (index: number) => LEFT + (count < 2 ? 0 : (index / (count - 1)) * (WIDTH - LEFT - RIGHT))
  const y = (value: number) => bottom - (most === 0 ? 0 : (value / most) * PLOT)
  const names = chart.map(
    ({ name }, index) =>
      `<tspan fill="${COLOURS[index % 2]}"${index === 0 ? '' : ' dx="16"'}>${escapeHtml(printable(name))}</tspan>`,
  )
  const lines = chart.map(({ values }, index) => {
    const points = values.map((value, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(' ')
    return `<polyline points="${points}" fill="none" stroke="${COLOURS[index % 2]}" stroke-width="2"/>`
  })
  return `<text x="${LEFT}" y="${top + 10}">${names.join('')}</text>
<path d="M${LEFT} ${top + 18}V${bottom}H${WIDTH - RIGHT}" fill="none" stroke="#9aa1ad"/>
<text x="${LEFT - 8}" y="${top + 24}" text-anchor="end" fill="#6b7280">${first === undefined ? '' : escapeHtml(formatValue(most, first.unit))}</text>
<text x="${LEFT - 8}" y="${bottom}" text-anchor="end" fill="#6b7280">0</text>
<text x="${WIDTH - RIGHT}" y="${bottom + 16}" text-anchor="end" fill="#6b7280">${count}${first?.name === 'small file' ? ' files' : ' s'}</text>
${lines.join('\n')}`
}
