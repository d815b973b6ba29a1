/** A mesh for other programs: CSV, and a picture (SVG) to send around. Pure. */
import { printable } from '../../../base/printable.ts'
import { type Heat, heatOf } from './format-mesh.ts'
import { measuredOf, median, type NetFinding } from './judge.ts'
import { formatBitRate, shortBitRate } from './link.ts'
import type { MeshReport } from './measure-mesh.ts'

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

/** A text that a spreadsheet would take for a formula gets an apostrophe. */
function csvCell(value: string | number | undefined): string {
  if (value === undefined) return ''
  if (typeof value === 'number') return String(Number(value.toFixed(3)))
  const text = printable(/^[=+@-]/.test(value) ? `'${value}` : value)
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
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

export function meshSvg({ hosts, links }: MeshReport, findings: readonly NetFinding[], title: string): string {
  const outcomes = new Map(links.map(({ from, to, outcome }) => [JSON.stringify([from, to]), outcome]))
  const rates = measuredOf(links).map(({ outcome }) => outcome.bitsPerSecond)
  const usual = median(rates) ?? 1
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
      const told = outcome?.kind === 'measured' ? formatBitRate(outcome.bitsPerSecond) : (outcome?.reason ?? '')
      const [x, y] = [LEFT + column * CELL, TOP + row * ROW]
      return `<g><title>${escapeXml(`${from} → ${to}: ${told}`)}</title><rect x="${x}" y="${y}" width="${CELL - 2}" height="${ROW - 2}" rx="4" fill="${fill}"/><text x="${x + CELL / 2 - 1}" y="${y + 18}" text-anchor="middle" fill="${ink}">${escapeXml(label)}</text></g>`
    }),
  )
  const names = hosts.flatMap(({ name }, index) => [
    `<text x="${LEFT - 10}" y="${TOP + index * ROW + 18}" text-anchor="end">${escapeXml(name)}</text>`,
    `<text x="${LEFT + index * CELL + CELL / 2}" y="${TOP - 8}" text-anchor="middle">${escapeXml(name)}</text>`,
  ])
  const lines = words.map(
    (line, index) => `<text x="20" y="${below + index * 18}" font-size="12">${escapeXml(line)}</text>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="ui-sans-serif, sans-serif" font-size="13" fill="#20242c">
<rect width="100%" height="100%" fill="#ffffff"/>
<text x="20" y="28" font-size="17" font-weight="600">${escapeXml(title)}</text>
<text x="20" y="48" fill="#6b7280">rows send, columns receive; median ${escapeXml(formatBitRate(usual))}</text>
${[...names, ...cells, ...lines].filter((line) => line !== '').join('\n')}
</svg>
`
}

function escapeXml(text: string): string {
  return printable(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
