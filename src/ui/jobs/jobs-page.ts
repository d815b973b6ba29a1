/** The Jobs tab: the queue as a list, the chosen job with its log beside it, and what may be done to it after a yes. */
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { Sweep, SweepRow } from '../../scheduler/jobs/results.ts'
import { BOLD } from '../../terminal/cells.ts'
import type { PaneView, Rect } from '../compositor/scene.ts'
import { createConfirmDialog } from '../dialogs/confirm-dialog.ts'
import { createPromptDialog } from '../dialogs/prompt-dialog.ts'
import { commandOf } from '../keys/key-table.ts'
import { documentRows, firstRow, type RowDocument, wrapRows } from '../rows/row-document.ts'
import { rowsPane } from '../rows/rows-pane.ts'
import type { Page } from '../tabs/page.ts'
import type { PageContext } from '../tabs/page-context.ts'
import { mutedStyle, styleOf, type Theme, themes } from '../theme/theme.ts'
import { areaOf } from '../work-views/panel.ts'
import type { WorkPort } from '../work-views/work-port.ts'
import { jobDocument } from './job-document.ts'
import { type JobsCommand, jobsKeys } from './jobs-keys.ts'
import { centred, layout } from './jobs-layout.ts'
import type { JobAction, JobDetails, JobsPort, QueueSight } from './jobs-port.ts'
import { listDocument } from './list-document.ts'
import { LogTail } from './log-tail.ts'
import {
  CHANGED_KINDS,
  chosenLine,
  FILTERS,
  hasMetrics,
  type JobLine,
  KINDS,
  type QueueView,
  type SweepOrder,
  shownLines,
} from './queue-view.ts'
import type { QueueWatch } from './queue-watch.ts'
import { nextOrder, sortSweep, sweepDocument } from './sweep-table.ts'

const PAGE = 10
/** Of so many rows it is read again only after this time. */
const LARGE_SWEEP = 1_000
const LARGE_SWEEP_MS = 5_000
const NO_ROWS: RowDocument = { head: [], length: 0, row: () => [] }

const TITLES: Readonly<Record<JobAction, string>> = {
  cancel: 'Cancel',
  hold: 'Hold',
  release: 'Release',
  retry: 'Try again',
}

export class JobsPage implements Page {
  readonly isIdle = true
  readonly busy = undefined
  readonly #context: PageContext
  readonly #watch: QueueWatch
  readonly #jobs: JobsPort
  readonly #tail: LogTail
  #details: JobDetails | undefined
  #sweep: { readonly spec: number; readonly sweep: Sweep; readonly atMs: number } | undefined
  #sorted: { readonly sweep: Sweep; readonly table: SweepOrder; readonly rows: readonly SweepRow[] } | undefined
  #looked = 0
  #isDisposed = false

  constructor(
    context: PageContext,
    watch: QueueWatch,
    { jobs, work }: { readonly jobs: JobsPort; readonly work: WorkPort },
  ) {
    this.#context = context
    this.#watch = watch
    this.#jobs = jobs
    this.#tail = new LogTail(work, context.clock, () => watch.redraw())
    watch.onRead(() => {
      if (context.state.tab === 'jobs') void this.#look()
    })
  }

