import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createGrid, slotRect } from '../../../../src/ui/console/panes.ts'
import { randomRuns } from '../../../support/random-runs.ts'

const minimum = { columns: 40, rows: 8 }
const area = (width: number, height: number) => ({ column: 0, row: 1, width, height })
const shapeOf = (width: number, height: number, count: number) => {
  const { columns, rows, paneWidth, paneHeight } = createGrid(area(width, height), count, minimum)
  return { columns, rows, paneWidth, paneHeight }
}

test('fits six hosts on one page of 80×24', () => {
  expect(shapeOf(80, 22, 6)).toEqual({ columns: 2, rows: 3, paneWidth: 40, paneHeight: 7 })
})

test('gives one host the whole area', () => {
  expect(shapeOf(80, 22, 1)).toEqual({ columns: 1, rows: 1, paneWidth: 80, paneHeight: 22 })
})

test('divides 64 hosts at 240×67 into pages of readable panes', () => {
  const { columns, rows, paneWidth, paneHeight } = shapeOf(240, 65, 64)
  expect(paneWidth).toBeGreaterThanOrEqual(38)
  expect(paneHeight).toBeGreaterThanOrEqual(7)
  expect(Math.ceil(64 / (columns * rows))).toBe(2)
})

test('assigns each cell to exactly one slot', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 250 }),
      fc.integer({ min: 1, max: 70 }),
      fc.integer({ min: 1, max: 100 }),
      (width, height, count) => {
        const grid = createGrid(area(width, height), count, minimum)
        const owners = new Uint8Array(width * height)
        for (let slot = 0; slot < grid.columns * grid.rows; slot++) {
          const rect = slotRect(grid, slot)
          for (let row = rect.row - 1; row < rect.row - 1 + rect.height; row++) {
            for (let column = rect.column; column < rect.column + rect.width; column++) {
              owners[row * width + column] = (owners[row * width + column] ?? 0) + 1
            }
          }
        }
        expect(owners.every((owner) => owner === 1)).toBe(true)
      },
    ),
    { numRuns: randomRuns(60) },
  )
})

test('makes slots that differ by one cell at most, and none below the minimum', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 40, max: 250 }),
      fc.integer({ min: 8, max: 70 }),
      fc.integer({ min: 1, max: 100 }),
      (width, height, count) => {
        const grid = createGrid(area(width, height), count, minimum)
        for (let slot = 0; slot < grid.columns * grid.rows; slot++) {
          const rect = slotRect(grid, slot)
          expect(rect.width - grid.paneWidth).toBeOneOf([0, 1])
          expect(rect.height - grid.paneHeight).toBeOneOf([0, 1])
        }
      },
    ),
    { numRuns: randomRuns(60) },
  )
})
