/** What real programs wrote to a terminal of 80 × 24: test/fixtures/terminal. */
import { readFileSync } from 'node:fs'
import type { CellGrid } from '../../../src/terminal/cells.ts'
import { cellAt, rowText } from './screen-harness.ts'

export const CAPTURES = ['vim', 'less', 'mc', 'htop', 'shell', 'text'] as const

const folder = new URL('../../fixtures/terminal/', import.meta.url)

export function capture(name: (typeof CAPTURES)[number]): Buffer {
  return readFileSync(new URL(`${name}.bin`, folder))
}

/** A picture that a person can read: the text of each row, and under it the runs that look other than plain. */
export function picture(grid: CellGrid): string {
  const lines: string[] = []
  for (let row = 0; row < grid.rows; row++) {
    lines.push(`${String(row).padStart(2)} |${rowText(grid, row)}`)
    let last = ''
    for (let column = 0; column < grid.columns; column++) {
      const { foreground, background, attributes } = cellAt(grid, column, row)
      const looks = `fg ${foreground.toString(16)} bg ${background.toString(16)} attributes ${attributes}`
      if (looks !== last && (last !== '' || looks !== PLAIN)) lines.push(`     from ${column}: ${looks}`)
      last = looks
    }
  }
  return `${lines.join('\n')}\n`
}

const PLAIN = 'fg 0 bg 0 attributes 0'
