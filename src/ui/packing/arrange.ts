/** Where the hosts of the Packing tab, and the blocks of each host, are drawn: tiles that fill the room. Pure. */
import type { PackedHost } from '../../scheduler/jobs/packing.ts'
import type { Rect } from '../compositor/scene.ts'

/** A device by its index, or what jobs hold of the host's cores or memory. */
export type Part = number | 'cores' | 'memory'

/** Within its tile. */
export type Block = { readonly part: Part; readonly rect: Rect }

/** `group`: the index of the group of hosts; rows are counted from the first row of all tiles, also of those scrolled out. */
export type Tile = {
  readonly group: number
  readonly host: PackedHost
  readonly rect: Rect
  readonly blocks: readonly Block[]
}

export type TileLayout = {
  readonly tiles: readonly Tile[]
  /** The row of the heading of each group; empty where there is only one. */
  readonly headings: readonly number[]
  readonly rows: number
  /** The columns of a name in a tile of one row. */
  readonly nameColumns: number
}

/** A block that is wider or higher says nothing more, so other tiles are not made smaller for it. */
const WIDE = 16
const HIGH = 4
/** Of a tile: its title and bars are whole. */
const WIDE_TILE = 38
const MOST_NAME_COLUMNS = 16
const LEAST_NAME_COLUMNS = 4
const LEAST_BAR_COLUMNS = 8
/** In one row, of each device, so that there is room for the cores as well. */
const DEVICE_COLUMNS = 8
/** What a title, a bar of cores and a bar of memory add to the value of a tile. */
const ROWS_WORTH = [0, 0, 0.8, 1.2, 1.5] as const

/**
 * Tiles of equal size that fit into the room and show most; if not all fit, the smallest ones. `usualRows`: the rows that they
 * have without a what-if, which must not move a host beside another one.
 */
export function arrange(
  groups: readonly (readonly PackedHost[])[],
  columns: number,
  rows: number,
  usualRows = rows,
): TileLayout {
  const hosts = groups.flat()
  if (hosts.length === 0) return place(groups, columns, rows, { across: 1, height: 1, nameColumns: LEAST_NAME_COLUMNS })
  const headingRows = groups.length > 1 ? groups.length : 0
  const longest = hosts.reduce((most, { name }) => Math.max(most, name.length), 0)
  const nameColumns = Math.max(
    LEAST_NAME_COLUMNS,
    Math.min(longest, MOST_NAME_COLUMNS, Math.max(8, Math.floor(columns / 8))),
  )
  const most = hosts.reduce((count, { devices }) => Math.max(count, devices.length), 0)
  const least = nameColumns + 1 + Math.max(LEAST_BAR_COLUMNS, most)
  const mostAcross = Math.max(1, Math.floor((columns + 1) / (least + 1)))
  const tileRowsOf = (across: number) => groups.reduce((sum, group) => sum + Math.ceil(group.length / across), 0)
  const heightOf = (across: number, room: number) => Math.floor((room - headingRows) / tileRowsOf(across))
  const bestFor = (room: number) => {
    let best = { across: mostAcross, height: 1, score: 0 }
    for (let across = 1; across <= mostAcross; across++) {
      const height = heightOf(across, room)
      if (height < 1) continue
      const width = Math.floor((columns + 1) / across) - 1
      const fill = hosts.length / (tileRowsOf(across) * across)
      const score = tileScore(most, width, height, nameColumns) * (0.5 + fill / 2)
      if (score > best.score) best = { across, height, score }
    }
    return best
  }
  const { across } = bestFor(usualRows)
  const height = heightOf(across, rows)
  return place(groups, columns, rows, { ...(height < 1 ? bestFor(rows) : { across, height }), nameColumns })
}

function tileScore(devices: number, width: number, height: number, nameColumns: number): number {
  const blocks = blocksOf(devices, { width, height }, nameColumns)
  const least = (pick: (rect: Rect) => number) =>
    blocks.reduce(
      (smallest, { part, rect }) =>
        part === 'memory' || (devices > 0 && part === 'cores') ? smallest : Math.min(smallest, pick(rect)),
      Number.POSITIVE_INFINITY,
    )
  const wide = least(({ width }) => width) / (devices === 0 ? 2 : 1)
  const high = least((rect) => rect.height)
  const block = (Math.min(WIDE, wide) / WIDE) * (0.4 + (0.6 * Math.min(HIGH, high)) / HIGH)
  return (ROWS_WORTH[height] ?? 1.5) + 2 * block + Math.min(WIDE_TILE, width) / WIDE_TILE
}

