/** Hosts × areas as rows: each cell a sign and words, the age of what is known behind them. Pure. */

import { clip, clipName, padEnd, textWidth } from '../../base/text-width.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { BOLD } from '../../terminal/cells.ts'
import type { Span } from '../compositor/scene.ts'
import type { Row, RowDocument } from '../rows/row-document.ts'
import { wrapRows } from '../rows/row-document.ts'
import { labelStyle, mutedStyle, styleOf, type Theme } from '../theme/theme.ts'
import type { AreaColumn } from './bring-up-port.ts'
import {
  type BringUpView,
  type ChangeView,
  cellKey,
  cellOf,
  countHosts,
  isChanging,
  isEnded,
  oldestFactMs,
} from './bring-up-view.ts'
import { cellWords, formatAge, standingWords } from './standing-words.ts'

export type TableLook = {
  readonly theme: Theme
  /** Inside the frame. */
  readonly columns: number
  readonly rows: number
  readonly nowMs: number
}

const MARK_WIDTH = 2
const AGE_WIDTH = 9
const HOST_WIDTH = { least: 6, most: 24 }
const AREA_WIDTH = { least: 6, most: 20 }

export function tableDocument(view: BringUpView, hosts: readonly string[], look: TableLook): RowDocument {
  const { theme, columns: room, nowMs } = look
  const { columns: areas } = view
  if (areas === undefined || areas.every((column) => column.hosts === undefined)) return emptyDocument(view, look)
  const longest = Math.max(HOST_WIDTH.least, ...hosts.map(textWidth)) + 1
  const hostWidth = Math.min(longest, HOST_WIDTH.most)
  const free = room - MARK_WIDTH - hostWidth - AGE_WIDTH
  const widthOf = areaWidths(areas, view, free)
  const titles: Row = [
    { text: ' '.repeat(MARK_WIDTH) + padEnd('host', hostWidth), style: mutedStyle(theme) },
    ...areas.map((column): Span => titleSpan(column, view, widthOf(column), theme)),
    { text: 'asked', style: mutedStyle(theme) },
  ]
  return {
    head: [summaryRow(view, hosts, look), [], titles],
    length: hosts.length,
    row(index) {
      const host = hosts[index] ?? ''
      const isHere = host === view.cursor.host
      const isMarked = view.marked.has(host)
      return [
        { text: isMarked ? '▸ ' : '  ', style: styleOf(theme.receiving, undefined, BOLD) },
        {
          text: padEnd(clipName(host, hostWidth - 1), hostWidth),
          style: styleOf(theme.text, undefined, isHere ? BOLD : 0),
        },
        ...areas.flatMap((column) => {
          const { sign, words, short = words, colour } = cellWords(cellOf(view, column, host), theme)
          const areaWidth = widthOf(column)
          const hasRoom = textWidth(words) + 3 <= areaWidth
          const text = clip(`${sign} ${hasRoom ? words : short}`.trimEnd(), areaWidth - 1)
          const isChosen = isHere && column.name === view.cursor.area
          const style = isChosen
            ? labelStyle(theme, theme.dangerText, colour ?? theme.accent)
            : styleOf(colour, undefined, ['-', '?', '·'].includes(sign) ? 0 : BOLD)
          return [
            { text, style },
            { text: ' '.repeat(Math.max(0, areaWidth - textWidth(text))), style: styleOf(theme.text) },
          ]
        }),
        { text: ageOf(view, host, nowMs), style: mutedStyle(theme) },
      ]
    },
  }
}

/** An area that nothing is declared for takes no more room than its name. */
function areaWidths(areas: readonly AreaColumn[], { onlyArea }: BringUpView, room: number) {
  const narrow = (column: AreaColumn) => column.hosts === undefined && column.name !== onlyArea
  const nameWidth = ({ name }: AreaColumn) => Math.max(AREA_WIDTH.least, textWidth(name) + 2)
  const left = areas.filter(narrow).reduce((rest, column) => rest - nameWidth(column), room)
  const share = Math.floor(left / Math.max(1, areas.filter((column) => !narrow(column)).length))
  const width = Math.max(AREA_WIDTH.least, Math.min(AREA_WIDTH.most, share))
  return (column: AreaColumn): number => (narrow(column) ? Math.min(nameWidth(column), width) : width)
}

