/** A run as rows: a summary, then each group of hosts with its output. Pure, but reads the kept output. */
import { textWidth } from '../../base/text-width.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { OutputLine, OutputText } from '../../ops/run/kept-output.ts'
import { formatOutcome, formatSummary, isSuccess, type RunOutcome, summarize } from '../../ops/run/outcome.ts'
import { boldStyle, labelStyle, mutedStyle, type Span, type Style, styleOf, type Theme } from '../compositor/scene.ts'
import { type Row, type RowContext, type RowDocument, skipColumns, wrapRows } from '../rows/rows-pane.ts'
import {
  groupOf,
  isOk,
  isRunning,
  majority,
  type RunGroup,
  type RunHost,
  type RunView,
  selectedGroup,
} from './run-view.ts'

export type RunSource = {
  text(host: string): OutputText
  /** A diff from the majority's output; undefined: not compared yet. */
  difference(group: RunGroup): readonly string[] | undefined
  readonly nowMs: number
}

/** `column`: columns of output scrolled out at the left. */
export type RunContext = RowContext & { readonly column: number }

/** A group's place in the document. */
type Part = {
  readonly group: RunGroup
  readonly start: number
  /** Why there is no connection. */
  readonly reason: readonly Row[]
  /** Shown lines of output, from `firstLine` on. */
  readonly lines: number
  readonly firstLine: number
  readonly hidden: number
  readonly difference: readonly string[] | undefined | 'none'
}

const LEAST_LINES = 4
const WAITING = 'waiting to start'
const HEAD_ROWS = 3

export type RunDocument = RowDocument & {
  /** The row of the header of a host's group. */
  rowOf(host: string): number | undefined
  /** The group that this row belongs to. */
  groupAt(row: number): RunGroup | undefined
}

export function runDocument(view: RunView, source: RunSource, context: RunContext): RunDocument {
  const { theme, column } = context
  const parts = partsOf(view, source, context)
  const last = parts.at(-1)
  const selected = selectedGroup(view)
  const against = majority(view)
  const partAt = (row: number): Part | undefined => parts.findLast(({ start }) => start <= row)
  return {
    head: headRows(view, source, theme),
    length: last === undefined ? 0 : last.start + rowsOf(last) - (view.opened === undefined ? 1 : 0),
    rowOf: (host) => parts.find(({ group }) => group.hosts.includes(host))?.start,
    groupAt: (row) => partAt(row)?.group,
    row(index) {
      const part = partAt(index)
      if (part === undefined) return []
      const below = index - part.start - 1
      if (below < 0) {
        const isSelected = part.group === selected && view.opened === undefined
        return headerRow(part.group, source, theme, { isSelected, isMajority: view.isDiff && part.group === against })
      }
      const at = below - part.reason.length
      if (at < 0) return part.reason[below] ?? []
      if (part.difference !== 'none') return differenceRow(part, at, theme, column)
      // Of a host that is not done the end is shown, so the hidden lines come first.
      const isHiddenFirst = part.hidden > 0 && part.firstLine > 0
      if (part.hidden > 0 && at === (isHiddenFirst ? 0 : part.lines)) return hiddenRow(part, theme)
      const line = isHiddenFirst ? at - 1 : at
      if (line >= part.lines) return []
      return outputRow(view, part, source.text(part.group.hosts[0] ?? ''), line, theme, column)
    },
  }
}

/** Header, reason, body, the row about hidden lines, and a blank one. */
function rowsOf(part: Part): number {
  const body = part.difference === 'none' ? part.lines : (part.difference?.length ?? 1)
  return 1 + part.reason.length + body + (part.hidden > 0 ? 1 : 0) + 1
}

