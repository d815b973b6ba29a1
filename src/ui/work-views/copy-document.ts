/** A copy as rows: how far all of it is, then the hosts, those in trouble first. Pure. */
import { formatBytes } from '../../base/format-bytes.ts'
import { padEnd, wrapText } from '../../base/text-width.ts'
import type { HostResult } from '../../ssh/copy/events.ts'
import { BOLD } from '../../terminal/cells.ts'
import { type Row, type RowDocument, type RowLook, wrapRows } from '../rows/row-document.ts'
import { mutedStyle, styleOf, type Theme } from '../theme/theme.ts'
import { type CopyHost, type CopyView, isCopying, totalOf } from './copy-view.ts'

const NAME_COLUMNS = 24
const BAR_COLUMNS = 16

export function copyDocument(view: CopyView, look: RowLook): RowDocument {
  const { theme } = look
  const nameColumns = Math.min(NAME_COLUMNS, longestName(view))
  const rows = [
    ...view.problems.flatMap((text) => wrapRows(text, look, ' ! ', styleOf(theme.danger))),
    ...[...view.hosts]
      .sort(([, a], [, b]) => rank(a) - rank(b))
      .flatMap(([host, state]) => hostRows(host, state, nameColumns, look)),
  ]
  return { head: headRows(view, theme), length: rows.length, row: (index) => rows[index] ?? [] }
}

const longestName = ({ hosts }: CopyView): number => Math.max(1, ...[...hosts.keys()].map((host) => host.length))

/** Trouble first, then who is at it, then who waits, then who is done. */
function rank({ result, hasBegun }: CopyHost): number {
  if (result === undefined) return hasBegun ? 1 : 2
  return result.outcome === 'ok' ? 3 : 0
}

function headRows(view: CopyView, theme: Theme): Row[] {
  const total = totalOf(view)
  const count = view.hosts.size
  const title = ` ${view.sources.join(' ')} → ${view.destination}`
  const results = [...view.hosts.values()].flatMap(({ result }) => result ?? [])
  const failed = results.filter(({ outcome }) => outcome !== 'ok').length
  const spans: Row = isCopying(view)
    ? [
        { text: ` ${total.ended} of ${count} hosts done`, style: styleOf(theme.text, undefined, BOLD) },
        ...(failed > 0 ? [{ text: `, ${failed} not well`, style: styleOf(theme.danger, undefined, BOLD) }] : []),
        {
          text: `${view.isStopping ? ', being cancelled' : ''}  ${bar(share(total))} ${formatShare(total)}`,
          style: styleOf(theme.warning),
        },
      ]
    : [{ text: ` ${summaryOf(results, count)}`, style: styleOf(failed > 0 ? theme.danger : theme.ok, undefined, BOLD) }]
  return [[{ text: title, style: styleOf(theme.accent, undefined, BOLD) }], spans, []]
}

function summaryOf(results: readonly HostResult[], count: number): string {
  const words: Readonly<Record<HostResult['outcome'], string>> = {
    ok: 'well',
    failed: 'failed',
    unreachable: 'unreachable',
    refused: 'refused',
    cancelled: 'cancelled',
  }
  const parts = Object.entries(words).flatMap(([outcome, word]) => {
    const number = results.filter((result) => result.outcome === outcome).length
    return number > 0 ? [`${number} ${word}`] : []
  })
  const sentBytes = results.reduce((sum, result) => sum + result.sentBytes, 0)
  return `${count} ${count === 1 ? 'host' : 'hosts'}: ${parts.join(', ')}; ${formatBytes(sentBytes)} sent`
}

type Amount = Pick<CopyHost, 'doneBytes' | 'totalBytes'>

const share = ({ doneBytes, totalBytes }: Amount): number =>
  totalBytes === 0 ? 0 : Math.min(1, doneBytes / totalBytes)

/** Characters of one column everywhere, that a terminal without colours shows, too. */
function bar(done: number): string {
  const filled = Math.floor(BAR_COLUMNS * done)
  return `[${'#'.repeat(filled)}${'-'.repeat(BAR_COLUMNS - filled)}]`
}

const formatShare = (amount: Amount): string =>
  `${String(Math.floor(100 * share(amount))).padStart(3)} %  ${formatBytes(amount.doneBytes)} of ${formatBytes(amount.totalBytes)}`

function hostRows(host: string, state: CopyHost, nameColumns: number, look: RowLook): Row[] {
  const { result, hasBegun, failures } = state
  const { theme } = look
  const name = padEnd(host, nameColumns)
  if (result === undefined) {
    const text = hasBegun ? `${bar(share(state))} ${formatShare(state)}` : 'about to begin'
    return [[{ text: ` … ${name}  ${text}`, style: hasBegun ? styleOf(theme.warning) : mutedStyle(theme) }]]
  }
  const isWell = result.outcome === 'ok'
  const style = styleOf(isWell ? theme.ok : theme.danger)
  const [first = '', ...more] = wrapText(describe(result), Math.max(8, look.columns - nameColumns - 5))
  const unsaid = result.failed - failures.length
  return [
    [{ text: ` ${isWell ? '✓' : '✗'} ${name}  ${first}`, style }],
    ...more.map((text): Row => [{ text: `${' '.repeat(nameColumns + 5)}${text}`, style }]),
    ...failures.flatMap(({ path, reason }) => wrapRows(`${path}: ${reason}`, look, '     ', style)),
    ...(unsaid > 0 ? wrapRows(`… and ${unsaid} more`, look, '     ', style) : []),
  ]
}

function describe({ outcome, reason, copied, identical, failed, sentBytes, durationMs }: HostResult): string {
  const counts = [
    `${copied} copied`,
    ...(identical > 0 ? [`${identical} identical`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
  ].join(', ')
  if (outcome === 'ok' || reason === undefined)
    return `${counts}, ${formatBytes(sentBytes)} in ${(durationMs / 1000).toFixed(1)} s`
  return `${reason === outcome ? outcome : `${outcome}: ${reason}`}${copied > 0 ? ` (${copied} copied before)` : ''}`
}
