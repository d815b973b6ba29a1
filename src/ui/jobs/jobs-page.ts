/** The Jobs tab: the queue as a list, the selected job with its log beside it, and its actions. */

import { isDeepStrictEqual } from 'node:util'
import { nearest } from '../../base/collections.ts'
import { counted } from '../../base/counted.ts'
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { ClusterAction, ClusterJobDetails } from '../../scheduler/jobs/engine.ts'
import { CHANGED_KINDS, engineRanks } from '../../scheduler/jobs/job.ts'
import { isWithoutResult } from '../../scheduler/study/study.ts'
import { boldStyle, mutedStyle, type PaneView, type Rect, type Theme, themes } from '../compositor/scene.ts'
import { promptDialog } from '../dialogs/prompt-dialog.ts'
import { confirmDialog, noAnswer } from '../dialogs/text-dialog.ts'
import { activeCommandOf } from '../keys/key-table.ts'
import type { WatchedResources } from '../network/watched-hosts.ts'
import type { ClusterJob, EnginePicture } from '../packing/engine-picture.ts'
import { NO_ANSWER, sourcesRow, sourceTitle } from '../packing/packing-input.ts'
import {
  centredOn,
  documentOf,
  type Row,
  type RowDocument,
  rowsPane,
  type ScrollStep,
  scrolled,
  splitColumns,
  splitRows,
  wrapRows,
} from '../rows/rows-pane.ts'
import { orderText } from '../rows/table-view.ts'
import { forgetTable, type Page, type PageContext, tableView, unfilterTable } from '../state/console-state.ts'
import { areaOf } from '../work-views/panel.ts'
import type { WorkPort } from '../work-views/work-port.ts'
import { type ArrayTable, arrayTable } from './array-table.ts'
import { clusterColumns, clusterDocument, clusterJobDocument } from './cluster-document.ts'
import type { ClusterWatch } from './cluster-watch.ts'
import { completeSubmit } from './complete-submit.ts'
import { cutRow, jobDocument, lineColumns, listDocument, logRows, sweepSummary } from './documents.ts'
import { inCluster, type JobsActions, type JobsCommand, jobsKeys } from './jobs-keys.ts'
import {
  CLUSTER,
  chosenClusterDetails,
  chosenLine,
  JOB_LOG,
  LIST,
  lineOfClusterJob,
  RESULTS,
  showInQueue,
  shownClusterJobs,
  shownLines,
  shownLog,
  shownMembers,
  sweepShown,
} from './jobs-tables.ts'
import {
  clusterJobKey,
  commandLineOf,
  FILTERS,
  hasMetrics,
  hasOpenPage,
  isEngineGang,
  type JobAction,
  type JobDetails,
  type JobLine,
  type JobsPort,
  KINDS,
  linesInState,
  pictureAt,
  type QueueChanges,
  type QueueStatus,
  type QueueView,
  type SubmitWords,
  undrivenWords,
} from './queue-view.ts'
import { LogTail, type QueueWatch } from './queue-watch.ts'
import { RanksPage } from './ranks-page.ts'
import { resultColumns, sortedTitle, type TableRow, tableDocument } from './results-table.ts'
import { studySummary } from './study-documents.ts'
import { StudyPage } from './study-page.ts'
import type { StudyReading } from './study-view.ts'

const PAGE = 10
const ALL_ROWS = Number.MAX_SAFE_INTEGER
/** Reading a table of this many rows takes longer than a frame, so it is read again only after this time. */
const LARGE_SWEEP = 1_000
const LARGE_SWEEP_MS = 5_000

const TITLES: Readonly<Record<JobAction, string>> = {
  cancel: 'Cancel',
  hold: 'Hold',
  release: 'Release',
  retry: 'Retry',
}

const GONE = 'This job is no longer in the queue: Esc goes back to the list.'
const NO_JOB = 'no job is selected: Esc clears the filter'

const CLUSTER_TITLES: Readonly<Record<ClusterAction, string>> = {
  delete: 'Delete',
  suspend: 'Suspend',
  resume: 'Resume',
}
const CLUSTER_LINES: Readonly<Record<ClusterAction, string>> = {
  delete: 'Its pods end, and their output is deleted.',
  suspend: 'Its pods end, and their output is deleted. It starts again when it is resumed.',
  resume: 'It gets new pods when there is room for them.',
}

/** Keys of the list that do not apply to every row: on other rows they do nothing, or say why. */
const OF_LIST: ReadonlySet<JobsCommand> = new Set([
  ...(['member', 'filter', 'cluster'] as const),
  ...(['cancel', 'hold', 'release', 'retry'] as const),
])

