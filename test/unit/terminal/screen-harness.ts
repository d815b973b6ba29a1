/** A screen with everything that leaves it written down, and checks of its cells. */
import {
  BLANK,
  type CellGrid,
  CLUSTER_BIT,
  CODE_MASK,
  cellWidth,
  createCellGrid,
  WIDE_TAIL,
  WORDS_PER_CELL,
} from '../../../src/terminal/cells.ts'
import { cellText, clusterText, isPrintableCode } from '../../../src/terminal/clusters.ts'
import { createScreen, type Screen } from '../../../src/terminal/headless-screen.ts'

export type Harness = {
  readonly screen: Screen
  readonly replies: string[]
  bells: number
  /** Milliseconds; the screen's clock. */
  time: number
  feed(text: string | Uint8Array): Harness
  cells(): CellGrid
}

export function openScreen(options: { columns?: number; rows?: number; historyLines?: number } = {}): Harness {
  const { columns = 20, rows = 5, historyLines = 100 } = options
  const harness = { replies: [] as string[], bells: 0, time: 1_000_000 }
  const screen = createScreen(
    {
      columns,
      rows,
      historyLines,
      handlers: {
        onReply: (bytes) => harness.replies.push(Buffer.from(bytes).toString('latin1')),
        onBell: () => {
          harness.bells++
        },
      },
    },
    () => harness.time,
  )
  return Object.assign(harness, {
    screen,
    feed(text: string | Uint8Array) {
      screen.parse(typeof text === 'string' ? Buffer.from(text) : text)
      return harness as Harness
    },
    cells() {
      const grid = createCellGrid(screen.columns, screen.rows)
      screen.copyInto(grid, 0, 0, screen.columns, screen.rows)
      return grid
    },
  })
}

/** All kept lines, oldest first, without blank ones at the end. */
export function allText(screen: Screen): string[] {
  const lines: string[] = []
  for (let offset = screen.historyLines; offset > 0; offset--) {
    screen.viewOffset = offset
    lines.push(screen.visibleText()[0] ?? '')
  }
  screen.viewOffset = 0
  lines.push(...screen.visibleText())
  while (lines.at(-1) === '') lines.pop()
  return lines
}

export type Cell = { text: string; foreground: number; background: number; attributes: number }

export function cellAt(grid: CellGrid, column: number, row: number): Cell {
  const at = (row * grid.columns + column) * WORDS_PER_CELL
  const [word = 0, foreground = 0, background = 0, attributes = 0] = grid.words.subarray(at, at + WORDS_PER_CELL)
  return { text: cellText(word), foreground, background, attributes }
}

export function rowText(grid: CellGrid, row: number): string {
  return Array.from({ length: grid.columns }, (_, column) => cellAt(grid, column, row).text)
    .join('')
    .trimEnd()
}

/** What is wrong with the cells, or undefined: see cells.ts for what holds. */
export function invalidCell(grid: CellGrid): string | undefined {
  for (let row = 0; row < grid.rows; row++) {
    for (let column = 0; column < grid.columns; column++) {
      const problem = problemAt(grid, column, row)
      if (problem) return `${problem} at column ${column}, row ${row}`
    }
  }
  return undefined
}

function problemAt(grid: CellGrid, column: number, row: number): string | undefined {
  const at = (row * grid.columns + column) * WORDS_PER_CELL
  const word = grid.words[at] as number
  const before = column > 0 ? (grid.words[at - WORDS_PER_CELL] as number) : BLANK
  const isAfterWide = cellWidth(before) === 2
  if (word === WIDE_TAIL) return isAfterWide ? undefined : 'a tail without a wide character'
  if (isAfterWide) return 'a wide character without a tail'
  const width = cellWidth(word)
  if (width !== 1 && width !== 2) return `width ${width}`
  if (width === 2 && column === grid.columns - 1) return 'a wide character in the last column'
  const code = word & CODE_MASK
  if (word & CLUSTER_BIT) {
    const text = clusterText(code)
    if (text.length < 2 || text.length > 32) return `a cluster of ${text.length} code units`
    if (/[\p{Cc}\p{Cs}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u.test(text))
      return `a cluster with a control: ${JSON.stringify(text)}`
    if (!isPrintableCode(text.codePointAt(0) ?? 0)) return `a cluster that begins with ${text.codePointAt(0)}`
  } else if (code !== 0 && !isPrintableCode(code)) {
    return `code point ${code}`
  } else if (code === 0 && width === 2) {
    return 'a wide blank'
  }
  for (const colour of grid.words.subarray(at + 1, at + 3)) {
    const mode = colour >>> 24
    if (mode > 2 || (mode === 0 && colour !== 0) || (mode === 1 && (colour & 0xffff00) !== 0)) return `colour ${colour}`
  }
  return (grid.words[at + 3] as number) > 511 ? 'unknown attributes' : undefined
}
