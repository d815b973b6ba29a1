/** The list of the Jobs tab, where an array or a grid is one row with its progress; its jobs as a table of metrics and parameters, the best first; one job with its log. Pure. */

import { printable } from '../../base/printable.ts'
import { clip, padEnd, textWidth } from '../../base/text-width.ts'
import { whenText } from '../../base/time-text.ts'
import { placeTitle } from '../../scheduler/jobs/engine.ts'
import { formatBundle, isFinal, type JobState } from '../../scheduler/jobs/job.ts'
import {
  groupRanMs,
  JOB_COLUMNS,
  type JobColumn,
  ranMs,
  requestText,
  STATE_COLUMN,
  stateText,
} from '../../scheduler/jobs/job-columns.ts'
import { metricNumber, rankBy } from '../../scheduler/jobs/metric.ts'
import type { Sweep } from '../../scheduler/jobs/results.ts'
import { boldStyle, mutedStyle, type Span, type Style, styleOf, type Theme } from '../compositor/scene.ts'
import { documentOf, type Row, type RowDocument, rowStyle, wrapRows } from '../rows/rows-pane.ts'
import { hasWord, sortMark, type TableColumn, type TableView } from '../rows/table-view.ts'
import {
  countOf,
  type Filter,
  type JobDetails,
  type JobLine,
  KINDS,
  type LogView,
  noScheduler,
  type QueueStatus,
  type QueueView,
} from './queue-view.ts'
import { stateColour } from './results-table.ts'
import { studyBest, studyProgress } from './study-documents.ts'
import type { StudyLine } from './study-view.ts'

/** What the list is filtered and sorted by. */
export function lineColumns({ readMs }: Pick<QueueView, 'readMs'>): readonly TableColumn<JobLine>[] {
  return [
    ...JOB_COLUMNS.map(
      (column): TableColumn<JobLine> => ({
        title: column.title,
        text: (line) => printable(lineText(line, column, readMs)),
        ...LINE_ORDERS(readMs)[column.title],
      }),
    ),
    { title: 'COMMAND', text: ({ lead }) => printable(lead?.spec.command ?? ''), isHidden: true },
  ]
}

const LINE_ORDERS = (nowMs: number): Readonly<Record<string, Partial<TableColumn<JobLine>>>> => ({
  JOB: {
    order: ({ first }) => first,
    isDescending: true,
    find: ({ first, count, study }, word) =>
      /^\d+$/.test(word)
        ? Number(word) >= first && Number(word) < first + count
        : study !== undefined && 'study'.includes(word),
  },
  STATE: {
    find: ({ lead, counts, study }, word) =>
      [...counts.keys(), study?.study.state.kind ?? '', lead?.state.kind ?? ''].some((kind) => hasWord(kind, word)),
  },
  RAN: {
    order: (line) => (line.count > 1 ? groupRanMs(line, nowMs) : line.lead && ranMs(line.lead.state, nowMs)),
    isDescending: true,
    needsTitle: true,
  },
  'ASKS FOR': { needsTitle: true },
})

function lineText({ study, lead, ...line }: JobLine, column: JobColumn, nowMs: number): string {
  if (study !== undefined && column.title === 'NAME') return studyName(study)
  if (study !== undefined && column.title === 'USER') return study.study.user
  if (study !== undefined && column === STATE_COLUMN) return study.study.state.kind
  if (lead === undefined) return ''
  if (column === STATE_COLUMN && line.count > 1) return [...line.counts.keys()].join(' ')
  return line.count === 1 ? column.text(lead, nowMs) : (column.groupText?.({ ...line, lead }, nowMs) ?? '')
}

const BAR_CELLS = 8
const PROGRESS_WIDTH = STATE_COLUMN.width - BAR_CELLS - 2

export type ListInput = {
  readonly status: QueueStatus
  readonly lines: readonly JobLine[]
  readonly chosen: JobLine | undefined
  readonly filter: Filter
  readonly view: TableView
  readonly columns: number
  readonly theme: Theme
  readonly nowMs: number
}

