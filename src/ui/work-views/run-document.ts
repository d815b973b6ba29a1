/** A run as rows: a head that says how it stands, then each group under its header. Pure but for reading the output. */
import { foldHostSet } from '../../inventory/host-set.ts'
import type { OutputLine, OutputText } from '../../ops/run/kept-output.ts'
import { formatOutcome, formatSummary, isSuccess, type RunOutcome, summarize } from '../../ops/run/outcome.ts'
import { BOLD } from '../../terminal/cells.ts'
import type { Span, Style } from '../compositor/scene.ts'
import { type Row, type RowDocument, type RowLook, skipColumns, wrapRows } from '../rows/row-document.ts'
import { labelStyle, mutedStyle, styleOf, type Theme } from '../theme/theme.ts'
import {
  groupOf,
  isRunning,
  isWell,
  majority,
  type RunGroup,
  type RunHost,
  type RunView,
  selectedGroup,
} from './run-view.ts'

export type RunSource = {
  text(host: string): OutputText
  /** What differs from the majority's output, as lines of a diff; undefined: it is still being compared. */
  difference(group: RunGroup): readonly string[] | undefined
  readonly nowMs: number
}

/** A group's place in the document. */
type Part = {
  readonly group: RunGroup
  readonly start: number
  /** Why there is no connection. */
  readonly reason: readonly Row[]
  /** Lines of output that are shown, from `firstLine` on. */
  readonly lines: number
  readonly firstLine: number
  readonly hidden: number
  readonly difference: readonly string[] | undefined | 'none'
}

const LEAST_LINES = 4
const HEAD_ROWS = 3

export type RunDocument = RowDocument & {
  /** Where the header of a host's group is. */
  rowOf(host: string): number | undefined
  /** The group whose header is at this row or over it. */
  groupAt(row: number): RunGroup | undefined
}

export function runDocument(view: RunView, source: RunSource, look: RowLook): RunDocument {
  const { theme, column } = look
  const parts = partsOf(view, source, look)
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
      // What is hidden of a host that is still at it stands before what is shown.
      const isHiddenFirst = part.hidden > 0 && part.firstLine > 0
      if (part.hidden > 0 && at === (isHiddenFirst ? 0 : part.lines)) return hiddenRow(part, theme)
      const line = isHiddenFirst ? at - 1 : at
      if (line >= part.lines) return []
      return outputRow(view, part, source.text(part.group.hosts[0] ?? ''), line, theme, column)
    },
  }
}

/** Header, reason, body, the row that tells what is hidden, and a blank one. */
function rowsOf(part: Part): number {
  const body = part.difference === 'none' ? part.lines : (part.difference?.length ?? 1)
  return 1 + part.reason.length + body + (part.hidden > 0 ? 1 : 0) + 1
}

function partsOf(view: RunView, source: RunSource, look: RowLook): readonly Part[] {
  const opened = groupOf(view, view.opened)
  const groups = opened ? [opened] : view.groups
  const limit = opened
    ? Number.POSITIVE_INFINITY
    : Math.max(LEAST_LINES, Math.floor((look.rows - HEAD_ROWS) / groups.length) - 3)
  const against = view.isDiff ? majority(view) : undefined
  const parts: Part[] = []
  let start = 0
  for (const group of groups) {
    const isCompared = against !== undefined && group !== against && group.state.kind === 'ended'
    const count = source.text(group.hosts[0] ?? '').lineCount
    const lines = Math.min(count, limit)
    const part: Part = {
      group,
      start,
      reason: reasonRows(group, look),
      lines,
      // The end is what matters of who is still at it or has failed.
      firstLine: isWell(group.state) ? 0 : count - lines,
      hidden: isCompared ? 0 : count - lines,
      difference: isCompared ? source.difference(group) : 'none',
    }
    parts.push(part)
    start += rowsOf(part)
  }
  return parts
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
    const how = view.isStopping ? 'being ended' : 'running'
    const doing = Number.isFinite(sinceMs) ? `${how} ${formatSeconds(nowMs - sinceMs)}` : 'about to begin'
    spans.push(
      { text: ` ${outcomes.length} of ${states.length} done`, style: styleOf(theme.text, undefined, BOLD) },
      ...(failed > 0 ? [{ text: `, ${failed} not well`, style: styleOf(theme.danger, undefined, BOLD) }] : []),
      {
        text: `, ${doing}: ${foldHostSet(busy)}`,
        style: styleOf(theme.warning),
      },
    )
  } else {
    const colour = failed > 0 ? theme.danger : theme.ok
    spans.push({ text: ` ${formatSummary(summarize(outcomes))}`, style: styleOf(colour, undefined, BOLD) })
  }
  return [
    [{ text: ` ${view.by === 'ray' ? ':' : '$ '}${view.command}`, style: styleOf(theme.accent, undefined, BOLD) }],
    spans,
    [],
  ]
}

