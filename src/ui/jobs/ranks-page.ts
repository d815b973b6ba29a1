/** The ranks of one job in place of the list, above their log or the stack of one of them. */
import type { RankRow } from '../../scheduler/jobs/ranks.ts'
import { stackProgram } from '../../scheduler/launch/stack.ts'
import { mutedStyle, type PaneView, type Rect, type Theme, themes } from '../compositor/scene.ts'
import { lastOf } from '../network/watch-view.ts'
import type { WatchedResources } from '../network/watched-hosts.ts'
import { centredOn, documentOf, rowsPane, type ScrollStep, scrolled, splitRows } from '../rows/rows-pane.ts'
import { orderText } from '../rows/table-view.ts'
import { forgetTable, type PageContext, tableView } from '../state/console-state.ts'
import { areaOf } from '../work-views/panel.ts'
import type { WorkPort } from '../work-views/work-port.ts'
import type { JobsActions } from './jobs-keys.ts'
import { chosenLine, RANKS } from './jobs-tables.ts'
import { hasRanks, type JobDetails, type QueueView, type RanksView } from './queue-view.ts'
import { LogTail, type QueueWatch } from './queue-watch.ts'
import { asScript, RankWatch } from './rank-watch.ts'
import {
  anyRankColumns,
  belowDocument,
  movedRank,
  nextInTrouble,
  type RankPicture,
  rankPicture,
  ranksDocument,
} from './ranks-document.ts'

/** Of the ranks above their log. */
const RANKS_PART = 0.6
const LEAST_LOG_ROWS = 6
const HEAD_PART = 0.6

const chosenRank = (row: RankRow | undefined) => ({ rank: row?.rank, bundle: row?.bundle })

type Options = {
  readonly context: PageContext
  readonly watch: QueueWatch
  readonly work: WorkPort
  readonly watched: WatchedResources
  /** Changes the view and reads what it shows. */
  choose(view: Partial<QueueView>): void
}

export class RanksPage implements Disposable {
  readonly #options: Options
  readonly #stack: LogTail
  readonly #ranks: RankWatch
  #isDisposed = false

  constructor(options: Options) {
    const { context, watch, work } = options
    this.#options = options
    this.#stack = new LogTail(work, context.clock, (stack) => this.#showRanks({ stack }))
    this.#ranks = new RankWatch(work, context.clock, (seen) => watch.set({ seen }))
  }

