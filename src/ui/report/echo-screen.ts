/**
 * What a host has printed since the first key of a line, as far as it still stands and can be seen. This is the part of a terminal that
 * a line needs, since an emulator for each line and host would be too slow. What stood there before is blank. After a control sequence
 * that is not modelled, nothing stands. Pure.
 */
import { textWidth } from '../../base/text-width.ts'
import { type Backdrop, changedPen, isSeen, type Pen, PLAIN_PEN } from '../../terminal/pen.ts'

/** How a host's terminal is at the first key of a line. */
export type Look = {
  /** The text left of the cursor, with blanks in place of characters that are not visible. */
  readonly seen: string
  readonly pen: Pen
  /** It comes back with the saved cursor. */
  readonly savedPen: Pen
  readonly backdrop: Backdrop
  /** Of the terminal, and where its cursor is, from 0; `column` is that of the terminal's width where the next character wraps. */
  readonly size?: { readonly rows: number; readonly row: number; readonly column: number }
  /** Modes, character sets and margins are those of a new terminal. */
  readonly isOrdinary?: boolean
  /** So are tab stops; else it is not known where a tabulator goes. */
  readonly hasPlainTabs?: boolean
}

export const PLAIN_LOOK: Look = { seen: '', pen: PLAIN_PEN, savedPen: PLAIN_PEN, backdrop: undefined }

/** Cells; a wide character is followed by ''. `wraps`: the row below continues it. */
type Row = { cells: string[]; wraps: boolean }

type Place = { readonly x: number; readonly y: number }

const MOST_ROWS = 500
const TAB_COLUMNS = 8
const PLAIN_PARAMETERS = /^[\d;:]*$/
/** Their width depends on what stands before them. */
const JOINS = /[\p{M}\p{Cf}\p{Emoji_Modifier}\p{RI}\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]/u
const BEGINS = /[\p{RI}\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]/u
const MOST_JOINED = 8
const ACCENT = /[\u0300-\u036f]/u
const VISIBLE = /\S/u

/** Private modes that change where or whether text is shown; others do not. */
const SCREEN_MODES: ReadonlySet<number> = new Set([47, 1047, 1049])
const SAVES_CURSOR: ReadonlySet<number> = new Set([1048, 1049])
const STRANGE_MODES: ReadonlySet<number> = new Set([3, 6, 45, 69, 80])
const WRAPS = 7
/** Insert, and a line feed that returns. */
const STRANGE_ANSI_MODES: ReadonlySet<number> = new Set([4, 20])
/** Reports, cursor shapes, windows, keyboards. */
const HARMLESS_FINALS = new Set('cnpqtuxim')
const HARMLESS_ESCAPES = /^\x1b(?:[\]P^_X][\s\S]+|[()*+]B|[=>\\]|%[@G])$/

export class EchoScreen {
  #columns: number
  #height: number
  #look: Look
  #isSeen: boolean
  readonly #rows = new Map<number, Row>()
  #x: number
  #y = 0
  /** Of the screen's uppermost row. */
  #top: number
  /** The column of the cursor at the first key; 0 once the line was drawn again. */
  #start: number
  #saved: Place | undefined
  /** The cursor's row is the first of its line, so the cursor keeps its column when the terminal gets another width. */
  #beginsLine: boolean
  /** Of all rows it is known whether they wrap. */
  #isWhole = true
  /** Not after characters whose width is not known, nor after a sequence that may have moved the cursor. */
  #isColumnSure = true
  /** The most columns by which the cursor may be further right than `#x`, because of characters whose width is not known. */
  #mostBeyond = 0
  #isRowSure = true
  /** A mode or the like that is not modelled: nothing that is printed counts. */
  #isStrange: boolean
  #isAlternate = false

  constructor(columns: number, before: string, look: Look) {
    this.#columns = Math.max(2, columns)
    this.#height = Math.max(1, look.size?.rows ?? 24)
    this.#look = look
    this.#isSeen = isSeen(look.pen, look.backdrop)
    this.#isStrange = look.isOrdinary === false
    const { length } = before
    this.#x = look.size?.column ?? (length > 0 && length % this.#columns === 0 ? this.#columns : length % this.#columns)
    this.#top = -(look.size?.row ?? this.#height - 1)
    // A line editor may draw the line on the left of its indentation.
    this.#start = length > 0 && before.trim() === '' ? 0 : this.#x
    this.#beginsLine = textWidth(before) === this.#x
  }

