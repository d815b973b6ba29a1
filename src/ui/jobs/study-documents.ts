/** A study as documents: its line in the list, a summary, the table of its trials, and views that lie beside the table. Pure. */

import { getOrMake } from '../../base/collections.ts'
import { printable } from '../../base/printable.ts'
import { clip, padEnd, textWidth } from '../../base/text-width.ts'
import { ageText } from '../../base/time-text.ts'
import { placeTitle } from '../../scheduler/jobs/engine.ts'
import type { Metric } from '../../scheduler/jobs/metric.ts'
import type { OpenTrial } from '../../scheduler/jobs/study-rows.ts'
import { descentLines } from '../../scheduler/study/descent.ts'
import { explainStudy } from '../../scheduler/study/explain.ts'
import { formatValue } from '../../scheduler/study/format-value.ts'
import { bestTrials, endedTrials, metricValue, rankTrials } from '../../scheduler/study/front.ts'
import { type Plot, type StudyPlots, studyPlots } from '../../scheduler/study/plots.ts'
import { spaceOf, type Trial } from '../../scheduler/study/study.ts'
import { mostTrials, pointText, progressText, valuesTextOf } from '../../scheduler/study/study-text.ts'
import { importanceText, textPlot } from '../../scheduler/study/text-plot.ts'
import { boldStyle, mutedStyle, type Span, styleOf, type Theme } from '../compositor/scene.ts'
import { type Row, wrapRows } from '../rows/rows-pane.ts'
import { parallelRows } from './parallel-chart.ts'
import { type ResultsTable, stateColour, type TableRow } from './results-table.ts'
import type { StudyLine, StudyReading, StudyView } from './study-view.ts'

const BAR_CELLS = 8

/** `█████▒·· 12/50 1 failed`, in so many columns; red as for an array, where trials failed. */
export function studyProgress(
  { study, counts }: StudyLine | StudyReading,
  columns: number,
  theme: Theme,
): readonly Span[] {
  const ended = endedTrials(counts)
  const most = mostTrials(study)
  const whole = Math.max(1, most ?? ended + counts.open)
  const full = Math.min(BAR_CELLS, Math.floor((ended / whole) * BAR_CELLS))
  const busy = Math.min(
    BAR_CELLS - full,
    counts.open > 0 ? Math.max(1, Math.floor((counts.open / whole) * BAR_CELLS)) : 0,
  )
  const { kind } = study.state
  const progress = progressText(study, ended)
  const word = counts.failed > 0 && kind !== 'stopped' ? `${counts.failed} failed` : kind === 'running' ? '' : kind
  const texts = word === '' ? [progress] : [`${progress} ${word}`, word, progress]
  const room = columns - BAR_CELLS - 2
  const text = texts.find((each) => textWidth(each) <= room) ?? clip(progress, room)
  const failed = counts.failed > 0 ? theme.danger : undefined
  return [
    { text: '█'.repeat(full), style: styleOf(failed ?? theme.ok) },
    { text: '▒'.repeat(busy), style: styleOf(theme.accent) },
    { text: '·'.repeat(BAR_CELLS - full - busy), style: mutedStyle(theme) },
    { text: ` ${padEnd(text, room + 1)}`, style: boldStyle(failed ?? (kind === 'running' ? theme.text : theme.muted)) },
  ]
}

/** `best loss 0.12`; shorter where that does not fit. */
export function studyBest({ study, best }: StudyLine, columns: number): string {
  const [metric] = study.spec.metrics
  const value = best && metric && metricValue(best, metric)
  if (value === undefined || metric === undefined) return '-'
  const text = `${printable(metric.name)} ${formatValue(value)}`
  return textWidth(text) + 5 <= columns ? `best ${text}` : clip(text, columns)
}

