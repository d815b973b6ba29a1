/** The panes, their pages and places, from the state alone. Pure. */
import type { Rect } from '../compositor/scene.ts'
import type { ConsoleState } from '../state/console-state.ts'
import { layoutPanel } from '../work-views/panel.ts'
import type { PageInfo } from './header.ts'

export type Direction = 'left' | 'right' | 'up' | 'down'

/** The hosts of one pane: one, or all with equal screens. It shows the screen of the first. */
export type Unit = readonly string[]

export type Size = { readonly columns: number; readonly rows: number }

export type Arrangement = PageInfo & {
  readonly units: readonly Unit[]
  readonly perPage: number
  readonly grid: Grid
  readonly placed: readonly { readonly hosts: Unit; readonly rect: Rect }[]
  /** The size of every host's terminal, so that all wrap alike. */
  readonly paneContent: Size
  readonly zoomContent: Size
  readonly zoomed: string | undefined
}

const FRAME = 2

function unitsOf(state: ConsoleState): Unit[] {
  const hosts = [...state.hosts.keys()]
  if (!state.isFolded || state.equalGroups.length === 0) return hosts.map((host) => [host])
  const grouped = new Set(state.equalGroups.flat())
  return [
    ...state.equalGroups.filter((group) => group.length > 0),
    ...hosts.filter((host) => !grouped.has(host)).map((host) => [host]),
  ]
}

/** The number of folded panes changes with the screens. The grid changes only in these steps, so that terminals are not resized each time. */
const FOLD_STEPS = [1, 2, 4, 6, 9, 12, 16]

export function arrange(state: ConsoleState, previous?: Arrangement): Arrangement {
  const { shells: area, areShellsShown } = layoutPanel(state)
  const units = unitsOf(state)
  const count = state.isFolded ? (FOLD_STEPS.find((step) => step >= units.length) ?? units.length) : units.length
  const grid = createGrid(area, count, state.paneSize)
  const perPage = Math.max(1, grid.columns * grid.rows)
  const pages = Math.max(1, Math.ceil(units.length / perPage))
  const page = Math.max(0, Math.min(state.page, pages - 1))
  const inner = (rect: Size): Size => ({
    columns: Math.max(1, rect.columns - FRAME),
    rows: Math.max(1, rect.rows - FRAME),
  })
  const zoomed = state.isZoomed
    ? units.find((unit) => state.focus !== undefined && unit.includes(state.focus))?.[0]
    : undefined
  const placed = !areShellsShown
    ? []
    : zoomed === undefined
      ? units.slice(page * perPage, (page + 1) * perPage).map((hosts, slot) => ({ hosts, rect: slotRect(grid, slot) }))
      : [{ hosts: units.find((unit) => unit.includes(zoomed)) ?? [zoomed], rect: area }]
  const shown = new Set(placed.flatMap(({ hosts }) => hosts))
  return {
    units,
    page,
    pages: zoomed === undefined ? pages : 1,
    perPage,
    grid,
    placed,
    shown: previous && sameSet(previous.shown, shown) ? previous.shown : shown,
    paneContent: inner({ columns: grid.paneWidth, rows: grid.paneHeight }),
    zoomContent: inner({ columns: area.width, rows: area.height }),
    zoomed,
  }
}

const sameSet = (a: ReadonlySet<string>, b: ReadonlySet<string>): boolean =>
  a.size === b.size && [...a].every((item) => b.has(item))

const indexOf = (arrangement: Arrangement, host: string | undefined): number =>
  host === undefined ? -1 : arrangement.units.findIndex((unit) => unit.includes(host))

export function pageOf(arrangement: Arrangement, host: string | undefined): number | undefined {
  const index = indexOf(arrangement, host)
  return index < 0 ? undefined : Math.floor(index / arrangement.perPage)
}

