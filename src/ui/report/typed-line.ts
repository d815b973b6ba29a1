/**
 * What is typed into one host's shell up to Enter, and whether the host echoed it. Only echoed text may be kept, because hidden text
 * may be a password. The echo is found in the host's own output, on a model of its screen. Concealed text, text in the colour of its
 * background, and text that was erased before the next key do not count as an echo. Pure.
 */
import { asksSecret, HAS_SIGN, IS_PROMPT, PROMPT, SHORTEST_SECRET } from './asks-secret.ts'
import { BrokenEcho } from './broken-echo.ts'
import { ContinuedEcho } from './continued-echo.ts'
import { EchoScreen, type Look, PLAIN_LOOK } from './echo-screen.ts'
import { isUnknownEdit, readingsOf } from './entered-text.ts'
import { findEcho } from './find-echo.ts'
import { PastedEcho } from './pasted-echo.ts'

export type TypedState =
  | 'echoed'
  /** The host has answered and not shown it. */
  | 'hidden'
  /** A line editor has it, and has shown other lines of its paste, or its beginning before a change of size: it is no password. */
  | 'unseen'
  /** Undecided: the host has printed nothing and may only be late, or Enter was not typed and the text is too short for a password. */
  | 'silent'

type TypedLine = {
  /** Without blanks around it. */
  readonly text: string
  /** As it was typed, without blanks at its end. */
  readonly shown: string
  /** What was typed between keys that edit. */
  readonly pieces: readonly string[]
  /** All of them, where some have edited it. */
  readonly keys: readonly string[]
  /** How many blank lines stand before it. */
  readonly blanks: number
  readonly state: TypedState
  readonly isEdited: boolean
  /** It may answer a question: it comes first, or a password was asked for before. */
  readonly mayAnswer: boolean
}

type Line = {
  text: string
  /** With what Tab typed: a tab, unless something reads it as a key. */
  raw: string
  /** Before the first key that edits: that part is echoed as it is. */
  plain: string
  /** What was typed between keys that edit; the last one is being typed. */
  pieces: string[]
  keys: string[]
  /** Some are no characters. */
  hasEdits: boolean
  /** Some may have changed it in any way. */
  isUnknown: boolean
  /** Completion, history or the like: what was typed is not what the line says. */
  isEdited: boolean
  /** Nothing but Tab has edited it. */
  isTabbed: boolean
  /** The host had asked for a password before. */
  isAsked: boolean
  /** Of `plain`, what was seen as an echo. */
  echoed: string | undefined
  /** Of that, what still stood when a later key was typed, or at the end of its row. */
  settled: string | undefined
  /** Where the echo was found. */
  row: number
  /** A finished row that shows the line. It counts as its echo if it still stands after this piece of output. */
  due: { readonly row: number; readonly text: string } | undefined
  /** Some of it was echoed before Enter. */
  wasSeen: boolean
  /** As a line editor has drawn it with the rest of a paste. */
  drawn: string | undefined
  /** A line editor has it, as part of a paste that it has drawn at least partly. */
  isInEditor: boolean
  /** A line editor had shown the beginning of it when the terminal got another size, and with it what stands where became unknown. */
  isInterrupted: boolean
  /** A line editor has read it as part of a paste: what is printed then is no echo. */
  isRead: boolean
}

const newLine = (): Line => ({
  ...{ text: '', raw: '', plain: '', pieces: [''], isEdited: false, isTabbed: false, isAsked: false },
  ...{ keys: [], hasEdits: false, isUnknown: false },
  ...{ echoed: undefined, settled: undefined, row: 0, due: undefined, wasSeen: false },
  ...{ drawn: undefined, isInEditor: false, isInterrupted: false, isRead: false },
})

function erase(line: Line, left: (text: string) => string): void {
  line.text = left(line.text)
  line.raw = left(line.raw)
}

function noteKey(line: Line, key: string): void {
  if (line.keys.length < MOST_COLUMNS) line.keys.push(key)
  if (key < ' ' || key === '\x7f') line.hasEdits = true
  if (isUnknownEdit(key)) line.isUnknown = true
}

/** A paste of several rows that a line editor may draw. */
type Paste = {
  readonly echo: PastedEcho
  readonly lines: readonly { readonly line: Line; readonly text: string }[]
}

