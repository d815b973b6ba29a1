/** The Packing tab: figures, hosts as tiles with a block for each device, the selected block, the jobs with their letters, and those that wait. Pure. */
import { printable } from '../../base/printable.ts'
import type { PackedHost } from '../../scheduler/jobs/packing.ts'
import { boldStyle, mutedStyle, type PaneView, type Rect, type Span, type Theme } from '../compositor/scene.ts'
import { documentOf, rowsPane, splitColumns, splitRows, wrapRows } from '../rows/rows-pane.ts'
import type { FilteredTable, TableView } from '../rows/table-view.ts'
import { arrange, type BlockSpot, firstSpot, spotIn, type TileLayout } from './arrange.ts'
import { pastBadge, pictureRows } from './draw-tiles.ts'
import { headRows } from './head-rows.ts'
import {
  type Group,
  groupOf,
  HOSTS,
  type PackingInput,
  shownHosts,
  shownWaiting,
  sourcesRow,
  WAITING,
} from './packing-input.ts'
import { cardsOf, chosenPane, jobRows, legendRows, waitingCardRows } from './side-panes.ts'

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
  readonly lastWaitingOffset: number
}

export function drawPacking(input: PackingInput): PackingScene {
  const { rect, theme, shown = [{ kind: 'queue' }] } = input
  const groups = shown.map((one) => groupOf(one, input))
  const [only] = groups
  const nothing = { area: rect, offset: 0, lastOffset: 0, lastWaitingOffset: 0 }
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
  const parts = isWide ? besides(rect, allWaiting.length > 0) : below(rect, allWaiting.length > 0)
  const head = headRows(groups, input, parts.picture)
  const inside = { ...parts.picture, column: parts.picture.column + 1, row: parts.picture.row + 1 }
  const columns = parts.picture.width - 2
  const hosts = groups.map(({ cluster }) => shownHosts(cluster, tables?.hosts))
  const room = parts.picture.height - 2 - head.length
  const legendRoom = isWide ? 0 : Math.max(1, Math.min(4, Math.floor(rect.height / 8)))
  const first = arrange(hosts, columns, Math.max(1, room - legendRoom))
  const legend = isWide ? [] : legendRows(cardsOf(groups, first, input), legendRoom, columns, input)
  const rows = Math.max(1, room - legend.length)
  const arrangement = legend.length === legendRoom ? first : arrange(hosts, columns, rows)
  const lastOffset = Math.max(0, arrangement.rows - rows)
  const offset = Math.max(0, Math.min(input.offset, lastOffset))
  const spot = input.spot !== undefined && hasSpot(arrangement, input.spot) ? input.spot : firstSpot(arrangement)
  const { lines, pasts } = pictureRows({ groups, arrangement, offset, rows, columns, spot, input })
  const waitingRect = allWaiting.length > 0 ? parts.waiting : undefined
  const isInWaiting = input.isInWaiting === true && waitingRect !== undefined
  const waitingCount = groups.reduce((sum, { cluster }) => sum + cluster.waitingCount, 0)
  const waitingRows = waitingRect ? waiting.flatMap((one) => waitingCardRows(one, waitingRect.width - 2, input)) : []
  const side = (rect: Rect | undefined, draw: (rect: Rect) => PaneView) => (rect === undefined ? [] : [draw(rect)])
  const place = { offset: input.waitingOffset ?? 0, isFollowing: false }
  return {
    panes: [
      rowsPane({
        id: HOSTS,
        title,
        hasKeys: !isInWaiting,
        ...(tables === undefined ? {} : { table: hostTable(groups, hosts, tables.hosts) }),
        badges: [...scrollBadge(offset, rows, arrangement.rows, theme), ...pastBadge(pasts, columns, theme)],
        document: documentOf([
          ...head,
          ...legend,
          ...(arrangement.tiles.length === 0 ? lines.slice(0, arrangement.rows) : lines),
        ]),
        list: {
          select(row, column) {
            const at = spotIn(arrangement, column, row - head.length - legend.length + offset)
            if (at !== undefined) input.select?.(at)
          },
        },
        rect: parts.picture,
        theme,
      }),
      ...side(parts.chosen, (own) => chosenPane(groups, spot, own, input)),
      ...side(parts.jobs, (own) => {
        const document = documentOf(jobRows(cardsOf(groups, arrangement, input), own, input))
        return rowsPane({ id: ' jobs', title: 'jobs', hasKeys: false, document, rect: own, theme })
      }),
      ...side(waitingRect, (own) =>
        rowsPane({
          id: WAITING,
          title: `waiting: ${waitingCount}`,
          ...(tables === undefined
            ? {}
            : { table: { view: tables.waiting, noun: 'job', all: allWaiting.length, shown: waiting.length } }),
          hasKeys: isInWaiting,
          document: documentOf(waitingRows),
          place,
          scroll: (by) => input.scrollWaiting?.(by),
          rect: own,
          theme,
        }),
      ),
    ],
    arrangement,
    area: { ...inside, row: inside.row + head.length + legend.length, width: columns, height: rows },
    offset,
    lastOffset,
    spot,
    lastWaitingOffset: Math.max(0, waitingRows.length - Math.max(1, (waitingRect?.height ?? 2) - 2)),
  }
}

function hostTable(
  groups: readonly Group[],
  hosts: readonly (readonly PackedHost[])[],
  view: TableView,
): FilteredTable {
  const all = groups.reduce((sum, { cluster }) => sum + cluster.hosts.length, 0)
  return { view, noun: 'host', all, shown: hosts.flat().length }
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

/** The picture above; the selected block and the jobs that wait below. */
function below(rect: Rect, hasWaiting: boolean): Parts {
  if (rect.height < 14) return { picture: rect }
  const height = Math.max(6, Math.min(10, Math.floor(rect.height * 0.24)))
  const [picture, bottom] = splitRows(rect, rect.height - height)
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