/** What it does and how far it is, in sentences. `undriven`: how to start a scheduler, if none is running. */
export function studySummary(
  reading: StudyReading,
  undriven: string | undefined,
  columns: number,
  theme: Theme,
): readonly Row[] {
  const { study, counts, trials } = reading
  const { spec, state } = study
  const say = (text: string, style = styleOf(theme.text)) => wrapRows(printable(text), columns, ' ', style)
  const best = bestTrials(trials, spec.metrics)
  const shown = best.slice(0, MOST_BEST)
  const sentences = explainStudy(study, counts, trials)
  return [
    ...(undriven !== undefined && state.kind === 'running' && study.jobSpec !== undefined
      ? say(`${undriven} starts its trials`, styleOf(theme.warning))
      : []),
    ...shown.flatMap((trial) =>
      say(
        `${spec.metrics.length > 1 ? 'front' : 'best'}: ${valuesTextOf(trial.end?.values ?? {}, spec.metrics)} in trial ${trial.number}: ${pointText(trial.point)}`,
        boldStyle(theme.ok),
      ),
    ),
    ...(best.length > shown.length
      ? say(`and ${best.length - shown.length} more on the front`, mutedStyle(theme))
      : []),
    ...sentences.slice(0, -1).flatMap((text) => say(text)),
    // The last one says where it stands.
    ...say(sentences.at(-1) ?? '', state.trouble === undefined ? styleOf(theme.text) : boldStyle(theme.danger)),
  ]
}

const MOST_BEST = 3

/** `wf · tpe · █████▒·· 12/50 · 3 open, 1 failed · best loss 0.12` */
export function studyTitle(reading: StudyReading, view: StudyView, theme: Theme): Row {
  const { study, counts } = reading
  const muted = mutedStyle(theme)
  const others = (['open', 'failed', 'cancelled', 'pruned'] as const).flatMap((kind) =>
    counts[kind] > 0 ? [`${counts[kind]} ${kind}`] : [],
  )
  const ended = endedTrials(counts)
  const state = study.state.kind === 'running' ? '' : ` ${study.state.kind}`
  return [
    { text: ` ${printable(study.spec.method)}  `, style: muted },
    ...studyProgress(reading, BAR_CELLS, theme).slice(0, -1),
    { text: ` ${progressText(study, ended)}${state}`, style: boldStyle(theme.text) },
    { text: others.length === 0 ? '' : `  ${others.join(', ')}`, style: muted },
    { text: view.filter === 'all' ? '' : ` · only ${view.filter}`, style: boldStyle(theme.accent) },
  ]
}

export type ShownTrial = TableRow & { readonly trial: Trial; readonly job: number | undefined }

/** Of one reading they are made once, as thousands of trials are ranked and sorted. */
const tables = new WeakMap<StudyReading, Map<string, ResultsTable<ShownTrial>>>()

export function trialTable(reading: StudyReading, { filter }: StudyView): ResultsTable<ShownTrial> {
  const own = tables.get(reading) ?? new Map<string, ResultsTable<ShownTrial>>([['all', wholeTable(reading)]])
  tables.set(reading, own)
  return getOrMake(own, filter, () => {
    const whole = own.get('all') ?? wholeTable(reading)
    return { ...whole, rows: whole.rows.filter(({ trial }) => (trial.end?.kind ?? 'open') === filter) }
  })
}

function wholeTable({ study, trials, open }: StudyReading): ResultsTable<ShownTrial> {
  const { spec } = study
  const running = new Map(open.map((one) => [one.trial.number, one]))
  const best = new Set(bestTrials(trials, spec.metrics))
  return {
    title: 'TRIAL',
    metrics: spec.metrics,
    parameters: spaceOf(spec).parameters.map(({ name }) => name),
    notes: [...(spec.pbt === undefined ? [] : ['MEMBER', 'FROM']), 'ON', 'WHY'],
    rows: rankTrials(trials, spec.metrics).map((trial) => trialRow(trial, running.get(trial.number), best.has(trial))),
    isRanked: true,
  }
}

function trialRow(trial: Trial, open: OpenTrial | undefined, isMarked: boolean): ShownTrial {
  const { number, point, end, member, parent, stopping, asker } = trial
  const state = open?.job?.state
  const host = end?.host ?? hostOf(open)
  return {
    trial,
    id: number,
    job: trial.job,
    kind: end?.kind ?? state?.kind ?? 'open',
    parameters: point,
    values: end?.values ?? open?.values ?? {},
    isMarked,
    notes: {
      ON: host === undefined ? (asker === undefined ? '' : 'a program') : placeTitle(host),
      WHY: end?.reason ?? stopping ?? '',
      MEMBER: member === undefined ? '' : String(member),
      FROM: parent === undefined ? '' : `trial ${parent}`,
    },
  }
}