export function listDocument({ status, lines, chosen, filter, view, columns, theme, nowMs }: ListInput): RowDocument {
  const muted = mutedStyle(theme)
  const leads = lines.flatMap(({ lead }) => lead ?? [])
  const shown = JOB_COLUMNS.filter(({ leastPane = 0, isNeeded }) => columns >= leastPane || isNeeded?.(leads) === true)
  const counts = [...status.counts].map(([kind, count]) => `${count} ${kind}`).join(', ') || 'no jobs yet'
  const summary: Row = [
    { text: ` ${counts}`, style: boldStyle(theme.text) },
    { text: filter === 'all' ? '' : ` · only ${filter}`, style: boldStyle(theme.accent) },
    status.driver === undefined
      ? { text: `  ${noScheduler(status)}`, style: styleOf(theme.warning) }
      : { text: `  scheduler: ${printable(status.driver)}`, style: muted },
  ]
  return {
    head: [
      summary,
      [
        {
          text: ` ${shown
            .map(({ title, width }) => padEnd(`${title}${sortMark(view, title)}`, width))
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
      if (line.study !== undefined)
        return [{ text: isChosen ? '▸' : ' ', style: plain }, ...studyCells(line.study, shown, plain, theme)]
      const { lead } = line
      if (lead === undefined) return []
      const cells = shown.flatMap((column): readonly Span[] => {
        if (column === STATE_COLUMN)
          return line.count === 1 ? [stateSpan(lead.state, theme)] : progressSpans(line, theme)
        const text = line.count === 1 ? column.text(lead, nowMs) : (column.groupText?.({ ...line, lead }, nowMs) ?? '-')
        const cell = clip(printable(text), column.width - 1)
        return [{ text: column === shown.at(-1) ? cell : padEnd(cell, column.width), style: plain }]
      })
      return [{ text: isChosen ? '▸' : ' ', style: plain }, ...cells]
    },
  }
}

/** The columns between state and name, which trials do not share, are one with the best value. */
function studyCells(line: StudyLine, shown: readonly JobColumn[], plain: Style, theme: Theme): readonly Span[] {
  const [number] = shown
  const width = shown.slice(2, -1).reduce((sum, column) => sum + column.width, 0)
  return [
    { text: padEnd('study', number?.width ?? 0), style: plain },
    ...studyProgress(line, STATE_COLUMN.width, theme),
    { text: padEnd(studyBest(line, width - 1), width), style: plain },
    { text: printable(studyName(line)), style: plain },
  ]
}

const studyName = ({ study: { name, spec } }: StudyLine): string => `${name} · ${spec.method}`

function stateSpan(state: JobState, theme: Theme): Span {
  const reason = 'reason' in state && state.reason !== undefined ? ` ${printable(state.reason)}` : ''
  return {
    text: padEnd(clip(`${stateText(state)}${reason}`, STATE_COLUMN.width - 1), STATE_COLUMN.width),
    style: boldStyle(stateColour(state.kind, theme)),
  }
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
  const { job, why, expectedMs, nodes } = details
  const { state, spec } = job
  const muted = mutedStyle(theme)
  const say = (text: string, style = styleOf(theme.text)): readonly Row[] =>
    wrapRows(printable(text), columns, ' ', style)
  const rows: Row[] = [
    [
      { text: ` ${stateText(state)}`, style: boldStyle(stateColour(state.kind, theme)) },
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
      const on = nodes === undefined ? '' : ` on ${nodes}`
      rows.push(...say(`bundle ${rank}: ${placeTitle(host)}${on}${gpu}: ${how}`, muted))
    })
    if (state.places.length > MOST_PLACES) rows.push(...say(`and ${state.places.length - MOST_PLACES} more`, muted))
  }
  if (expectedMs !== undefined) rows.push(...say(`expected to start ${whenText(expectedMs, nowMs)}`))
  for (const line of why) rows.push(...say(line, styleOf(theme.warning)))
  if (log?.trouble !== undefined) rows.push(...say(`log: ${log.trouble}`, styleOf(theme.danger)))
  if (log !== undefined && log.lines.length > 0) {
    rows.push([{ text: ` ${'─'.repeat(Math.max(0, columns - 2))}`, style: muted }])
    rows.push(...log.lines.map((line): Row => [{ text: ` ${printable(line)}`, style: styleOf(theme.text) }]))
  }
  return documentOf(rows)
}

/** Progress, and the best value of each metric with its parameters. */
export function sweepSummary(sweep: Sweep, line: JobLine, theme: Theme): Row {
  const bests = sweep.metrics.flatMap((metric): Span[] => {
    const [best] = rankBy(sweep.rows, metric, ({ values }) => values)
    const value = best?.values[metric.name]
    if (best === undefined || value === undefined || metricNumber(value) === undefined) return []
    const parameters = Object.entries(best.parameters).map(([name, own]) => `${name}=${own}`)
    return [
      { text: printable(`best ${metric.name} `), style: mutedStyle(theme) },
      { text: printable(value), style: boldStyle(theme.ok) },
      { text: printable(` ${parameters.join(' ')}  `), style: styleOf(theme.text) },
    ]
  })
  const fewer = sweep.rows.length < sweep.count ? `first ${sweep.rows.length} of ${sweep.count}  ` : ''
  return [
    { text: ' ', style: mutedStyle(theme) },
    ...progressSpans(line, theme),
    { text: fewer, style: mutedStyle(theme) },
    ...bests,
  ]
}