type Size = { readonly across: number; readonly height: number; readonly nameColumns: number }

/** Rows and columns that are left over go to the first tiles. */
function place(
  groups: readonly (readonly PackedHost[])[],
  columns: number,
  rows: number,
  { across, height, nameColumns }: Size,
): TileLayout {
  const headingRows = groups.length > 1 ? groups.length : 0
  const tileRows = groups.reduce((sum, group) => sum + Math.ceil(group.length / across), 0)
  const extra = Math.max(0, Math.min(tileRows, rows - headingRows - tileRows * height))
  const columnAt = (index: number) => Math.floor(((columns + 1) * index) / across)
  const mostCores = groups.flat().reduce((most, { cpuMilli }) => Math.max(most, Math.ceil(cpuMilli / 1000)), 0)
  // ` 8/16c`
  const figureColumns = 3 + 2 * String(mostCores).length
  const tiles: Tile[] = []
  const headings: number[] = []
  let [row, band] = [0, 0]
  groups.forEach((group, index) => {
    if (headingRows > 0) headings.push(row++)
    for (let first = 0; first < group.length; first += across) {
      const own = height + (band++ < extra ? 1 : 0)
      group.slice(first, first + across).forEach((host, at) => {
        const column = columnAt(at)
        const rect = { column, row, width: columnAt(at + 1) - column - 1, height: own }
        tiles.push({
          group: index,
          host,
          rect,
          blocks: blocksOf(host.devices.length, rect, nameColumns, figureColumns),
        })
      })
      row += own
    }
  })
  return { tiles, headings, rows: row, nameColumns }
}

/**
 * One row: the name, then the devices, and room for how many cores are held, or else the cores. More: a title, bars of cores and memory,
 * and the devices.
 */
function blocksOf(
  devices: number,
  { width, height }: Pick<Rect, 'width' | 'height'>,
  nameColumns: number,
  figureColumns = 0,
): readonly Block[] {
  if (height === 1) {
    const left = Math.min(width - 1, nameColumns + 1)
    const area = { column: left, row: 0, width: width - left, height: 1 }
    if (devices === 0) return [{ part: 'cores', rect: area }]
    const room = area.width - figureColumns
    return deviceBlocks(devices, room < devices * DEVICE_COLUMNS ? area : { ...area, width: room })
  }
  if (devices === 0) {
    const memoryRows = height > 2 ? Math.max(1, Math.floor((height - 1) / 3)) : 0
    const cores: Block = { part: 'cores', rect: { column: 0, row: 1, width, height: height - 1 - memoryRows } }
    if (memoryRows === 0) return [cores]
    return [cores, { part: 'memory', rect: { column: 0, row: height - memoryRows, width, height: memoryRows } }]
  }
  const leastLines = Math.ceil(devices / Math.max(1, width))
  const bars = Math.max(0, Math.min(2, height - 2, height - 1 - leastLines))
  const top = 1 + bars
  return [
    ...(['cores', 'memory'] as const)
      .slice(0, bars)
      .map((part, index): Block => ({ part, rect: { column: 0, row: 1 + index, width, height: 1 } })),
    ...deviceBlocks(devices, { column: 0, row: top, width, height: height - top }),
  ]
}

/** In lines, with a column between blocks where there is room for it. */
function deviceBlocks(count: number, area: Rect): readonly Block[] {
  let best = { perLine: Math.max(1, Math.min(count, area.width)), score: -1 }
  for (let perLine = count; perLine > 0; perLine--) {
    const lines = Math.ceil(count / perLine)
    if (lines > area.height) break
    const wide = Math.floor((area.width + 1) / perLine) - 1
    if (wide < 1 && perLine > area.width) continue
    const score =
      Math.min(WIDE, Math.max(0.5, wide)) *
      Math.min(HIGH, Math.floor(area.height / lines)) *
      (count / (lines * perLine))
    if (score > best.score) best = { perLine, score }
  }
  const { perLine } = best
  const gap = area.width + 1 >= perLine * 2 ? 1 : 0
  const lines = Math.ceil(count / perLine)
  const columnAt = (index: number) => Math.floor(((area.width + gap) * index) / perLine)
  const rowAt = (line: number) => Math.floor((area.height * line) / lines)
  return Array.from({ length: count }, (_, device): Block => {
    const [at, line] = [device % perLine, Math.floor(device / perLine)]
    const [column, row] = [columnAt(at), rowAt(line)]
    const rect = {
      column: area.column + column,
      row: area.row + row,
      width: columnAt(at + 1) - column - gap,
      height: Math.max(1, rowAt(line + 1) - row),
    }
    return { part: device, rect }
  }).filter(({ rect }) => rect.row < area.row + area.height)
}

