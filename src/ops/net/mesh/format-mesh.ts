/** A mesh for a terminal (matrix of bandwidths, slowest links, findings), as CSV, and as a picture (SVG). Pure. */
import { csvCell } from '../../../base/csv-cell.ts'
import { escapeHtml } from '../../../base/escape-html.ts'
import { formatBitRate, shortBitRate } from '../../../base/format-bit-rate.ts'
import { printable } from '../../../base/printable.ts'
import { clockText, dayText } from '../../../base/time-text.ts'
import { GRAVITIES, type Gravity } from '../../kernel/finding.ts'
import { measuredOf, median, type NetFinding, noProblemsText, retransmitsAGigabyte } from './judge.ts'
import { formatMs, type LinkOutcome, type LinkResult } from './link.ts'
import type { MeshReport } from './measure-mesh.ts'

/** `best` … `worst` against `usualRate`; `failed` without a result. */
export type Heat = 'best' | 'good' | 'poor' | 'worst' | 'failed'

export type MeshPaint = {
  heat(heat: Heat, text: string): string
  gravity(gravity: Gravity, text: string): string
  muted(text: string): string
}

export const PLAIN_PAINT: MeshPaint = { heat: (_, text) => text, gravity: (_, text) => text, muted: (text) => text }

const BARS = '▁▂▃▄▅▆▇█'
const SLOWEST = 5

/** The median of all links; of UDP the rate that was asked for. Undefined: nothing was measured. */
export const usualRate = ({ links, udpBitsPerSecond }: Pick<MeshReport, 'links' | 'udpBitsPerSecond'>) =>
  udpBitsPerSecond ?? median(measuredOf(links).map(({ outcome }) => outcome.bitsPerSecond))

export function heatOf(outcome: LinkOutcome | undefined, usual: number): Heat {
  if (outcome?.kind !== 'measured') return 'failed'
  const part = outcome.bitsPerSecond / usual
  return part >= 0.9 ? 'best' : part >= 0.6 ? 'good' : part >= 0.3 ? 'poor' : 'worst'
}

export function formatMesh(
  report: MeshReport,
  findings: readonly NetFinding[],
  columns: number,
  paint: MeshPaint,
): string {
  const matrix = formatMatrix(report, columns, paint)
  const lines = [...matrix, ...formatNumbers(report), '', ...formatFindings(report, findings, paint)]
  return lines.map((line) => `${line}\n`).join('')
}

function formatMatrix(report: MeshReport, columns: number, paint: MeshPaint): readonly string[] {
  const { hosts, links } = report
  const names = hosts.map(({ name }) => printable(name))
  const outcomes = new Map(links.map(({ from, to, outcome }) => [JSON.stringify([from, to]), outcome]))
  const rates = measuredOf(links).map(({ outcome }) => outcome.bitsPerSecond)
  const usual = usualRate(report) ?? 1
  const most = rates.reduce((max, rate) => Math.max(max, rate), 1)
  const nameWidth = Math.min(16, Math.max(9, ...names.map(({ length }) => length)))
  const wide = Math.max(6, Math.min(10, Math.max(...names.map(({ length }) => length)) + 1))
  const isWide = nameWidth + names.length * wide <= columns
  // Sixty hosts on 80 columns: no blanks between the bars.
  const width = isWide ? wide : nameWidth + names.length * 2 <= columns ? 2 : 1
  const cell = (from: string, to: string): string => {
    if (from === to) return '·'.padStart(width)
    const outcome = outcomes.get(JSON.stringify([from, to]))
    const heat = heatOf(outcome, usual)
    if (outcome?.kind !== 'measured')
      return paint.heat(heat, (outcome === undefined ? '' : isWide ? '–' : '×').padStart(width))
    const bar = BARS[Math.min(7, Math.floor((outcome.bitsPerSecond / most) * 8))] ?? ''
    return paint.heat(heat, (isWide ? shortBitRate(outcome.bitsPerSecond) : bar).padStart(width))
  }
  const rows = hosts.map(({ name }, index) => {
    const label = isWide
      ? cut(names[index] ?? '', nameWidth)
      : `${cut(names[index] ?? '', nameWidth - 3)}${String(index + 1).padStart(3)}`
    return label.padEnd(nameWidth) + hosts.map((other) => cell(name, other.name)).join('')
  })
  const heads = isWide
    ? [
        'from ↓ to →'.slice(0, nameWidth).padEnd(nameWidth) +
          names.map((name) => cut(name, width - 1).padStart(width)).join(''),
      ]
    : [10, 1].map(
        (unit) =>
          (unit === 10 ? '' : width === 1 ? 'from ↓' : 'from ↓ to').padEnd(nameWidth) +
          names.map((_, index) => digit(index + 1, unit).padStart(width)).join(''),
      )
  const legend = isWide ? [] : [`${BARS} up to ${formatBitRate(most)}, × not measured`]
  return [...heads.map(paint.muted), ...rows, ...legend]
}