/** The host in that direction; beyond the top and bottom edges are the previous and next pages. */
export function focusNeighbour(
  arrangement: Arrangement,
  focus: string | undefined,
  direction: Direction,
): string | undefined {
  const { units, grid } = arrangement
  const index = indexOf(arrangement, focus)
  if (index < 0) return units[0]?.[0]
  const column = index % grid.columns
  const row = Math.floor(index / grid.columns)
  const lastRow = Math.floor((units.length - 1) / grid.columns)
  const at = (nextRow: number, nextColumn: number): string | undefined =>
    units[nextRow * grid.columns + nextColumn]?.[0]
  switch (direction) {
    case 'left':
      return column > 0 ? at(row, column - 1) : undefined
    case 'right':
      return column < grid.columns - 1 ? at(row, column + 1) : undefined
    case 'up':
      return row > 0 ? at(row - 1, column) : undefined
    case 'down':
      // Below an incomplete last row is its last host.
      return row < lastRow ? (at(row + 1, column) ?? units.at(-1)?.[0]) : undefined
  }
}

export type Grid = {
  readonly area: Rect
  readonly columns: number
  readonly rows: number
  /** The smallest slot, frame included: some are one larger if the area does not divide evenly. */
  readonly paneWidth: number
  readonly paneHeight: number
}

/** The ideal size of a shell: the best grid has panes closest to it. */
const IDEAL = { columns: 82, rows: 26 }
/** A page is squeezed by up to this much to avoid a second page. */
const SQUEEZE = { columns: 2, rows: 1 }

/**
 * The grid for `count` panes of at least `minimum` (frame included; less only where the area itself is smaller). When not
 * all fit, it is the fullest grid, and the rest goes to further pages.
 */
export function createGrid(
  area: Rect,
  count: number,
  minimum: { readonly columns: number; readonly rows: number },
): Grid {
  const fitting = (columns: number, rows: number) => ({
    columns: Math.max(1, Math.floor(area.width / Math.max(1, columns))),
    rows: Math.max(1, Math.floor(area.height / Math.max(1, rows))),
  })
  const most = fitting(minimum.columns, minimum.rows)
  const squeezed = fitting(minimum.columns - SQUEEZE.columns, minimum.rows - SQUEEZE.rows)
  const limit = count > most.columns * most.rows && count <= squeezed.columns * squeezed.rows ? squeezed : most
  const grid = (columns: number, rows: number): Grid => ({
    area,
    columns,
    rows,
    paneWidth: Math.floor(area.width / columns),
    paneHeight: Math.floor(area.height / rows),
  })
  if (count > limit.columns * limit.rows) return grid(limit.columns, limit.rows)
  let best = grid(limit.columns, limit.rows)
  let bestScore = -1
  for (let columns = 1; columns <= Math.min(limit.columns, Math.max(1, count)); columns++) {
    const rows = Math.max(1, Math.ceil(count / columns))
    if (rows > limit.rows) continue
    const candidate = grid(columns, rows)
    const score =
      Math.min(1, candidate.paneWidth / IDEAL.columns, candidate.paneHeight / IDEAL.rows) +
      Math.min(1, candidate.paneWidth / IDEAL.columns) * Math.min(1, candidate.paneHeight / IDEAL.rows)
    if (score > bestScore) {
      best = candidate
      bestScore = score
    }
  }
  return best
}

/** The rectangle of a slot, counted row by row. Slots tile the area without gaps. */
export function slotRect(grid: Grid, slot: number): Rect {
  const { area } = grid
  const column = slot % grid.columns
  const row = Math.floor(slot / grid.columns)
  const left = Math.floor((area.width * column) / grid.columns)
  const right = Math.floor((area.width * (column + 1)) / grid.columns)
  const top = Math.floor((area.height * row) / grid.rows)
  const bottom = Math.floor((area.height * (row + 1)) / grid.rows)
  return { column: area.column + left, row: area.row + top, width: right - left, height: bottom - top }
}
