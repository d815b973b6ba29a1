/** A study in place of the list: the table of its trials, views beside it or the log of a trial, and its actions. */

import { nearest } from '../../base/collections.ts'
import type { Study } from '../../scheduler/study/study.ts'
import { mutedStyle, type PaneView, type Rect, type Theme, themes } from '../compositor/scene.ts'
import { promptDialog } from '../dialogs/prompt-dialog.ts'
import { confirmDialog, noAnswer } from '../dialogs/text-dialog.ts'
import {
  centredOn,
  documentOf,
  rowsPane,
  type ScrollStep,
  scrolled,
  splitColumns,
  splitRows,
  wrapRows,
} from '../rows/rows-pane.ts'
import { orderText } from '../rows/table-view.ts'
import { type ConsoleState, forgetTable, type PageContext, tableView } from '../state/console-state.ts'
import { areaOf } from '../work-views/panel.ts'
import type { JobsActions } from './jobs-keys.ts'
import { chosenLine, shownTrials, studyShown, TRIALS } from './jobs-tables.ts'
import { type QueueView, undrivenWords } from './queue-view.ts'
import type { QueueWatch } from './queue-watch.ts'
import { resultColumns, sortedTitle, tableDocument } from './results-table.ts'
import { type ShownTrial, type StudyTile, studyTiles, studyTitle, trialTable, trialText } from './study-documents.ts'
import { type StudyChange, type StudyReading, type StudyView, TRIAL_FILTERS } from './study-view.ts'

/** From so many columns on, the views are beside the table. */
const BESIDE_COLUMNS = 160
const LEAST_TILE = { columns: 50, rows: 14 }
const MOST_MORE = 1_000_000

type Options = {
  readonly context: PageContext
  readonly watch: QueueWatch
  /** Changes the view and reads what it shows. */
  choose(view: Partial<QueueView>): void
  /** An error becomes a notice. */
  attempt(task: () => Promise<void>): void
  /** The job of the selected trial with its log. */
  logPane(rect: Rect, theme: Theme): PaneView
}

export class StudyPage {
  readonly #options: Options

  constructor(options: Options) {
    this.#options = options
  }