  readonly actions = {
    ranks: () => this.#open(chosenLine(this.#options.context.state)?.first),
    'ranks-of-member': () => this.#open(this.#view.details?.job.id),
    'from-ranks': () => {
      if (this.#view.ranks?.below === 'log') this.#options.choose({ ranks: undefined, member: this.#view.member })
      else this.#showBelow('log')
    },
    'rank-log': () => this.#showBelow('log of rank'),
    odd: () => this.#showBelow('odd lines'),
    stack: () => this.#showStack(),
    trouble: () => {
      const row = this.#picture && nextInTrouble(this.#picture)
      if (row === undefined) this.#options.context.notice('no rank is in trouble')
      else this.#selectRank(row)
    },
    'next-rank': () => this.move({ ranks: 1 }),
    'rank-before': () => this.move({ ranks: -1 }),
  } satisfies JobsActions

  /** Called again and again with the job that is shown; undefined: none is. */
  follow(details: JobDetails | undefined): void {
    this.#ranks.follow(details)
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    this.#stack[Symbol.dispose]()
    this.#ranks[Symbol.dispose]()
  }

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    const { ranks, details } = this.#view
    const picture = this.#picture
    if (ranks === undefined || details === undefined || picture === undefined) {
      const document = documentOf([[{ text: ' reading the job …', style: mutedStyle(theme) }]])
      return [rowsPane({ id: RANKS, title: 'ranks', hasKeys: true, document, rect, theme })]
    }
    const samples = new Map(
      this.#options.watched.hosts.flatMap((watched) => {
        const sample = watched.trouble === undefined && watched.isOwn !== true ? lastOf(watched) : undefined
        return sample === undefined ? [] : [[watched.host, sample] as const]
      }),
    )
    const columns = rect.width - 2
    const most = Math.max(1, Math.min(Math.floor(rect.height * RANKS_PART), rect.height - LEAST_LOG_ROWS))
    const headRows = Math.floor((most - 2) * HEAD_PART)
    const nowMs = this.#options.context.clock.now()
    const document = ranksDocument({ details, picture, samples, columns, headRows, theme, nowMs })
    const [upper, lower] = splitRows(rect, Math.min(most, document.head.length + Math.max(1, document.length) + 2))
    const below = belowDocument(picture, ranks, columns, theme)
    const place = centredOn(document.line, upper.height, document)
    return [
      rowsPane({
        id: RANKS,
        title: `ranks of job ${ranks.job}`,
        hasKeys: true,
        document,
        table: this.#table(picture),
        place,
        rect: upper,
        theme,
        list: { select: (row, column) => this.#selectRank(document.rankAt(row, column)) },
      }),
      rowsPane({
        ...{ id: ' job', title: below.title, hasKeys: false, document: below.document, rect: lower, theme },
        place: this.#belowPlace,
        scroll: (rows) => this.scroll({ rows }),
      }),
    ]
  }

  /** Undefined: the job has not been read yet. */
  get #picture(): RankPicture | undefined {
    const { ranks, details, seen } = this.#view
    return ranks === undefined || details?.job.id !== ranks.job
      ? undefined
      : rankPicture(details, ranks, seen, this.#tableView)
  }

  get #tableView() {
    return tableView(this.#options.context.state, RANKS)
  }

  #table({ shown, count }: RankPicture) {
    const left = [...shown.values()].reduce((sum, rows) => sum + rows.length, 0)
    const view = this.#tableView
    return { view, noun: 'rank', all: count, shown: left, order: orderText(view, anyRankColumns(), 'RANK') }
  }

  /** A stack is read from its top. */
  get #belowPlace() {
    const { logOffset, ranks } = this.#view
    return { offset: logOffset ?? 0, isFollowing: logOffset === undefined && ranks?.below !== 'stack' }
  }

  scroll(by: ScrollStep): void {
    const { state } = this.#options.context
    const area = areaOf(state)
    const theme = themes[state.themeName]
    const { ranks } = this.#view
    const picture = this.#picture
    if (ranks === undefined || picture === undefined) return
    const height = this.panes(area, theme)[1]?.rect.height ?? 0
    const { document } = belowDocument(picture, ranks, area.width - 2, theme)
    const { offset, isAtEnd } = scrolled(document, height, this.#belowPlace, by)
    this.#options.watch.set({ logOffset: isAtEnd && ranks.below !== 'stack' ? undefined : offset })
  }

  get #view(): QueueView {
    return this.#options.context.state.queue
  }

  #open(job: number | undefined): void {
    const { details } = this.#view
    const known = details?.job.id === job ? details?.job : chosenLine(this.#options.context.state)?.lead
    if (job === undefined || known === undefined || !hasRanks(known))
      return this.#options.context.notice('only a gang that has been placed has ranks', 'warning')
    this.#options.context.change((state) => forgetTable(state, RANKS))
    this.#options.choose({
      spec: chosenLine(this.#options.context.state)?.spec,
      member: this.#view.member,
      ranks: { job, below: 'log' },
      seen: undefined,
    })
  }

  #showRanks(change: Partial<RanksView>): void {
    const { ranks } = this.#view
    if (ranks !== undefined && !this.#isDisposed) this.#options.watch.set({ ranks: { ...ranks, ...change } })
  }

  /** Or the log of all ranks, if that is shown already. */
  #showBelow(below: RanksView['below']): void {
    const { ranks } = this.#view
    this.#stack.read(undefined)
    this.#showRanks({
      below: ranks?.below === below ? 'log' : below,
      ...chosenRank(this.#picture?.selected),
      stack: undefined,
    })
    this.#options.watch.set({ logOffset: undefined })
  }

  #showStack(): void {
    const row = this.#picture?.selected
    const pid = row?.reading?.process?.pid
    if (row === undefined || pid === undefined)
      return this.#options.context.notice('this rank does not run, or its host cannot be read', 'warning')
    if (this.#view.ranks?.below !== 'stack') this.#showBelow('stack')
    this.#stack.read(undefined)
    this.#stack.read({ host: row.host, program: asScript(stackProgram(pid)) })
  }

  #selectRank(row: RankRow | undefined): void {
    const below = this.#view.ranks?.below
    // The stack is that of another rank.
    if (below === 'stack') this.#showBelow('log')
    this.#showRanks(chosenRank(row))
    if (below === 'log of rank') this.#options.watch.set({ logOffset: undefined })
  }

  keepRow(): void {
    const selected = this.#picture?.selected
    if (selected !== undefined) this.#showRanks(chosenRank(selected))
  }

  move(by: { readonly ranks?: number; readonly lines?: number }): void {
    const picture = this.#picture
    if (picture !== undefined) this.#selectRank(movedRank(picture, areaOf(this.#options.context.state).width - 2, by))
  }
}
