/** The state of a copy to many hosts, and the copy as rows: its progress, then the hosts, failures first. Pure. */
import { counted } from '../../base/counted.ts'
import { FixedMap } from '../../base/fixed-map.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import { padEnd, textWidth, wrapText } from '../../base/text-width.ts'
import type { CopyEvent, HostResult } from '../../ssh/copy/events.ts'
import {
  type CopyHost,
  describeResult,
  formatShare,
  reduceHost,
  shareOf,
  totalOf,
  WAITING,
} from '../../ssh/copy/progress.ts'
import { boldStyle, mutedStyle, styleOf, type Theme } from '../compositor/scene.ts'
import { documentOf, type Row, type RowContext, type RowDocument, wrapRows } from '../rows/rows-pane.ts'

export type CopyView = {
  readonly kind: 'copy'
  readonly sources: readonly string[]
  readonly destination: string
  readonly hosts: FixedMap<string, CopyHost>
  /** Files that cannot be read here, one sentence each; the first ones. */
  readonly problems: readonly string[]
  readonly isStopping: boolean
}

export function startCopy(sources: readonly string[], destination: string, hosts: readonly string[]): CopyView {
  const waiting = FixedMap.of(hosts.map((host) => [host, WAITING]))
  return { kind: 'copy', sources, destination, hosts: waiting, problems: [], isStopping: false }
}

export function restartCopy(view: CopyView, hosts: readonly string[]): CopyView {
  const again = hosts.reduce((known, host) => known.with(host, WAITING), view.hosts)
  return { ...view, hosts: again, problems: [], isStopping: false }
}

export function reduceCopy(view: CopyView, event: CopyEvent): CopyView {
  const host = view.hosts.get(event.host)
  if (host === undefined) return view
  const next = reduceHost(host, event)
  return next === host ? view : { ...view, hosts: view.hosts.with(event.host, next) }
}

export const isCopying = (view: CopyView): boolean =>
  [...view.hosts.values()].some(({ result }) => result === undefined)

export const failedCopies = (view: CopyView): string[] =>
  [...view.hosts].flatMap(([host, { result }]) => (result !== undefined && result.outcome !== 'ok' ? [host] : []))

/** Why the copy to a host failed, without what is only true of this attempt, such as times. */
export function failureLines({ problems }: CopyView, { result, failures }: CopyHost): string[] {
  if (result === undefined || result.outcome === 'ok') return []
  const { outcome, reason = outcome } = result
  return [
    ...(reason === outcome ? [] : [reason]),
    ...problems,
    ...failures.map(({ path, reason: why }) => `${path}: ${why}`),
    ...(result.failed > failures.length ? [`… and ${result.failed - failures.length} more`] : []),
  ]
}

const NAME_COLUMNS = 24
const BAR_COLUMNS = 16
const LEAST_BAR_COLUMNS = 4

export function copyDocument(view: CopyView, { theme, columns }: RowContext): RowDocument {
  const longest = Math.max(1, ...[...view.hosts.keys()].map(textWidth))
  const nameColumns = Math.min(NAME_COLUMNS, longest)
  const rows = [
    ...view.problems.flatMap((text) => wrapRows(text, columns, ' ! ', styleOf(theme.danger))),
    ...[...view.hosts]
      .sort(([, a], [, b]) => rank(a) - rank(b))
      .flatMap(([host, state]) => hostRows(host, state, nameColumns, theme, columns)),
  ]
  return documentOf(rows, headRows(view, theme, columns))
}

/** Failed, running, waiting, done. */
function rank({ result, hasBegun }: CopyHost): number {
  if (result === undefined) return hasBegun ? 1 : 2
  return result.outcome === 'ok' ? 3 : 0
}

function headRows(view: CopyView, theme: Theme, columns: number): Row[] {
  const total = totalOf(view.hosts.values())
  const count = view.hosts.size
  const title = ` ${view.sources.join(' ')} → ${view.destination}`
  const results = [...view.hosts.values()].flatMap(({ result }) => result ?? [])
  const failed = results.filter(({ outcome }) => outcome !== 'ok').length
  const done = ` ${total.ended} of ${count} hosts done`
  const failure = failed > 0 ? `, ${failed} failed` : ''
  const stopping = view.isStopping ? ', stopping' : ''
  const share = formatShare(total)
  const room = columns - textWidth(`${done}${failure}${stopping}  ${share}`) - ' []'.length
  const progress = `${stopping}  ${room < LEAST_BAR_COLUMNS ? '' : `${bar(shareOf(total), room)} `}${share}`
  const spans: Row = isCopying(view)
    ? [
        { text: done, style: boldStyle(theme.text) },
        { text: failure, style: boldStyle(theme.danger) },
        { text: progress, style: styleOf(theme.warning) },
      ]
    : [{ text: ` ${summaryOf(results, count)}`, style: boldStyle(failed > 0 ? theme.danger : theme.ok) }]
  return [[{ text: title, style: boldStyle(theme.accent) }], spans, []]
}

function summaryOf(results: readonly HostResult[], count: number): string {
  const outcomes = ['ok', 'failed', 'unreachable', 'refused', 'cancelled'] as const
  const parts = outcomes.flatMap((outcome) => {
    const number = results.filter((result) => result.outcome === outcome).length
    return number > 0 ? [`${number} ${outcome}`] : []
  })
  const sentBytes = results.reduce((sum, result) => sum + result.sentBytes, 0)
  return `${counted(count, 'host')}: ${parts.join(', ')}; ${formatBytes(sentBytes)} sent`
}

/** In ASCII: one column per character on every terminal. `mostColumns`: without its brackets. */
function bar(done: number, mostColumns = BAR_COLUMNS): string {
  const columns = Math.min(BAR_COLUMNS, mostColumns)
  const filled = Math.floor(columns * done)
  return `[${'#'.repeat(filled)}${'-'.repeat(columns - filled)}]`
}

function hostRows(host: string, state: CopyHost, nameColumns: number, theme: Theme, columns: number): Row[] {
  const { result, hasBegun, failures } = state
  const name = padEnd(host, nameColumns)
  if (result === undefined) {
    const { doneBytes, sharesWith } = state
    const isChecking = sharesWith !== undefined && doneBytes === 0
    const progress = isChecking
      ? `shares the directory with ${sharesWith}`
      : `${bar(shareOf(state))} ${formatShare(state)}`
    const text = hasBegun ? progress : 'waiting to start'
    return [[{ text: ` … ${name}  ${text}`, style: hasBegun ? styleOf(theme.warning) : mutedStyle(theme) }]]
  }
  const isOk = result.outcome === 'ok'
  const style = styleOf(isOk ? theme.ok : theme.danger)
  const [first = '', ...more] = wrapText(describeResult(result), Math.max(8, columns - nameColumns - 5))
  const hidden = result.failed - failures.length
  return [
    [{ text: ` ${isOk ? '✓' : '✗'} ${name}  ${first}`, style }],
    ...more.map((text): Row => [{ text: `${' '.repeat(nameColumns + 5)}${text}`, style }]),
    ...failures.flatMap(({ path, reason }) => wrapRows(`${path}: ${reason}`, columns, '     ', style)),
    ...(hidden > 0 ? wrapRows(`… and ${hidden} more`, columns, '     ', style) : []),
  ]
}