const BESIDE_COLUMNS = 160
/** The width of a list with whole names, if that leaves `LEAST_SIDE` columns beside it. */
const LIST_COLUMNS = 140
const LEAST_SIDE = 100
/** Of the list above an open table. */
const LIST_BY_TABLE_ROWS = 6

/** The selected job is beside the list or below it; a table is above the job or in its place. */
function layout(rect: Rect, hasTable: boolean) {
  if (rect.width >= BESIDE_COLUMNS) {
    const [list, right] = splitColumns(
      rect,
      Math.max(Math.ceil(rect.width / 2), Math.min(LIST_COLUMNS, rect.width - LEAST_SIDE)),
    )
    const [table, side] = hasTable ? splitRows(right, Math.ceil(right.height / 2)) : [undefined, right]
    return { list, table, side }
  }
  const height = hasTable ? Math.min(LIST_BY_TABLE_ROWS, rect.height) : Math.ceil(rect.height / 2)
  const [list, below] = splitRows(rect, height)
  return hasTable ? { list, table: below, side: { ...below, height: 0 } } : { list, table: undefined, side: below }
}

type JobsSources = {
  readonly jobs: JobsPort
  readonly work: WorkPort
  readonly watched: WatchedResources
  readonly clusters: ClusterWatch
}

export class JobsPage implements Page {
  readonly isIdle = true
  readonly busy = []
  readonly #context: PageContext
  readonly #watch: QueueWatch
  readonly #jobs: JobsPort
  readonly #clusters: ClusterWatch
  readonly #tail: LogTail
  readonly #ranks: RanksPage
  readonly #study: StudyPage
  #sweepReadMs = 0
  /** Of several readings at once the last one counts. */
  #readings = 0
  readonly #life = new AbortController()
  #isDisposed = false
  /** For Tab; empty until they were read. */
  #submitWords: SubmitWords = { options: [], values: {} }
  /** A question that is being prepared. */
  #asking: object | undefined