function partsOf(view: RunView, source: RunSource, context: RunContext): readonly Part[] {
  const opened = groupOf(view, view.opened)
  const groups = opened ? [opened] : view.groups
  const against = view.isDiff ? majority(view) : undefined
  const whole = groups.map((group): Part => {
    const isCompared = against !== undefined && group !== against && group.state.kind === 'ended'
    const difference = isCompared ? source.difference(group) : 'none'
    const lines = source.text(group.hosts[0] ?? '').lineCount
    return { group, start: 0, reason: reasonRows(group, context), lines, firstLine: 0, hidden: 0, difference }
  })
  const limit = opened ? Number.POSITIVE_INFINITY : limitOf(whole, context.rows - HEAD_ROWS)
  const parts: Part[] = []
  let start = 0
  for (const each of whole) {
    // One hidden line would take the row that says so.
    const lines = each.lines <= limit + 1 ? each.lines : limit
    const hidden = each.lines - lines
    const part: Part = {
      ...each,
      start,
      lines,
      // Of hosts that run or have failed the end of the output matters.
      firstLine: isOk(each.group.state) ? 0 : hidden,
      hidden: each.difference === 'none' ? hidden : 0,
    }
    parts.push(part)
    start += rowsOf(part)
  }
  return parts
}

/** How many lines a group may show, besides the row about hidden ones: the long ones share what the short ones leave. */
function limitOf(whole: readonly Part[], rows: number): number {
  // The last blank row is not shown.
  let left = rows + 1
  for (const part of whole) left -= rowsOf(part) - (part.difference === 'none' ? part.lines : 0)
  const counts = whole.flatMap(({ lines, difference }) => (difference === 'none' ? [lines] : []))
  counts.sort((a, b) => a - b)
  for (const [index, count] of counts.entries()) {
    const share = Math.floor(left / (counts.length - index))
    if (count > share) return Math.max(LEAST_LINES, share - 1)
    left -= count
  }
  return Number.POSITIVE_INFINITY
}

