/** The emulated terminal behind a shell. What leaves it is cells, modes and replies; a reply goes to the host that asked. */
import type { CellGrid } from './cells.ts'

/** Modes that the remote program switched on and that change what typed keys, pastes and mouse events become. */
export type ScreenModes = {
  readonly isBracketedPaste: boolean
  readonly isApplicationCursor: boolean
  readonly isApplicationKeypad: boolean
  readonly isAlternateScreen: boolean
  readonly mouse: 'none' | 'x10' | 'vt200' | 'drag' | 'any'
  readonly isMouseSgr: boolean
  readonly isFocusReporting: boolean
}

export type CursorState = {
  /** Relative to the visible rows, always inside them. `isVisible` is false also when the view is scrolled away from it. */
  readonly column: number
  readonly row: number
  readonly isVisible: boolean
  readonly style: 'block' | 'underline' | 'bar'
}

export type ScreenHandlers = {
  /** The emulator answers a query of the remote program: bytes for that host only. Bounded per second. */
  onReply(bytes: Uint8Array): void
  /** At most a few times a second. */
  onBell?(): void
  /** Printable already, and short. Once a `parse` at most. */
  onTitle?(title: string): void
}

export type SearchHit = { readonly line: number; readonly column: number; readonly length: number }

export interface Screen extends Disposable {
  readonly columns: number
  readonly rows: number
  readonly modes: ScreenModes
  readonly cursor: CursorState
  /** Counts up with every change of what `copyInto` gives: cheap to compare. */
  readonly revision: number
  /** Lines that have scrolled off the top and are kept. */
  readonly historyLines: number
  /** How many lines above the bottom the view is; 0 follows the output. New output keeps the view where it is. */
  viewOffset: number
  /** Parses now, on the caller's time: give it slices (4 KB). Any bytes; never throws. Only the feeder calls this. */
  parse(bytes: Uint8Array): void
  resize(columns: number, rows: number): void
  /**
   * Copies the visible rows to (column, row) of the target, clipped to `width` × `height` and to the target; a wide
   * character that is cut becomes blank, and so does what lies beyond the screen.
   */
  copyInto(target: CellGrid, column: number, row: number, width: number, height: number): void
  /** Visible rows as text, right-trimmed: for folding, comparing and tests. */
  visibleText(): string[]
  /**
   * The newest 1000 hits in history and screen, oldest first; `line` counts from the oldest kept line, `column` and `length` are
   * cells (a hit may run on into wrapped rows). Case is ignored when the needle has no capital.
   */
  search(needle: string): SearchHit[]
  /**
   * A new shell begins on the old terminal: sequences that were cut, modes, colours and the alternate screen are gone; the
   * text and the history stay, and the cursor stands below them.
   */
  restart(): void
}

export type CreateScreen = (options: {
  columns: number
  rows: number
  historyLines: number
  handlers: ScreenHandlers
}) => Screen
