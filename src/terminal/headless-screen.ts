/** A screen on a headless emulator. Of remote bytes only replies (limited, to their own host) and the bell leave it. */

import { isUtf8 } from 'node:buffer'
import headless, { type IMarker as Marker, type Terminal } from '@xterm/headless'
import { hasPassed } from '../base/clock.ts'
import { textOfCells, writeRow } from './cell-row.ts'
import { BLANK, type CellGrid, WIDE_TAIL, WORDS_PER_CELL } from './cells.ts'
import { type ClusterBudget, cellText } from './clusters.ts'
import { installGraphemes } from './graphemes.ts'
import { type Backdrop, isSeenCell, type Pen } from './pen.ts'
import { openInternals, type XtermInternals } from './xterm-internals.ts'

/** Cancel, first screen, mouse modes off, soft reset (DECSTR: cursor, regions, colours, the other modes). */
const RESTART = Buffer.from('\x18\x1b[?1049l\x1b[?9;1000;1002;1003;1006;1015;1016l\x1b[!p')

/** What the string guard looks at in one go. */
const PARSE_SLICE_BYTES = 16 * 1024
/** A program that probes its terminal asks a dozen things; a flood of answers would be typed into the host. */
const REPLIES = { burst: 200, perSecond: 100 }
const BELLS = { burst: 1, perSecond: 4 }
const NEW_CLUSTERS = 4096

/** Hyperlinks are dropped: cells have none, and the emulator's list of them makes every linked character expensive. */
const OSC_HYPERLINK = 8

/** Line editors of shells switch this mode on when they begin to read (readline and fish before the prompt, zsh after it). */
const BRACKETED_PASTE = 2004

const MOST_HITS = 1000
const MOST_WRAPPED = 1000

/** Blanks, brackets and quotes end a word; `/`, `.`, `-` and `:` do not, so that paths and addresses are one. */
const WORD_ENDS = new Set(' "\'`()[]{}<>|;,'.split(''))
/** Of the emulator, since a wide character needs them. */
const MIN_COLUMNS = 2

/** A cell; `line` counts from the oldest kept line. */
export type ScreenPlace = { readonly line: number; readonly column: number }

/** Follows a line while output scrolls; -1: the line is no longer kept. */
export type LineMark = Disposable & { readonly line: number }

/** Without rows, `first` is not below `end`. */
export type RowRange = { readonly first: number; readonly end: number }

export type SearchHit = { readonly line: number; readonly column: number; readonly length: number }

/** `now` in milliseconds, for the limits on replies, bells and endless strings. */
export function createScreen(options: ScreenOptions, now: () => number = Date.now): Screen {
  return new HeadlessScreen(options, now)
}

function createTerminal(columns: number, rows: number, historyLines: number): Terminal {
  const terminal = new headless.Terminal({
    cols: Math.max(MIN_COLUMNS, columns),
    rows: Math.max(1, rows),
    scrollback: Math.max(0, historyLines),
    allowProposedApi: true,
    logLevel: 'off',
    // Else a narrower screen would lose the end of the line that the cursor is on.
    reflowCursorLine: true,
  })
  installGraphemes(terminal)
  terminal.parser.registerOscHandler(OSC_HYPERLINK, () => true)
  return terminal
}

class HeadlessScreen implements Disposable {
  readonly #terminal: Terminal
  readonly #buffers: Terminal['buffer']
  readonly #internals: XtermInternals
  readonly #handlers: ScreenOptions['handlers']
  readonly #repair = new Utf8Repair()
  readonly #guard: StringGuard
  readonly #replies: RateLimit
  readonly #bells: RateLimit
  readonly #clusters: ClusterBudget = { left: NEW_CLUSTERS }
  #columns: number
  #rows: number
  #revision = 0
  /** Of each visible row: the revision that changed it last. */
  #rowRevisions: Uint32Array
  #hasRung = false
  #isDisposed = false
  /** Where the output of the current shell begins, and where its line editor first asked for input. */
  #shellStart: Marker | undefined
  #startsBelowOutput = false
  /** The first row of the screen then. */
  #shellTop: Marker | undefined
  #editorStart: Marker | undefined
  #line = new Uint32Array(0)