export const formatSeconds = (ms: number): string => {
  const seconds = ms / 1000
  if (seconds < 10) return `${seconds.toFixed(1)} s`
  if (seconds < 120) return `${Math.floor(seconds)} s`
  return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`
}

function headRows(view: RunView, { nowMs }: RunSource, theme: Theme): Row[] {
  const states = [...view.hosts.values()]
  const outcomes = states.flatMap((state) => (state.kind === 'ended' ? [state.outcome] : []))
  const failed = outcomes.filter((outcome) => !isSuccess(outcome)).length
  const spans: Span[] = []
  if (isRunning(view)) {
    const busy = [...view.hosts].flatMap(([host, state]) => (state.kind === 'ended' ? [] : [host]))
    const sinceMs = Math.min(...states.flatMap((state) => (state.kind === 'running' ? [state.sinceMs] : [])))
    const how = view.isStopping ? 'stopping' : 'running'
    const doing = Number.isFinite(sinceMs) ? `${how} ${formatSeconds(nowMs - sinceMs)}` : WAITING
    spans.push({ text: ` ${outcomes.length} of ${states.length} done`, style: boldStyle(theme.text) })
    if (failed > 0) spans.push({ text: `, ${failed} failed`, style: boldStyle(theme.danger) })
    spans.push({ text: `, ${doing}: ${foldHostSet(busy)}`, style: styleOf(theme.warning) })
  } else {
    const style = boldStyle(failed > 0 ? theme.danger : theme.ok)
    spans.push({ text: ` ${formatSummary(summarize(outcomes))}`, style })
  }
  return [[{ text: ` ${view.by === 'ray' ? ':' : '$ '}${view.command}`, style: boldStyle(theme.accent) }], spans, []]
}

const MARKS: Readonly<Record<'bad' | 'good' | 'busy', string>> = { bad: '✗', good: '✓', busy: '…' }

function kindOf(state: RunHost): keyof typeof MARKS {
  if (state.kind !== 'ended') return 'busy'
  return isOk(state) ? 'good' : 'bad'
}

function describe(state: RunHost, nowMs: number): string {
  switch (state.kind) {
    case 'waiting':
      return WAITING
    case 'running':
      return `running ${formatSeconds(nowMs - state.sinceMs)}`
    case 'ended':
      return `${endOf(state.outcome)}  ${formatSeconds(state.durationMs)}`
  }
}

/** Without the reason, which has rows of its own. */
function endOf(outcome: RunOutcome): string {
  if (isSuccess(outcome)) return 'ok'
  return 'reason' in outcome ? outcome.kind : formatOutcome(outcome)
}

function reasonRows({ state }: RunGroup, { theme, columns }: RunContext): Row[] {
  if (state.kind !== 'ended' || !('reason' in state.outcome)) return []
  return wrapRows(state.outcome.reason, columns, '   ', styleOf(theme.danger))
}

/** `m[8-10] (3)` */
export const groupNames = ({ hosts }: Pick<RunGroup, 'hosts'>): string =>
  hosts.length === 1 ? (hosts[0] ?? '') : `${foldHostSet(hosts)} (${hosts.length})`

function headerRow(
  group: RunGroup,
  { nowMs }: RunSource,
  theme: Theme,
  { isSelected, isMajority }: { readonly isSelected: boolean; readonly isMajority: boolean },
): Row {
  const kind = kindOf(group.state)
  const colour = { bad: theme.danger, good: theme.ok, busy: theme.warning }[kind]
  const name = isSelected ? labelStyle(theme, theme.dangerText, colour) : boldStyle(colour)
  return [
    { text: isSelected ? '▸' : ' ', style: boldStyle(colour) },
    { text: ` ${MARKS[kind]} ${groupNames(group)} `, style: name },
    { text: ` ${describe(group.state, nowMs)}`, style: styleOf(colour) },
    { text: isMajority ? '  differences of the others:' : '', style: mutedStyle(theme) },
  ]
}

function outputRow(
  view: RunView,
  { group, firstLine }: Part,
  text: OutputText,
  at: number,
  theme: Theme,
  column: number,
): Row {
  const index = firstLine + at
  const line = text.line(index)
  const style = styleOfLine(line, theme)
  const gutter: Span = { text: line.kind === 'stderr' ? ' ! ' : '   ', style }
  const isHit = view.hit !== undefined && view.hit.line === index && group.hosts.includes(view.hit.host)
  // The line of the last match need not match what was searched for since.
  const found = isHit ? findIn(line.text, view.needle) : -1
  if (found < 0) return [gutter, { text: skipColumns(line.text, column), style }]
  const end = found + view.needle.length
  const spans: Row = [
    { text: line.text.slice(0, found), style },
    { text: line.text.slice(found, end), style: labelStyle(theme, theme.matchText, theme.match) },
    { text: line.text.slice(end), style },
  ]
  return [{ text: ' ▸ ', style }, ...skipSpans(spans, column)]
}

function skipSpans(spans: Row, columns: number): Row {
  let left = columns
  return spans.map(({ text, style }) => {
    const skipped = Math.min(left, textWidth(text))
    left -= skipped
    return { text: skipColumns(text, skipped), style }
  })
}

/** Ignores case unless the needle has a capital letter. */
export function findIn(text: string, needle: string): number {
  return needle === needle.toLowerCase() ? text.toLowerCase().indexOf(needle) : text.indexOf(needle)
}

function styleOfLine({ kind }: OutputLine, theme: Theme): Style {
  if (kind === 'note') return mutedStyle(theme)
  return styleOf(kind === 'stderr' ? theme.warning : theme.text)
}

function differenceRow({ difference }: Part, at: number, theme: Theme, column: number): Row {
  if (difference === undefined) return at === 0 ? [{ text: '   comparing …', style: mutedStyle(theme) }] : []
  if (difference === 'none') return []
  const line = difference[at]
  if (line === undefined) return []
  const colour = line.startsWith('+') ? theme.ok : line.startsWith('-') ? theme.danger : theme.text
  const style = line.startsWith('@@') ? mutedStyle(theme) : styleOf(colour)
  return [{ text: `   ${skipColumns(line, column)}`, style }]
}

function hiddenRow({ hidden, firstLine }: Part, theme: Theme): Row {
  const lines = hidden === 1 ? 'line' : 'lines'
  const text = `   … ${hidden} ${firstLine > 0 ? 'earlier' : 'more'} ${lines} (Enter shows all)`
  return [{ text, style: mutedStyle(theme) }]
}