  readonly actions = {
    study: () => {
      const id = chosenLine(this.#state)?.study?.study.id
      if (id === undefined) return
      const study: StudyView = { id, filter: 'all', shown: 0, metric: 0, hasLog: false }
      this.#options.context.change((state) => forgetTable(state, TRIALS))
      this.#options.choose({ spec: chosenLine(this.#state)?.spec, isTableOpen: false, study })
    },
    'from-study': () => {
      if (this.#view?.hasLog) this.#choose({ hasLog: false })
      else this.#options.choose({ study: undefined })
    },
    'trial-log': () => this.#choose({ hasLog: this.#view?.hasLog !== true, trial: this.#selected?.id }),
    'next-plots': () => this.#turn(1),
    'plots-before': () => this.#turn(-1),
    'trial-filter': () => {
      const at = TRIAL_FILTERS.indexOf(this.#view?.filter ?? 'all')
      this.#choose({ filter: TRIAL_FILTERS[(at + 1) % TRIAL_FILTERS.length] ?? 'all' })
    },
    'all-trials': () => this.#choose({ trial: this.#selected?.id ?? this.#view?.trial, filter: 'all' }),
    metric: () => {
      const count = this.#reading?.study.spec.metrics.length ?? 1
      this.#choose({ metric: ((this.#view?.metric ?? 0) + 1) % count, hasLog: false })
    },
    'stop-study': () => this.#stop(false),
    'stop-study-now': () => this.#stop(true),
    'more-trials': () => this.#more(),
  } satisfies JobsActions

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    const reading = this.#reading
    const view = this.#view
    if (reading === undefined || view === undefined) {
      const document = documentOf([[{ text: ' reading the study …', style: mutedStyle(theme) }]])
      return [rowsPane({ id: ' trials', title: 'study', hasKeys: true, document, rect, theme })]
    }
    const { table, side } = layout(rect)
    const panes = [this.#tablePane(table, reading, view, theme)]
    if (view.hasLog) return [...panes, this.#options.logPane(side, theme)]
    return [...panes, ...this.#tilePanes(side, reading, view, theme)]
  }

  /** Scrolls the first of the views. */
  scroll(by: ScrollStep): void {
    const [reading, view] = [this.#reading, this.#view]
    if (reading === undefined || view === undefined) return
    const { context, watch } = this.#options
    const { state } = context
    const [first] = this.#shownTiles(layout(areaOf(state)).side, reading, view, themes[state.themeName])
    if (first === undefined) return
    watch.set({ logOffset: scrolled(first.document, first.rect.height, this.#place, by).offset })
  }

  /** Of the log; undefined: it is not shown. */
  logRect(rect: Rect): Rect | undefined {
    return this.#view?.hasLog === true ? layout(rect).side : undefined
  }

  /** The job whose log is shown. */
  jobToShow(): number | undefined {
    return this.#view?.hasLog === true ? this.#selected?.job : undefined
  }

  move(by: number): void {
    const rows = this.#rows
    const at = rows.findIndex(({ id }) => id === this.#selected?.id)
    const trial = nearest(rows, Math.max(0, at) + by)?.id
    if (trial !== undefined && trial !== this.#view?.trial) this.#choose({ trial })
  }

  #tablePane(rect: Rect, reading: StudyReading, view: StudyView, theme: Theme): PaneView {
    const table = trialTable(reading, view)
    const rows = this.#rows
    const selected = this.#selected
    const columns = rect.width - 2
    const muted = mutedStyle(theme)
    const nowMs = this.#options.context.clock.now()
    const text = selected === undefined ? '' : trialText(selected, nowMs)
    const head = [studyTitle(reading, view, theme), [{ text: ` ${text}`, style: muted }]]
    const tableIn = tableView(this.#state, TRIALS)
    const order = orderText(tableIn, resultColumns(table), sortedTitle(table))
    const filtered = { view: tableIn, noun: 'trial', all: table.rows.length, order }
    const own = { id: TRIALS, title: `study ${reading.study.name}`, hasKeys: true, table: filtered, rect, theme }
    if (table.rows.length === 0) {
      const why = reading.trials.length > 0 ? 'No trial is shown: Esc shows all.' : emptyText(reading)
      return rowsPane({ ...own, document: documentOf(wrapRows(why, columns, ' ', muted), head) })
    }
    const chosen = selected?.id
    const document = tableDocument({ table, rows, view: tableIn, head, chosen, columns, theme })
    const at = rows.findIndex(({ id }) => id === chosen)
    const list = { select: (row: number) => this.move(row - at) }
    return rowsPane({ ...own, document, place: centredOn(at, rect.height, document), list })
  }

  #shownTiles(rect: Rect, reading: StudyReading, view: StudyView, theme: Theme) {
    const tiles = this.#tiles(reading, view)
    const { perPage, first } = pageOf(rect, tiles, view)
    const shown = tiles.slice(first, first + perPage)
    const pages = Math.ceil(tiles.length / perPage)
    const nowMs = this.#options.context.clock.now()
    const rects = tileRects(rect, shown.length)
    return shown.map(({ title, note, draw }, index) => {
      const own = rects[index] ?? rect
      const texts = [
        ...(note === undefined ? [] : [` ${note} `]),
        ...(index === 0 && pages > 1 ? [` ← ${first / perPage + 1} of ${pages} → `] : []),
      ]
      return { title, texts, rect: own, document: documentOf(draw(own.width - 2, own.height - 2, theme, nowMs)) }
    })
  }

  #tilePanes(rect: Rect, reading: StudyReading, view: StudyView, theme: Theme): readonly PaneView[] {
    return this.#shownTiles(rect, reading, view, theme).map(({ title, texts, rect: own, document }, index) =>
      rowsPane({
        ...{ id: ` view ${index}`, title, hasKeys: false, document, rect: own, theme },
        badges: texts.map((text) => ({ text, style: mutedStyle(theme) })),
        ...(index === 0 ? { place: this.#place, scroll: (rows: number) => this.scroll({ rows }) } : {}),
      }),
    )
  }

  get #place() {
    return { offset: this.#queue.logOffset ?? 0, isFollowing: false }
  }

  #tiles(reading: StudyReading, view: StudyView): readonly StudyTile[] {
    return studyTiles({
      reading,
      metric: reading.study.spec.metrics[view.metric],
      undriven: undrivenWords(this.#queue.status),
    })
  }

  #turn(by: 1 | -1): void {
    const [reading, view] = [this.#reading, this.#view]
    if (reading === undefined || view === undefined) return
    if (view.hasLog) return this.#choose({ hasLog: false })
    const tiles = this.#tiles(reading, view)
    const { perPage, first } = pageOf(layout(areaOf(this.#options.context.state)).side, tiles, view)
    const pages = Math.ceil(tiles.length / perPage)
    this.#choose({ shown: ((first / perPage + by + pages) % pages) * perPage })
  }

  #stop(now: boolean): void {
    const line = chosenLine(this.#state)?.study
    if (line === undefined) return
    const { study, counts } = line
    if (study.state.kind !== 'running' && counts.open === 0 && !now)
      return this.#options.context.notice('this study is not running', 'warning')
    const apply = this.#changeOf(study)
    const isElsewhere = study.spec.source !== undefined
    const text = now
      ? `Cancels all trials that run or wait (${counts.open} now). m continues the study.`
      : isElsewhere
        ? 'It continues where it runs; m follows it again.'
        : 'Running trials continue to their end; m continues the study.'
    this.#options.context.openDialog(
      confirmDialog({
        id: 'stop-study',
        title: isElsewhere ? `Stop following study ${study.name}?` : `Stop study ${study.name}?`,
        lines: [{ text }],
        yesTitle: 'stop',
        onYes: () => apply({ kind: 'stop', now }),
        onText: (label) => this.#options.context.notice(noAnswer(label), 'warning', 'key'),
      }),
    )
  }

  /** In the queue that is shown now, if it is still there when an answer comes. */
  #changeOf({ id }: Study): (change: StudyChange) => void {
    const { status } = this.#state.queue
    return (change) => this.#options.attempt(async () => await status?.changes.changeStudy(id, change))
  }

  #more(): void {
    const study = chosenLine(this.#state)?.study?.study
    if (study === undefined) return
    const apply = this.#changeOf(study)
    const change = (trials: number | undefined) => apply({ kind: 'more', trials })
    if (study.spec.source !== undefined) {
      if (study.state.kind === 'running') this.#options.context.notice('this study is already followed')
      else change(undefined)
      return
    }
    const numberOf = (text: string) => (/^\d+$/.test(text.trim()) ? Number(text.trim()) : undefined)
    const isStopped = study.state.kind === 'stopped'
    this.#options.context.openDialog(
      promptDialog({
        id: 'more-trials',
        title: `More trials of ${study.name}`,
        label: 'Trials:',
        submitTitle: 'run',
        ...(isStopped ? { fallback: '0' } : {}),
        help: [
          {
            text: isStopped ? 'How many more than planned; 0 continues as planned.' : 'How many more than planned.',
            tone: 'muted',
          },
        ],
        check: (text) => {
          const number = numberOf(text)
          const isWrong = number === undefined || number > MOST_MORE || (number === 0 && !isStopped)
          return isWrong ? { error: `type a whole number from ${isStopped ? 0 : 1} to ${MOST_MORE}` } : {}
        },
        onSubmit: (text) => change(numberOf(text) || undefined),
      }),
    )
  }

  #choose(change: Partial<StudyView>): void {
    const view = this.#view
    if (view !== undefined) this.#options.choose({ study: { ...view, ...change } })
  }

  get #state(): ConsoleState {
    return this.#options.context.state
  }

  get #queue(): QueueView {
    return this.#state.queue
  }

  get #view(): StudyView | undefined {
    return this.#queue.study
  }

  /** Undefined: not read yet. */
  get #reading(): StudyReading | undefined {
    return studyShown(this.#state)
  }

  get #rows(): readonly ShownTrial[] {
    return shownTrials(this.#state)
  }

  get #selected(): ShownTrial | undefined {
    const rows = this.#rows
    return rows.find(({ id }) => id === this.#view?.trial) ?? rows[0]
  }
}

/** The views are beside the table or above it. */
function layout(rect: Rect): { readonly table: Rect; readonly side: Rect } {
  if (rect.width >= BESIDE_COLUMNS) {
    const [table, side] = splitColumns(rect, Math.ceil(rect.width / 2))
    return { table, side }
  }
  const [side, table] = splitRows(rect, Math.ceil(rect.height / 2))
  return { table, side }
}

/** `first`: of the page that has the view that was shown first, which another size may have put elsewhere. */
function pageOf(rect: Rect, tiles: readonly StudyTile[], { shown }: StudyView) {
  const across = Math.max(1, Math.floor(rect.width / LEAST_TILE.columns))
  const perPage = Math.min(tiles.length, across * Math.max(1, Math.floor(rect.height / LEAST_TILE.rows)))
  const at = Math.min(shown, tiles.length - 1)
  return { perPage, first: at - (at % perPage) }
}

/** As even as they go, none of them higher than it is wide; the last one takes what is left of its line. */
function tileRects(rect: Rect, count: number): readonly Rect[] {
  const across = Math.max(1, Math.min(count, Math.floor(rect.width / LEAST_TILE.columns)))
  const down = Math.ceil(count / across)
  const edge = (size: number, at: number, of: number) => Math.floor((size * at) / of)
  return Array.from({ length: count }, (_, index) => {
    const [line, column] = [Math.floor(index / across), index % across]
    const top = edge(rect.height, line, down)
    const left = edge(rect.width, column, across)
    const right = index === count - 1 ? rect.width : edge(rect.width, column + 1, across)
    return {
      row: rect.row + top,
      column: rect.column + left,
      width: right - left,
      height: edge(rect.height, line + 1, down) - top,
    }
  })
}

function emptyText({ study }: StudyReading): string {
  if (study.spec.source !== undefined) return 'No trial has been read yet.'
  if (study.spec.isAsked === true) return 'No trial yet: no program has asked for a point.'
  return 'No trial yet. The scheduler starts trials as hosts become free; each row will show one.'
}
