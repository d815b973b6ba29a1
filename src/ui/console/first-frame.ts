/** What a terminal has to be sent so that it shows what a pane shows now. Pure. */
import { createCellGrid } from '../../terminal/cells.ts'
import type { Screen } from '../../terminal/headless-screen.ts'
import { FrameEncoder } from '../compositor/frame-encoder.ts'

/** For a terminal of the same size that is new. Empty: the pane shows nothing. Titles, margins and tab stops are not in it. */
export function firstFrame(screen: Screen): Buffer {
  const { columns, rows, cursor, modes } = screen
  const [blank, shown] = [createCellGrid(columns, rows), createCellGrid(columns, rows)]
  screen.copyInto(shown, 0, 0, columns, rows)
  const encoder = new FrameEncoder((colour) => colour, true)
  encoder.begin()
  if (modes.isAlternateScreen) encoder.ascii('\x1b[?1049h')
  const cells = encoder.difference(blank, shown, { column: 0, row: 0, width: columns, height: rows })
  if (cells === 0 && !modes.isAlternateScreen) return Buffer.alloc(0)
  encoder.ascii('\x1b[m')
  encoder.moveTo(cursor.column, cursor.row)
  if (!cursor.isVisible) encoder.ascii('\x1b[?25l')
  return encoder.finish()
}
