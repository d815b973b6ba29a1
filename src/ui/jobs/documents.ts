/** The list of the Jobs tab, where an array or a grid is one row with its progress; its jobs as a table of metrics and parameters, the best first; one job with its log. Pure. */

import { printable } from '../../base/printable.ts'
import { clip, padEnd, textWidth } from '../../base/text-width.ts'
import { timeText, whenText } from '../../base/time-text.ts'
import { placeTitle } from '../../scheduler/jobs/engine.ts'
import { bundleTitle, engineNodes, formatBundle, isFinal, type JobState, silenceOf } from '../../scheduler/jobs/job.ts'
import {
  groupRanMs,
  JOB_COLUMNS,
  type JobColumn,
  noAnswerText,
  ON_COLUMN,
  ranMs,
  requestText,
  STATE_COLUMN,
  startedMs,
  stateText,
  termsText,
} from '../../scheduler/jobs/job-columns.ts'
import { metricNumber, rankBy } from '../../scheduler/jobs/metric.ts'
import { boldStyle, mutedStyle, type Span, type Style, styleOf, type Theme, themes } from '../compositor/scene.ts'
import { documentOf, firstFitting, type Row, type RowDocument, rowStyle, wrapRows } from '../rows/rows-pane.ts'
import { findHost, hasWord, isNumberWithin, sortMark, type TableColumn, type TableView } from '../rows/table-view.ts'
import type { ArrayTable } from './array-table.ts'
import {
  countOf,
  type Filter,
  type JobDetails,
  type JobLine,
  KINDS,
  type LogView,
  type QueueStatus,
  type QueueView,
  schedulerAlerts,
} from './queue-view.ts'
import { stateColour } from './results-table.ts'
import { studyBest, studyProgress } from './study-documents.ts'
import type { StudyLine } from './study-view.ts'

/** What the list is filtered and sorted by: its cells as they are drawn, and what else tells a row from the others. */
export function lineColumns({ readMs, status }: Pick<QueueView, 'readMs' | 'status'>): readonly TableColumn<JobLine>[] {
  return [
    ...JOB_COLUMNS.map(
      (column): TableColumn<JobLine> => ({
        title: column.title,
        text: (line) => printable(cellText(line, column, readMs, status?.down)),
        ...LINE_ORDERS(readMs)[column.title],
      }),
    ),
    {
      title: 'COMMAND',
      text: ({ lead }) => printable(lead?.spec.typed?.command ?? lead?.spec.command ?? ''),
      isHidden: true,
    },
  ]
}

const LINE_ORDERS = (nowMs: number): Readonly<Record<string, Partial<TableColumn<JobLine>>>> => ({
  JOB: {
    order: ({ first }) => first,
    isDescending: true,
    find: ({ first, count }, word) => isNumberWithin(word, first, first + count - 1),
  },
  STATE: {
    order: ({ study, lead, count, counts }) =>
      study?.study.state.kind ?? (count > 1 ? [...counts.keys()].join(' ') : lead && stateText(lead.state)),
    find: ({ lead, counts, study }, word) =>
      [
        ...[...counts.keys(), study?.study.state.kind ?? '', lead?.state.kind ?? ''],
        // The whole one.
        ...(lead !== undefined && study === undefined && 'reason' in lead.state ? [lead.state.reason ?? ''] : []),
      ].some((text) => hasWord(text, word)),
  },
  RAN: {
    order: (line) => (line.count > 1 ? groupRanMs(line, nowMs) : line.lead && ranMs(line.lead.state, nowMs)),
    isDescending: true,
    isAmount: true,
  },
  STARTED: {
    order: ({ count, lead, extent }) => (count > 1 ? extent?.startedMs : lead && startedMs(lead.state)),
    isDescending: true,
    isAmount: true,
  },
  // Of a study, too, whose best value is drawn there.
  ON: {
    order: (line) => textOfJobs(line, ON_COLUMN, nowMs),
    find: findHost((line: JobLine) => textOfJobs(line, ON_COLUMN, nowMs)),
  },
  USER: {
    order: ({ study, lead }) => study?.study.user ?? lead?.user,
    find: ({ study }, word) => study !== undefined && hasWord(study.study.user, word),
  },
  'ASKS FOR': { isAmount: true },
})

