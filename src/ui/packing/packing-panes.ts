/** The Packing tab: figures, hosts as tiles with a block for each device, the selected block, the jobs with their letters, and those that wait. Pure. */
import { counted } from '../../base/counted.ts'
import { printable } from '../../base/printable.ts'
import type { PackedHost } from '../../scheduler/jobs/packing.ts'
import { boldStyle, mutedStyle, type PaneView, type Rect, type Span, type Theme } from '../compositor/scene.ts'
import type { PackingList } from '../jobs/queue-view.ts'
import {
  centredOn,
  documentOf,
  type Row,
  type RowsPaneInput,
  rowsPane,
  splitColumns,
  splitRows,
  wrapRows,
} from '../rows/rows-pane.ts'
import { type FilteredTable, orderText, shownRows, type TableView } from '../rows/table-view.ts'
import { arrange, type BlockSpot, firstSpot, spotIn, spotOfJob, type TileLayout } from './arrange.ts'
import { pastBadge, pictureRows } from './draw-tiles.ts'
import { headRows, noteRoom, noteRows } from './head-rows.ts'
import {
  type Group,
  groupOf,
  type HeldCard,
  HOSTS,
  JOB_COLUMNS,
  JOBS,
  type PackingInput,
  shownHosts,
  shownWaiting,
  sourcesRow,
  WAITING,
} from './packing-input.ts'
import type { WaitingCard } from './picture.ts'
import { cardsOf, chosenPane, jobsDocument, legendRows, waitingCardRows } from './side-panes.ts'

const SIDE_ROWS = 24

/** From these sizes on, jobs and the selected block are beside the picture. */
const SIDE_COLUMNS = 150

/** What was drawn, for keys and clicks. */
export type PackingScene = {
  readonly panes: readonly PaneView[]
  /** Undefined: there are no hosts. */
  readonly arrangement?: TileLayout
  /** Where its first visible row is on the screen. */
  readonly area: Rect
  readonly offset: number
  readonly lastOffset: number
  readonly spot?: BlockSpot | undefined
  /** The rows of the list of jobs, and the selected one while the list has the keys. */
  readonly jobs: readonly HeldCard[]
  readonly jobAt?: number | undefined
  /** The waiting jobs with their rows in their list, and the selected one while the list has the keys. */
  readonly waiting: readonly WaitingRows[]
  readonly waitingAt?: number | undefined
  /** The rows of their list that are shown. */
  readonly waitingPlace: { readonly offset: number; readonly rows: number }
  /** The lists that can be shown, and the last offset of each one that is. */
  readonly lists: Readonly<Partial<Record<PackingList, number>>>
  /** Jobs run or wait on what is shown. */
  readonly hasJobs: boolean
}

/** `from`: its first row; `to`: the row behind its last one. */
export type WaitingRows = {
  readonly group: number
  readonly id: string
  readonly job: number
  readonly from: number
  readonly to: number
}

const NO_WAITING = { waiting: [], waitingPlace: { offset: 0, rows: 0 } }