const hostOf = (open: OpenTrial | undefined): string | undefined => {
  const state = open?.job?.state
  return state !== undefined && 'places' in state ? state.places?.[0]?.host : undefined
}

/** What is said of the selected trial above the table. */
export function trialText({ trial, job, notes = {} }: ShownTrial, nowMs: number): string {
  const { end, number, isReplaced } = trial
  const parts = [
    `trial ${number}`,
    ...(job === undefined ? [] : [`job ${job}`]),
    ...(notes.ON ? [`on ${notes.ON}`] : []),
    ...(end?.startedMs === undefined ? [] : [`ran ${ageText(end.endedMs - end.startedMs)}`]),
    ...(end === undefined ? [] : [`${ageText(nowMs - end.endedMs)} ago`]),
    ...(isReplaced === true ? ['in place of a suggestion that had been tried'] : []),
    ...(notes.WHY ? [notes.WHY] : []),
  ]
  return printable(parts.join(' · '))
}

/** Beside the table: `rows` draws it into so many columns and rows. */
export type StudyTile = {
  readonly title: string
  readonly note?: string
  draw(columns: number, rows: number, theme: Theme, nowMs: number): readonly Row[]
}

let lastPlots:
  | { readonly trials: readonly Trial[]; readonly metric: Metric; readonly plots: StudyPlots | undefined }
  | undefined

function plotsOf({ study, trials }: StudyReading, metric: Metric | undefined): StudyPlots | undefined {
  if (metric === undefined) return undefined
  if (lastPlots?.trials !== trials || lastPlots.metric !== metric)
    lastPlots = { trials, metric, plots: studyPlots(study, trials, metric) }
  return lastPlots.plots
}

type TilesInput = {
  readonly reading: StudyReading
  readonly metric: Metric | undefined
  readonly undriven: string | undefined
}
let lastTiles: (TilesInput & { readonly tiles: readonly StudyTile[] }) | undefined

/** What it does comes first; then its plots, then lists. */
export function studyTiles(input: TilesInput): readonly StudyTile[] {
  const { reading, metric, undriven } = input
  if (lastTiles?.reading !== reading || lastTiles.metric !== metric || lastTiles.undriven !== undriven)
    lastTiles = { ...input, tiles: newTiles(input) }
  return lastTiles.tiles
}

function newTiles({ reading, metric, undriven }: TilesInput): readonly StudyTile[] {
  const { study, open, trials } = reading
  const plots = plotsOf(reading, metric)
  const stopped = trials.filter(({ end }) => end?.kind === 'pruned')
  return [
    {
      title: 'what it does',
      draw: drawnOnce(reading, (columns, _, theme) => studySummary(reading, undriven, columns, theme)),
    },
    ...(plots === undefined ? [] : plotTiles(plots, metric?.name ?? '')),
    ...(study.spec.pbt === undefined || trials.length === 0
      ? []
      : [{ title: 'line of descent', draw: descentRows(trials, study.spec.pbt.timeAttr) }]),
    ...(open.length === 0 ? [] : [{ title: 'where it runs', draw: openRows(reading) }]),
    ...(stopped.length === 0 ? [] : [{ title: `stopped early: ${stopped.length}`, draw: stoppedRows(stopped) }]),
  ]
}

function plotTiles(
  { history, front, parameters, parallel, importance }: StudyPlots,
  metric: string,
): readonly StudyTile[] {
  return [
    plotTile(history),
    ...(front === undefined ? [] : [plotTile(front)]),
    ...(importance === undefined
      ? []
      : [
          {
            title: `importance for ${printable(metric)}`,
            draw: (columns: number, _: number, theme: Theme) =>
              importanceText(importance, metric, columns - 2)
                .slice(1)
                .map((line) => plotRow(` ${line}`, theme)),
          },
        ]),
    ...parameters.map(plotTile),
    {
      title: 'parallel coordinates',
      draw: drawnOnce(parallel, (columns, rows, theme) => parallelRows(parallel, columns, rows, theme)),
    },
  ]
}

/** By the plot, as drawing takes longer than showing. */
const drawn = new WeakMap<object, { readonly key: string; readonly rows: readonly Row[] }>()

