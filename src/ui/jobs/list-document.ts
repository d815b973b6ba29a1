/** The list of the Jobs tab, where an array or a grid is one row with its progress, and one job with its log. Pure. */
import { printable } from '../../base/printable.ts'
import { clip, padEnd, textWidth } from '../../base/text-width.ts'
import { placeTitle } from '../../scheduler/jobs/engine.ts'
import { formatBundle, isFinal, type JobState } from '../../scheduler/jobs/job.ts'
import { JOB_COLUMNS, requestText, STATE_COLUMN } from '../../scheduler/jobs/job-columns.ts'
import type { Span } from '../compositor/scene.ts'
import { documentOf, type Row, type RowDocument, rowStyle, wrapRows } from '../rows/rows-pane.ts'
import { timeText } from '../rows/short-text.ts'
import { boldStyle, mutedStyle, styleOf, type Theme } from '../theme/theme.ts'
import {
  countOf,
  type Filter,
  type JobDetails,
  type JobLine,
  KINDS,
  type LogView,
  NO_SCHEDULER,
  type QueueStatus,
} from './queue-view.ts'

const BAR_CELLS = 8
const PROGRESS_WIDTH = STATE_COLUMN.width - BAR_CELLS - 2

export type ListInput = {
  readonly status: QueueStatus
  readonly lines: readonly JobLine[]
  readonly chosen: JobLine | undefined
  readonly filter: Filter
  readonly needle: string
  readonly columns: number
  readonly theme: Theme
  readonly nowMs: number
}

export function listDocument({ status, lines, chosen, filter, needle, columns, theme, nowMs }: ListInput): RowDocument {
  const muted = mutedStyle(theme)
  const leads = lines.map(({ lead }) => lead)
  const shown = JOB_COLUMNS.filter(({ leastPane = 0, isNeeded }) => columns >= leastPane && isNeeded?.(leads) !== false)
  const counts = [...status.counts].map(([kind, count]) => `${count} ${kind}`).join(', ') || 'no jobs yet'
  const narrowed = `${filter === 'all' ? '' : ` · only ${filter}`}${needle === '' ? '' : ` · with “${needle}”`}`
  const summary: Row = [
    { text: ` ${counts}`, style: boldStyle(theme.text) },
    { text: narrowed, style: boldStyle(theme.accent) },
    status.driver === undefined
      ? { text: `  ${NO_SCHEDULER}`, style: styleOf(theme.warning) }
      : { text: `  scheduler: ${printable(status.driver)}`, style: muted },
  ]
  return {
    head: [
      summary,
      [
        {
          text: ` ${shown
            .map(({ title, width }) => padEnd(title, width))
            .join('')
            .trimEnd()}`,
          style: muted,
        },
      ],
    ],
    length: lines.length,
    row(index) {
      const line = lines[index]
      if (line === undefined) return []
      const isChosen = line.spec === chosen?.spec
      const plain = rowStyle(theme, isChosen)
      const cells = shown.flatMap((column): readonly Span[] => {
        if (column === STATE_COLUMN)
          return line.count === 1 ? [stateSpan(line.lead.state, theme)] : progressSpans(line, theme)
        const text = line.count === 1 ? column.text(line.lead, nowMs) : (column.groupText?.(line) ?? '-')
        const cell = clip(printable(text), column.width - 1)
        return [{ text: column === shown.at(-1) ? cell : padEnd(cell, column.width), style: plain }]
      })
      return [{ text: isChosen ? '▸' : ' ', style: plain }, ...cells]
    },
  }
}

function stateSpan(state: JobState, theme: Theme): Span {
  const reason = 'reason' in state && state.reason !== undefined ? ` ${printable(state.reason)}` : ''
  return {
    text: padEnd(clip(`${state.kind}${reason}`, STATE_COLUMN.width - 1), STATE_COLUMN.width),
    style: boldStyle(colourOf(state.kind, theme)),
  }
}