export function drawPacking(input: PackingInput): PackingScene {
  const { rect, theme, shown = [{ kind: 'queue' }] } = input
  const groups = shown.map((one) => groupOf(one, input))
  const [only] = groups
  const nothing = { area: rect, offset: 0, lastOffset: 0, jobs: [], ...NO_WAITING, lists: {}, hasJobs: false }
  const title =
    groups.length === 1 && only !== undefined && shown[0]?.kind !== 'queue' ? `packing of ${only.title}` : 'packing'
  if (groups.length === 1 && only?.trouble !== undefined) {
    const style = input.trouble === undefined ? mutedStyle(theme) : boldStyle(theme.danger)
    const words = wrapRows(printable(only.trouble), rect.width - 2, '  ', style)
    const document = documentOf([...sourcesRow(input.sources, theme), [], ...words])
    return { ...nothing, panes: [rowsPane({ id: HOSTS, title, hasKeys: true, document, rect, theme })] }
  }
  const { tables } = input
  const allWaiting = groups.flatMap(({ cluster }) => cluster.waiting)
  const waiting = shownWaiting(allWaiting, tables?.waiting)
  const isWide = rect.width >= SIDE_COLUMNS && rect.height >= SIDE_ROWS
  const { list } = input
  const parts = isWide ? besides(rect, allWaiting.length > 0) : below(rect, allWaiting.length > 0, list === 'jobs')
  const columns = parts.picture.width - 2
  const head = headRows(groups, input)
  const room = noteRoom(groups, input, !isWide)
  const headCount = head.length + room.note + room.legend
  const inside = { ...parts.picture, column: parts.picture.column + 1, row: parts.picture.row + 1 }
  const hosts = groups.map(({ cluster }) => shownHosts(cluster, tables?.hosts))
  const rows = Math.max(1, parts.picture.height - 2 - headCount)
  const usual = input.whatIf === undefined ? input : { ...input, whatIf: undefined }
  const usualRoom = noteRoom(groups, usual, !isWide)
  const usualCount = headRows(groups, usual).length + usualRoom.note + usualRoom.legend
  const arrangement = arrange(hosts, columns, rows, rows + headCount - usualCount)
  const cards = cardsOf(groups, arrangement, input)
  const letters = (most: number) => legendRows(cards, most, columns, input)
  const lastOffset = Math.max(0, arrangement.rows - rows)
  const offset = Math.max(0, Math.min(input.offset, lastOffset))
  const spot = input.spot !== undefined && hasSpot(arrangement, input.spot) ? input.spot : firstSpot(arrangement)
  const { lines, pasts } = pictureRows({ groups, arrangement, offset, rows, columns, spot, input })
  const waitingRect = allWaiting.length > 0 ? parts.waiting : undefined
  const waitingCount = groups.reduce((sum, { cluster }) => sum + cluster.waitingCount, 0)
  const groupOfCard = new Map(
    groups.flatMap(({ cluster }, group) => cluster.waiting.map((one) => [one, group] as const)),
  )
  const isSame = (one: WaitingCard, chosen: PackingInput['chosenWaiting']) =>
    chosen !== undefined && one.id === chosen.id && groupOfCard.get(one) === chosen.group
  const waitingAt =
    list === 'waiting'
      ? Math.max(
          0,
          waiting.findIndex((one) => isSame(one, input.chosenWaiting)),
        )
      : undefined
  const waitingRows: Row[] = []
  const waitingCards = (waitingRect === undefined ? [] : waiting).map((one, index): WaitingRows => {
    const from = waitingRows.length
    waitingRows.push(...waitingCardRows(one, (waitingRect?.width ?? 2) - 2, input, index === waitingAt))
    return { group: groupOfCard.get(one) ?? 0, id: one.id, job: one.job, from, to: waitingRows.length }
  })
  const hidden = waitingCount - allWaiting.reduce((sum, { count = 1 }) => sum + count, 0)
  const isFiltered = (tables?.waiting.filter.text ?? '') !== ''
  const hiddenWords = isFiltered
    ? `${counted(hidden, 'more job is', 'more jobs are')} not searched`
    : `… and ${counted(hidden, 'more job')}`
  if (hidden > 0) waitingRows.push([{ text: `   ${hiddenWords}: tab Jobs`, style: mutedStyle(theme) }])
  const waitingPlace = placeOf(waitingCards, waitingAt, waitingRows.length, waitingRect, input)
  const jobs = tables === undefined ? cards : shownRows(cards, JOB_COLUMNS, tables.jobs)
  const isChosen = ({ group, job }: HeldCard) => group === input.chosenJob?.group && job === input.chosenJob.job
  const jobAt = list === 'jobs' ? Math.max(0, jobs.findIndex(isChosen)) : undefined
  const side = (rect: Rect | undefined, draw: (rect: Rect) => PaneView) => (rect === undefined ? [] : [draw(rect)])
  const listPane = (own: PackingList, rest: ListPane) => ({
    id: own === 'jobs' ? JOBS : WAITING,
    hasKeys: list === own,
    place: { offset: input.listOffsets?.[own] ?? 0, isFollowing: false },
    scroll: (by: number) => input.scrollList?.(own, by),
    theme,
    ...(tables === undefined
      ? {}
      : {
          table: {
            ...{ view: tables[own], noun: 'job', all: rest.all, shown: rest.shown },
            order: orderText(tables[own], own === 'jobs' ? JOB_COLUMNS : []),
          },
        }),
    ...rest,
  })
  const lastOffsetOf = (rows: number, own: Rect | undefined, head = 0) =>
    Math.max(0, rows - Math.max(1, (own?.height ?? 2) - 2 - head))
  return {
    panes: [
      rowsPane({
        id: HOSTS,
        title,
        hasKeys: list === undefined,
        ...(tables === undefined ? {} : { table: hostTable(groups, hosts, tables.hosts) }),
        badges: [...scrollBadge(offset, rows, arrangement.rows, theme), ...pastBadge(pasts, columns, theme)],
        document: documentOf([
          ...head,
          ...noteRows(groups, input, columns, room, letters),
          ...(arrangement.tiles.length === 0 ? lines.slice(0, arrangement.rows) : lines),
        ]),
        list: {
          select(row, column) {
            const at = spotIn(arrangement, column, row - headCount + offset)
            if (at !== undefined) input.select?.(at)
          },
        },
        rect: parts.picture,
        theme,
      }),
      ...side(parts.chosen, (own) => chosenPane(groups, spot, own, input)),
      ...side(parts.jobs, (own) => {
        const document = jobsDocument(jobs, own, input, jobAt)
        return rowsPane(
          listPane('jobs', {
            ...{ title: 'jobs', rect: own, all: cards.length, shown: jobs.length },
            document,
            ...(jobAt === undefined ? {} : { place: centredOn(jobAt, own.height, document) }),
            list: {
              select(row) {
                const one = jobs[row]
                if (one !== undefined) input.selectJob?.(one, spotOfJob(arrangement, one))
              },
            },
          }),
        )
      }),
      ...side(waitingRect, (own) =>
        rowsPane(
          listPane('waiting', {
            ...{
              title: `waiting: ${waitingCount}`,
              rect: own,
              all: allWaiting.length,
              shown: waiting.length,
            },
            document: documentOf(waitingRows),
            place: { offset: waitingPlace.offset, isFollowing: false },
            list: {
              select(row) {
                const one = waitingCards.find(({ from, to }) => row >= from && row < to)
                if (one !== undefined) input.selectWaiting?.({ group: one.group, id: one.id })
              },
            },
          }),
        ),
      ),
    ],
    arrangement,
    area: { ...inside, row: inside.row + headCount, width: columns, height: rows },
    offset,
    lastOffset,
    spot,
    jobs,
    jobAt,
    ...{ waiting: waitingCards, waitingAt, waitingPlace },
    lists: {
      ...(allWaiting.length > 0 && parts.chosen ? { waiting: lastOffsetOf(waitingRows.length, waitingRect) } : {}),
      ...(cards.length > 0 && (parts.chosen || parts.jobs) ? { jobs: lastOffsetOf(jobs.length, parts.jobs, 1) } : {}),
    },
    hasJobs: allWaiting.length > 0 || cards.length > 0,
  }
}

