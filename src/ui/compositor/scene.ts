/** What the compositor draws, as data: panes with their frames, the chrome, and the colours of the themes. */
import { BOLD, type CellGrid, type Colour, DIM, INVERSE, rgbColour } from '../../terminal/cells.ts'
import type { Screen } from '../../terminal/headless-screen.ts'

export type ThemeName = 'dark' | 'light' | 'none'

/** `#rrggbb`, or undefined for the terminal's own colour. */
export type ThemeColour = string | undefined

/** What a colour is for, and how it looks on a dark and on a light background. */
const COLOURS = {
  text: [undefined, undefined],
  muted: ['#8a929e', '#6b7280'],
  accent: ['#7fb4ff', '#0b5cad'],
  /** Receivers: the colour that cannot be overlooked. */
  receiving: ['#ffb454', '#a85500'],
  receivingText: ['#1b1200', '#ffffff'],
  /** Trouble, and receivers that are out of view. */
  danger: ['#ff5f6d', '#b3001b'],
  dangerText: ['#1c0003', '#ffffff'],
  ok: ['#8fd16f', '#2d7a12'],
  warning: ['#ffd866', '#8a6100'],
  bar: ['#20242c', '#e4e8ee'],
  barText: ['#d5dae3', '#20242c'],
  dialog: ['#262b35', '#eef1f5'],
  frame: ['#4a515e', '#a3abb8'],
  match: ['#ffd866', '#ffe08a'],
  matchText: ['#1b1200', '#20242c'],
} as const

export type Theme = { readonly name: ThemeName } & Readonly<Record<keyof typeof COLOURS, ThemeColour>>

const themeOf = (name: ThemeName, index: number): Theme => {
  const colours = Object.entries(COLOURS).map(([key, pair]) => [key, pair[index]])
  return { name, ...Object.fromEntries(colours) }
}

export const themes: Readonly<Record<ThemeName, Theme>> = {
  dark: themeOf('dark', 0),
  light: themeOf('light', 1),
  none: themeOf('none', 2),
}

const wordOf = (colour: ThemeColour): number =>
  colour === undefined ? 0 : rgbColour(Number.parseInt(colour.slice(1), 16))

export function styleOf(foreground: ThemeColour, background?: ThemeColour, attributes = 0): Style {
  return { foreground: wordOf(foreground), background: wordOf(background), attributes }
}

export const boldStyle = (foreground: ThemeColour): Style => styleOf(foreground, undefined, BOLD)

/** A filled label: its colours, or inverse video where there are none. */
export function labelStyle(theme: Theme, foreground: ThemeColour, background: ThemeColour): Style {
  return theme.name === 'none' ? styleOf(undefined, undefined, INVERSE | BOLD) : styleOf(foreground, background, BOLD)
}

/** The colour of a message; `plain` for one without a tone. */
export function toneColour(theme: Theme, tone: string | undefined, plain = theme.barText): ThemeColour {
  if (tone === 'error') return theme.danger
  return tone === 'muted' || tone === 'accent' || tone === 'warning' || tone === 'ok' ? theme[tone] : plain
}

export const mutedStyle = (theme: Theme): Style => styleOf(theme.muted, undefined, theme.name === 'none' ? DIM : 0)

/** COLORFGBG (rxvt, Konsole): `foreground;background` as palette indexes. */
export function guessTheme(environment: Readonly<Record<string, string | undefined>>): 'dark' | 'light' {
  const background = environment.COLORFGBG?.split(';').at(-1)
  return background === '7' || background === '15' ? 'light' : 'dark'
}

/** The theme for an answer `OSC 11 ; rgb:RRRR/GGGG/BBBB`; undefined for any other report. */
export function backgroundOf(report: Uint8Array): 'dark' | 'light' | undefined {
  const match = /^\x1b\]11;rgba?:([\da-f]+)\/([\da-f]+)\/([\da-f]+)/i.exec(Buffer.from(report).toString('latin1'))
  if (!match) return undefined
  const [red = 0, green = 0, blue = 0] = match
    .slice(1, 4)
    .map((part) => Number.parseInt(part, 16) / (16 ** part.length - 1))
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5 ? 'light' : 'dark'
}

export type Rect = { readonly column: number; readonly row: number; readonly width: number; readonly height: number }

export type Style = { readonly foreground: Colour; readonly background: Colour; readonly attributes: number }

/** A run of text of one style; wide characters count two columns, control characters are never given. */
export type Span = {
  readonly text: string
  readonly style: Style
  /** A button: a click on it presses this key, or does this. */
  readonly press?: string | (() => void)
}

/** The characters of a frame: light, heavy, double or ASCII, so that a state is visible without colour, too; `none` draws no frame. */
export type FrameLines = 'light' | 'heavy' | 'double' | 'dashed' | 'ascii' | 'none'

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
  readonly mouse?: PaneMouse
}

/** What the mouse does in a pane of rows. */
export type PaneMouse = {
  /** The row of the document in the first row of the pane that scrolls. */
  readonly firstRow: number
  /** Rows above it, which do not scroll. */
  readonly headRows: number
  readonly length: number
  /** A click selects a row of the document; a double click also presses Enter. */
  readonly list?: RowList
  /** The wheel over this pane, in rows, down if positive; absent: the page scrolls. */
  scroll?(rows: number): void
}

/** `column`: inside the frame. */
export type RowList = { select(row: number, column: number): void }

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