export function colourOf(kind: JobState['kind'], theme: Theme): Theme['text'] {
  if (kind === 'done') return theme.ok
  if (kind === 'failed' || kind === 'lost' || kind === 'timed-out') return theme.danger
  if (kind === 'starting' || kind === 'running' || kind === 'ending') return theme.accent
  return kind === 'queued' ? theme.warning : theme.muted
}

/** `█████▒·· 61/90 2 failed`, without the count where the bar alone has to show it. */
export function progressSpans(line: JobLine, theme: Theme): readonly Span[] {
  const ended = countOf(line, KINDS.ended)
  const running = countOf(line, KINDS.running)
  const cells = (count: number) => Math.floor((count / line.count) * BAR_CELLS)
  const full = cells(ended)
  const busy = Math.min(BAR_CELLS - full, running > 0 ? Math.max(1, cells(running)) : 0)
  const cancelled = countOf(line, ['cancelled'])
  const failed = ended - countOf(line, ['done']) - cancelled
  const progress = `${ended}/${line.count}`
  const texts = [
    ...(failed > 0 ? [`${progress} ${failed} failed`, `${failed} failed`] : []),
    ...(failed === 0 && cancelled > 0 ? [`${progress} ${cancelled} cancelled`] : []),
    ...(cancelled === line.count ? [`${cancelled} cancelled`] : []),
    progress,
  ]
  const text = texts.find((each) => textWidth(each) <= PROGRESS_WIDTH) ?? clip(progress, PROGRESS_WIDTH)
  const colour = failed > 0 ? theme.danger : cancelled > 0 ? theme.muted : undefined
  return [
    { text: '█'.repeat(full), style: styleOf(colour ?? theme.ok) },
    { text: '▒'.repeat(busy), style: styleOf(theme.accent) },
    { text: '·'.repeat(BAR_CELLS - full - busy), style: mutedStyle(theme) },
    { text: ` ${padEnd(text, PROGRESS_WIDTH + 1)}`, style: boldStyle(colour ?? theme.text) },
  ]
}

const MOST_PLACES = 8

export function jobDocument(
  details: JobDetails,
  log: LogView | undefined,
  columns: number,
  theme: Theme,
  nowMs: number,
): RowDocument {
  const { job, why, expectedMs } = details
  const { state, spec } = job
  const muted = mutedStyle(theme)
  const say = (text: string, style = styleOf(theme.text)): readonly Row[] =>
    wrapRows(printable(text), columns, ' ', style)
  const rows: Row[] = [
    [
      { text: ` ${state.kind}`, style: boldStyle(colourOf(state.kind, theme)) },
      { text: `  ${requestText(job)}, attempt ${job.attempt}, priority ${job.priority}`, style: muted },
    ],
    ...say(spec.command),
  ]
  if (isFinal(state) && state.reason !== undefined) rows.push(...say(state.reason, styleOf(theme.danger)))
  if ('places' in state && state.places !== undefined) {
    state.places.slice(0, MOST_PLACES).forEach(({ host, devices }, rank) => {
      const bundle = state.bundles?.[rank]
      const how = bundle === undefined ? '' : formatBundle(bundle)
      const gpu = devices.length > 0 ? `, GPU ${devices.join(',')}` : ''
      rows.push(...say(`bundle ${rank}: ${placeTitle(host)}${gpu}: ${how}`, muted))
    })
    if (state.places.length > MOST_PLACES) rows.push(...say(`and ${state.places.length - MOST_PLACES} more`, muted))
  }
  if (expectedMs !== undefined) rows.push(...say(`expected to start ${timeText(expectedMs, nowMs)}`))
  for (const line of why) rows.push(...say(line, styleOf(theme.warning)))
  if (log?.trouble !== undefined) rows.push(...say(`log: ${log.trouble}`, styleOf(theme.danger)))
  if (log !== undefined && log.lines.length > 0) {
    rows.push([{ text: ` ${'─'.repeat(Math.max(0, columns - 2))}`, style: muted }])
    rows.push(...log.lines.map((line): Row => [{ text: ` ${printable(line)}`, style: styleOf(theme.text) }]))
  }
  return documentOf(rows)
}