const BAR_CELLS = 8

export type ListInput = {
  readonly status: QueueStatus
  /** Those that a filter by words leaves. */
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
  const shown = listColumns(status, columns, nowMs)
  const summaryWith = (alert: string): Row => [
    { text: filter === 'all' ? '' : ` only ${filter} ·`, style: boldStyle(theme.accent) },
    { text: alert === '' ? '' : ` ${alert} ·`, style: styleOf(theme.warning) },
    { text: ` ${countsText(status)}`, style: boldStyle(theme.text) },
    { text: alert === '' ? `  scheduler: ${printable(status.driver ?? '')}` : '', style: muted },
  ]
  // The end of the row is cut where there is no room: what needs an action comes first, and what is over last.
  const alerts = schedulerAlerts(status)
  const summary = firstFitting((alerts.length === 0 ? [''] : alerts).map(summaryWith), columns)
  return {
    head: [
      summary,
      [
        {
          text: ` ${shown
            .map(({ column, width }) => padEnd(clip(titleText(column, view), width - 1), width))
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
      const cells = shown.flatMap(({ column, width }): readonly Span[] => {
        if (column === STATE_COLUMN) return stateSpans(line, width, theme, status.down)
        const cell = clip(printable(cellText(line, column, nowMs)), width - 1)
        return [{ text: column === shown.at(-1)?.column ? cell : padEnd(cell, width), style: plain }]
      })
      return [{ text: isChosen ? '▸' : ' ', style: plain }, ...cells]
    },
  }
}

/** What runs and waits first. Jobs of pruned trials do not count as cancelled: their study stopped them. */
function countsText({ counts, groups }: QueueStatus): string {
  const pruned = groups.reduce(
    (sum, line) => sum + Math.min(line.study?.counts.pruned ?? 0, countOf(line, ['cancelled'])),
    0,
  )
  const now = [...KINDS.running, ...KINDS.waiting]
  const order = [...new Set([...now, ...counts.keys()])].map((kind) => [kind, counts.get(kind) ?? 0] as const)
  const texts = [...order, ['pruned', pruned] as const].flatMap(([kind, count]) => {
    const own = kind === 'cancelled' ? count - pruned : count
    return own > 0 ? [`${own} ${kind}`] : []
  })
  return texts.join(', ') || 'no jobs yet'
}

type ListColumn = { readonly column: JobColumn; readonly width: number }

/** The first rows decide how wide columns are. */
const WIDTH_ROWS = 500
const LEAST_WIDTH = 12
/** One long name must not take the room of what all rows ask for. */
const NAME_ROOM = 24
const MOST_BEST = 21
/** From this width of the list on, the column of states is as wide as reasons need, whatever is in it. */
const STEADY_ROOM = 100
/** From here on, names and hosts have twice the room. */
const WIDE_ROOM = 116
/** The column of states without a limit, in the map of widths. */
const LONGEST_STATE = ''
const MOST_STATE = 80
/** `, 1362 cancelled` */
const OTHERS_WIDTH = 18
const RAN_WIDTH = JOB_COLUMNS.find(({ title }) => title === 'RAN')?.width ?? 0
const widest = new WeakMap<readonly JobLine[], ReadonlyMap<string, number>>()

/**
 * As wide as what is in them, whatever a filter leaves, so that no column moves while one types. What a job asks for is cut
 * before a short name.
 */
function listColumns({ groups: all, down }: QueueStatus, room: number, nowMs: number): readonly ListColumn[] {
  const leads = all.flatMap(({ lead }) => lead ?? [])
  const wantedIn = JOB_COLUMNS.filter(({ leastPane = 0, isNeeded }) => room >= leastPane || isNeeded?.(leads) === true)
  const known =
    widest.get(all) ??
    new Map(
      [...JOB_COLUMNS, { ...STATE_COLUMN, title: LONGEST_STATE, width: MOST_STATE }].map((column) => [
        column.title,
        widestCell(all, column, nowMs, down),
      ]),
    )
  widest.set(all, known)
  const whole = wantedIn.reduce(
    (sum, column) => sum + (known.get(column === STATE_COLUMN ? LONGEST_STATE : column.title) ?? 0),
    1,
  )
  const shown = whole > room ? wantedIn.filter(({ isSpare }) => isSpare !== true) : wantedIn
  const isWide = room >= WIDE_ROOM
  const nameRoom = isWide ? 2 * NAME_ROOM : NAME_ROOM
  const widthOf = (column: JobColumn) => {
    const width = known.get(column.title) ?? column.width
    if (column === shown.at(-1)) return Math.min(nameRoom, width)
    return column === ON_COLUMN && !isWide ? Math.min(column.width, width) : width
  }
  const others = shown.reduce((sum, column) => sum + (column === STATE_COLUMN ? 0 : widthOf(column)), 1)
  // The reason of a failure comes late, and must not move the other columns then.
  const name = known.get(shown.at(-1)?.title ?? '') ?? 0
  // What no name needs is for longer reasons.
  const spare = Math.min(known.get(LONGEST_STATE) ?? 0, room - (others - widthOf(shown.at(-1) as JobColumn) + name))
  const ofReasons = Math.max(...all.map(progressWidth), Math.min(Math.floor(room / 3), room - others), spare)
  const stateWidth =
    room >= STEADY_ROOM ? ofReasons : Math.max(known.get(STATE_COLUMN.title) ?? STATE_COLUMN.width, spare)
  const over = others - Math.max(0, Math.min(nameRoom, name) - NAME_ROOM) + stateWidth - room
  const wanted = shown.map((column) => ({ column, width: column === STATE_COLUMN ? stateWidth : widthOf(column) }))
  return wanted.map(({ column, width }) =>
    column.title === 'ASKS FOR' && over > 0
      ? { column, width: Math.min(width, Math.max(LEAST_WIDTH, width - over)) }
      : { column, width: column === shown.at(-1) ? column.width : width },
  )
}

function widestCell(all: readonly JobLine[], column: JobColumn, nowMs: number, down: QueueStatus['down']): number {
  // It changes every second.
  if (column.title === 'RAN') return column.width
  const widths = all.slice(0, WIDTH_ROWS).map((line) => {
    const isState = column === STATE_COLUMN || column.title === LONGEST_STATE
    const text = isState
      ? textOf(stateSpans(line, column.width, themes.none, down))
      : cellText(line, column, nowMs).trimEnd()
    // The best value of a study begins in the column before it.
    const shared = column === ON_COLUMN && line.study !== undefined ? RAN_WIDTH : 0
    return textWidth(printable(text)) + 1 - shared
  })
  // With the mark of the sorted column.
  return Math.min(
    column === ON_COLUMN ? 2 * column.width : column.width,
    Math.max(textWidth(column.title) + 2, ...widths),
  )
}

const titleText = ({ title }: JobColumn, view: TableView): string =>
  `${title}${sortMark(view, { title, ...LINE_ORDERS(0)[title] })}`

/** As it is drawn, without colours, where there is room for all of it. */
function cellText(line: JobLine, column: JobColumn, nowMs: number, down: QueueStatus['down'] = {}): string {
  const { study } = line
  if (column === STATE_COLUMN) return textOf(stateSpans(line, MOST_STATE, themes.none, down))
  if (study === undefined) return textOfJobs(line, column, nowMs)
  if (column === ON_COLUMN) return studyBest(study, MOST_BEST)
  return column.title === 'JOB' ? 'study' : column.title === 'NAME' ? studyName(study) : ''
}

function textOfJobs({ lead, ...line }: JobLine, column: JobColumn, nowMs: number): string {
  if (lead === undefined) return ''
  return line.count === 1 ? column.text(lead, nowMs) : (column.groupText?.({ ...line, lead }, nowMs) ?? '-')
}

const textOf = (spans: readonly Span[]): string =>
  spans
    .map(({ text }) => text)
    .join('')
    .trimEnd()

/** The columns between state and name, which trials do not share, are one with the best value. */
function studyCells(line: StudyLine, shown: readonly ListColumn[], plain: Style, theme: Theme): readonly Span[] {
  const [number, state] = shown
  const width = shown.slice(2, -1).reduce((sum, column) => sum + column.width, 0)
  return [
    { text: padEnd('study', number?.width ?? 0), style: plain },
    ...studyProgress(line, state?.width ?? 0, theme),
    { text: padEnd(studyBest(line, width - 1), width), style: plain },
    { text: printable(studyName(line)), style: plain },
  ]
}

const studyName = ({ study: { name, spec } }: StudyLine): string => `${name} · ${spec.method}`

/** The state of a job or of a study, or the progress of an array, in so many columns. */
function stateSpans(line: JobLine, width: number, theme: Theme, down: QueueStatus['down']): readonly Span[] {
  if (line.study !== undefined) return studyProgress(line.study, width, theme)
  if (line.count > 1) return progressSpans(line, theme, width)
  return line.lead === undefined ? [] : stateOfJob(line.lead.state, width, theme, down)
}

function stateOfJob(state: JobState, width: number, theme: Theme, down: QueueStatus['down']): readonly Span[] {
  const reason = 'reason' in state && state.reason !== undefined ? ` ${printable(state.reason)}` : ''
  const warning = noAnswerText(state, down)
  const own = clip(`${stateText(state)}${reason}`, width - 1)
  const rest = width - textWidth(own)
  return [
    { text: own, style: boldStyle(stateColour(state.kind, theme)) },
    { text: padEnd(rest > 1 ? clip(warning, rest - 1) : '', rest), style: boldStyle(theme.warning) },
  ]
}

/** With room for all of an array having failed, so that no column moves when one of it does. */
const progressWidth = ({ count }: JobLine): number =>
  Math.max(STATE_COLUMN.width, count > 1 ? BAR_CELLS + 3 + textWidth(`${count}/${count} ${count} failed`) : 0)

/** `█████▒·· 61/90 2 failed`; where there is no room for both, what failed, was cancelled or is held counts more than the progress. */
export function progressSpans(line: JobLine, theme: Theme, columns = STATE_COLUMN.width): readonly Span[] {
  const room = columns - BAR_CELLS - 2
  const ended = countOf(line, KINDS.ended)
  const running = countOf(line, KINDS.running)
  const cells = (count: number) => Math.floor((count / line.count) * BAR_CELLS)
  const full = cells(ended)
  const busy = Math.min(BAR_CELLS - full, running > 0 ? Math.max(1, cells(running)) : 0)
  const cancelled = countOf(line, ['cancelled'])
  const failed = ended - countOf(line, ['done']) - cancelled
  const progress = `${ended}/${line.count}`
  const counts = [
    // One word for all of them, as there is little room.
    [failed, (['timed-out', 'lost'] as const).find((kind) => countOf(line, [kind]) === failed) ?? 'failed'],
    [cancelled, 'cancelled'],
    [countOf(line, ['held']), 'held'],
  ] as const
  const notes = counts.flatMap(([count, word]) => (count > 0 ? [`${count} ${word}`] : []))
  const [note = progress] = notes
  const all = notes.join(', ')
  const texts = [`${progress} ${all}`.trim(), all, `${progress} ${note}`, note].filter((each) => each !== '')
  const text = texts.find((each) => textWidth(each) <= room) ?? clip(progress, room)
  const colour = failed > 0 ? theme.danger : cancelled > 0 ? theme.muted : undefined
  return [
    { text: '█'.repeat(full), style: styleOf(colour ?? theme.ok) },
    { text: '▒'.repeat(busy), style: styleOf(theme.accent) },
    { text: '·'.repeat(BAR_CELLS - full - busy), style: mutedStyle(theme) },
    { text: ` ${padEnd(text, room + 1)}`, style: boldStyle(colour ?? theme.text) },
  ]
}

const MOST_PLACES = 8
const MOST_HEAD_REASON = 2

type JobDocumentOptions = {
  readonly isWrapped?: boolean
  /** Why places do not answer. */
  readonly down?: QueueStatus['down'] | undefined
}

export function jobDocument(
  details: JobDetails,
  log: LogView | undefined,
  columns: number,
  theme: Theme,
  nowMs: number,
  { isWrapped = false, down = {} }: JobDocumentOptions = {},
): RowDocument {
  const { job, why, expectedMs } = details
  const { state, spec } = job
  const muted = mutedStyle(theme)
  const terms = termsText(spec)
  const say = (text: string, style = styleOf(theme.text)): readonly Row[] =>
    wrapRows(printable(text), columns, ' ', style)
  const reason = isFinal(state) && state.reason !== undefined ? say(state.reason, styleOf(theme.danger)) : []
  // In view wherever the log is scrolled to; a long reason has its other rows below.
  const head: readonly Row[] = [
    [
      { text: ` ${stateText(state)}`, style: boldStyle(stateColour(state.kind, theme)) },
      {
        text: `  ${requestText(job)}, attempt ${job.attempt}, priority ${job.priority}${timesText(state, nowMs)}`,
        style: muted,
      },
    ],
    ...reason.slice(0, MOST_HEAD_REASON),
  ]
  const rows: Row[] = [
    ...(terms === '' ? [] : say(terms, muted)),
    ...say(spec.typed === undefined ? spec.command : `${spec.typed.command}  in ${spec.typed.fromEnv}`),
  ]
  if (state.kind === 'queued' && state.last !== undefined)
    rows.push(...say(`last attempt: ${state.last}`, styleOf(theme.danger)))
  rows.push(...reason.slice(MOST_HEAD_REASON))
  if ('places' in state && state.places !== undefined) {
    const nodes = engineNodes(state)
    state.places.slice(0, MOST_PLACES).forEach(({ host, devices }, rank) => {
      const bundle = state.bundles?.[rank]
      const how = bundle === undefined ? '' : formatBundle(bundle)
      const gpu = devices.length > 0 ? `, GPU ${devices.join(',')}` : ''
      const on = nodes === undefined ? '' : ` on ${nodes}`
      const silence = silenceOf(state, rank, down)
      const old = silence === undefined ? '' : `, according to its last report: ${silence}`
      rows.push(
        ...say(
          `${bundleTitle(spec, rank)}: ${placeTitle(host)}${on}${gpu}: ${how}${old}`,
          old === '' ? muted : styleOf(theme.warning),
        ),
      )
    })
    if (state.places.length > MOST_PLACES) rows.push(...say(`and ${state.places.length - MOST_PLACES} more`, muted))
  }
  if (expectedMs !== undefined) rows.push(...say(`expected to start ${whenText(expectedMs, nowMs)}`))
  for (const line of why) rows.push(...say(line, styleOf(theme.warning)))
  const whose = details.log === undefined || !('host' in details.log) ? undefined : details.log.whose
  if (whose !== undefined) rows.push(...say(`output of ${whose}`, muted))
  if (log?.trouble !== undefined) rows.push(...say(`log: ${log.trouble}`, styleOf(theme.danger)))
  if (log !== undefined && log.lines.length > 0) {
    rows.push([{ text: ` ${'─'.repeat(Math.max(0, columns - 2))}`, style: muted }])
    if (log.isCut === true) rows.push(cutRow(job.id, theme))
    rows.push(
      ...(isWrapped
        ? logRows(log.lines, columns, theme)
        : log.lines.map((line): Row => [{ text: ` ${printable(line)}`, style: styleOf(theme.text) }])),
    )
  }
  return documentOf(rows, head)
}

/** `, from 13:51`, and of a job that ended ` to 14:20`; empty: it has not started. */
function timesText(state: JobState, nowMs: number): string {
  const fromMs = startedMs(state)
  if (fromMs === undefined) return ''
  const to = isFinal(state) ? ` to ${timeText(state.endedMs, nowMs)}` : ''
  return `, from ${timeText(fromMs, nowMs)}${to}`
}

/** Above the lines of a log of which only the end was read. */
export const cutRow = (job: number, theme: Theme): Row => [
  { text: ` … earlier lines: muster job logs ${job}`, style: mutedStyle(theme) },
]

export const logRows = (lines: readonly string[], columns: number, theme: Theme): readonly Row[] =>
  lines.flatMap((line) => wrapRows(printable(line), columns, ' ', styleOf(theme.text)))

/** Progress, and the best value of each metric with its parameters. */
export function sweepSummary(sweep: ArrayTable, line: JobLine, theme: Theme): Row {
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
    ...progressSpans(line, theme, progressWidth(line) + OTHERS_WIDTH).map(
      ({ text, style }, at, all): Span => ({ text: at === all.length - 1 ? `${text.trimEnd()}  ` : text, style }),
    ),
    { text: fewer, style: mutedStyle(theme) },
    ...bests,
  ]
}