function digit(number: number, unit: number): string {
  const text = String(Math.floor(number / unit) % 10)
  return number < unit ? ' ' : text
}

function formatNumbers({ links, pings, udpBitsPerSecond }: MeshReport): readonly string[] {
  const measured = measuredOf(links)
  const rates = measured.map(({ outcome }) => outcome.bitsPerSecond)
  const middle = median(rates)
  const times = pings.flatMap(({ meanMs }) => meanMs ?? [])
  const meanTime = median(times)
  if (middle === undefined) return ['no link was measured']
  const summary = [
    ...(udpBitsPerSecond === undefined ? [] : [`UDP at ${formatBitRate(udpBitsPerSecond)}`]),
    `median ${formatBitRate(middle)}`,
    `fastest ${formatBitRate(Math.max(...rates))}`,
    ...(meanTime === undefined ? [] : [`round trip ${formatMs(meanTime)}, at most ${formatMs(Math.max(...times))}`]),
  ].join(' · ')
  const slowest = measured.toSorted((one, other) => one.outcome.bitsPerSecond - other.outcome.bitsPerSecond)
  const shown = slowest.slice(0, SLOWEST).map((link) => `  ${describeLink(link, pings)}`)
  return ['', summary, 'slowest:', ...shown]
}

/** `m1 → m2  19.1 Mbit/s  0.3 ms  120 retransmits a GB` */
function describeLink(link: LinkResult, pings: MeshReport['pings']): string {
  const { from, to, outcome } = link
  if (outcome.kind !== 'measured') return `${from} → ${to}  ${outcome.reason}`
  const ping = pings.find((each) => each.from === from && each.to === to)
  const resent = retransmitsAGigabyte(outcome)
  const parts = [
    formatBitRate(outcome.bitsPerSecond).padEnd(12),
    ...(ping?.meanMs === undefined ? [] : [formatMs(ping.meanMs).padEnd(8)]),
    ...(outcome.jitterMs === undefined ? [] : [`jitter ${formatMs(outcome.jitterMs)}`]),
    ...(outcome.lostFraction === undefined ? [] : [`lost ${Number((outcome.lostFraction * 100).toFixed(2))} %`]),
    ...(resent === undefined ? [] : [`${Math.round(resent)} retransmits a GB`]),
    ...(outcome.tool === 'ssh' ? ['over ssh'] : []),
  ]
  return printable(`${from} → ${to}  ${parts.join('  ')}`).trimEnd()
}

