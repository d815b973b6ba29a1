/** Hosts × areas as rows: each cell a sign and a word, then the time of the last check. Pure. */

import { counted } from '../../base/counted.ts'
import { clip, clipName, padEnd, textWidth } from '../../base/text-width.ts'
import { ageText } from '../../base/time-text.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { StatusWord } from '../../ops/kernel/bring-up.ts'
import { BOLD } from '../../terminal/cells.ts'
import {
  boldStyle,
  labelStyle,
  mutedStyle,
  type Span,
  styleOf,
  type Theme,
  type ThemeColour,
} from '../compositor/scene.ts'
import { documentOf, type Row, type RowContext, type RowDocument, wrapRows } from '../rows/rows-pane.ts'
import { sortMark, type TableView } from '../rows/table-view.ts'
import {
  type AreaColumn,
  type BringUpView,
  type Cell,
  type ChangeView,
  cellKey,
  cellOf,
  countHosts,
  hasRows,
  isChanging,
  oldestFactMs,
  risksOf,
  stepsText,
} from './bring-up-view.ts'

export type TableContext = RowContext & { readonly nowMs: number }

const MARK_WIDTH = 3
const AGE_WIDTH = 9
const HOST_WIDTH = { least: 6, most: 24 }
/** `word`: for `+ missing` with a gap. */
const AREA_WIDTH = { undeclared: 4, least: 6, word: 10, most: 20 }

/** `order`: how the user sorts it. */
export function tableDocument(
  view: BringUpView,
  hosts: readonly string[],
  order: TableView,
  context: TableContext,
): RowDocument {
  const { theme, columns: room, nowMs } = context
  const { columns: areas } = view
  if (areas === undefined || !hasRows(view)) return emptyDocument(view, context)
  const longest = Math.max(HOST_WIDTH.least, ...hosts.map(textWidth)) + 1
  const hostWidth = Math.min(longest, HOST_WIDTH.most)
  const free = room - MARK_WIDTH - hostWidth - AGE_WIDTH
  const widthOf = areaWidths(areas, view, free)
  const titles: Row = [
    {
      text: ' '.repeat(MARK_WIDTH) + padEnd(`host${sortMark(order, { title: 'host' })}`, hostWidth),
      style: mutedStyle(theme),
    },
    ...areas.map((column): Span => titleSpan(column, view, order, widthOf(column), theme)),
    { text: 'checked', style: mutedStyle(theme) },
  ]
  return {
    head: [summaryRow(view, context), [], titles],
    length: hosts.length,
    row(index) {
      const host = hosts[index] ?? ''
      const isHere = host === view.cursor.host
      const name = padEnd(clipName(host, hostWidth - 1), hostWidth)
      return [
        { text: isHere ? '▸' : ' ', style: boldStyle(theme.accent) },
        { text: view.marked.has(host) ? '● ' : '  ', style: boldStyle(theme.receiving) },
        { text: name, style: styleOf(theme.text, undefined, isHere ? BOLD : 0) },
        ...areas.flatMap((column) => {
          const { sign, text, short = text, colour } = cellText(cellOf(view, column, host), theme)
          const areaWidth = widthOf(column)
          const shown = `${sign} ${textWidth(text) + 3 <= areaWidth ? text : short}`.trimEnd()
          const cell = clip(shown, areaWidth - 1)
          const isChosen = isHere && column.name === view.cursor.area
          const style = isChosen
            ? labelStyle(theme, theme.dangerText, colour ?? theme.accent)
            : styleOf(colour, undefined, ['-', '?', '·'].includes(sign) ? 0 : BOLD)
          return [
            { text: cell, style },
            { text: ' '.repeat(Math.max(0, areaWidth - textWidth(cell))), style: styleOf(theme.text) },
          ]
        }),
        { text: checkedText(view, host, nowMs), style: mutedStyle(theme) },
      ]
    },
  }
}

/** An area without declared hosts is as narrow as its name, or narrower where the others need the room. */
function areaWidths(areas: readonly AreaColumn[], { onlyArea }: BringUpView, room: number) {
  const narrow = (column: AreaColumn) => column.hosts === undefined && column.name !== onlyArea
  const [undeclared, declared] = [areas.filter(narrow), areas.filter((column) => !narrow(column))]
  const shareWith = (widthOf: (column: AreaColumn) => number) => {
    const left = undeclared.reduce((rest, column) => rest - widthOf(column), room)
    return Math.floor(left / Math.max(1, declared.length))
  }
  const whole = ({ name }: AreaColumn) => textWidth(name) + 2
  const short = (column: AreaColumn) => Math.min(AREA_WIDTH.undeclared, whole(column))
  const narrowWidth = shareWith(whole) < AREA_WIDTH.word ? short : whole
  const width = Math.max(AREA_WIDTH.least, Math.min(AREA_WIDTH.most, shareWith(narrowWidth)))
  return (column: AreaColumn): number => (narrow(column) ? Math.min(narrowWidth(column), width) : width)
}

/** In place of the table where there is nothing to show. */
function emptyDocument({ columns: areas, file, trouble }: BringUpView, { theme, columns }: TableContext): RowDocument {
  const say = (text: string, style = styleOf(theme.text)): Row[] => wrapRows(text, columns, '  ', style)
  if (trouble !== undefined) return documentOf([[], ...say(trouble, boldStyle(theme.danger))])
  if (areas === undefined) return documentOf([[], ...say('reading hosts.yaml …', mutedStyle(theme))])
  const names = areas.map(({ name }) => name).join(', ')
  return documentOf([
    [],
    ...say(`${file} declares nothing to bring up.`, boldStyle(theme.text)),
    [],
    ...say(`It can declare ${names}. For passwordless SSH between all hosts, add:`),
    [],
    ...say('trust: { mesh: "@all" }', styleOf(theme.accent)),
  ])
}