/** Scrolled as it was, but so that something of the selected job is shown. */
function placeOf(
  cards: readonly WaitingRows[],
  at: number | undefined,
  length: number,
  rect: Rect | undefined,
  { listOffsets }: PackingInput,
): PackingScene['waitingPlace'] {
  const rows = Math.max(1, (rect?.height ?? 2) - 2)
  const last = Math.max(0, length - rows)
  const offset = Math.min(last, listOffsets?.waiting ?? 0)
  const card = at === undefined ? undefined : cards[at]
  const isShown = card === undefined || (card.to > offset && card.from < offset + rows)
  return { offset: isShown ? offset : Math.min(last, card.from), rows }
}

type ListPane = Pick<RowsPaneInput, 'title' | 'document' | 'rect' | 'list' | 'place'> & {
  /** Without and with the filter. */
  readonly all: number
  readonly shown: number
}

function hostTable(
  groups: readonly Group[],
  hosts: readonly (readonly PackedHost[])[],
  view: TableView,
): FilteredTable {
  const all = groups.reduce((sum, { cluster }) => sum + cluster.hosts.length, 0)
  return { view, noun: 'host', all, shown: hosts.flat().length, order: orderText(view, []) }
}

type Parts = { readonly picture: Rect; readonly chosen?: Rect; readonly jobs?: Rect; readonly waiting?: Rect }

/** The picture at the left; the selected block, the jobs and those that wait at the right. */
function besides(rect: Rect, hasWaiting: boolean): Parts {
  const width = Math.max(44, Math.min(64, Math.round(rect.width * 0.27)))
  const [picture, side] = splitColumns(rect, rect.width - width)
  const [chosen, rest] = splitRows(side, Math.max(8, Math.floor(rect.height * 0.25)))
  if (!hasWaiting) return { picture, chosen, jobs: rest }
  const [jobs, waiting] = splitRows(rest, Math.ceil(rest.height * 0.5))
  return { picture, chosen, jobs, waiting }
}

/** The picture above; below, the selected block and the jobs that wait, or all jobs while they have the keys. */
function below(rect: Rect, hasWaiting: boolean, isInJobs: boolean): Parts {
  if (rect.height < 14) return { picture: rect }
  const height = Math.max(6, Math.min(10, Math.floor(rect.height * 0.24)))
  const [picture, bottom] = splitRows(rect, rect.height - height)
  if (isInJobs) return { picture, jobs: bottom }
  if (!hasWaiting) return { picture, chosen: bottom }
  const [chosen, waiting] = splitColumns(bottom, Math.floor(bottom.width / 2))
  return { picture, chosen, waiting }
}

const hasSpot = ({ tiles }: TileLayout, { group, host, part }: BlockSpot): boolean =>
  tiles.some(
    (tile) => tile.group === group && tile.host.name === host && tile.blocks.some((block) => block.part === part),
  )

const scrollBadge = (offset: number, rows: number, all: number, theme: Theme): readonly Span[] =>
  all <= rows ? [] : [{ text: ` rows ${offset + 1}–${offset + rows} of ${all} `, style: mutedStyle(theme) }]