  get columns(): number {
    return this.#columns
  }

  /**
   * Rows that fit and are not wrapped stay as they are. Where wrapped rows go depends on text that is not known here: then nothing
   * stands, and it returns true.
   */
  resize(columns: number, rows: number): boolean {
    if (columns === this.#columns && rows === this.#height) return false
    // Where the cursor of a full-screen program is then is up to the terminal.
    if (this.#isAlternate) this.#beStrange()
    const most = Math.min(this.#columns, columns)
    const isWhole = ({ cells, wraps }: Row): boolean => !wraps && cells.length <= most
    const isUnwrapped = this.#beginsLine && this.#x < most && [...this.#rows.values()].every(isWhole)
    // A terminal with fewer rows may drop those below the cursor.
    for (const y of [...this.#rows.keys()]) if (y > this.#y) this.#rows.delete(y)
    const isLost = !this.#isColumnSure || (columns !== this.#columns && !isUnwrapped)
    if (isLost) this.#lose()
    this.#columns = Math.max(2, columns)
    this.#height = Math.max(1, rows)
    this.#leaveMargin()
    this.#isRowSure = false
    this.#saved = undefined
    // The most that the screen can hold above the cursor.
    this.#top = this.#y - this.#height + 1
    return isLost
  }

  /** As it is now. */
  get look(): Look {
    const { size: _, ...now } = this.#look
    const look = { ...now, isOrdinary: !this.#isStrange }
    if (!this.#isColumnSure || !this.#isRowSure) return look
    return { ...look, size: { rows: this.#height, row: this.#y - this.#top, column: this.#x } }
  }

  /** What is printed now can be seen. */
  get isSeen(): boolean {
    return this.#isSeen && !this.#isStrange
  }

  /** The number of the cursor's row; it stays that of its text. */
  get row(): number {
    return this.#y
  }

  /** The cursor is at the start of a row on which nothing stands. */
  get isNew(): boolean {
    return this.#x === 0 && this.#isColumnSure && this.#start === 0 && !this.#rows.has(this.#y)
  }

  /** The line of the cursor over its wrapped rows, without what stood there before the first key. */
  get text(): string {
    return this.textAt(this.#y)
  }

  textAt(row: number): string {
    const [first, last] = this.#lineAround(row)
    return this.#textBetween(first, last, this.#columns).trimEnd()
  }

  /** The row was scrolled so far away that it is not kept. */
  hasDropped(row: number): boolean {
    return row <= this.#y - MOST_ROWS
  }

  get textBeforeCursor(): string {
    const [first] = this.#lineAround(this.#y)
    return this.#textBetween(first, this.#y, this.#x)
  }

  /** All that stands, row by row. */
  get allText(): string {
    return Array.from(this.#rows.values(), ({ cells }) => cells.join('')).join('\n')
  }

  /** A line feed would leave the line; blanks that were printed below are part of it. */
  get isAtLastRow(): boolean {
    const [, last] = this.#lineAround(this.#y)
    for (let y = this.#y + 1; y <= last; y++) if (this.#rows.get(y)?.cells.length) return false
    return true
  }

  /** No character fits into the cursor's row, or only a narrow one. */
  get isRowFull(): boolean {
    return this.#isColumnSure && (this.#rows.get(this.#y)?.cells.length ?? 0) >= this.#columns - 1
  }

  /** `continues`: the row below is part of the line. */
  lineFeed(continues = false): void {
    const isLast = this.isAtLastRow
    this.#leaveMargin()
    if (continues) this.#rowAt(this.#y).wraps = true
    this.#down()
    this.#beginsLine = !continues && this.#isWhole
    if (continues) return
    if (!isLast) {
      if (!this.#isColumnSure) this.#forgetRows()
      return
    }
    this.#start = 0
    if (!this.#isColumnSure) this.#rows.delete(this.#y)
    const above = this.#rows.get(this.#y - 1)
    if (above) above.wraps = false
  }

  /** A whole row of narrow characters, with carriage return and line feed. */
  printRow(text: string): void {
    if (text !== '') this.#rows.set(this.#y, { cells: this.isSeen ? Array.from(text) : [], wraps: false })
    this.#x = 0
    this.lineFeed()
  }

  /** Narrow characters fit in a row as they are. */
  fits(text: string): boolean {
    return text.length <= this.#columns && textWidth(text) === text.length && !JOINS.test(text)
  }

  /** One character or sequence; of a control sequence its parameters and its final letter. */
  print(token: string, parameters = '', final = ''): void {
    if (final !== '') this.#control(token, parameters, final)
    else if (token.startsWith('\x1b')) this.#escape(token)
    else if (token >= ' ') {
      if (token !== '\x7f') this.#write(token)
    } else if (token === '\r') this.#toColumn(0)
    else if (token === '\b') this.#move(-1)
    else if (token === '\t') {
      if (this.#look.hasPlainTabs === false) this.#lose()
      else if (this.#x < this.#columns) this.#move(TAB_COLUMNS - (this.#x % TAB_COLUMNS))
    } else if (token === '\v' || token === '\f') this.#lose()
    else if (token === '\x0e') this.#beStrange()
  }

  #write(character: string): void {
    if (this.#isStrange) return
    if (character > '~' && JOINS.test(character)) return this.#join(character)
    const width = character > '~' ? Math.max(1, textWidth(character)) : 1
    if (!this.#isColumnSure && this.#isRowSure && this.#x + this.#mostBeyond + width > this.#columns) this.#lose()
    if (this.#x + width > this.#columns) {
      if (!this.#isColumnSure) this.#lose()
      const left = this.#rowAt(this.#y)
      // A wide character leaves the last cell empty.
      this.#free(left.cells, this.#x, 0)
      while (left.cells.length < this.#x) left.cells.push(' ')
      left.cells.length = this.#x
      left.wraps = true
      this.#down()
      this.#beginsLine = false
      this.#x = 0
    }
    const { cells } = this.#rowAt(this.#y)
    this.#free(cells, this.#x, width)
    while (cells.length < this.#x) cells.push(' ')
    cells[this.#x] = this.#isSeen ? character : ' '
    if (width === 2) cells[this.#x + 1] = this.#isSeen ? '' : ' '
    this.#x += width
  }

  /** It goes into the cell before it, may change its width, or begins a cell of its own. */
  #join(character: string): void {
    const { cells } = this.#rowAt(this.#y)
    const at = this.#x - (cells[this.#x - 1] === '' ? 2 : 1)
    const before = cells[at] ?? ' '
    const isJoined = isVisible(before) && before.length < MOST_JOINED && !BEGINS.test(character)
    if (isJoined) cells[at] = before + character
    else this.#loseLine()
    if (isJoined && ACCENT.test(character)) return
    this.#isColumnSure = false
    this.#mostBeyond += 2
    // What is right of it may be overwritten.
    const [, last] = this.#lineAround(this.#y)
    for (let y = this.#y + 1; y <= last; y++) this.#rows.delete(y)
    cells.length = Math.min(cells.length, this.#x)
    this.#rowAt(this.#y).wraps = false
    // It may have gone into the row below.
    if (this.#isRowSure && this.#x + this.#mostBeyond > this.#columns) this.#lose()
  }

  #control(token: string, parameters: string, final: string): void {
    const isPlain = token === `\x1b[${parameters}${final}`
    if (final === 'm') return isPlain ? this.#take(changedPen(this.#look.pen, parameters)) : undefined
    if (token === '\x1b[!p') {
      this.#saved = undefined
      return this.#take(PLAIN_PEN, PLAIN_PEN)
    }
    if (final === 'h' || final === 'l') return isPlain ? this.#setModes(parameters, final === 'h') : this.#lose()
    const isErase = (final === 'J' || final === 'K') && parameters.startsWith('?')
    const values = isErase ? parameters.slice(1) : parameters
    if (!isPlain || !PLAIN_PARAMETERS.test(values)) return HARMLESS_FINALS.has(final) ? undefined : this.#lose()
    const [first = 0, second = 0] = values.split(';').map((each) => Number.parseInt(each, 10) || 0)
    if (final === 's') return this.#save()
    if (final === 'u') return this.#restore()
    if (HARMLESS_FINALS.has(final)) return
    const count = Math.min(Math.max(first, 1), 4096)
    if (final === 'C' || final === 'a') this.#move(count)
    else if (final === 'D') this.#move(-count)
    else if (final === 'A') this.#moveRows(-count)
    else if (final === 'B' || final === 'e') this.#moveRows(count)
    else if (final === 'G' || final === '`') this.#toColumn(count - 1)
    else if (final === 'H' || final === 'f') this.#goTo(count - 1, Math.max(second, 1) - 1)
    else if (final === 'K') this.#eraseInLine(first)
    else if (final === 'J') this.#eraseInScreen(first)
    else if (final === 'X' || final === 'P' || final === '@') this.#shift(final, count)
    else {
      this.#lose()
      if (final === 'r' || final === 'g') this.#beStrange()
    }
  }

  #escape(token: string): void {
    if (token === '\x1b7') this.#save()
    else if (token === '\x1b8') this.#restore()
    else if (token === '\x1bc') {
      this.#lose()
      this.#take(PLAIN_PEN, PLAIN_PEN)
    } else if (!HARMLESS_ESCAPES.test(token)) {
      this.#lose()
      // It may be the beginning of a sequence that is not known, a character set or a tab stop.
      this.#beStrange()
    }
  }

  #setModes(parameters: string, isSet: boolean): void {
    const isPrivate = parameters.startsWith('?')
    for (const each of parameters.replace(/^\?/, '').split(';')) {
      const mode = Number.parseInt(each, 10)
      if (!isPrivate) {
        if (isSet && STRANGE_ANSI_MODES.has(mode)) this.#beStrange()
        continue
      }
      if (SAVES_CURSOR.has(mode) && isSet) this.#save()
      if (SCREEN_MODES.has(mode)) {
        this.#lose()
        this.#isAlternate = isSet
      }
      if (SAVES_CURSOR.has(mode) && !isSet) this.#restore()
      if (mode === WRAPS ? !isSet : isSet && STRANGE_MODES.has(mode)) this.#beStrange()
    }
  }

  #save(): void {
    this.#saved = this.#isColumnSure && this.#isRowSure ? { x: this.#x, y: this.#y } : undefined
    this.#take(this.#look.pen, this.#look.pen)
  }

  #restore(): void {
    const saved = this.#saved
    // A place that has left the screen is no place of it.
    if (saved === undefined || saved.y < this.#top) this.#lose()
    else {
      this.#toColumn(saved.x)
      this.#y = saved.y
      this.#beginsLine = false
    }
    this.#take(this.#look.savedPen)
  }

  /** What stands where is no longer known, nor where the cursor is. */
  #lose(): void {
    this.#forgetRows()
    this.#start = 0
    this.#saved = undefined
    this.#beginsLine = false
    this.#isColumnSure = false
    this.#isRowSure = false
  }

  #beStrange(): void {
    this.#lose()
    this.#isStrange = true
  }

  #forgetRows(): void {
    this.#rows.clear()
    this.#isWhole = false
  }

  #loseLine(): void {
    this.#beginsLine = false
    this.#isWhole = false
    const [first, last] = this.#lineAround(this.#y)
    for (let y = first; y <= last; y++) this.#rows.delete(y)
  }

  /** The cursor waits behind the last column until it moves. */
  #leaveMargin(): void {
    if (this.#x >= this.#columns) this.#x = this.#columns - 1
  }

  #move(by: number): void {
    this.#leaveMargin()
    if (!this.#isColumnSure) this.#loseLine()
    this.#x = Math.max(0, Math.min(this.#columns - 1, this.#x + by))
  }

  #moveRows(by: number): void {
    this.#leaveMargin()
    if (!this.#isRowSure || !this.#isColumnSure) this.#forgetRows()
    this.#beginsLine = false
    this.#y = Math.max(this.#top, Math.min(this.#top + this.#height - 1, this.#y + by))
  }

  #toColumn(x: number): void {
    if (!this.#isColumnSure) this.#loseLine()
    this.#isColumnSure = true
    this.#mostBeyond = 0
    this.#x = Math.min(this.#columns - 1, x)
  }

  #goTo(row: number, column: number): void {
    this.#toColumn(column)
    if (!this.#isRowSure) this.#forgetRows()
    this.#isRowSure = true
    this.#beginsLine = false
    this.#start = 0
    this.#y = this.#top + Math.min(this.#height - 1, row)
  }

  #down(): void {
    if (this.#y - this.#top >= this.#height - 1) this.#top += 1
    this.#y += 1
    this.#rows.delete(this.#y - MOST_ROWS)
  }

  /** Of the row: 0 what is right of the cursor, 1 what is left of it, 2 all. */
  #eraseInLine(mode: number): void {
    if (mode > 2) return
    if (!this.#isColumnSure) return this.#loseLine()
    const from = mode === 0 ? this.#x : 0
    const to = mode === 1 ? this.#x + 1 : this.#columns
    this.#blank(from, to)
    const row = this.#rows.get(this.#y)
    if (row && mode !== 1) row.wraps = false
  }

  #eraseInScreen(mode: number): void {
    if (mode > 2) return
    const isAbove = (y: number): boolean => y < this.#y
    for (const y of [...this.#rows.keys()])
      if (y >= this.#top && y !== this.#y && (mode === 2 || isAbove(y) === (mode === 1))) this.#rows.delete(y)
    this.#eraseInLine(mode)
    if (mode === 2) this.#start = 0
  }

  /** Within the row: erases, deletes or inserts. */
  #shift(final: string, count: number): void {
    this.#leaveMargin()
    if (!this.#isColumnSure) return this.#loseLine()
    const x = this.#x
    if (final === 'X') return this.#blank(x, x + count)
    const row = this.#rows.get(this.#y)
    if (row === undefined) return
    const { cells } = row
    while (cells.length < this.#columns) cells.push(' ')
    this.#free(cells, x, final === 'P' ? Math.min(count, this.#columns - x) : 0)
    const blanks = Array<string>(Math.min(count, this.#columns - x)).fill(' ')
    if (final === 'P') {
      cells.splice(x, count)
      cells.push(...blanks)
    } else {
      cells.splice(x, 0, ...blanks)
      this.#free(cells, this.#columns, 0)
      cells.length = this.#columns
    }
  }

  #blank(from: number, to: number): void {
    const cells = this.#rows.get(this.#y)?.cells
    if (cells === undefined) return
    const end = Math.min(to, cells.length)
    if (end <= from) return
    this.#free(cells, from, end - from)
    if (end === cells.length) cells.length = from
    else cells.fill(' ', from, end)
  }

  /** Of a wide character at an edge of these cells, the other half goes as well. */
  #free(cells: string[], from: number, count: number): void {
    if (cells[from] === '' && from > 0) {
      cells[from - 1] = ' '
      cells[from] = ' '
    }
    if (cells[from + count] === '') cells[from + count] = ' '
  }

  #rowAt(y: number): Row {
    const row = this.#rows.get(y) ?? { cells: [], wraps: false }
    this.#rows.set(y, row)
    return row
  }

  #lineAround(y: number): readonly [number, number] {
    let [first, last] = [y, y]
    while (this.#rows.get(first - 1)?.wraps) first--
    while (this.#rows.get(last)?.wraps) last++
    return [first, last]
  }

  /** The last row up to a column. */
  #textBetween(first: number, last: number, columns: number): string {
    let text = ''
    for (let y = first; y <= last; y++) {
      const { cells = [], wraps = false } = this.#rows.get(y) ?? {}
      const end = y === last ? columns : this.#columns
      const start = y === 0 && first === 0 ? this.#start : 0
      const part = cells.slice(start, end).join('')
      // What a wide character left empty at the end of a row is no blank of the line.
      text += wraps && y < last ? part : part.padEnd(part.length + Math.max(0, end - Math.max(start, cells.length)))
    }
    return text
  }

  #take(pen: Pen, savedPen = this.#look.savedPen): void {
    this.#look = { ...this.#look, pen, savedPen }
    this.#isSeen = isSeen(pen, this.#look.backdrop)
  }
}

const isVisible = (cell: string): boolean => VISIBLE.test(cell)
