/** The user's terminal as a test sees it: a headless emulator that shows what a program wrote, as text, cells and modes. */
import xtermHeadless from '@xterm/headless'
import { UnicodeGraphemesAddon } from '../../src/terminal/graphemes-addon.ts'

export type Rect = { readonly column: number; readonly row: number; readonly width: number; readonly height: number }

/** Colours: `default`, a palette index, or `#rrggbb`. */
export type ShownCell = {
  readonly text: string
  readonly width: number
  readonly foreground: string
  readonly background: string
  readonly isBold: boolean
  readonly isDim: boolean
  readonly isInverse: boolean
  readonly isUnderline: boolean
}

export type TerminalModes = {
  readonly isAlternateScreen: boolean
  readonly isBracketedPaste: boolean
  readonly mouse: string
  readonly isFocusReporting: boolean
  readonly isCursorHidden: boolean
}

export class UserTerminal {
  readonly #terminal: xtermHeadless.Terminal
  #pending = 0
  #isCursorHidden = false
  #onChange: () => void = () => {}

  constructor(columns: number, rows: number) {
    this.#terminal = new xtermHeadless.Terminal({
      cols: columns,
      rows,
      allowProposedApi: true,
      scrollback: 1000,
      logLevel: 'off',
    })
    this.#terminal.loadAddon(new UnicodeGraphemesAddon())
    // The emulator keeps the cursor's visibility to itself; returning false lets it handle the sequence as well.
    for (const [final, isHidden] of [
      ['h', false],
      ['l', true],
    ] as const) {
      this.#terminal.parser.registerCsiHandler({ prefix: '?', final }, (parameters) => {
        if (parameters.includes(25)) this.#isCursorHidden = isHidden
        return false
      })
    }
  }

  set onChange(listener: () => void) {
    this.#onChange = listener
  }

  /** What the emulator answers to queries, for the program's stdin. */
  set onReply(listener: (text: string) => void) {
    this.#terminal.onData(listener)
  }

  write(data: string | Uint8Array): void {
    this.#pending += 1
    this.#terminal.write(data, () => {
      this.#pending -= 1
      this.#onChange()
    })
  }

  /** Everything that was written is on the screen. */
  get isDrawn(): boolean {
    return this.#pending === 0
  }

  get columns(): number {
    return this.#terminal.cols
  }

  get rows(): number {
    return this.#terminal.rows
  }

  resize(columns: number, rows: number): void {
    this.#terminal.resize(columns, rows)
  }

  get modes(): TerminalModes {
    const { bracketedPasteMode, mouseTrackingMode, sendFocusMode } = this.#terminal.modes
    return {
      isAlternateScreen: this.#terminal.buffer.active.type === 'alternate',
      isBracketedPaste: bracketedPasteMode,
      mouse: mouseTrackingMode,
      isFocusReporting: sendFocusMode,
      isCursorHidden: this.#isCursorHidden,
    }
  }

  /** Visible rows, right-trimmed; with a rectangle, of that part. */
  lines(rect: Rect = this.#whole()): string[] {
    const cells = this.cells(rect)
    return cells.map((row) =>
      row
        .map(({ text, width }) => (width === 0 ? '' : text || ' '))
        .join('')
        .trimEnd(),
    )
  }

  cells({ column, row, width, height }: Rect = this.#whole()): ShownCell[][] {
    return Array.from({ length: height }, (_, y) =>
      Array.from({ length: width }, (_, x) => this.#cell(column + x, row + y)),
    )
  }

  #whole(): Rect {
    return { column: 0, row: 0, width: this.columns, height: this.rows }
  }

  #cell(column: number, row: number): ShownCell {
    const buffer = this.#terminal.buffer.active
    const cell = buffer.getLine(buffer.viewportY + row)?.getCell(column)
    if (cell === undefined) throw new Error(`no cell at column ${column}, row ${row}`)
    const colour = (isDefault: boolean, isRgb: boolean, value: number): string =>
      isDefault ? 'default' : isRgb ? `#${value.toString(16).padStart(6, '0')}` : String(value)
    return {
      text: cell.getChars(),
      width: cell.getWidth(),
      foreground: colour(cell.isFgDefault(), cell.isFgRGB(), cell.getFgColor()),
      background: colour(cell.isBgDefault(), cell.isBgRGB(), cell.getBgColor()),
      isBold: cell.isBold() !== 0,
      isDim: cell.isDim() !== 0,
      isInverse: cell.isInverse() !== 0,
      isUnderline: cell.isUnderline() !== 0,
    }
  }
}