function drawnOnce(plot: object, draw: StudyTile['draw']): StudyTile['draw'] {
  return (columns, rows, theme, nowMs) => {
    const key = `${columns} ${rows} ${theme.name}`
    const known = drawn.get(plot)
    if (known?.key === key) return known.rows
    const made = draw(columns, rows, theme, nowMs)
    drawn.set(plot, { key, rows: made })
    return made
  }
}

/** Its first line is the title, which the pane shows. */
function plotTile(plot: Plot): StudyTile {
  return {
    title: printable(plot.title),
    ...(plot.note === undefined ? {} : { note: plot.note }),
    draw: drawnOnce(plot, (columns, rows, theme) =>
      textPlot(plot, { columns: columns - 1, rows: rows + 1 })
        .slice(1)
        .map((line) => plotRow(line, theme)),
    ),
  }
}

/** Dots, marks of the best, and words each have a colour. */
function plotRow(line: string, theme: Theme): Row {
  return line
    .split(/([\u2801-\u28ff█ ]*[\u2801-\u28ff█][\u2801-\u28ff█ ]*|◆)/)
    .filter((text) => text !== '')
    .map((text): Span => {
      if (text === '◆') return { text, style: boldStyle(theme.ok) }
      return { text, style: /[\u2801-\u28ff█]/.test(text) ? styleOf(theme.accent) : mutedStyle(theme) }
    })
}

/** The last row says how many more there are. */
function listRows<T>(all: readonly T[], rows: number, theme: Theme, rowOf: (one: T) => Row): readonly Row[] {
  const shown = all.length <= rows ? all : all.slice(0, Math.max(0, rows - 1))
  const left = all.length - shown.length
  return [...shown.map(rowOf), ...(left === 0 ? [] : [[{ text: ` and ${left} more`, style: mutedStyle(theme) }]])]
}

const OPEN_ORDER = ['running', 'ending', 'starting', 'pending']

function openRows({ study, open }: StudyReading): StudyTile['draw'] {
  const orderOf = ({ job }: OpenTrial) => {
    const at = OPEN_ORDER.indexOf(job?.state.kind ?? '')
    return at < 0 ? OPEN_ORDER.length : at
  }
  const sorted = open.toSorted((one, other) => orderOf(one) - orderOf(other))
  return (_, rows, theme, nowMs) =>
    listRows(sorted, rows, theme, (one) => {
      const state = one.job?.state
      const kind = state?.kind ?? 'open'
      const ran =
        state !== undefined && 'startedMs' in state && state.startedMs !== undefined
          ? nowMs - state.startedMs
          : undefined
      const values = valuesTextOf(one.values, study.spec.metrics)
      return [
        { text: ` ${padEnd(`trial ${one.trial.number}`, 12)}`, style: styleOf(theme.text) },
        { text: padEnd(kind, 10), style: styleOf(stateColour(kind, theme)) },
        {
          text: padEnd(printable(hostOf(one) ?? (one.trial.asker === undefined ? '' : 'a program')), 12),
          style: boldStyle(theme.text),
        },
        { text: padEnd(ran === undefined ? '' : ageText(ran), 8), style: mutedStyle(theme) },
        {
          text: printable([values, pointText(one.trial.point)].filter((text) => text !== '').join('  ')),
          style: styleOf(theme.text),
        },
      ]
    })
}

function descentRows(trials: readonly Trial[], timeAttr: string): StudyTile['draw'] {
  let lines: readonly string[] | undefined
  return (_, rows, theme) => {
    lines ??= descentLines(trials, timeAttr)
    return listRows(lines, rows, theme, (line) => [{ text: ` ${printable(line)}`, style: styleOf(theme.text) }])
  }
}

function stoppedRows(stopped: readonly Trial[]): StudyTile['draw'] {
  const latest = stopped.toSorted((one, other) => (other.end?.endedMs ?? 0) - (one.end?.endedMs ?? 0))
  return (_, rows, theme) =>
    listRows(latest, rows, theme, ({ number, end }) => [
      { text: ` ${padEnd(`trial ${number}`, 12)}`, style: boldStyle(theme.warning) },
      { text: printable(end?.reason ?? ''), style: styleOf(theme.text) },
    ])
}