  constructor(options: ScreenOptions, now: () => number) {
    this.#columns = options.columns
    this.#rows = options.rows
    this.#rowRevisions = new Uint32Array(options.rows)
    this.#handlers = options.handlers
    this.#guard = new StringGuard(now)
    this.#replies = new RateLimit({ ...REPLIES, now })
    this.#bells = new RateLimit({ ...BELLS, now })
    this.#terminal = createTerminal(options.columns, options.rows, options.historyLines)
    this.#buffers = this.#terminal.buffer
    this.#internals = openInternals(this.#terminal)
    this.#terminal.onData((reply) => {
      if (this.#replies.take()) this.#handlers.onReply(Buffer.from(reply))
    })
    this.#terminal.onBell(() => {
      this.#hasRung = true
    })
    this.#terminal.parser.registerCsiHandler({ prefix: '?', final: 'h' }, (params) => {
      if (this.#shellStart !== undefined && this.#editorStart === undefined && params.includes(BRACKETED_PASTE))
        this.#editorStart = this.#markLine()
      return false // the emulator's own handler does the rest
    })
    this.#internals.onErase((mode) => this.#noteErased(mode))
  }

  get columns(): number {
    return this.#columns
  }

  get rows(): number {
    return this.#rows
  }

  /** Counts up with every change of what `copyInto` gives: cheap to compare. */
  get revision(): number {
    return this.#revision
  }

  /** Modes that the remote program switched on and that change what typed keys, pastes and mouse events become. */
  get modes() {
    const modes = this.#terminal.modes
    return {
      isBracketedPaste: modes.bracketedPasteMode,
      isApplicationCursor: modes.applicationCursorKeysMode,
      isApplicationKeypad: modes.applicationKeypadMode,
      isAlternateScreen: this.#buffers.active.type === 'alternate',
      mouse: modes.mouseTrackingMode,
      isMouseSgr: this.#internals.isMouseSgr,
      isFocusReporting: modes.sendFocusMode,
    }
  }

  /** Relative to the visible rows, always inside them. */
  get cursor() {
    const buffer = this.#buffers.active
    const row = buffer.cursorY + buffer.baseY - buffer.viewportY
    return {
      // After the last column the emulator's cursor stands beyond it, until the next character wraps.
      column: Math.min(buffer.cursorX, this.#columns - 1),
      row: Math.min(row, this.#rows - 1),
      // False also when the view is scrolled away from it.
      isVisible: this.#internals.isCursorVisible && row < this.#rows,
      style: this.#internals.cursorStyle,
    }
  }

  /** Lines that have scrolled off the top and are kept. */
  get historyLines(): number {
    return this.#buffers.active.baseY
  }

  /** How many lines above the bottom the view is; 0 follows the output. New output keeps the view where it is. */
  get viewOffset(): number {
    const buffer = this.#buffers.active
    return buffer.baseY - buffer.viewportY
  }

  set viewOffset(offset: number) {
    const before = this.viewOffset
    this.#terminal.scrollLines(before - Math.max(0, Math.min(Math.trunc(offset), this.historyLines)))
    if (this.viewOffset !== before) this.#noteChange()
  }

  /** Parses now, on the caller's time: give it slices (4 KB). Any bytes; never throws. Only the feeder calls this. */
  parse(bytes: Uint8Array): void {
    if (this.#isDisposed) return
    const text = this.#repair.push(bytes)
    const { baseY, viewportY } = this.#buffers.active
    for (let at = 0; at < text.length; at += PARSE_SLICE_BYTES)
      this.#parseSlice(text.subarray(at, at + PARSE_SLICE_BYTES))
    const { first, last } = this.#internals.takeChangedRows()
    const now = this.#buffers.active
    if (now.baseY !== baseY || now.viewportY !== viewportY || baseY !== viewportY) this.#noteChange()
    else this.#noteChange(first, last)
    if (!this.#hasRung) return
    this.#hasRung = false
    if (this.#bells.take()) this.#handlers.onBell?.()
  }

  #noteChange(firstRow = 0, lastRow = this.#rows - 1): void {
    this.#revision++
    if (firstRow <= lastRow) this.#rowRevisions.fill(this.#revision, firstRow, lastRow + 1)
  }

  #parseSlice(text: Uint8Array): void {
    const internals = this.#internals
    let wasInString = internals.isInString
    let slice = text
    if (wasInString) {
      const { bytes, mustCancel } = this.#guard.filter(text)
      slice = bytes
      if (mustCancel) {
        internals.parse(CANCEL)
        wasInString = false
      }
    }
    internals.parse(slice)
    this.#guard.note(wasInString, internals.isInString, text.length)
  }

  /** How many lines are kept beyond the visible ones. */
  setHistory(lines: number): void {
    if (this.#isDisposed) return
    this.#terminal.options.scrollback = Math.max(0, lines)
    this.#noteChange()
  }

  resize(columns: number, rows: number): void {
    if (this.#isDisposed || (columns === this.#columns && rows === this.#rows)) return
    this.#columns = columns
    this.#rows = rows
    this.#terminal.resize(Math.max(MIN_COLUMNS, columns), Math.max(1, rows))
    this.#rowRevisions = new Uint32Array(rows)
    this.#noteChange()
  }

  /**
   * Copies the visible rows, clipped; a wide character that is cut becomes blank, and so does what lies beyond the screen.
   * `drawn`: the revision that the target shows in this place; then only the rows that changed since are copied.
   * Returns from which to which row it copied, counted from `row`; `end` is not included.
   */
  copyInto(target: CellGrid, column: number, row: number, width: number, height: number, drawn = -1): RowRange {
    const visibleWidth = Math.min(width, target.columns - column)
    const visibleHeight = Math.min(height, target.rows - row)
    let first = visibleHeight
    let end = 0
    if (visibleWidth <= 0) return { first, end }
    const top = this.#buffers.active.viewportY
    // A screen of one column is emulated with two: the second one is not shown.
    const cells = Math.min(visibleWidth, this.#columns)
    for (let y = 0; y < visibleHeight; y++) {
      if ((this.#rowRevisions[y] ?? 0) <= drawn) continue
      first = Math.min(first, y)
      end = y + 1
      const source = y < this.#rows && !this.#isDisposed ? this.#internals.row(top + y) : undefined
      const offset = ((row + y) * target.columns + column) * WORDS_PER_CELL
      writeRow(source, cells, target.words, offset, this.#clusters)
      if (cells < visibleWidth) {
        writeRow(undefined, visibleWidth - cells, target.words, offset + cells * WORDS_PER_CELL)
      }
    }
    return { first, end }
  }

  /** Right-trimmed: for folding, comparing and tests. */
  visibleText(): string[] {
    const top = this.#buffers.active.viewportY
    return Array.from({ length: this.#rows }, (_, y) => this.#textOf(top + y))
  }

  /** The text before the cursor, from the start of its line, also where that is wrapped; at most one space at its end. */
  lineToCursor(): string {
    const { baseY, cursorX, cursorY } = this.#buffers.active
    const last = baseY + cursorY
    const columns = Math.min(cursorX, this.#columns)
    const cells = this.#cellsOf(last)
    const isAfterBlank = columns > 0 && cells[(columns - 1) * WORDS_PER_CELL] === BLANK
    let text = textOfCells(cells, 0, columns) + (isAfterBlank ? ' ' : '')
    for (let line = last; line > baseY && this.#isWrapped(line); line--) text = this.#wholeText(line - 1) + text
    return text
  }

  /** The newest hits, oldest first, none overlapping; `line` counts from the oldest kept line. Without a capital, case is ignored. */
  search(needle: string): SearchHit[] {
    if (needle === '') return []
    const fold = needle === foldCase(needle) ? foldCase : (text: string) => text
    const groups: SearchHit[][] = []
    let found = 0
    // Newest first, so that the limit keeps what is near.
    for (let last = this.#buffers.active.length - 1; last >= 0 && found < MOST_HITS; ) {
      let first = last
      while (first > 0 && this.#isWrapped(first)) first--
      const hits = this.#searchLogicalLine(first, last, needle, fold)
      if (hits.length > 0) groups.push(hits)
      found += hits.length
      last = first - 1
    }
    return groups.reverse().flat().slice(-MOST_HITS)
  }

  #searchLogicalLine(first: number, last: number, needle: string, fold: (text: string) => string): SearchHit[] {
    let text = ''
    const starts: number[] = []
    for (let line = first; line <= last; line++) {
      starts.push(text.length)
      text += this.#isWrapped(line + 1) ? this.#wholeText(line) : this.#textOf(line)
    }
    const locate = (at: number) => {
      const row = starts.findLastIndex((start) => start <= at)
      const columns = this.#columnsOf(first + row)
      const column = columns[at - (starts[row] ?? 0)] ?? 0
      // The code units of one cell share its column.
      return { line: first + row, column, nextColumn: columns.find((next) => next > column) ?? column + 1 }
    }
    const hits: SearchHit[] = []
    const haystack = fold(text)
    for (let at = haystack.indexOf(needle); at >= 0; at = haystack.indexOf(needle, at + needle.length)) {
      const { line, column } = locate(at)
      const end = locate(at + needle.length - 1)
      // A hit over several rows is as long as if the rows stood side by side.
      hits.push({ line, column, length: (end.line - line) * this.#columns + end.nextColumn - column })
    }
    return hits
  }

  /** Both cells included; rows that one line was wrapped into are joined, and blanks at the end of a line are left out. */
  textBetween(from: ScreenPlace, to: ScreenPlace): string {
    let text = ''
    const last = Math.min(to.line, this.#buffers.active.length - 1)
    for (let line = Math.max(0, from.line); line <= last; line++) {
      const start = line === from.line ? from.column : 0
      const end = line === to.line ? to.column + 1 : this.#columns
      const continues = line < last && this.#isWrapped(line + 1)
      const row = textOfCells(this.#cellsOf(line), start * WORDS_PER_CELL, Math.max(0, end - start))
      text += row + (continues ? ' '.repeat(this.#blanksAtEnd(line)) : line < last ? '\n' : '')
    }
    return text
  }

  /** The first and the last cell of the word at a cell: what lies between blanks and brackets, also over wrapped rows. */
  wordAt(place: ScreenPlace): readonly [ScreenPlace, ScreenPlace] {
    if (!isWordCell(this.#cellsOf(place.line), place.column)) return [place, place]
    const [first, last] = this.lineAround(place.line)
    return [this.#wordEnd(place, -1, first), this.#wordEnd(place, 1, last)]
  }

  /** The last cell of a word in this direction, down or up to this row. */
  #wordEnd({ line, column }: ScreenPlace, by: 1 | -1, lastRow: number): ScreenPlace {
    const [start, edge] = by > 0 ? [0, this.#columns - 1] : [this.#columns - 1, 0]
    const cells = this.#cellsOf(line)
    let end = column
    while (end !== edge && isWordCell(cells, end + by)) end += by
    const continues = end === edge && line !== lastRow && isWordCell(this.#cellsOf(line + by), start)
    return continues ? this.#wordEnd({ line: line + by, column: start }, by, lastRow) : { line, column: end }
  }

  /** The first and last row of the line that this row is part of, at most `MOST_WRAPPED` rows away. */
  lineAround(row: number): readonly [number, number] {
    let [first, last] = [row, row]
    while (first > row - MOST_WRAPPED && this.#isWrapped(first)) first--
    while (last < row + MOST_WRAPPED && this.#isWrapped(last + 1)) last++
    return [Math.max(0, first), last]
  }

  /** Undefined on the alternate screen, whose lines do not scroll into a history. */
  mark(line: number): LineMark | undefined {
    const buffer = this.#buffers.active
    const marker = this.#terminal.registerMarker(line - buffer.baseY - buffer.cursorY)
    return (
      marker && {
        get line() {
          return marker.isDisposed ? -1 : marker.line
        },
        [Symbol.dispose]: () => marker.dispose(),
      }
    )
  }

  /** A new shell begins: modes, colours and cut sequences are gone, the text stays, and the cursor stands below it and a note. */
  restart(note?: string): void {
    if (this.#isDisposed) return
    this.#repair.reset()
    const isFullScreen = this.#buffers.active.type === 'alternate'
    this.#internals.parse(RESTART)
    let lastRow = this.#rows - 1
    while (lastRow >= 0 && this.#textOf(this.#buffers.active.baseY + lastRow) === '') lastRow--
    this.#internals.parse(Buffer.from(lastRow < 0 ? '\x1b[H' : `\x1b[${lastRow + 1}H\r\n`))
    if (note !== undefined && (isFullScreen || lastRow >= 0))
      this.#internals.parse(Buffer.from(`\x1b[2m${note}\x1b[0m\r\n`))
    this.forgetLogin()
    this.#shellStart = this.#markLine()
    this.#startsBelowOutput = (this.#shellStart?.line ?? 0) > 0
    this.#shellTop = this.#terminal.registerMarker(-this.#buffers.active.cursorY)
    this.#noteChange()
  }

  /** From now on there is no `loginPrompt` until the next `restart`. */
  forgetLogin(): void {
    this.#shellStart?.dispose()
    this.#shellTop?.dispose()
    this.#editorStart?.dispose()
    this.#shellStart = undefined
    this.#editorStart = undefined
  }

  /**
   * The text left of the cursor, which may be the first prompt of the current shell. Undefined: the cursor is at the
   * beginning of a line, or a full-screen program runs. Asked after all output until there is a prompt, so it reads visible rows only.
   */
  loginPrompt(): LoginPrompt | undefined {
    const start = this.#shellStart
    const buffer = this.#buffers.active
    if (start === undefined || buffer.type === 'alternate' || buffer.cursorX === 0 || !this.#internals.isAtGround)
      return undefined
    return {
      text: this.lineToCursor(),
      isLineEditor: this.#editorStart !== undefined,
      rowsAbove: Math.max(0, this.#promptLine() - buffer.baseY),
      isFirstShell: start.isDisposed || start.line === 0,
    }
  }

  /** What the present shell has printed above its prompt: at most `mostLines` lines, the newest. */
  loginLines(mostLines: number): string[] {
    const start = this.#shellStart
    if (start === undefined) return []
    const first = Math.max(start.isDisposed ? 0 : start.line, 0)
    const lines: string[] = []
    for (let line = this.#promptLine() - 1; line >= first && lines.length < mostLines; line--) {
      const begin = Math.max(first, this.#startOfLine(line))
      let text = ''
      for (let row = begin; row <= line; row++) text += row < line ? this.#wholeText(row) : this.#textOf(row)
      lines.push(text)
      line = begin
    }
    return lines.reverse()
  }

  /** The line that the cursor is on, up to the cursor, as far as it is on the screen. */
  textBeforeCursor(): string {
    const buffer = this.#buffers.active
    const row = buffer.baseY + buffer.cursorY
    let text = ''
    for (let line = this.#startOfLine(row, buffer.baseY); line < row; line++) text += this.#wholeText(line)
    const last = textOfCells(this.#cellsOf(row), 0, buffer.cursorX)
    return text + last.padEnd(Math.min(buffer.cursorX, this.#columns))
  }

  /** The same text, with blanks in place of characters that are not visible: concealed, or in the colour of their background. */
  seenBeforeCursor(backdrop: Backdrop): string {
    const buffer = this.#buffers.active
    const row = buffer.baseY + buffer.cursorY
    let text = ''
    for (let line = this.#startOfLine(row, buffer.baseY); line <= row; line++) {
      const columns = line < row ? this.#columns : Math.min(buffer.cursorX, this.#columns)
      const cells = this.#cellsOf(line)
      for (let at = 0; at < columns * WORDS_PER_CELL; at += WORDS_PER_CELL)
        if (cells[at] !== BLANK && !isSeenCell(cells, at, backdrop)) cells[at] = BLANK
      text += textOfCells(cells, 0, columns).padEnd(columns)
    }
    return text
  }

  /** What the next character is printed with; `saved`: what it will be printed with once the program restores the cursor. */
  get pen(): { readonly now: Pen; readonly saved: Pen } {
    return this.#internals.pen
  }

  /** Where the next character is printed, from 0; `column` is that of the terminal's width where it wraps. Wherever the view is. */
  get printPlace(): { readonly row: number; readonly column: number } {
    const { cursorX, cursorY } = this.#buffers.active
    return { row: cursorY, column: cursorX }
  }

  /** Modes, margins and character set are those of a new terminal, so that text is shown as it is printed. */
  get isOrdinary(): boolean {
    const { insertMode, originMode, wraparoundMode, reverseWraparoundMode } = this.#terminal.modes
    const isOrdinaryMode = wraparoundMode && !insertMode && !originMode && !reverseWraparoundMode
    const { scrollsWhole, isAscii, isAtGround } = this.#internals
    return isOrdinaryMode && scrollsWhole && isAscii && isAtGround && this.#terminal.options.convertEol !== true
  }

  /** Tab stops are those of a new terminal. */
  get hasPlainTabs(): boolean {
    return this.#internals.hasPlainTabs
  }

  /** All kept lines down to the last one with text, those of several rows joined. */
  allText(): string[] {
    const lines: string[] = []
    for (let row = 0; row < this.#buffers.active.length; row++) {
      const text = this.#isWrapped(row + 1) ? this.#wholeText(row) : this.#textOf(row)
      if (row > 0 && this.#isWrapped(row)) lines.push((lines.pop() ?? '') + text)
      else lines.push(text)
    }
    return lines.slice(0, lines.findLastIndex((line) => line !== '') + 1)
  }

  /** The uppermost rows leave the screen as if output had pushed them out: they can be scrolled back to. */
  scrollOut(rows: number): void {
    const { isAtGround, scrollsWhole } = this.#internals
    if (this.#isDisposed || rows <= 0 || rows > this.#buffers.active.cursorY || !isAtGround || !scrollsWhole) return
    this.#internals.parse(Buffer.from(`\x1b7\x1b[m\x1b[${this.#rows};1H${'\n'.repeat(rows)}\x1b8\x1b[${rows}A`))
    this.#noteChange()
  }

  /** Takes out what the present shell has printed above its prompt, so that what is above it stays in view. False: it cannot. */
  removeLogin(): boolean {
    const start = this.#shellStart
    const { isAtGround, scrollsWhole } = this.#internals
    if (this.#isDisposed || start === undefined || start.isDisposed || this.viewOffset > 0) return false
    if (this.#buffers.active.type === 'alternate' || !isAtGround || !scrollsWhole) return false
    const { baseY } = this.#buffers.active
    const end = this.#promptLine()
    const count = end - start.line
    if (count <= 0) return false
    // What it has pushed off the screen comes back; below the prompt there are blank rows again.
    const top = this.#shellTop
    const pushed = top === undefined || top.isDisposed ? baseY : Math.max(0, baseY - top.line)
    const blank = Math.max(0, count - pushed)
    const firstBlank = end - blank - baseY + 1
    if (blank > 0)
      this.#internals.parse(Buffer.from(`\x1b7\x1b[m\x1b[${firstBlank};1H\x1b[${blank}M\x1b8\x1b[${blank}A`))
    this.#internals.removeLines(start.line, count - blank)
    this.#noteChange()
    return true
  }

  [Symbol.dispose](): void {
    if (this.#isDisposed) return
    this.#isDisposed = true
    this.#noteChange()
    this.#terminal.dispose()
  }

  /** Marks the first row of the line that the cursor is on. */
  #markLine(): Marker | undefined {
    const { baseY, cursorY } = this.#buffers.active
    return this.#terminal.registerMarker(this.#startOfLine(baseY + cursorY) - baseY - cursorY)
  }

  /** Where the text begins that the cursor stands behind, which a line editor may have begun some lines above. */
  #promptLine(): number {
    const { baseY, cursorY } = this.#buffers.active
    const cursorLine = this.#startOfLine(baseY + cursorY, baseY)
    const editor = this.#editorStart
    return editor && !editor.isDisposed ? Math.min(editor.line, cursorLine) : cursorLine
  }

  /** Erased rows have lost their markers. A shell that clears the screen still begins below what earlier shells have printed. */
  #noteErased(mode: number): void {
    const start = this.#shellStart
    const buffer = this.#buffers.active
    if (buffer.type === 'alternate' || start === undefined || !start.isDisposed || !this.#startsBelowOutput) return
    this.#shellStart = this.#terminal.registerMarker(mode === 0 ? 0 : -buffer.cursorY)
    if (this.#shellTop?.isDisposed) this.#shellTop = this.#terminal.registerMarker(-buffer.cursorY)
  }

  #startOfLine(line: number, first = 0): number {
    let start = line
    while (start > first && this.#isWrapped(start)) start--
    return start
  }

  #isWrapped(line: number): boolean {
    return this.#buffers.active.getLine(line)?.isWrapped ?? false
  }

  /** The row as cells in `#line`; valid until the next call. */
  #cellsOf(line: number): Uint32Array {
    const words = this.#columns * WORDS_PER_CELL
    if (this.#line.length !== words) this.#line = new Uint32Array(words)
    writeRow(this.#internals.row(line), this.#columns, this.#line, 0, this.#clusters)
    return this.#line
  }

  #textOf(line: number): string {
    return textOfCells(this.#cellsOf(line), 0, this.#columns)
  }

  /** The text of a row that the next one continues: with its spaces, without the cell that a wide character left empty. */
  #wholeText(line: number): string {
    const text = textOfCells(this.#cellsOf(line), 0, this.#columns)
    return text + ' '.repeat(this.#blanksAtEnd(line))
  }

  #blanksAtEnd(line: number): number {
    const cells = this.#cellsOf(line)
    let missing = 0
    while (missing < this.#columns && cells[(this.#columns - 1 - missing) * WORDS_PER_CELL] === BLANK) missing++
    const next = this.#cellsOf(line + 1)
    const isWideNext = this.#columns > 1 && next[0] !== BLANK && next[WORDS_PER_CELL] === WIDE_TAIL
    return isWideNext ? Math.max(0, missing - 1) : missing
  }

  #columnsOf(line: number): number[] {
    const cells = this.#cellsOf(line)
    const columns: number[] = []
    for (let column = 0; column < this.#columns; column++) {
      const length = cellText(cells[column * WORDS_PER_CELL] as number).length
      for (let unit = 0; unit < length; unit++) columns.push(column)
    }
    columns.push(this.#columns)
    return columns
  }
}

function isWordCell(cells: Uint32Array, column: number): boolean {
  const word = cells[column * WORDS_PER_CELL]
  return word === WIDE_TAIL || (word !== undefined && !WORD_ENDS.has(cellText(word)))
}

export type Screen = Pick<HeadlessScreen, keyof HeadlessScreen>
export type ScreenModes = Readonly<Screen['modes']>

export type LoginPrompt = {
  /** Left of the cursor, on its row. */
  readonly text: string
  /** A line editor is reading, as in a shell, so this is hardly a question of another program. */
  readonly isLineEditor: boolean
  /** Of the screen, above the prompt. */
  readonly rowsAbove: number
  /** There is no output of an earlier shell above. */
  readonly isFirstShell: boolean
}

type ScreenOptions = {
  columns: number
  rows: number
  historyLines: number
  handlers: {
    /** The emulator answers a query of the remote program: bytes for that host only. Bounded per second. */
    onReply(bytes: Uint8Array): void
    /** At most a few times a second. */
    onBell?(): void
  }
}

/** Lower case of the same length, so that places in it are places in the text. */
function foldCase(text: string): string {
  const lower = text.toLowerCase()
  if (lower.length === text.length) return lower
  return Array.from(text, (character) => {
    const folded = character.toLowerCase()
    return folded.length === character.length ? folded : character
  }).join('')
}

/** Makes any byte stream valid UTF-8: a split character waits until it is whole. Valid text passes untouched and uncopied. */
class Utf8Repair {
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  /** The decoder may hold the beginning of a character back. */
  #mayHold = false

  /** The valid text that is whole now. */
  push(chunk: Uint8Array): Uint8Array {
    const last = chunk.at(-1)
    if (last === undefined || (!this.#mayHold && isUtf8(chunk))) return chunk
    this.#mayHold = last >= 0x80
    return Buffer.from(this.#decoder.decode(chunk, { stream: true }))
  }

  /** Forgets what is held back. */
  reset(): void {
    this.#decoder.decode()
    this.#mayHold = false
  }
}

/** The longest that anything we understand (a title) could need, and then some. */
const KEPT_BYTES = 16 * 1024
/** Images go into the megabytes. */
const MAX_STRING_BYTES = 8 * 1024 * 1024
const MAX_STRING_MS = 5000

const ESC = 0x1b
const BEL = 0x07
const CAN = 0x18
const SUB = 0x1a

const CANCEL = Uint8Array.of(CAN)

/** Bounds strings (OSC, DCS, APC, PM, SOS), which may never end: most of one is skipped, and it is cancelled in time. */
class StringGuard {
  readonly #now: () => number
  #bytes = 0
  #since = 0

  constructor(now: () => number) {
    this.#now = now
  }

  /** What of the next bytes to parse; call it while the parser is inside a string. `cancel`: send CAN first. */
  filter(bytes: Uint8Array): { readonly bytes: Uint8Array; readonly mustCancel: boolean } {
    if (this.#bytes > MAX_STRING_BYTES || hasPassed(this.#since, MAX_STRING_MS, this.#now())) {
      return { bytes, mustCancel: true }
    }
    if (this.#bytes <= KEPT_BYTES) return { bytes, mustCancel: false }
    const end = bytes.findIndex((byte) => byte === ESC || byte === BEL || byte === CAN || byte === SUB)
    return { bytes: end < 0 ? bytes.subarray(0, 0) : bytes.subarray(end), mustCancel: false }
  }

  /** After each slice: whether the parser is inside a string now, and how long the slice was. */
  note(wasInString: boolean, isInString: boolean, sliceBytes: number): void {
    if (!isInString) {
      this.#bytes = 0
    } else if (wasInString) {
      this.#bytes += sliceBytes
    } else {
      this.#bytes = 1
      this.#since = this.#now()
    }
  }
}

/** A budget that refills with time: so much at once, so much a second. */
class RateLimit {
  readonly #options: { readonly burst: number; readonly perSecond: number; readonly now: () => number }
  #left: number
  #at: number

  /** `now` in milliseconds. */
  constructor(options: { readonly burst: number; readonly perSecond: number; readonly now: () => number }) {
    this.#options = options
    this.#left = options.burst
    this.#at = options.now()
  }

  /** Takes `amount` if there is that much, else nothing. */
  take(amount = 1): boolean {
    const { burst, perSecond } = this.#options
    const now = this.#options.now()
    // A clock that was set back refills nothing.
    this.#left = Math.min(burst, this.#left + (Math.max(0, now - this.#at) / 1000) * perSecond)
    this.#at = now
    if (this.#left < amount) return false
    this.#left -= amount
    return true
  }
}
