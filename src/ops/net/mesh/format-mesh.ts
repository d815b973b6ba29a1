/** A mesh for a terminal: a matrix of bandwidths, the slowest links, and the findings. Pure. */
import { printable } from '../../../base/printable.ts'
import { GRAVITIES, type Gravity } from '../../kernel/finding.ts'
import { measuredOf, median, type NetFinding, retransmitsAGigabyte } from './judge.ts'
import { formatBitRate, formatMs, type LinkOutcome, type LinkResult, shortBitRate } from './link.ts'
import type { MeshReport } from './measure-mesh.ts'

/** `best` … `worst` against the median of all links; `failed` without a result. */
export type Heat = 'best' | 'good' | 'poor' | 'worst' | 'failed'

export type MeshPaint = {
  heat(heat: Heat, text: string): string
  gravity(gravity: Gravity, text: string): string
  muted(text: string): string
}

export const PLAIN_PAINT: MeshPaint = { heat: (_, text) => text, gravity: (_, text) => text, muted: (text) => text }

const BARS = '▁▂▃▄▅▆▇█'
const SLOWEST = 5

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
  const lines = [...matrix, ...formatNumbers(report), '', ...formatFindings(findings, paint)]
  return lines.map((line) => `${line}\n`).join('')
}

function formatMatrix({ hosts, links }: MeshReport, columns: number, paint: MeshPaint): readonly string[] {
  const names = hosts.map(({ name }) => printable(name))
  const outcomes = new Map(links.map(({ from, to, outcome }) => [JSON.stringify([from, to]), outcome]))
  const rates = measuredOf(links).map(({ outcome }) => outcome.bitsPerSecond)
  const usual = median(rates) ?? 1
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

function formatNumbers({ links, pings }: MeshReport): readonly string[] {
  const measured = measuredOf(links)
  const rates = measured.map(({ outcome }) => outcome.bitsPerSecond)
  const middle = median(rates)
  const times = pings.flatMap(({ meanMs }) => meanMs ?? [])
  const meanTime = median(times)
  if (middle === undefined) return ['no link was measured']
  const summary = [
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

function formatFindings(findings: readonly NetFinding[], paint: MeshPaint): readonly string[] {
  const width = Math.max(...GRAVITIES.map((word) => word.length))
  if (findings.length === 0) return ['no problems found']
  return findings.map(({ gravity, text }) => `${paint.gravity(gravity, gravity.padEnd(width))}  ${printable(text)}`)
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`
}