  constructor(context: PageContext, watch: QueueWatch, { jobs, work, watched, clusters }: JobsSources) {
    this.#clusters = clusters
    this.#context = context
    this.#watch = watch
    this.#jobs = jobs
    const onRead = (log: QueueView['log']) => {
      if (!this.#isDisposed) watch.set({ log: this.#keptLog(log) })
    }
    this.#tail = new LogTail(work, context.clock, onRead, (log, signal) => jobs.readLog(log, signal))
    this.#ranks = new RanksPage({ context, watch, work, watched, choose: (view) => this.#choose(view) })
    this.#study = new StudyPage({
      context,
      watch,
      choose: (view) => this.#choose(view),
      attempt: (task) =>
        void this.#attempt(async () => {
          await task()
          this.#sweepReadMs = Number.NEGATIVE_INFINITY
          await watch.read()
        }),
      logPane: (rect, theme) => this.#sidePane(rect, theme),
    })
    watch.onRead(() => {
      if (context.state.tab !== 'jobs') return
      // The row that the user looks at stays selected when newer jobs appear above it.
      const { spec } = this.#view
      if (spec === undefined) watch.set({ spec: this.#chosen?.spec })
      this.#read()
    })
  }

  open(): void {
    this.#watch.open()
    this.#clusters.open()
    this.#read()
  }

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    const { status, trouble } = this.#view
    if (inCluster(this.#context.state)) return this.#clusterPanes(rect, theme)
    if (status === undefined || trouble !== undefined) {
      const style = trouble === undefined ? mutedStyle(theme) : boldStyle(theme.danger)
      const text = printable(trouble ?? 'reading the queue …')
      const document = documentOf([[], ...wrapRows(text, rect.width - 2, '  ', style)])
      return [rowsPane({ id: ' jobs', title: 'jobs', hasKeys: true, document, rect, theme })]
    }
    if (this.#view.ranks !== undefined) return this.#ranks.panes(rect, theme)
    if (this.#view.study !== undefined) return this.#study.panes(rect, theme)
    if (this.#view.isLogOpen) return [this.#logPane(rect, theme)]
    const { list, table, side } = layout(rect, this.#view.isTableOpen)
    const panes = [this.#listPane(list, theme, status)]
    if (table !== undefined) panes.push(this.#tablePane(table, theme))
    if (side.height > 0) panes.push(this.#sidePane(side, theme))
    return panes
  }

  #listPane(rect: Rect, theme: Theme, status: QueueStatus): PaneView {
    const { filter, isTableOpen } = this.#view
    const view = tableView(this.#context.state, LIST)
    const lines = this.#lines
    const chosen = this.#chosen
    const nowMs = this.#context.clock.now()
    const own = listDocument({ status, lines, chosen, filter, view, columns: rect.width - 2, theme, nowMs })
    const document = { ...own, head: [...this.#sourcesRow(theme), ...own.head] }
    const at = lines.findIndex((line) => line.spec === chosen?.spec)
    const place = centredOn(at, rect.height, document)
    const isCut = this.#view.status?.isCut === true
    const table = {
      view,
      noun: isCut ? 'listed job' : 'job',
      all: linesInState(this.#view).length,
      order: orderText(view, lineColumns(this.#view)),
    }
    const list = { select: (row: number) => this.#choose({ spec: lines[row]?.spec, isTableOpen: false }) }
    const title = isCut ? 'jobs (older ones: muster job list --limit 1000)' : 'jobs'
    return rowsPane({ id: LIST, title, hasKeys: !isTableOpen, document, table, place, rect, theme, list })
  }

  #clusterPanes(rect: Rect, theme: Theme): readonly PaneView[] {
    const { list: upper, side } = layout(rect, false)
    const picture = this.#cluster
    const view = tableView(this.#context.state, CLUSTER)
    const own = { id: CLUSTER, hasKeys: true, theme }
    const title = `jobs of ${sourceTitle(this.#view.listed)}`
    if (typeof picture === 'string') {
      const words = wrapRows(printable(picture), rect.width - 2, '  ', mutedStyle(theme))
      return [rowsPane({ ...own, title, document: documentOf([[], ...words], this.#sourcesRow(theme)), rect })]
    }
    const nowMs = this.#context.clock.now()
    const jobs = shownClusterJobs(this.#context.state)
    const at = this.#clusterRow(jobs)
    const { status, letters } = this.#view
    const known = { active: status?.active ?? [], letters }
    const list = clusterDocument(picture, jobs, view, at, known, upper.width - 2, theme, nowMs)
    const document = { ...list, head: [...this.#sourcesRow(theme), ...list.head] }
    const order = orderText(view, clusterColumns([], nowMs))
    const table = { view, noun: 'job', all: picture.jobs.length, order }
    const job = jobs[at]
    const read = chosenClusterDetails(this.#context.state)
    const details = clusterJobDocument(job, read, picture.title, side.width - 2, theme, nowMs)
    return [
      rowsPane({
        ...own,
        title,
        document,
        table,
        place: centredOn(at, upper.height, document),
        rect: upper,
        list: { select: (row) => this.#moveInCluster(row - at) },
      }),
      rowsPane({ id: ' job', title: job?.name ?? 'job', hasKeys: false, document: details, rect: side, theme }),
    ]
  }

  get #cluster(): EnginePicture | string {
    return pictureAt(this.#view, this.#view.listed) ?? NO_ANSWER
  }

  #clusterRow(jobs: readonly ClusterJob[]): number {
    return Math.max(
      0,
      jobs.findIndex((job) => clusterJobKey(job) === this.#view.clusterJob),
    )
  }

  #moveInCluster(by: number): void {
    const jobs = shownClusterJobs(this.#context.state)
    const job = nearest(jobs, this.#clusterRow(jobs) + by)
    this.#clusters.show({ clusterJob: job && clusterJobKey(job) })
  }

  #sourcesRow(theme: Theme): readonly Row[] {
    const { clusters, listed } = this.#view
    const titles = (['queue', ...clusters] as const).map((source) => ({
      title: source === 'queue' ? 'own queue' : sourceTitle(source),
      isShown: source === listed,
    }))
    return sourcesRow(titles, theme)
  }

  #list(listed: QueueView['listed']): void {
    // The keys of an open array would act on its hidden rows.
    if (this.#view.isTableOpen) this.#choose({ isTableOpen: false, member: this.#chosenMember })
    this.#clusters.show({ listed, clusterJob: undefined })
  }

  #tablePane(rect: Rect, theme: Theme): PaneView {
    const [line, sweep, { isTableOpen }] = [this.#chosen, this.#sweep, this.#view]
    const own = { id: RESULTS, hasKeys: true, rect, theme }
    if (!isTableOpen || line === undefined || sweep === undefined) {
      const words = line === undefined ? wrapRows(GONE, rect.width - 2, ' ', mutedStyle(theme)) : []
      return rowsPane({ ...own, title: 'results', document: documentOf(words) })
    }
    const rows = this.#sweepRows
    const chosen = this.#chosenMember
    const head = [sweepSummary(sweep, line, theme)]
    const view = tableView(this.#context.state, RESULTS)
    const document = tableDocument({ table: sweep, rows, view, head, chosen, columns: rect.width - 2, theme })
    const order = orderText(view, resultColumns(sweep), sortedTitle(sweep))
    const table = { view, noun: 'job', all: sweep.rows.length, order }
    const at = rows.findIndex(({ id }) => id === chosen)
    const title = `${hasMetrics(line.lead) ? 'results of' : 'jobs'} ${numbersOf(line)}`
    const list = { select: (row: number) => this.#moveInTable(row - Math.max(0, at)) }
    return rowsPane({ ...own, title, document, table, place: centredOn(at, rect.height, document), list })
  }

  #sidePane(rect: Rect, theme: Theme): PaneView {
    const { details } = this.#view
    const line = this.#view.study === undefined ? this.#chosen?.study : undefined
    const title =
      line !== undefined
        ? `study ${line.study.name}`
        : details === undefined
          ? 'job'
          : `job ${details.job.id}${rankText(details, this.#view.logRank)}${moreText(this.#view.log)}`
    const document = this.#side(rect.width - 2, theme)
    const scroll = (rows: number) => this.#scrollLog({ rows })
    return rowsPane({ id: ' job', title, hasKeys: false, document, place: this.#logPlace, rect, theme, scroll })
  }

  /** The job and its log, in place of the list. */
  #logPane(rect: Rect, theme: Theme): PaneView {
    const { details, log } = this.#view
    const { state } = this.#context
    const view = tableView(state, JOB_LOG)
    const all = log?.lines.length ?? 0
    const table = { view, noun: 'line', all, shown: shownLog(state).length, order: orderText(view, []) }
    const title =
      details === undefined
        ? 'job'
        : `job ${details.job.id}${rankText(details, this.#view.logRank)}${moreText(log)} ${printable(details.job.spec.name)}`
    const document = this.#logDocument(rect.width - 2, theme)
    const scroll = (rows: number) => this.#scrollLog({ rows })
    return rowsPane({ id: JOB_LOG, title, hasKeys: true, document, table, place: this.#logPlace, rect, theme, scroll })
  }

  #logDocument(columns: number, theme: Theme): RowDocument {
    const { state, clock } = this.#context
    const { details, log } = this.#view
    if (tableView(state, JOB_LOG).filter.text !== '') {
      const cut = log?.isCut === true && details !== undefined ? [cutRow(details.job.id, theme)] : []
      return documentOf([...cut, ...logRows(shownLog(state), columns, theme)])
    }
    if (details === undefined) return this.#side(columns, theme)
    return jobDocument(details, log && { ...log, lines: shownLog(state) }, columns, theme, clock.now(), {
      isWrapped: true,
      down: this.#view.status?.down,
    })
  }

  handleKey(label: string): boolean {
    const { state } = this.#context
    if (this.#asking !== undefined) {
      // What is typed before the question is shown is no answer to it, and must not act elsewhere.
      if (label === 'Esc' || label === 'Ctrl-c') this.#asking = undefined
      return true
    }
    const active = activeCommandOf(jobsKeys, label, state)
    // Keys of the list or a table do nothing while ranks, a study, a log or the jobs of a cluster are shown.
    const isElsewhere = this.#view.ranks || this.#view.study || this.#view.isLogOpen || inCluster(state)
    const refused = isElsewhere ? undefined : jobsKeys.find(({ id, keys }) => OF_LIST.has(id) && keys.includes(label))
    const command = active ?? refused?.id
    if (command !== undefined) this.#do(command)
    return command !== undefined
  }

  scrollBy(rows: number): void {
    this.#move(Math.sign(rows))
  }

  keepRow(): void {
    const { state } = this.#context
    const { ranks, study, isLogOpen, isTableOpen } = this.#view
    if (inCluster(state)) {
      if (shownClusterJobs(state).length > 0) this.#moveInCluster(0)
    } else if (ranks !== undefined) this.#ranks.keepRow()
    else if (study !== undefined) this.#study.move(0)
    else if (isLogOpen) return
    else if (isTableOpen) this.#watch.set({ member: this.#chosenMember ?? this.#view.member })
    else this.#watch.set({ spec: this.#shownSpec })
  }

  /** Of the row that is shown as the selected one, if there is one. */
  get #shownSpec(): number | undefined {
    return this.#chosen?.spec ?? this.#view.spec
  }

  onTableChange(): void {
    this.#read()
    this.#clusters.show({})
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    this.#life.abort()
    this.#tail[Symbol.dispose]()
    this.#ranks[Symbol.dispose]()
  }

  get #view(): QueueView {
    return this.#context.state.queue
  }

  get #lines(): readonly JobLine[] {
    return shownLines(this.#context.state)
  }

  get #chosen(): JobLine | undefined {
    return chosenLine(this.#context.state)
  }

  get #hasLog(): boolean {
    return (this.#view.log?.lines.length ?? 0) > 0
  }

  /** The end of the log is followed unless the user has scrolled. */
  get #logPlace() {
    const { logOffset } = this.#view
    return { offset: logOffset ?? 0, isFollowing: logOffset === undefined && this.#hasLog }
  }

  readonly #own: Readonly<
    Record<Exclude<JobsCommand, keyof StudyPage['actions'] | keyof RanksPage['actions']>, () => void>
  > = {
    'to-queue': () => this.#list('queue'),
    'in-queue': () => {
      const { line, job } = lineOfClusterJob(this.#context.state) ?? {}
      if (line === undefined) return
      this.#list('queue')
      showInQueue(this.#context, line.spec, job)
      this.#read()
    },
    cluster: () => {
      const { clusters, listed } = this.#view
      if (clusters.length === 0)
        return this.#context.notice('hosts.yaml declares no Slurm and no Kubernetes', 'warning')
      this.#list(listed === 'queue' ? (clusters[0] ?? 'queue') : (clusters[clusters.indexOf(listed) + 1] ?? 'queue'))
    },
    submit: () => this.#openSubmit(),
    'to-list': () => this.#choose({ isTableOpen: false, member: this.#chosenMember }),
    table: () => this.#openTable(),
    members: () => this.#openTable(),
    log: () => this.#openLog({}),
    'member-log': () => {
      const member = this.#chosenMember
      if (member === undefined) this.#context.notice(NO_JOB, 'warning', 'key')
      else this.#openLog({ member })
    },
    'log-rank': () => this.#stepRank(1),
    'log-rank-before': () => this.#stepRank(-1),
    'from-log': () => this.#choose({ isLogOpen: false }),
    'from-member-log': () => this.#choose({ isLogOpen: false, member: this.#member }),
    filter: () => {
      if (this.#view.isTableOpen) return this.#context.notice('/ filters these jobs: try /failed')
      this.#choose({ filter: FILTERS[(FILTERS.indexOf(this.#view.filter) + 1) % FILTERS.length] ?? 'all' })
    },
    'all-states': () => this.#choose({ spec: this.#shownSpec, filter: 'all' }),
    member: () => this.#step(1),
    'member-before': () => this.#step(-1),
    cancel: () => this.#ask('cancel'),
    hold: () => this.#ask('hold'),
    release: () => this.#ask('release'),
    retry: () => this.#ask('retry'),
    'cluster-delete': () => this.#askCluster('delete'),
    'cluster-suspend': () => this.#askCluster('suspend'),
    'cluster-resume': () => this.#askCluster('resume'),
    up: () => this.#move(-1),
    down: () => this.#move(1),
    'page-up': () => this.#move(-PAGE),
    'page-down': () => this.#move(PAGE),
    first: () => this.#move(-ALL_ROWS),
    last: () => this.#move(ALL_ROWS),
    'log-up': () => this.#scrollLog(-1),
    'log-down': () => this.#scrollLog(1),
  }

  #do(command: JobsCommand): void {
    const actions: JobsActions = { ...this.#own, ...this.#ranks.actions, ...this.#study.actions }
    actions[command]?.()
  }

  #choose(view: Partial<QueueView>): void {
    this.#watch.set({ member: undefined, logOffset: undefined, logRank: undefined, ...view })
    this.#read()
  }

  #openTable(): void {
    const line = this.#chosen
    if (line === undefined || line.count < 2 || line.study !== undefined) return
    this.#context.change((state) => forgetTable(state, RESULTS))
    this.#choose({ spec: line.spec, isTableOpen: true })
  }

  #openLog(of: { readonly member?: number | undefined }): void {
    this.#context.change((state) => forgetTable(state, JOB_LOG))
    this.#choose({ spec: this.#chosen?.spec, ...of, isLogOpen: true })
  }

  /** Of the selected row; undefined: not read yet. */
  get #sweep(): ArrayTable | undefined {
    return sweepShown(this.#context.state)
  }

  get #sweepRows(): readonly TableRow[] {
    return shownMembers(this.#context.state)
  }

  /** The one that was chosen in the selected row, which a filter may change. */
  get #member(): number | undefined {
    const { member = -1 } = this.#view
    const { first = 0, count = 0 } = this.#chosen ?? {}
    return member >= first && member < first + count ? member : undefined
  }

  /** In an open table: the chosen row, or the first one where a filter hides that. */
  get #chosenMember(): number | undefined {
    return this.#sweep === undefined ? this.#member : this.#memberOf(this.#sweepRows)
  }

  #memberOf(rows: readonly TableRow[]): number | undefined {
    const member = this.#member
    // The job whose log is open stays the same.
    const isThere = this.#view.isLogOpen || rows.some(({ id }) => id === member)
    return isThere ? member : rows[0]?.id
  }

  #move(by: number): void {
    if (inCluster(this.#context.state)) return this.#moveInCluster(by)
    if (this.#view.ranks !== undefined) return this.#ranks.move({ lines: by })
    if (this.#view.study !== undefined) return this.#study.move(by)
    if (this.#view.isTableOpen) return this.#moveInTable(by)
    if (this.#view.isLogOpen) return this.#scrollLog({ rows: by })
    const lines = this.#lines
    const at = lines.findIndex((line) => line.spec === this.#chosen?.spec)
    const spec = nearest(lines, at + by)?.spec
    if (spec !== this.#view.spec) this.#choose({ spec })
  }

  #moveInTable(by: number): void {
    const rows = this.#sweepRows
    const at = rows.findIndex(({ id }) => id === this.#member)
    const member = nearest(rows, Math.max(0, at) + by)?.id
    if (member !== undefined) this.#choose({ spec: this.#chosen?.spec, member })
  }

  #step(by: number): void {
    if (inCluster(this.#context.state)) return
    if (this.#view.isTableOpen) return this.#moveInTable(by)
    const line = this.#chosen
    if (line === undefined || line.count < 2 || line.study !== undefined) return
    const at = this.#view.details?.job.id ?? line.first
    const member = Math.max(line.first, Math.min(line.first + line.count - 1, at + by))
    this.#choose({ spec: line.spec, member })
  }

  #stepRank(by: number): void {
    const { details, logRank = 0 } = this.#view
    const last = (details === undefined ? 1 : engineRanks(details.job.spec)) - 1
    this.#choose({ member: this.#member, logRank: Math.max(0, Math.min(last, logRank + by)) })
  }

  #scrollLog(by: ScrollStep): void {
    if (inCluster(this.#context.state)) return
    if (this.#view.ranks !== undefined) return this.#ranks.scroll(by)
    const { state } = this.#context
    const area = areaOf(state)
    if (this.#view.study?.hasLog === false) return this.#study.scroll(by)
    const { isLogOpen, isTableOpen } = this.#view
    const side = isLogOpen ? area : (this.#study.logRect(area) ?? layout(area, isTableOpen).side)
    const theme = themes[state.themeName]
    const document = isLogOpen ? this.#logDocument(side.width - 2, theme) : this.#side(side.width - 2, theme)
    const { offset, isAtEnd } = scrolled(document, side.height, this.#logPlace, by)
    const isFollowing = isAtEnd && this.#hasLog
    this.#watch.set({ logOffset: isFollowing ? undefined : offset })
    if (isFollowing && this.#view.log?.hasMore === true) this.#read()
  }

  #side(columns: number, theme: Theme): RowDocument {
    const { details, log } = this.#view
    const down = this.#view.status?.down
    if (details !== undefined) return jobDocument(details, log, columns, theme, this.#context.clock.now(), { down })
    const style = mutedStyle(theme)
    const { studied, study, status } = this.#view
    if (study !== undefined)
      return documentOf(
        wrapRows('no job: no trial is selected, its job was deleted, or it ran elsewhere', columns, ' ', style),
      )
    const line = this.#chosen
    if (line?.study !== undefined)
      return documentOf(
        studied?.study.id === line.study.study.id
          ? studySummary(studied, undrivenWords(status), columns, theme)
          : [[{ text: ' reading the study …', style }]],
      )
    if (line === undefined && hasOpenPage(this.#view)) return documentOf(wrapRows(GONE, columns, ' ', style))
    const empty =
      (status?.groups.length ?? 0) > 0
        ? linesInState(this.#view).length > 0
          ? `No row is shown: Esc clears the filter${this.#view.filter === 'all' ? '' : ', and Esc again shows all states'}.`
          : 'No row is shown: Esc shows all states.'
        : this.#howToSubmit
    return documentOf(wrapRows(line === undefined ? empty : '', columns, ' ', style))
  }

  #openSubmit(): void {
    void this.#attempt(async () => {
      this.#submitWords = await this.#jobs.submitWords()
    })
    this.#context.openDialog(
      promptDialog({
        id: 'submit',
        title: 'Submit a job',
        label: 'Command:',
        submitTitle: 'submit',
        help: [
          { text: 'python train.py          --gpu 1 --name fit -- python train.py | tee log', tone: 'muted' },
          { text: `Options are those of: ${commandLineOf(this.#view.status, 'job submit --help')}`, tone: 'muted' },
        ],
        complete: (text) => completeSubmit(text, this.#submitWords),
        staysOpen: true,
        onSubmit: (text) => this.#submit(text),
      }),
    )
  }

  async #submit(text: string): Promise<void> {
    const [words = '', ...others] = await this.#jobs.submit(text)
    if (this.#isDisposed) return
    for (const line of others) this.#context.log('', line, 'warning')
    this.#context.notice([words, ...others].join('; '), others.length === 0 ? 'info' : 'warning')
    this.#context.change((state) => unfilterTable(state, LIST))
    this.#choose({ spec: undefined, filter: 'all' })
    await this.#watch.read()
  }

  /** While the user reads further up, it stays as it is: the end that is read moves on. */
  #keptLog(read: QueueView['log']): QueueView['log'] {
    const { log, logOffset } = this.#view
    if (read === undefined || log === undefined || logOffset === undefined) return read
    return isDeepStrictEqual(read.lines, log.lines) ? { ...read, lines: log.lines } : { ...log, hasMore: true }
  }

  get #howToSubmit(): string {
    const { status } = this.#view
    return `n submits a job, or ${status?.commandsWork ?? 'in a shell'}: ${commandLineOf(status, 'job submit')} -- COMMAND`
  }

  /** Reads the selected job, its log, and the table when it is open. */
  #read(): void {
    void this.#attempt(() => this.#readChosen())
  }

  async #readChosen(): Promise<void> {
    this.#readings += 1
    const reading = this.#readings
    const line = this.#chosen
    const { isTableOpen, ranks, study } = this.#view
    const studyId = study?.id ?? line?.study?.study.id
    const studied = studyId === undefined ? undefined : await this.#readStudy(studyId)
    const sweep = line && isTableOpen ? await this.#readSweep(line) : undefined
    const member = sweep === undefined ? this.#member : this.#memberOf(shownMembers(this.#context.state, sweep))
    const own = studyId === undefined ? line && (member ?? (await this.#jobToShow(line))) : this.#study.jobToShow()
    const id = ranks?.job ?? own
    const details = id === undefined ? undefined : await this.#jobs.details(id)
    if (reading !== this.#readings || this.#isDisposed) return
    this.#watch.set({ details, studied, sweep: line && sweep && { spec: line.spec, sweep } })
    this.#ranks.follow(ranks && details)
    this.#tail.read(ranks === undefined && details !== undefined ? this.#logOf(details) : undefined)
  }

  #logOf({ job, log }: JobDetails): JobDetails['log'] {
    const { logRank: rank } = this.#view
    return log === undefined || 'host' in log || rank === undefined || !isEngineGang(job) ? log : { ...log, rank }
  }

  /** Runs what asks the queue; an error becomes a notice. */
  async #attempt(task: () => Promise<void>): Promise<void> {
    try {
      await task()
    } catch (error) {
      if (!this.#isDisposed) this.#context.notice(messageOf(error), 'error')
    }
  }

  async #readStudy(id: number): Promise<StudyReading | undefined> {
    const { studied } = this.#view
    const known = studied?.study.id === id ? studied : undefined
    if (known !== undefined && !this.#isDue(known.trials.length)) return known
    return await this.#jobs.study(id)
  }

  /** A table of so many rows takes long to show, and may be some seconds old. */
  #isDue(rows: number): boolean {
    const nowMs = this.#context.clock.now()
    if (rows >= LARGE_SWEEP && Math.abs(nowMs - this.#sweepReadMs) < LARGE_SWEEP_MS) return false
    this.#sweepReadMs = nowMs
    return true
  }

  async #readSweep({ first }: JobLine): Promise<ArrayTable | undefined> {
    const known = this.#sweep
    if (known !== undefined && !this.#isDue(known.rows.length)) return known
    const sweep = await this.#jobs.sweep(first)
    const table = sweep && arrayTable(sweep, this.#context.clock.now())
    // The same rows stay sorted.
    return isDeepStrictEqual(table, known) ? known : table
  }

  /** The job of an array to show: a running one, else a failed one, else the first waiting one, else the last. */
  async #jobToShow({ spec, first, count }: JobLine): Promise<number> {
    if (count === 1) return first
    for (const kinds of [KINDS.running, KINDS.failed, KINDS.waiting]) {
      const [id] = await this.#jobs.members(spec, kinds)
      if (id !== undefined) return id
    }
    return first + count - 1
  }

  #ask(action: JobAction): void {
    const asking = {}
    this.#asking = asking
    const open = () => this.#openChange(action, () => this.#asking === asking && !this.#isDisposed)
    void this.#attempt(open).finally(() => {
      if (this.#asking === asking) this.#asking = undefined
    })
  }

  /** `isWanted`: nothing has cancelled it meanwhile. */
  async #openChange(action: JobAction, isWanted: () => boolean): Promise<void> {
    const line = this.#chosen
    const { ranks, study, isTableOpen, status } = this.#view
    if (line === undefined || status === undefined) return
    // Jobs that come meanwhile must not take its place.
    if (ranks === undefined && study === undefined) this.#watch.set({ spec: line.spec })
    const only = ranks?.job ?? (isTableOpen ? this.#chosenMember : undefined)
    if (isTableOpen && only === undefined) return this.#context.notice(NO_JOB, 'warning', 'key')
    const members = await this.#jobs.members(line.spec, CHANGED_KINDS[action])
    const retried = action === 'retry' && line.study ? await this.#failedOf(line.study.study.id) : undefined
    const ids = members.filter((id) => (only === undefined || id === only) && retried?.has(id) !== false)
    if (!isWanted()) return
    if (ids.length === 0) return this.#context.notice(`no job to ${action} in this row`, 'warning', 'key')
    const of = line.study === undefined ? numbersOf(line) : `study ${line.study.study.name}`
    const which = ids.length === 1 ? `job ${ids[0]}` : `${ids.length} jobs of ${of}`
    const them = ids.length === 1 ? 'it' : 'them'
    const atOnce = action === 'retry' ? line.study?.study.spec.atOnce : undefined
    const later =
      atOnce === undefined || ids.length <= atOnce
        ? ''
        : `${counted(atOnce, 'trial')} at once at most: the others begin later.`
    this.#context.openDialog(
      confirmDialog({
        id: 'change-jobs',
        title: `${TITLES[action]} ${which}?`,
        lines: [
          { text: printable(line.lead?.spec.name ?? '') },
          ...(later === '' ? [] : [{ text: later, tone: 'muted' as const }]),
        ],
        // The key that leads back is not called cancel where jobs are.
        ...(action === 'cancel' ? { yesTitle: `cancel ${them}`, noTitle: `keep ${them}` } : { yesTitle: action }),
        onYes: () => void this.#attempt(() => this.#change(status.changes, action, ids)),
        onText: (label) => this.#context.notice(noAnswer(label), 'warning', 'key'),
      }),
    )
  }

  #askCluster(action: ClusterAction): void {
    const details = chosenClusterDetails(this.#context.state)
    if (details === undefined || typeof details === 'string' || !details.actions.includes(action)) return
    this.#context.openDialog(
      confirmDialog({
        id: 'change-cluster',
        title: `${CLUSTER_TITLES[action]} ${details.title}?`,
        lines: [{ text: CLUSTER_LINES[action] }],
        yesTitle: action,
        onYes: () => void this.#changeCluster(action, details),
        onText: (label) => this.#context.notice(noAnswer(label), 'warning', 'key'),
      }),
    )
  }

  async #changeCluster(action: ClusterAction, details: ClusterJobDetails): Promise<void> {
    const refusal = await details.act(action, this.#life.signal)
    if (this.#isDisposed) return
    if (refusal === undefined) this.#context.notice(`${action}: ${details.title}`)
    else this.#context.notice(`cannot ${action} ${details.title}: ${refusal}`, 'error')
    this.#clusters.readAgain()
  }

  /** The jobs of trials that failed or were cancelled: those of pruned ones were stopped for good. */
  async #failedOf(study: number): Promise<ReadonlySet<number>> {
    const { trials = [] } = (await this.#jobs.study(study)) ?? {}
    return new Set(trials.flatMap(({ job, end }) => (job !== undefined && isWithoutResult(end) ? [job] : [])))
  }

  async #change(changes: QueueChanges, action: JobAction, ids: readonly number[]): Promise<void> {
    const count = await changes.change(action, ids)
    if (this.#isDisposed) return
    const rest = ids.length - count
    const others = rest === 0 ? '' : `; ${ids.length === 1 ? 'it' : rest} had changed before`
    this.#context.notice(
      `${action}: ${count} of ${counted(ids.length, 'job')}${others}`,
      rest === 0 ? 'info' : 'warning',
    )
    await this.#watch.read()
  }
}

const moreText = (log: QueueView['log']): string => (log?.hasMore === true ? ' (more output below)' : '')

const rankText = ({ job, log }: JobDetails, rank = 0): string =>
  log !== undefined && isEngineGang(job) ? `, rank ${rank} of ${engineRanks(job.spec)}` : ''

const numbersOf = ({ first, count }: JobLine): string => `${first}-${first + count - 1}`
