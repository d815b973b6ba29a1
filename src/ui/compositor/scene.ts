/** What the compositor draws: panes with their frames and the chrome, as data. */
import type { CellGrid, Colour } from '../../terminal/cells.ts'
import type { Screen } from '../../terminal/headless-screen.ts'

export type Rect = { readonly column: number; readonly row: number; readonly width: number; readonly height: number }

export type Style = { readonly foreground: Colour; readonly background: Colour; readonly attributes: number }

/** A run of text of one style; wide characters count two columns, control characters are never given. */
export type Span = { readonly text: string; readonly style: Style }

/** The characters of a frame: light, heavy, double or ASCII, so that a state is visible without colour, too. */
export type FrameLines = 'light' | 'heavy' | 'double' | 'dashed' | 'ascii'

export type PaneView = {
  readonly host: string
  /** With the frame: the screen has the rectangle less one cell at each side. */
  readonly rect: Rect
  readonly screen: Screen | undefined
  readonly lines: FrameLines
  readonly frameStyle: Style
  /** Into the top edge from the left, clipped. */
  readonly title: readonly Span[]
  /** Into the top edge from the right; wins over the title when there is no room for both. */
  readonly badges: readonly Span[]
  /** Lines over the bottom rows of the screen (why a host is lost, what to press), clipped. */
  readonly notice: readonly (readonly Span[])[]
  /** The screen's own colours are dimmed (a host that does not receive). */
  readonly isDimmed: boolean
  /** Cells to highlight (search hits), in rows and columns of the visible screen. */
  readonly highlights: readonly {
    readonly row: number
    readonly column: number
    readonly length: number
    readonly style: Style
  }[]
}

export type Scene = {
  readonly columns: number
  readonly rows: number
  /** What Ink drew, of the size of the terminal. */
  readonly chrome: CellGrid
  readonly panes: readonly PaneView[]
  /** Rectangles where the chrome lies over the panes (dialogs). */
  readonly overlays: readonly Rect[]
  /** The pane whose cursor the terminal shows; undefined: none. */
  readonly cursor: { readonly pane: string } | undefined
}