const MARKS: Readonly<Record<'bad' | 'good' | 'busy', string>> = { bad: '✗', good: '✓', busy: '…' }

function kindOf(state: RunHost): keyof typeof MARKS {
  if (state.kind !== 'ended') return 'busy'
  return isWell(state) ? 'good' : 'bad'
}

function describe(state: RunHost, nowMs: number): string {
  switch (state.kind) {
    case 'waiting':
      return 'about to begin'
    case 'running':
      return `running ${formatSeconds(nowMs - state.sinceMs)}`
    case 'ended':
      return `${endOf(state.outcome)}  ${formatSeconds(state.durationMs)}`
  }
}

/** In a word or two; the reason stands below. */
function endOf(outcome: RunOutcome): string {
  if (isSuccess(outcome)) return 'ok'
  return 'reason' in outcome ? outcome.kind : formatOutcome(outcome)
}

function reasonRows({ state }: RunGroup, look: RowLook): Row[] {
  if (state.kind !== 'ended' || !('reason' in state.outcome)) return []
  return wrapRows(state.outcome.reason, look, '   ', styleOf(look.theme.danger))
}

/** `m[8-10] (3)` */
export const groupNames = ({ hosts }: Pick<RunGroup, 'hosts'>): string =>
  hosts.length === 1 ? (hosts[0] ?? '') : `${foldHostSet(hosts)} (${hosts.length})`

type HeaderFacts = { readonly isSelected: boolean; readonly isMajority: boolean }

function headerRow(group: RunGroup, { nowMs }: RunSource, theme: Theme, facts: HeaderFacts): Row {
  const { isSelected, isMajority } = facts
  const kind = kindOf(group.state)
  const colour = kind === 'bad' ? theme.danger : kind === 'good' ? theme.ok : theme.warning
  const plain = styleOf(colour, undefined, BOLD)
  const name = isSelected ? labelStyle(theme, theme.dangerText, colour) : plain
  return [
    { text: isSelected ? '▸' : ' ', style: plain },
    { text: ` ${MARKS[kind]} ${groupNames(group)} `, style: name },
    { text: ` ${describe(group.state, nowMs)}`, style: styleOf(colour) },
    { text: isMajority ? '  the others differ in:' : '', style: mutedStyle(theme) },
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
  if (!isHit) return [gutter, { text: skipColumns(line.text, column), style }]
  const found = findIn(line.text, view.needle)
  const end = found + view.needle.length
  const [before, hit] = [line.text.slice(0, found), line.text.slice(found, end)]
  const skipped = skipColumns(before, column)
  return [
    { text: found >= 0 ? ' ▸ ' : gutter.text, style },
    { text: skipped, style },
    { text: hit, style: labelStyle(theme, theme.matchText, theme.match) },
    { text: line.text.slice(end), style },
  ]
}

/** Without a capital letter in the needle, case makes no difference. */
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
  const where = firstLine > 0 ? 'before' : 'more'
  const text = `   … ${hidden} ${hidden === 1 ? 'line' : 'lines'} ${where} (Enter shows all)`
  return [{ text, style: mutedStyle(theme) }]
}