/** What is examined. */
const MOST_OUTPUT_BYTES = 16 * 1024
const MOST_LINES = 200
const MOST_COLUMNS = 4096
/** Backspace, Ctrl-C, Ctrl-U, Ctrl-W */
const ERASES: ReadonlySet<string> = new Set(['\x7f', '\b', '\x03', '\x15', '\x17'])
const MOST_PIECES = 64
const MOST_PLAIN_BYTES = 16
/** An echo takes no longer; what appears after Enter then is not an echo, unless a line editor reads, whose host may have stalled. */
export const ECHO_MS = 1500
/** In a millisecond a host echoes more than this, and Muster reads it. */
const ECHOED_BYTES_A_MS = 20

/** Shown for a password instead of its characters. */
const IS_MASK = /^([^\p{L}\p{N}])\1*$/u
/** The same, but the last character may be shown for a moment. */
const IS_MASKED = /^(?:(.)\1+|[^\p{L}\p{N}]{2,}).?$/u
/** Shown of a line before its end; a program that hides what is typed may show one character for a moment. */
const SHORTEST_BEGINNING = 2
/** How a terminal shows keys like Esc and the arrows while no line editor reads them. */
const SHOWN_KEYS = /\^(?:\[[[O][A-D]|[@-_])/g

const PROMPT_BEFORE = /^(?:.*?[$#%>❯➜»λ] )? */u

/** How a line editor says that it has read a line. */
export const EDITOR_STOPS = '\x1b[?2004l'
export const LINE_END = /\r\n?|\n/
/** What is pasted into a line editor: a line feed in it enters nothing. */
export const PASTED = /\x1b\[200~([\s\S]*?)\x1b\[201~/
const TYPED_TOKEN = /\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^[O])?|[\s\S]/gu
const PRINTED_TOKEN =
  /\x1b\][^\x07\x18\x1a\x1b]*(?:\x07|\x1b\\)|\x1b[P^_X][^\x18\x1a\x1b]*\x1b\\|\x1b\[([0-?]*)[ -/]*([@-~])|\x1b[ -/]*[0-~]|[\s\S]/gu
/** A whole row that needs no model of the terminal. */
const PLAIN_ROW = /^[^\x00-\x1f\x7f]{0,4096}\r$/
/** Controls of eight bits, each of which is an escape sequence of two characters. */
const EIGHT_BIT = /[\x80-\x9f]/g
const asEscape = (control: string): string => `\x1b${String.fromCharCode(control.charCodeAt(0) - 0x40)}`
const UNFINISHED = /\x1b(?:\[[0-?]*[ -/]*|[\]P^_X][^\x07\x1b]*)?$/

export class TypedLines {
  readonly #lines: Line[] = [newLine()]
  /** The host asks for what must not be shown. */
  readonly asksSecret: boolean
  /** Whether the host has not answered the lines before this one either, and a shell reads them. */
  isBehind: () => boolean = () => false
  /** How long the host may take to echo the first key. */
  patienceMs: number = ECHO_MS
  #typedBytes = 0
  /** The cursor was after a prompt or a question: the echo comes before the first line feed. */
  readonly #isAtPrompt: boolean
  /** A line editor reads the keys. */
  readonly isEditing: boolean
  /** A shell or the like reads, which may show other text than what was typed, and clear the screen. */
  readonly #isShell: boolean
  /** Undefined: no more output belongs to it. */
  #echo: { readonly screen: EchoScreen; readonly decoder: InstanceType<typeof TextDecoder> } | undefined
  #unfinished = ''
  /** Whether no character is half received. */
  #isWhole = true
  #startMs: number | undefined
  #enters = 0
  /** Esc was the last key. */
  #isEscaped = false
  readonly #erased: string[] = []
  #isAfterEsc = false
  #isOverdue = false
  #isHidden = false
  #outputBytes = 0
  /** Of the output, what was examined since the paste, or since the last change of size after it. */
  #examinedBytes = 0
  readonly #before: string
  readonly #shellPrompt: string
  /** Until the line editor has read it. */
  #paste: Paste | undefined
  /** Of several lines that were typed at once. */
  readonly #broken: BrokenEcho<Line>
  readonly #continued: ContinuedEcho<Line>
  /** After one of these lines the host has asked for a password. */
  #hasAsked = false
  #mostShown = 0
  #isPasteAlone = false
  /** Typed right before: a program has read it, or it is the beginning of this line, and its echo is on its way. */
  #earlier: string
  #isJoined = false

  /**
   * `before`: the text left of the cursor; `columns`: of the host's terminal; `isEditing`: a line editor reads the keys; without
   * `look`, all text there is seen. `earlier`: typed right before, may be the beginning of this line. `shellPrompt`: at which the
   * host's line editor has read a line before.
   */
  constructor(
    before: string,
    columns: number,
    isEditing = false,
    look: Look = { ...PLAIN_LOOK, seen: before },
    earlier = '',
    shellPrompt = '',
  ) {
    this.#shellPrompt = shellPrompt
    this.#earlier = isEditing ? earlier : ''
    this.asksSecret = asksSecret(before, look.seen)
    this.#before = before
    this.#broken = new BrokenEcho(before)
    this.#continued = new ContinuedEcho(before)
    this.#isAtPrompt = before !== ''
    this.isEditing = isEditing
    this.#isShell = isEditing || IS_PROMPT.test(before.trimEnd())
    this.#echo = { screen: new EchoScreen(columns, before, look), decoder: new TextDecoder() }
  }

  /** How the host's terminal draws now; undefined: no more output belongs to it. */
  get look(): Look | undefined {
    return this.#echo?.screen.look
  }

  /** Of the host's terminal now; undefined: no more output belongs to it. */
  get columns(): number | undefined {
    return this.#echo?.screen.columns
  }

  /** A line editor has read a paste of several rows, and nothing but its echo was printed before that. */
  get isPasteAlone(): boolean {
    return this.#isPasteAlone
  }

  /** What was typed right before turned out to be its beginning. */
  get isJoined(): boolean {
    return this.#isJoined
  }

  /**
   * Whether silence only means that the host is late: a shell reads the line (with its line editor, if it has one), so no program can
   * have read it without echo.
   */
  get mayBeLate(): boolean {
    return this.isEditing || (this.#isShell && this.#shellPrompt === '') || this.isBehind()
  }

  /** Whether its first line is echoed behind what prompts end with. `before`: left of what was printed first. */
  isBehindSign(before: string): boolean {
    const [line] = this.#lines
    if (line === undefined || !isShown(line)) return false
    const shown = this.#echo?.screen.textAt(line.row) ?? ''
    const found = findEcho(line.plain.trim(), shown)
    return found !== undefined && HAS_SIGN.test((line.row === 0 ? before : '') + shown.slice(0, found.at))
  }

  /** When its first key was typed. */
  get startMs(): number {
    return this.#startMs ?? 0
  }

  /** Its echo did not come in time: what shows it may be a program that has read it. */
  get isOverdue(): boolean {
    return this.#isOverdue
  }

  /** How often Enter was typed. */
  get enters(): number {
    return this.#enters
  }

  /** Enter was typed right after Esc: some line editors take both for one key. */
  get isAfterEsc(): boolean {
    return this.#isAfterEsc
  }

  get isEntered(): boolean {
    return this.#enters > 0
  }

  get isEchoed(): boolean {
    return this.lines[0]?.state === 'echoed'
  }

  /** What was typed without echo, and what line editors of other hosts may make of it: after Esc, the first key is a command. */
  get hidden(): readonly string[] {
    const hidden = this.lines.filter(({ state }) => state === 'hidden')
    const texts = hidden.flatMap(({ text, shown, pieces, keys, isEdited }) => {
      const known = [text, ...readingsOf(keys).filter((each) => each.length >= SHORTEST_SECRET)]
      return [...new Set(isEdited ? [...known, text.slice(1), shown.trim(), ...pieces] : known)]
    })
    return this.#lines.some(isShown) ? texts : [...texts, ...this.#erased]
  }

  /** What was typed without echo was edited by keys that may do anything: any text may be it. */
  get isAnyText(): boolean {
    return this.#lines.some(
      (line, index) =>
        line.isUnknown && line.text.trim().length >= SHORTEST_SECRET && this.#stateOf(line, index) === 'hidden',
    )
  }

  /** The lines that hold something, as they were entered. */
  get lines(): readonly TypedLine[] {
    const lines: TypedLine[] = []
    let blanks = 0
    for (const [index, line] of this.#lines.entries()) {
      const { text, raw, isEdited, isAsked } = line
      const isBlank = text.trim() === '' && !isEdited
      if (isBlank) blanks += 1
      else {
        const shown = raw.trimEnd()
        const mayAnswer = index === 0 || this.asksSecret || isAsked
        // Shorter pieces would hide half of the report.
        const pieces = line.pieces.map((piece) => piece.trim()).filter((piece) => piece.length >= SHORTEST_SECRET)
        const keys = line.hasEdits ? line.keys : []
        lines.push({
          text: text.trim(),
          shown,
          pieces,
          keys,
          blanks,
          state: this.#stateOf(line, index),
          isEdited,
          mayAnswer,
        })
        blanks = 0
      }
    }
    return lines
  }

  type(bytes: Uint8Array, nowMs: number): void {
    this.#startMs ??= nowMs
    this.#typedBytes += bytes.length
    const key = plainText(bytes)
    if (key.length === 1) return this.#typeToken(key, nowMs)
    for (const [index, text] of Buffer.from(bytes).toString('utf8').split(PASTED).entries()) {
      const isPasted = index % 2 === 1
      const at = this.#lines.length - 1
      const first = this.#lines[at] as Line
      const isKnown = isPasted && !first.isEdited && (first.text === '' || this.#stateOf(first, at) === 'echoed')
      for (const [token] of text.matchAll(TYPED_TOKEN)) this.#typeToken(token, nowMs, isPasted)
      if (isPasted) this.#expectPaste(text, this.#lines.slice(isKnown ? at : at + 1))
    }
  }

  /** Only a line editor gets a paste in brackets. */
  #expectPaste(text: string, typed: readonly Line[]): void {
    const lines = text.split(LINE_END).filter((line) => line.trim() !== '')
    const isLong = lines.length > 1 || text.trim().length > (this.columns ?? 0)
    if (!isLong || lines.length === 0 || this.asksSecret || this.isEntered) return
    const echo = new PastedEcho(lines, this.#before)
    this.#paste = { echo, lines: typed.map((line) => ({ line, text: line.text })) }
    this.#examinedBytes = 0
  }

  /** Typed at a question for a password by mistake. */
  #noteErased(text: string): void {
    const isKnown = this.#erased.some((each) => each.startsWith(text))
    if (this.asksSecret && text.length >= SHORTEST_SECRET && !isKnown && this.#erased.length < MOST_PIECES)
      this.#erased.push(text)
  }

  #typeToken(token: string, nowMs: number, isPasted = false): void {
    const line = this.#lines.at(-1) as Line
    if (ERASES.has(token)) this.#noteErased(line.text)
    if (token !== '\r' && token !== '\n') noteKey(line, token)
    if (!this.isEntered) for (const each of this.#lines) this.#judge(each)
    // Line editors print much for each key.
    if (!this.isEntered && isShown(line)) this.#examinedBytes = 0
    if (token === '\r' || token === '\n') {
      if (!this.isEntered) this.#isAfterEsc = this.#isEscaped
      if (!this.isEntered && this.#isTooLate(nowMs)) this.#giveUp()
      if (!isPasted) this.#enters += 1
      if (this.#lines.length < MOST_LINES) this.#lines.push(newLine())
    } else if (token === '\x7f' || token === '\b') erase(line, (text) => text.slice(0, -1))
    else if (token === '\x15' || token === '\x03') erase(line, () => '')
    else if (token === '\x17') erase(line, (text) => text.replace(/\S*\s*$/, ''))
    else if (token < ' ' || token.startsWith('\x1b')) {
      line.isTabbed = token === '\t' && line.isTabbed === line.isEdited
      if (line.isTabbed) line.raw += token
      line.isEdited = true
      if (line.pieces.length < MOST_PIECES) line.pieces.push('')
    } else if (line.text.length < MOST_COLUMNS) {
      line.text += token
      line.raw += token
      line.pieces.push((line.pieces.pop() ?? '') + token)
    }
    this.#isEscaped = token === '\x1b'
    if (line.isEdited) return
    // What follows is echoed after what is left.
    if (line.text.length < line.plain.length) {
      if (isShown(line)) line.echoed = line.text
      if (line.settled !== undefined && line.settled.length > line.text.length) line.settled = line.text
    }
    line.plain = line.text
  }

  /**
   * At Enter, and before each piece of output: an echo of the first key would have come. What shows the text later is a program that
   * has read it.
   */
  #isTooLate(nowMs: number): boolean {
    if (this.isEditing || this.#startMs === undefined) return false
    const ms = nowMs - this.#startMs
    if (this.#outputBytes === 0 && ms >= ECHO_MS && !this.isEntered) return true
    return ms >= this.patienceMs + this.#typedBytes / ECHOED_BYTES_A_MS && !this.isBehind() && !this.isOnItsWay
  }

  #giveUp(): void {
    this.#isOverdue = true
    // They came with it, so their echo would, too.
    for (const line of this.#lines.slice(1)) if (!isShown(line)) line.isRead = true
  }

  /** Some of the echo of the first line has come. */
  get isOnItsWay(): boolean {
    const [line] = this.#lines
    return line !== undefined && this.#isOnItsWay(line)
  }

  #isOnItsWay(line: Line): boolean {
    const shown = this.#echo?.screen.text.trim() ?? ''
    if (isShown(line) || (line.echoed?.trim().length ?? 0) >= SHORTEST_BEGINNING) return true
    if (shown === '' || IS_MASKED.test(shown)) return false
    return line.isEdited || line.plain.trimStart().startsWith(shown)
  }

  /** It was found at a prompt. */
  confirm(): void {
    this.#isOverdue = false
    for (const line of this.#lines) {
      line.echoed = line.plain
      line.settled = line.plain
    }
  }

  /** The host's terminal has another size. */
  resize(columns: number, rows: number): void {
    const screen = this.#echo?.screen
    const shown = screen?.text ?? ''
    const [first] = this.#lines
    if (screen?.resize(columns, rows) && first !== undefined) first.isInterrupted ||= this.#begins(first, shown)
    // It is drawn again.
    if (this.#paste !== undefined && !this.isEntered) this.#examinedBytes = 0
  }

  /** Whether a line editor shows the beginning of the line, and nothing else. */
  #begins({ plain }: Line, shown: string): boolean {
    if (!this.isEditing || this.asksSecret) return false
    return [shown.trimStart(), shown.slice(PROMPT_BEFORE.exec(shown)?.[0].length ?? 0)].some(
      (beginning) => beginning.length >= SHORTEST_BEGINNING && plain.trimStart().startsWith(beginning),
    )
  }

  /** A line editor has filled a row with the beginning of the line, and goes on in the next one. */
  #continues(screen: EchoScreen): boolean {
    const isBegun = (line: Line): boolean => !this.#isEcho(line, screen.text) && this.#begins(line, screen.text)
    return screen.isRowFull && this.#lines.some(isBegun)
  }

  /** No more output comes: what only finds echoes is given up, since thousands of these are kept. */
  finish(): void {
    this.#echo = undefined
    this.#paste = undefined
    this.#earlier = ''
    this.#unfinished = ''
    const { mayBeLate } = this
    this.isBehind = () => mayBeLate
  }

  /** `nowMs`: when it came; without it, in time. */
  print(bytes: Uint8Array, nowMs = 0): void {
    if (this.#echo === undefined) return
    if (this.#examinedBytes > MOST_OUTPUT_BYTES + (this.#paste?.echo.mostBytes ?? 0)) return
    if (this.isEntered && !this.#isOverdue && this.#isTooLate(nowMs)) this.#giveUp()
    const { screen, decoder } = this.#echo
    this.#outputBytes += bytes.length
    this.#examinedBytes += bytes.length
    // The common case, for every key and host: a plain echo.
    const echo = this.#unfinished === '' && this.#isWhole ? plainText(bytes) : ''
    if (echo !== '') for (const character of echo) this.#printToken(screen, character)
    else this.#printText(screen, decoder.decode(bytes, { stream: true }))
    this.#withdraw(screen)
    this.#match(screen, screen.text)
    this.#settle(screen)
    this.#findPaste(screen)
    this.#isWhole = (bytes.at(-1) ?? 0) < 0x80
  }

  #printText(screen: EchoScreen, decoded: string): void {
    const text = this.#unfinished + decoded.replace(EIGHT_BIT, asEscape)
    const end = UNFINISHED.exec(text)?.index ?? text.length
    // An endless sequence is dropped.
    this.#unfinished = text.length - end > MOST_COLUMNS ? '' : text.slice(end)
    for (let from = 0, to = 0; from < end; from = to + 1) {
      to = text.indexOf('\n', from)
      const hasEnd = to >= 0 && to < end
      if (!hasEnd) to = end
      const part = text.slice(from, to)
      // Hosts may print much meanwhile, and all of them get the same keys.
      const row = part.slice(0, -1)
      if (hasEnd && screen.isNew && PLAIN_ROW.test(part) && screen.fits(row)) {
        this.#endRow(screen, screen.isSeen ? row.trimEnd() : '')
        if (screen.isSeen) this.#paste?.echo.draw(row)
        this.#paste?.echo.move()
        screen.printRow(row)
        continue
      }
      for (const [token, parameters, final] of part.matchAll(PRINTED_TOKEN))
        this.#printToken(screen, token, parameters, final)
      if (!hasEnd) break
      this.#paste?.echo.move()
      const continues = screen.isAtLastRow && this.#continues(screen)
      if (screen.isAtLastRow && !continues) this.#endRow(screen, screen.text)
      screen.lineFeed(continues)
    }
  }

  #printToken(screen: EchoScreen, token: string, parameters = '', final = ''): void {
    screen.print(token, parameters, final)
    if (this.#paste === undefined) return
    const { echo } = this.#paste
    if (final === '' && token >= ' ' && token !== '\x7f' && !token.startsWith('\x1b')) {
      if (screen.isSeen) echo.draw(token)
    } else if (token === '\r' || token === '\b' || (final !== '' && final !== 'm')) echo.move()
    if (token === EDITOR_STOPS) this.#endPaste(this.#paste, screen)
  }

  #endPaste({ echo, lines }: Paste, screen: EchoScreen): void {
    if (this.isEntered) {
      this.#findPaste(screen)
      for (const { line } of lines) line.isRead = true
      this.#isPasteAlone = echo.isWhole && echo.isAlone(this.#lines.map(({ text }) => text).join(''))
    } else {
      // What has read the paste before Enter was no line editor.
      for (const { line } of lines) Object.assign(line, { drawn: undefined, isInEditor: false })
    }
    this.#paste = undefined
  }

  #findPaste(screen: EchoScreen): void {
    if (this.#paste?.echo.isPart !== true) return
    const { echo, lines } = this.#paste
    const stands = screen.allText.split('\n').some((row) => echo.holds(row))
    // After Enter it is scrolled away, or cleared.
    if (!stands && this.isEntered) return
    for (const { line, text } of lines) {
      line.drawn = stands && echo.isWhole ? text : undefined
      line.isInEditor = stands
    }
  }

  #endRow(screen: EchoScreen, shown: string): void {
    // A line editor goes up, and down again, to draw a command of several lines.
    if (this.isEditing && screen.row < 0) return
    this.#match(screen, shown, true)
    if (this.#enters > 1) this.#matchRow(shown, screen.row)
    const [first] = this.#lines
    if (!this.isEntered || !this.#isAtPrompt || first === undefined) return
    if (!isShown(first)) this.#isHidden = true
    // What it was typed beside was half a row of output, and no question: the shell has read it.
    else if (!this.#isShell && this.#isReadByShell(first, shown)) this.#isHidden = false
  }

  #isReadByShell({ plain, isEdited }: Line, row: string): boolean {
    if (this.#shellPrompt === '' || isEdited || plain.trim() === '') return false
    return row === (this.#shellPrompt + plain).trimEnd()
  }

  /** Of several lines that were typed at once. */
  #matchRow(row: string, at: number): void {
    const isOpen = (line: Line): boolean => !isShown(line) && !line.isRead && (!line.isEdited || line.isTabbed)
    const own = this.#continued.take(row, this.#lines)
    // What is typed then may be a password.
    if (own === undefined && !this.#hasAsked && asksSecret(row)) {
      this.#hasAsked = true
      for (const line of this.#lines) line.isAsked = !isShown(line)
    }
    if (this.#hasAsked) return
    const isPiece = (line: Line): boolean => isOpen(line) && line.plain.trim() !== '' && !this.#isPassed(line)
    const line = own?.isContinued && isOpen(own.line) ? own.line : this.#broken.take(row, this.#lines, isPiece)
    if (line !== undefined) {
      line.echoed = line.plain
      line.row = at
      if (this.#isShell) line.settled = line.plain
      else line.due = { row: at, text: row }
    }
    const count = this.#lines.filter(isShown).length
    // Each line may print as much as one that is typed alone.
    if (count > this.#mostShown) this.#examinedBytes = 0
    this.#mostShown = Math.max(this.#mostShown, count)
  }

  /** `shown`: the line of the cursor, without what stood there before the first key; it ends with this row. */
  #match(screen: EchoScreen, shown: string, isEnd = false): void {
    if (this.#earlier !== '') this.#join(shown)
    for (const line of this.#lines) {
      if (isEnd && this.isEntered && line.row === screen.row && isOpen(line) && !this.#isEcho(line, shown))
        line.echoed = line.settled
      if (shown === '' || (line.isRead && !isShown(line))) continue
      // It may be what a program printed of a line that it has read; a shell shows it at its prompt.
      if (!isShown(line) && this.#isPassed(line) && shown.trimStart().startsWith(line.plain.trim())) continue
      if (!isShown(line) && (this.#isEcho(line, shown) || (!this.isEntered && endsWithRest(line, screen)))) {
        line.echoed = line.plain
        line.row = screen.row
        line.wasSeen ||= !this.isEntered
      }
      if (!isEnd || !isShown(line)) continue
      if (this.#isShell || line.plain.length < SHORTEST_SECRET) line.settled = line.echoed
      // A program that asks may still erase its row.
      else if (!this.#isAtPrompt) line.due ??= { row: screen.row, text: shown }
    }
  }

  /** A row is an echo only if it still stands after this piece of output. Nobody saw a row that was printed and erased in one piece. */
  #settle(screen: EchoScreen): void {
    for (const line of this.#lines) {
      if (line.due === undefined) continue
      const { row, text } = line.due
      const stands = screen.hasDropped(row) || screen.textAt(row).trim() === text.trim()
      if (stands) line.echoed = line.plain
      if (stands) line.settled = line.plain
      else line.echoed = line.settled
      line.due = undefined
    }
  }

  /** A later line was echoed already. */
  #isPassed(line: Line): boolean {
    return !line.isEdited && this.#continued.isPassed(line)
  }

  /** A line editor shows what was typed right before and this line as one. */
  #join(shown: string): void {
    const [first] = this.#lines
    if (first === undefined || first.isEdited || first.plain.trim() === '' || this.#isHidden) return
    const whole = this.#earlier + first.plain
    if (!standsAtStart(whole.trim(), shown)) return
    first.text = whole
    first.plain = whole
    first.settled = undefined
    this.#earlier = ''
    this.#isJoined = true
  }

  /** After Enter: an echo that a program has erased from the row where it was found is none. */
  #withdraw(screen: EchoScreen): void {
    if (!this.isEntered) return
    for (const [index, line] of this.#lines.entries()) {
      if (!isOpen(line) || line.due !== undefined || this.#isEcho(line, screen.textAt(line.row))) continue
      line.echoed = line.settled
      if (index === 0 && this.#isAtPrompt && line.row !== screen.row) this.#isHidden = true
    }
  }

  /** At each key, and at Enter: what was echoed before must still stand. */
  #judge(line: Line): void {
    if (line.echoed === undefined) return
    if (line.isEdited) line.settled ??= line.echoed
    if (line.isEdited || this.#echo === undefined) return
    if (!this.#stands(line, line.echoed)) {
      line.echoed = line.settled !== undefined && this.#stands(line, line.settled) ? line.settled : undefined
    }
    line.settled = line.echoed
  }

  #stands({ settled = '', row }: Line, text: string): boolean {
    const screen = this.#echo?.screen
    const echo = text.trim()
    if (screen === undefined || echo === '' || standsAtStart(echo, screen.text)) return true
    // Of a paste of several lines, all but one stand elsewhere.
    if (this.#lines.length > 1 && standsAtStart(echo, screen.textAt(row))) return true
    if (!this.#isShell) return false
    // A shell may show other text instead, or have printed something in the middle; it shows no less.
    const rest = text.startsWith(settled) ? text.slice(settled.length) : text
    if (rest.trim() !== '' && !screen.textBeforeCursor.endsWith(rest)) return false
    const shown = screen.allText.replace(/\s/gu, '')
    return shown.length >= echo.replace(/\s/gu, '').length && !IS_MASKED.test(shown)
  }

  /**
   * What is typed after a key that edits says little: a line editor takes some of it as commands, and may show another line. There
   * a host that shows something at a prompt echoes, before Enter at any prompt, after it where a line editor reads. Without a shell,
   * a terminal echoes a line with its end: what goes on was printed by a program, as a prompt that begins with the same word.
   */
  #isEcho({ plain, text, isEdited, wasSeen }: Line, shown: string): boolean {
    const isWhole = this.isEntered && !this.#isShell && !wasSeen
    if (plain.trim() !== '') return standsAtStart(plain.trim(), shown, isWhole)
    if (!isEdited) return false
    if (text.trim() === '') return true
    if (IS_MASK.test(shown)) return false
    if (this.isEditing || (this.#isAtPrompt && !this.isEntered)) return true
    // Esc takes the next key.
    const rest = shown.replace(SHOWN_KEYS, '')
    return [text, text.slice(1)].some((each) => each.trim() !== '' && standsAtStart(each.trim(), rest))
  }

  #stateOf(line: Line, index: number): TypedState {
    if (line.drawn === line.text) return 'echoed'
    const state = this.#stateAlone(line, index)
    const isInEditor = line.isInEditor || (line.isInterrupted && !line.isEdited)
    return state === 'hidden' && isInEditor ? 'unseen' : state
  }

  /** As if it were not part of a paste. */
  #stateAlone(line: Line, index: number): TypedState {
    const mayBeErased = !this.isEntered && !line.isEdited && isOpen(line)
    if (mayBeErased && !this.#stands(line, line.echoed ?? '')) return 'hidden'
    if (index === 0 && (this.asksSecret || this.#isHidden || (this.#isOverdue && this.#outputBytes > 0)))
      return 'hidden'
    if (isShown(line)) return 'echoed'
    // Keys without Enter may be a password that the host has not asked to end.
    const mayBeSecret = this.isEntered || line.text.length >= SHORTEST_SECRET
    return mayBeSecret && (this.#outputBytes > 0 || !this.mayBeLate) ? 'hidden' : 'silent'
  }
}

/** The text, if it is a few printable ASCII characters; otherwise ''. */
function plainText(bytes: Uint8Array): string {
  if (bytes.length > MOST_PLAIN_BYTES) return ''
  let text = ''
  for (const byte of bytes) {
    if (byte < 0x20 || byte > 0x7e) return ''
    text += String.fromCharCode(byte)
  }
  return text
}

/** `isWhole`: nothing follows it, or only something at the right. */
function standsAtStart(text: string, shown: string, isWhole = false): boolean {
  const found = findEcho(text, shown)
  if (found === undefined || !PROMPT.test(shown.slice(0, found.at))) return false
  return !isWhole || /^(?: {2,}|$)/.test(shown.slice(found.end))
}

/** Whether what was typed since the last echo is left of the cursor: a shell may have replaced what is before it, or a program printed there. */
function endsWithRest({ plain, echoed }: Line, { textBeforeCursor }: EchoScreen): boolean {
  if (echoed === undefined || echoed.trim() === '' || !plain.startsWith(echoed)) return false
  const rest = plain.slice(echoed.length)
  return rest.trim() !== '' && textBeforeCursor.endsWith(rest)
}

/** It may still be erased. */
const isOpen = ({ echoed, settled }: Line): boolean => echoed !== undefined && echoed !== settled

const isShown = ({ plain, echoed }: Line): boolean => echoed?.startsWith(plain) === true