  open(): void {
    this.#watch.open()
    void this.#look()
  }

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    const { sight, trouble } = this.#view
    if (sight === undefined || trouble !== undefined) {
      const style = trouble === undefined ? mutedStyle(theme) : styleOf(theme.danger, undefined, BOLD)
      const rows = [[], ...wrapRows(printable(trouble ?? 'reading the queue …'), rect.width - 2, '  ', style)]
      const document: RowDocument = { head: [], length: rows.length, row: (index) => rows[index] ?? [] }
      const place = { offset: 0, isFollowing: false }
      return [rowsPane({ id: ' jobs', title: 'jobs', hasKeys: true, isBusy: false, document, place, rect, theme })]
    }
    const { list, table, side } = layout(rect, this.#view.table !== undefined)
    const panes = [this.#listPane(list, theme, sight)]
    if (table !== undefined) panes.push(this.#tablePane(table, theme))
    if (side.height > 0) panes.push(this.#sidePane(side, theme))
    return panes
  }

  #listPane(rect: Rect, theme: Theme, sight: QueueSight): PaneView {
    const { filter, needle, table } = this.#view
    const lines = this.#lines
    const chosen = this.#chosen
    const nowMs = this.#context.clock.now()
    const document = listDocument({ sight, lines, chosen, filter, needle, columns: rect.width - 2, theme, nowMs })
    const at = lines.findIndex((line) => line.spec === chosen?.spec)
    const place = centred(at, rect, document)
    const hasKeys = table === undefined
    return rowsPane({ id: ' jobs', title: 'jobs', hasKeys, isBusy: false, document, place, rect, theme })
  }

  #tablePane(rect: Rect, theme: Theme): PaneView {
    const [line, sweep, { table }] = [this.#chosen, this.#shownSweep, this.#view]
    const own = { id: ' results', hasKeys: true, isBusy: false, rect, theme }
    if (table === undefined || line === undefined || sweep === undefined)
      return rowsPane({ ...own, title: 'results', document: NO_ROWS, place: { offset: 0, isFollowing: false } })
    const rows = this.#sweepRows
    const chosen = this.#view.member ?? rows[0]?.id
    const document = sweepDocument({ sweep, rows, order: table, line, chosen, columns: rect.width - 2, theme })
    const at = rows.findIndex(({ id }) => id === chosen)
    const title = `${hasMetrics(line.lead) ? 'results of' : 'jobs'} ${line.first}-${line.first + line.count - 1}`
    return rowsPane({ ...own, title, document, place: centred(at, rect, document) })
  }

  #sidePane(rect: Rect, theme: Theme): PaneView {
    const { logOffset } = this.#view
    return rowsPane({
      id: ' job',
      title: this.#details === undefined ? 'job' : `job ${this.#details.job.id}`,
      hasKeys: false,
      isBusy: false,
      document: this.#side(rect.width - 2, theme),
      place: { offset: logOffset ?? 0, isFollowing: logOffset === undefined && this.#hasLog },
      rect,
      theme,
    })
  }

  handleKey(label: string): boolean {
    const command = commandOf(jobsKeys, label, this.#context.state)
    if (command === undefined) return false
    this.#do(command)
    return true
  }

  scrollBy(rows: number): void {
    this.#move(Math.sign(rows))
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    this.#tail[Symbol.dispose]()
  }

  get #view(): QueueView {
    return this.#context.state.queue
  }

  get #lines(): readonly JobLine[] {
    return shownLines(this.#view)
  }

  get #chosen(): JobLine | undefined {
    return chosenLine(this.#view)
  }

  get #hasLog(): boolean {
    return (this.#tail.view?.lines.length ?? 0) > 0
  }

  #do(command: JobsCommand): void {
    switch (command) {
      case 'to-shells':
        return this.#context.showTab('shells')
      case 'to-list':
        return this.#choose({ table: undefined })
      case 'table':
      case 'members':
        return this.#openTable()
      case 'from-table':
        return this.#choose({ table: undefined, member: this.#view.member ?? this.#sweepRows[0]?.id })
      case 'order':
      case 'reverse':
        return this.#sort(command === 'order' ? 1 : 'reverse')
      case 'filter': {
        const next = FILTERS[(FILTERS.indexOf(this.#view.filter) + 1) % FILTERS.length] ?? 'all'
        return this.#choose({ filter: next })
      }
      case 'search':
        return this.#search()
      case 'show-all':
        return this.#choose({ needle: '' })
      case 'member':
      case 'member-before':
        return this.#step(command === 'member' ? 1 : -1)
      case 'cancel':
      case 'hold':
      case 'release':
      case 'retry':
        return void this.#ask(command)
      case 'up':
      case 'down':
        return this.#move(command === 'up' ? -1 : 1)
      case 'page-up':
      case 'page-down':
        return this.#move(command === 'page-up' ? -PAGE : PAGE)
      case 'log-up':
      case 'log-down':
        return this.#scrollLog(command === 'log-up' ? -1 : 1)
    }
  }

  #search(): void {
    this.#context.openDialog(({ onClose, onChange }) =>
      createPromptDialog({
        id: 'jobs-search',
        title: 'Which jobs?',
        label: 'With:',
        submitTitle: 'show them',
        help: [{ text: 'In name, command or user; or the number of a job.', tone: 'muted' }],
        check: (text) => {
          const found = shownLines({ ...this.#view, needle: text.trim() }).length
          return { preview: [{ text: `${found} ${found === 1 ? 'line' : 'lines'}`, tone: 'ok' }] }
        },
        onSubmit: (text) => this.#choose({ needle: text.trim() }),
        onClose,
        onChange,
      }),
    )
  }

  #choose(view: Partial<QueueView>): void {
    this.#context.change(({ queue }) => ({ queue: { ...queue, member: undefined, logOffset: undefined, ...view } }))
    void this.#look()
  }

  #openTable(): void {
    const line = this.#chosen
    if (line === undefined || line.count === 1)
      return this.#context.notice('no array or grid: it has no table', 'warning')
    this.#choose({ table: { column: undefined, isReversed: false } })
  }

  #sort(by: 1 | 'reverse'): void {
    const [sweep, { table }] = [this.#shownSweep, this.#view]
    if (sweep === undefined || table === undefined) return this.#context.notice('Enter opens the table', 'warning')
    this.#choose({ table: nextOrder(sweep, table, by) })
  }

  /** A large one takes longer to read than a frame lasts. */
  get #freshSweep(): Sweep | undefined {
    const { sweep, spec, atMs } = this.#sweep ?? { atMs: 0 }
    if (sweep === undefined || spec !== this.#chosen?.spec || sweep.rows.length < LARGE_SWEEP) return undefined
    return Math.abs(this.#context.clock.now() - atMs) < LARGE_SWEEP_MS ? sweep : undefined
  }

  get #shownSweep(): Sweep | undefined {
    return this.#sweep !== undefined && this.#sweep.spec === this.#chosen?.spec ? this.#sweep.sweep : undefined
  }

  get #sweepRows(): readonly SweepRow[] {
    const [sweep, { table }] = [this.#shownSweep, this.#view]
    if (sweep === undefined || table === undefined) return []
    if (this.#sorted?.sweep !== sweep || this.#sorted.table !== table)
      this.#sorted = { sweep, table, rows: sortSweep(sweep, table) }
    return this.#sorted.rows
  }

  #move(by: number): void {
    if (this.#view.table !== undefined) return this.#moveInTable(by)
    const lines = this.#lines
    const at = lines.findIndex((line) => line.spec === this.#chosen?.spec)
    const spec = lines[Math.max(0, Math.min(lines.length - 1, at + by))]?.spec
    if (spec !== this.#view.spec) this.#choose({ spec })
  }

  #moveInTable(by: number): void {
    const rows = this.#sweepRows
    const at = Math.max(
      0,
      rows.findIndex(({ id }) => id === this.#view.member),
    )
    const member = rows[Math.max(0, Math.min(rows.length - 1, at + by))]?.id
    if (member !== undefined) this.#choose({ spec: this.#chosen?.spec, member })
  }

  #step(by: number): void {
    if (this.#view.table !== undefined) return this.#moveInTable(by)
    const line = this.#chosen
    if (line === undefined || line.count === 1) return
    const at = this.#details?.job.id ?? line.first
    const member = Math.max(line.first, Math.min(line.first + line.count - 1, at + by))
    this.#choose({ spec: line.spec, member })
  }

  #scrollLog(by: number): void {
    const { state } = this.#context
    const { side } = layout(areaOf(state), this.#view.table !== undefined)
    const document = this.#side(side.width - 2, themes[state.themeName])
    const rows = documentRows(side.height, document)
    const last = Math.max(0, document.length - rows)
    const { logOffset } = this.#view
    const first = firstRow(
      { offset: logOffset ?? 0, isFollowing: logOffset === undefined && this.#hasLog },
      document,
      rows,
    )
    const next = Math.max(0, Math.min(last, first + by * Math.max(1, rows - 1)))
    this.#context.change(({ queue }) => ({
      queue: { ...queue, logOffset: next === last && this.#hasLog ? undefined : next },
    }))
  }

  #side(columns: number, theme: Theme): RowDocument {
    const details = this.#details
    if (details !== undefined) return jobDocument(details, this.#tail.view, columns, theme)
    const words = this.#chosen === undefined ? ' muster job submit puts one into the queue.' : ''
    return { head: [], length: 1, row: () => [{ text: words, style: mutedStyle(theme) }] }
  }

  /** Reads what there is to say of the chosen job, and of its log. */
  async #look(): Promise<void> {
    const looked = ++this.#looked
    const jobs = this.#jobs
    const line = this.#chosen
    try {
      const { table, member } = this.#view
      const sweep = line && table && (this.#freshSweep ?? (await jobs.sweep(line.first)))
      const best = member === undefined && sweep && table ? sortSweep(sweep, table)[0]?.id : undefined
      const id = line && (member ?? best ?? (await this.#telling(line)))
      const details = id === undefined ? undefined : await jobs.details(id)
      if (looked !== this.#looked || this.#isDisposed) return
      const before = this.#sweep?.sweep
      const hasOther = sweep !== before && JSON.stringify(sweep) !== JSON.stringify(before)
      const hasChanged = hasOther || JSON.stringify(details) !== JSON.stringify(this.#details)
      this.#details = details
      const atMs = sweep === before ? (this.#sweep?.atMs ?? 0) : this.#context.clock.now()
      // What is the same stays sorted.
      this.#sweep = line && sweep && { spec: line.spec, sweep: hasOther ? sweep : (before ?? sweep), atMs }
      this.#tail.look(details?.log)
      if (hasChanged) this.#watch.redraw()
    } catch (error) {
      if (!this.#isDisposed) this.#context.notice(messageOf(error), 'error')
    }
  }

  /** Of an array: one that runs, else one that failed, else the first that waits, else the last. */
  async #telling({ spec, first, count }: JobLine): Promise<number> {
    if (count === 1) return first
    for (const kinds of [KINDS.running, ['failed', 'lost', 'timed-out'], KINDS.waiting]) {
      const [id] = await this.#jobs.members(spec, kinds)
      if (id !== undefined) return id
    }
    return first + count - 1
  }

  async #ask(action: JobAction): Promise<void> {
    const line = this.#chosen
    if (line === undefined) return
    const jobs = this.#jobs
    try {
      const ids = await jobs.members(line.spec, CHANGED_KINDS[action])
      if (this.#isDisposed) return
      if (ids.length === 0) return this.#context.notice(`nothing to ${action} in this line`, 'warning')
      const [first = 0] = ids
      const which =
        ids.length === 1 ? `job ${first}` : `${ids.length} jobs of ${line.first}-${line.first + line.count - 1}`
      this.#context.openDialog(({ onClose }) =>
        createConfirmDialog({
          id: 'change-jobs',
          title: `${TITLES[action]} ${which}?`,
          lines: [{ text: printable(line.lead.spec.name) }],
          yesTitle: action === 'retry' ? 'try again' : action,
          onYes: () => void this.#change(action, ids),
          onClose,
        }),
      )
    } catch (error) {
      this.#context.notice(messageOf(error), 'error')
    }
  }

  async #change(action: JobAction, ids: readonly number[]): Promise<void> {
    try {
      const count = await this.#jobs.change(action, ids)
      if (this.#isDisposed) return
      this.#context.notice(`${action}: ${count} of ${ids.length} ${ids.length === 1 ? 'job' : 'jobs'}`)
      await this.#watch.read()
    } catch (error) {
      if (!this.#isDisposed) this.#context.notice(messageOf(error), 'error')
    }
  }
}