function formatFindings(report: MeshReport, findings: readonly NetFinding[], paint: MeshPaint): readonly string[] {
  const width = Math.max(...GRAVITIES.map((word) => word.length))
  if (findings.length === 0) return [noProblemsText(report)]
  return findings.map(({ gravity, text }) => `${paint.gravity(gravity, gravity.padEnd(width))}  ${printable(text)}`)
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`
}

const CSV_COLUMNS =
  'from,to,outcome,tool,bits_per_second,retransmits,jitter_ms,lost_percent,round_trip_ms,loaded_round_trip_ms,reason'

export function meshCsv({ links, pings }: MeshReport): string {
  const rows = links.map(({ from, to, outcome }) => {
    const ping = pings.find((each) => each.from === from && each.to === to)
    const measured = outcome.kind === 'measured' ? outcome : undefined
    return [
      from,
      to,
      outcome.kind === 'measured' ? 'measured' : outcome.cause,
      measured?.tool,
      measured && Math.round(measured.bitsPerSecond),
      measured?.retransmits,
      measured?.jitterMs,
      measured?.lostFraction === undefined ? undefined : measured.lostFraction * 100,
      ping?.meanMs,
      measured?.loadedRttMs,
      outcome.kind === 'failed' ? outcome.reason : undefined,
    ]
      .map(csvCell)
      .join(',')
  })
  return [CSV_COLUMNS, ...rows].map((line) => `${line}\n`).join('')
}

const COLOURS: Readonly<Record<Heat, readonly [string, string]>> = {
  best: ['#2f9e5b', '#ffffff'],
  good: ['#9bd08a', '#10240f'],
  poor: ['#ffd166', '#2b2100'],
  worst: ['#d1495b', '#ffffff'],
  failed: ['#d9dce1', '#4a515e'],
}
const CELL = 58
const ROW = 28
const LEFT = 120
const TOP = 76

/** Of a picture that is looked at later: always with its day. */
export const meshTitle = (hosts: number, timeMs: number): string =>
  `${hosts} hosts, ${dayText(timeMs)} ${clockText(timeMs)}`

export function meshSvg(report: MeshReport, findings: readonly NetFinding[], title: string): string {
  const { hosts, links } = report
  const outcomes = new Map(links.map(({ from, to, outcome }) => [JSON.stringify([from, to]), outcome]))
  const usual = usualRate(report) ?? 1
  const words = findings.slice(0, 12).map(({ gravity, text }) => `${gravity}: ${text}`)
  const width = Math.max(640, LEFT + hosts.length * CELL + 20)
  const below = TOP + hosts.length * ROW + 28
  const height = below + words.length * 18 + 12
  const cells = hosts.flatMap(({ name: from }, row) =>
    hosts.map(({ name: to }, column) => {
      if (from === to) return ''
      const outcome = outcomes.get(JSON.stringify([from, to]))
      const [fill, ink] = COLOURS[heatOf(outcome, usual)]
      const label = outcome?.kind === 'measured' ? shortBitRate(outcome.bitsPerSecond) : '–'
      const result = outcome?.kind === 'measured' ? formatBitRate(outcome.bitsPerSecond) : (outcome?.reason ?? '')
      const [x, y] = [LEFT + column * CELL, TOP + row * ROW]
      return `<g><title>${escapeHtml(`${from} → ${to}: ${result}`)}</title><rect x="${x}" y="${y}" width="${CELL - 2}" height="${ROW - 2}" rx="4" fill="${fill}"/><text x="${x + CELL / 2 - 1}" y="${y + 18}" text-anchor="middle" fill="${ink}">${escapeHtml(label)}</text></g>`
    }),
  )
  const names = hosts.flatMap(({ name }, index) => [
    `<text x="${LEFT - 10}" y="${TOP + index * ROW + 18}" text-anchor="end">${escapeHtml(name)}</text>`,
    `<text x="${LEFT + index * CELL + CELL / 2}" y="${TOP - 8}" text-anchor="middle">${escapeHtml(name)}</text>`,
  ])
  const lines = words.map(
    (line, index) => `<text x="20" y="${below + index * 18}" font-size="12">${escapeHtml(line)}</text>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="ui-sans-serif, sans-serif" font-size="13" fill="#20242c">
<rect width="100%" height="100%" fill="#ffffff"/>
<text x="20" y="28" font-size="17" font-weight="600">${escapeHtml(title)}</text>
<text x="20" y="48" fill="#6b7280">rows send, columns receive; median ${escapeHtml(formatBitRate(usual))}</text>
${[...names, ...cells, ...lines].filter((line) => line !== '').join('\n')}
</svg>
`
}
