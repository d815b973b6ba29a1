import { describe, expect, it } from 'vitest'
import { packHosts } from '../../../../src/scheduler/jobs/packing.ts'
import { arrange, type BlockSpot, firstSpot, nextSpot, spotIn } from '../../../../src/ui/packing/arrange.ts'
import { hostSpecs } from '../jobs/fake-queue.ts'

const hosts = (count: number, gpus: number) => packHosts(hostSpecs(count, gpus), [])

describe('the tiles of the Packing tab', () => {
  it.each([
    [3, 8, 240, 60],
    [3, 8, 80, 14],
    [60, 8, 118, 26],
    [64, 8, 78, 14],
    [64, 8, 174, 58],
    [9, 0, 118, 30],
    [1, 1, 20, 3],
  ])('%i hosts of %i GPUs fill %i×%i, and no block lies on another', (count, gpus, columns, rows) => {
    const { tiles, rows: used } = arrange([hosts(count, gpus)], columns, rows)
    expect(tiles).toHaveLength(count)
    expect(used).toBeLessThanOrEqual(rows)
    expect(used).toBeGreaterThan(rows * 0.75)
    const cells = new Set<string>()
    for (const { rect, blocks } of tiles) {
      expect(rect.column + rect.width).toBeLessThanOrEqual(columns)
      expect(blocks.filter(({ part }) => typeof part === 'number')).toHaveLength(gpus)
      for (const { rect: block } of blocks) {
        expect(block.column + block.width).toBeLessThanOrEqual(rect.width)
        expect(block.row + block.height).toBeLessThanOrEqual(rect.height)
        for (let row = 0; row < block.height; row += 1)
          for (let column = 0; column < block.width; column += 1)
            cells.add(`${rect.row + block.row + row} ${rect.column + block.column + column}`)
      }
    }
    const area = tiles.flatMap(({ blocks }) => blocks).reduce((sum, { rect }) => sum + rect.width * rect.height, 0)
    expect(cells.size).toBe(area)
  })

  it('give devices more room on larger screens, and scroll only if a row for each does not fit', () => {
    const areaOf = (columns: number, rows: number) => {
      const [tile] = arrange([hosts(3, 8)], columns, rows).tiles
      const { rect } = tile?.blocks.find(({ part }) => part === 0) ?? {}
      return (rect?.width ?? 0) * (rect?.height ?? 0)
    }
    expect(areaOf(240, 60)).toBeGreaterThan(areaOf(118, 30))
    expect(areaOf(118, 30)).toBeGreaterThan(areaOf(78, 14))
    const many = arrange([hosts(300, 8)], 78, 14)
    expect(many.rows).toBeGreaterThan(14)
    expect(many.tiles[0]?.rect.height).toBe(1)
  })

  it('of several clusters are below the heading of each', () => {
    const { tiles, headings } = arrange([hosts(2, 4), [], hosts(3, 0)], 118, 30)
    expect(headings).toHaveLength(3)
    const rowOf = (group: number) =>
      Math.min(...tiles.filter((tile) => tile.group === group).map(({ rect }) => rect.row))
    expect(rowOf(0)).toBe((headings[0] ?? 0) + 1)
    expect(rowOf(2)).toBe((headings[2] ?? 0) + 1)
  })
})

describe('the selected block', () => {
  const arrangement = arrange([hosts(4, 4)], 118, 30)
  const walk = (from: BlockSpot | undefined, ...directions: Parameters<typeof nextSpot>[2][]) =>
    directions.reduce((spot, direction) => spot && (nextSpot(arrangement, spot, direction) ?? spot), from)

  it('is the first device at first, and the arrows move it to its neighbours and back', () => {
    const first = firstSpot(arrangement)
    expect(first).toEqual({ group: 0, host: 'n1', part: 0 })
    expect(walk(first, 'right')).toEqual({ group: 0, host: 'n1', part: 1 })
    expect(walk(first, 'right', 'left')).toEqual(first)
    expect(walk(first, 'up')).toMatchObject({ host: 'n1', part: 'memory' })
    expect(walk(first, 'left', 'left')).toEqual(first)
  })

  it('reaches each host with arrows alone', () => {
    const reached = new Set<string>()
    const open = [firstSpot(arrangement)]
    while (open.length > 0) {
      const spot = open.pop()
      if (spot === undefined || reached.has(`${spot.host} ${spot.part}`)) continue
      reached.add(`${spot.host} ${spot.part}`)
      for (const direction of ['left', 'right', 'up', 'down'] as const)
        open.push(nextSpot(arrangement, spot, direction))
    }
    expect(reached.size).toBe(arrangement.tiles.flatMap(({ blocks }) => blocks).length)
  })

  it('is the one at a cell, or the first device for the title of a host', () => {
    for (const tile of arrangement.tiles)
      for (const { part, rect } of tile.blocks)
        expect(spotIn(arrangement, tile.rect.column + rect.column, tile.rect.row + rect.row)).toEqual({
          group: 0,
          host: tile.host.name,
          part,
        })
    const [tile] = arrangement.tiles
    expect(spotIn(arrangement, tile?.rect.column ?? 0, tile?.rect.row ?? 0)).toMatchObject({ part: 0 })
    expect(spotIn(arrangement, 500, 0)).toBeUndefined()
  })
})