export type BlockSpot = { readonly group: number; readonly host: string; readonly part: Part }

export type BlockDirection = 'left' | 'right' | 'up' | 'down'

/** The block next to one in a direction: the nearest that is beside it, or else the nearest of all; undefined: none. */
export function nextSpot({ tiles }: TileLayout, from: BlockSpot, direction: BlockDirection): BlockSpot | undefined {
  const spots = tiles.flatMap((tile) => tile.blocks.map((block) => spotAt(tile, block)))
  const own = spots.find(({ spot }) => isSameSpot(spot, from))
  if (own === undefined) return spots[0]?.spot
  const isAcross = direction === 'left' || direction === 'right'
  const sign = direction === 'right' || direction === 'down' ? 1 : -1
  const span = ({ column, row, width, height }: Rect, across: boolean) =>
    across ? ([column, column + width] as const) : ([row, row + height] as const)
  const [ownFrom, ownTo] = span(own.rect, isAcross)
  const [sideFrom, sideTo] = span(own.rect, !isAcross)
  let best: { readonly spot: BlockSpot; readonly cost: number } | undefined
  for (const { spot, rect } of spots) {
    const [start, end] = span(rect, isAcross)
    const ahead = sign > 0 ? start - ownTo : ownFrom - end
    if (ahead < 0) continue
    const [low, high] = span(rect, !isAcross)
    const aside = Math.max(0, low - sideTo + 1, sideFrom - high + 1)
    if (isAcross && aside > 0) continue
    const cost = ahead * 4 + aside * 4 + Math.abs(low + high - sideFrom - sideTo) / 4
    if (best === undefined || cost < best.cost) best = { spot, cost }
  }
  return best?.spot
}

const spotAt = (tile: Tile, { part, rect }: Block) => ({
  spot: { group: tile.group, host: tile.host.name, part },
  rect: { ...rect, column: tile.rect.column + rect.column, row: tile.rect.row + rect.row },
})

export const isSameSpot = (one: BlockSpot | undefined, other: BlockSpot | undefined): boolean =>
  one !== undefined && one.group === other?.group && one.host === other.host && one.part === other.part

/** The block at a cell of the picture, or the first one of the tile there; undefined: no tile is there. */
export function spotIn({ tiles }: TileLayout, column: number, row: number): BlockSpot | undefined {
  const tile = tiles.find(({ rect }) => isIn(rect, column, row))
  if (tile === undefined) return undefined
  const inside = [column - tile.rect.column, row - tile.rect.row] as const
  const block = tile.blocks.find(({ rect }) => isIn(rect, ...inside)) ?? firstBlock(tile)
  return block && { group: tile.group, host: tile.host.name, part: block.part }
}

/** A device, if there is one. */
const firstBlock = ({ blocks }: Tile) => blocks.find(({ part }) => typeof part === 'number') ?? blocks[0]

export function firstSpot({ tiles }: TileLayout): BlockSpot | undefined {
  const [tile] = tiles
  const block = tile && firstBlock(tile)
  return tile && block && { group: tile.group, host: tile.host.name, part: block.part }
}

/** The first device that a job holds, or else the cores of its first host with them. */
export function spotOfJob(
  { tiles }: TileLayout,
  { group, job }: { readonly group: number; readonly job: number },
): BlockSpot | undefined {
  const own = tiles.filter((tile) => tile.group === group)
  for (const tile of own) {
    const part = tile.host.devices.findIndex((shares) => shares.some((share) => share.job === job))
    if (part >= 0) return { group, host: tile.host.name, part }
  }
  const tile = own.find(({ host }) => host.holdings.some((holding) => holding.job === job))
  const block = tile && (tile.blocks.find(({ part }) => part === 'cores') ?? tile.blocks[0])
  return tile && block && { group, host: tile.host.name, part: block.part }
}

export function lastSpot({ tiles }: TileLayout): BlockSpot | undefined {
  const tile = tiles.at(-1)
  const block = tile?.blocks.at(-1)
  return tile && block && { group: tile.group, host: tile.host.name, part: block.part }
}

const isIn = (rect: Rect, column: number, row: number): boolean =>
  column >= rect.column && column < rect.column + rect.width && row >= rect.row && row < rect.row + rect.height