/** Nothing is declared, or it cannot be read: what to do. */
function emptyDocument({ columns, trouble }: BringUpView, { theme, columns: room, rows }: TableLook): RowDocument {
  const look = { theme, columns: room, rows, column: 0 }
  const say = (text: string, style = styleOf(theme.text)): Row[] => wrapRows(text, look, '  ', style)
  const rowsOf = (): Row[] => {
    if (trouble !== undefined) return say(trouble, styleOf(theme.danger, undefined, BOLD))
    if (columns === undefined) return say('reading what hosts.yaml declares …', mutedStyle(theme))
    return [
      ...say('hosts.yaml declares nothing to bring up.', styleOf(theme.text, undefined, BOLD)),
      [],
      ...say(
        `What it may declare: ${columns.map(({ name }) => name).join(', ')}. For passwordless SSH between all hosts:`,
      ),
      [],
      ...say('trust: { mesh: "@all" }', styleOf(theme.accent)),
    ]
  }
  const all: readonly Row[] = [[], ...rowsOf()]
  return { head: [], length: all.length, row: (index) => all[index] ?? [] }
}

function titleSpan({ name, hosts }: AreaColumn, { onlyArea }: BringUpView, width: number, theme: Theme): Span {
  const isMeant = hosts !== undefined && (onlyArea === undefined || onlyArea === name)
  const text = padEnd(clip(onlyArea === name ? `${name} only` : name, width - 1), width)
  return { text, style: isMeant ? styleOf(theme.accent, undefined, BOLD) : mutedStyle(theme) }
}

function ageOf({ columns = [], standings, look, change }: BringUpView, host: string, nowMs: number): string {
  const own = columns.flatMap(({ name }) => standings.get(cellKey(name, host)) ?? [])
  if (look !== undefined && !look.answered.has(host) && columns.some((column) => column.hosts?.includes(host))) {
    return 'asking …'
  }
  if (isChanging(change) && own.length === 0) return ''
  const times = own.flatMap(({ atMs }) => atMs ?? [])
  // When it was asked last; the oldest fact of all is told above the table.
  return times.length === 0 ? '' : `${formatAge(nowMs - Math.max(...times))} ago`
}

function summaryRow(view: BringUpView, hosts: readonly string[], { theme, nowMs }: TableLook): Row {
  const spans: Span[] = []
  const bold = (text: string, colour: Theme['text']) => spans.push({ text, style: styleOf(colour, undefined, BOLD) })
  const { look, change, marked } = view
  if (isChanging(change) && change !== undefined) bold(` ${phaseWords(change)}`, theme.warning)
  else if (look !== undefined) bold(` asking the hosts${waitingFor(view)}`, theme.warning)
  // A host counts once, by the worst of its areas.
  const counts = countHosts(view)
  for (const [standing, count] of counts) {
    const { sign, words, colour } = standingWords(standing, theme)
    spans.push({
      text: ` ${sign} ${count} ${count === 1 ? 'host' : 'hosts'} ${words} `,
      style: styleOf(colour, undefined, BOLD),
    })
  }
  const oldest = oldestFactMs(view)
  if (oldest !== undefined) spans.push({ text: ` oldest ${formatAge(nowMs - oldest)} ago`, style: mutedStyle(theme) })
  const chosen = hosts.filter((host) => marked.has(host))
  if (chosen.length > 0) bold(`  only ${foldHostSet(chosen)}`, theme.receiving)
  return spans
}

function waitingFor({ columns = [], look }: BringUpView): string {
  const asked = [...new Set(columns.flatMap((column) => column.hosts ?? []))]
  const missing = asked.filter((host) => look?.answered.has(host) !== true)
  return missing.length === 0 ? ', looking whether it works' : `: ${foldHostSet(missing)}`
}

export function phaseWords({ phase, steps, isStopping }: ChangeView): string {
  if (isStopping) return 'being ended'
  const ended = [...steps.values()].filter(isEnded).length
  switch (phase) {
    case 'look':
      return 'making the plan'
    case 'ask':
      return 'the plan waits for your yes'
    case 'lock':
      return 'locking the hosts'
    case 'apply':
      return `${ended} of ${steps.size} steps done`
    case 'verify':
      return 'looking whether it works'
    case 'ended':
      return 'ended'
  }
}