function titleSpan(
  { name, hosts }: AreaColumn,
  { onlyArea }: BringUpView,
  order: TableView,
  width: number,
  theme: Theme,
): Span {
  const isActive = hosts !== undefined && (onlyArea === undefined || onlyArea === name)
  const text = padEnd(
    clip(`${onlyArea === name ? `${name} only` : name}${sortMark(order, { title: name })}`, width - 1),
    width,
  )
  return { text, style: isActive ? boldStyle(theme.accent) : mutedStyle(theme) }
}

function checkedText({ columns = [], statuses, check, change }: BringUpView, host: string, nowMs: number): string {
  const own = columns.flatMap(({ name }) => statuses.get(cellKey(name, host)) ?? [])
  const isDeclared = columns.some((column) => column.hosts?.includes(host))
  if (check !== undefined && !check.answered.has(host) && isDeclared) return 'checking…'
  if (isChanging(change) && own.length === 0) return ''
  const times = own.flatMap(({ atMs }) => atMs ?? [])
  return times.length === 0 ? '' : `${ageText(nowMs - Math.max(...times))} ago`
}

function summaryRow(view: BringUpView, { theme, nowMs }: TableContext): Row {
  const { check, change, marked } = view
  const spans: Span[] = []
  const bold = (text: string, colour: Theme['text']) => spans.push({ text, style: boldStyle(colour) })
  if (isChanging(change) && change !== undefined) bold(` ${phaseText(change)} `, theme.warning)
  else if (check !== undefined) bold(` ${checkText(view)} `, theme.warning)
  // Also those that a filter hides.
  if (marked.size > 0) bold(` ${markedText(view)} `, theme.receiving)
  // Each host counts once, by the worst of its areas.
  for (const [word, count] of countHosts(view)) {
    const { sign, text, colour } = word === 'unknown' ? unknownText(theme) : statusText(word, theme)
    bold(` ${sign} ${count} ${text} `, colour)
  }
  const risks = [...view.statuses.values()].reduce((sum, status) => sum + risksOf(status), 0)
  if (risks > 0) bold(` ${counted(risks, 'risk')} `, theme.warning)
  const oldest = oldestFactMs(view)
  if (oldest !== undefined) spans.push({ text: ` oldest ${ageText(nowMs - oldest)} ago`, style: mutedStyle(theme) })
  return spans
}

const declaredHosts = ({ columns = [] }: BringUpView) => new Set(columns.flatMap((column) => column.hosts ?? []))

const MOST_MARKED = 40

function markedText(view: BringUpView): string {
  const { marked } = view
  if ([...declaredHosts(view)].every((host) => marked.has(host))) return `all ${marked.size} marked`
  return `only ${clip(foldHostSet([...marked]), MOST_MARKED)}`
}

function checkText(view: BringUpView): string {
  const { check } = view
  const missing = [...declaredHosts(view)].filter((host) => check?.answered.has(host) !== true)
  return missing.length === 0 ? 'verifying' : `checking ${foldHostSet(missing)}`
}

export function phaseText({ phase, steps, isStopping }: ChangeView): string {
  if (isStopping) return 'stopping'
  switch (phase) {
    case 'check':
      return 'making the plan'
    case 'ask':
      return 'plan ready: y applies it'
    case 'lock':
      return 'locking the hosts'
    case 'apply':
      return stepsText(steps)
    case 'verify':
      return 'verifying'
    case 'ended':
      return 'ended'
  }
}

/** `short`: for narrow cells. */
type CellText = {
  readonly sign: string
  readonly text: string
  readonly short?: string
  readonly colour: ThemeColour
}

/** The signs are those of a plan: `+` adds, `~` changes, `!` is blocked. */
const STATUSES: Readonly<
  Record<StatusWord, readonly [string, string, 'ok' | 'warning' | 'danger' | 'accent' | 'muted', string?]>
> = {
  good: ['✓', 'good', 'ok'],
  missing: ['+', 'missing', 'accent'],
  differs: ['~', 'differs', 'warning'],
  failed: ['✗', 'failed', 'danger'],
  blocked: ['!', 'blocked', 'danger'],
  away: ['?', 'no answer', 'danger', 'away'],
  unasked: ['·', 'not checked', 'muted', 'skipped'],
}

export function statusText(status: StatusWord, theme: Theme): CellText {
  const [sign, text, colour, short = text] = STATUSES[status]
  return { sign, text, short, colour: theme[colour] }
}

const unknownText = (theme: Theme): CellText => ({ sign: '?', text: 'unknown', colour: theme.muted })

export function cellText(cell: Cell, theme: Theme): CellText {
  switch (cell.kind) {
    case 'undeclared':
      return { sign: '-', text: 'not declared', short: '', colour: theme.muted }
    case 'unknown':
      return unknownText(theme)
    case 'changing': {
      const steps = `${cell.ended}/${cell.steps}`
      if (cell.isBad) return { sign: '✗', text: `failed ${steps}`, short: steps, colour: theme.danger }
      return { sign: '…', text: `changing ${steps}`, short: steps, colour: theme.warning }
    }
    case 'status': {
      const words = statusText(cell.status.status, theme)
      const risks = cell.status.status === 'good' ? risksOf(cell.status) : 0
      if (risks === 0) return words
      const short = counted(risks, 'risk')
      return { ...words, text: `${words.text}, ${short}`, short, colour: theme.warning }
    }
  }
}
