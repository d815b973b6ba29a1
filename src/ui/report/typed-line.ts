/**
 * What is typed into one host's shell up to Enter, and whether the host echoed it. Only echoed text may be kept: what a host hides
 * is a password or the like. The echo is found in the host's own output, on a model of the line that the cursor is on. What nobody can
 * see is no echo: concealed text, and text in the colour of its background. Pure.
 */
import { ASCII } from '../../base/text-width.ts'
import { type Backdrop, changedPen, isSeen, type Pen, PLAIN_PEN } from '../../terminal/pen.ts'

export type TypedState =
  | 'echoed'
  /** The host has answered and not shown it. */
  | 'hidden'
  /** The host has not answered. */
  | 'silent'

type Line = {
  text: string
  /** Before the first key that edits: that part is echoed as it is. */
  plain: string
  /** Completion, history or the like: what was typed is not what the line says. */
  isEdited: boolean
  /** Of `plain`, what was seen as an echo. */
  echoed: string | undefined
}

const newLine = (): Line => ({ text: '', plain: '', isEdited: false, echoed: undefined })

/** What is examined. */
const MOST_OUTPUT_BYTES = 16 * 1024
const MOST_LINES = 200
const MOST_COLUMNS = 4096
const MOST_PLAIN_BYTES = 16
/** An echo takes no longer; what appears after Enter then is not an echo, unless a line editor reads, whose host may have stalled. */
const ECHO_MS = 1500

/** How a host's terminal draws at the first key of a line. */
export type Look = {
  /** Left of the cursor, with blanks in place of what nobody can see. */
  readonly seen: string
  readonly pen: Pen
  /** It comes back with the saved cursor. */
  readonly savedPen: Pen
  readonly backdrop: Backdrop
}

/** The end of a line that asks for what must not be shown. */
const ASKS_SECRET =
  /(?:pa(?:ss|ß)(?:wor[dt]|phrase|code|wd)|kennwort|mot de passe|contrase[ñn]a|\bclave\b|密码|口令|\bpin\b|secret|token|\botp\b|verification code|credential)[^$#%]{0,80}[:>?：]\s*$/iu

/** Shown for a password instead of its characters. */
const IS_MASK = /^([^\p{L}\p{N}])\1*$/u
/** How a terminal shows keys like Esc and the arrows while no line editor reads them. */
const SHOWN_KEYS = /\^(?:\[[[O][A-D]|[@-_])/g

/** What may precede an echo: typed blanks, or the prompt of a shell that prints the line again, which may stay where it was. */
const PROMPT = /^(?:.*[$#%>❯➜»λ])? *$/u

/** What is pasted into a line editor: a line feed in it enters nothing. */
const PASTED = /\x1b\[200~([\s\S]*?)\x1b\[201~/
const TYPED_TOKEN = /\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^[O])?|[\s\S]/gu
const PRINTED_TOKEN =
  /\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[P^_X][^\x1b]*\x1b\\|\x1b\[([0-?]*)[ -/]*([@-~])|\x1b[ -/]*[0-~]|[\s\S]/gu
/** A whole row that needs no model of the terminal. */
const PLAIN_ROW = /^[^\x00-\x1f\x7f]{0,4096}\r?$/
/** Controls of eight bits, each of which is an escape sequence of two characters. */
const EIGHT_BIT = /[\x80-\x9f]/g
const asEscape = (control: string): string => `\x1b${String.fromCharCode(control.charCodeAt(0) - 0x40)}`
const UNFINISHED = /\x1b(?:\[[0-?]*[ -/]*|[\]P^_X][^\x07\x1b]*)?$/

/** Letters of other scripts, and the Latin ones that they look like. */
const LOOKALIKES = new Map(
  [
    ['асԁеһіјкӏморѕтѵԝхуАВСЕНІКМОРЅТХУ', 'acdehijklmopstvwxyABCEHIKMOPSTXY'],
    ['αειικνορτυχωΑΒΕΗΙΚΜΝΟΡΤΥΧıɑɡ', 'aeiikvoptuxwABEHIKMNOPTYXiag'],
  ].flatMap(([like = '', latin = '']) => Array.from(like, (letter, index) => [letter, latin[index] ?? ''] as const)),
)

/** The text as it is read: without accents and invisible characters, with Latin letters for those that look like them. */
function asRead(text: string): string {
  if (ASCII.test(text)) return text
  const plain = text.normalize('NFKD').replace(/[\p{M}\p{Cf}]/gu, '')
  return Array.from(plain, (character) => LOOKALIKES.get(character) ?? character).join('')
}

export const asksSecret = (...before: readonly string[]): boolean =>
  before.some((text) => ASKS_SECRET.test(text) || ASKS_SECRET.test(asRead(text)))

export class TypedLines {
  readonly #lines: Line[] = [newLine()]
  /** The host asks for what must not be shown. */
  readonly asksSecret: boolean
  /** The cursor was after a prompt or a question: the echo comes before the first line feed. */
  readonly #isAtPrompt: boolean
  /** A line editor reads the keys. */
  readonly #isEditing: boolean
  /** Undefined: no more output belongs to it. */
  #echo: { readonly row: Row; readonly decoder: InstanceType<typeof TextDecoder> } | undefined
  #unfinished = ''
  /** Whether no character is half received. */
  #isWhole = true
  #startMs: number | undefined
  #enters = 0
  #isLate = false
  #isHidden = false
  #outputBytes = 0

  /**
   * `before`: the text left of the cursor; `columns`: of the host's terminal; `isEditing`: a line editor reads the keys; without
   * `look`, all text there is seen.
   */
  constructor(before: string, columns: number, isEditing = false, look: Look = { ...PLAIN_LOOK, seen: before }) {
    this.asksSecret = asksSecret(before, look.seen)
    this.#isAtPrompt = before !== ''
    this.#isEditing = isEditing
    this.#echo = { row: new Row(columns, before.length, look), decoder: new TextDecoder() }
  }

  /** How the host's terminal draws now; undefined: no more output belongs to it. */
  get look(): Look | undefined {
    return this.#echo?.row.look
  }

  /** How often Enter was typed. */
  get enters(): number {
    return this.#enters
  }

  get isEntered(): boolean {
    return this.#enters > 0
  }

  get isEchoed(): boolean {
    return this.lines[0]?.state === 'echoed'
  }

  /** What was typed without echo; also as a line editor on another host takes it where Esc came first. */
  get hidden(): readonly string[] {
    const hidden = this.lines.filter(({ state }) => state === 'hidden')
    return hidden.flatMap(({ text, isEdited }) => (isEdited ? [text, text.slice(1)] : [text]))
  }

  /** The lines that hold something, as they were entered. */
  get lines(): readonly { readonly text: string; readonly state: TypedState; readonly isEdited: boolean }[] {
    return this.#lines.flatMap((line, index) =>
      line.text.trim() === '' && !line.isEdited
        ? []
        : [{ text: line.text.trim(), state: this.#stateOf(line, index), isEdited: line.isEdited }],
    )
  }

  type(bytes: Uint8Array, nowMs: number): void {
    this.#startMs ??= nowMs
    const key = plainText(bytes)
    if (key.length === 1) return this.#typeToken(key, nowMs)
    for (const [index, text] of Buffer.from(bytes).toString('utf8').split(PASTED).entries())
      for (const [token] of text.matchAll(TYPED_TOKEN)) this.#typeToken(token, nowMs, index % 2 === 1)
  }

  #typeToken(token: string, nowMs: number, isPasted = false): void {
    const line = this.#lines.at(-1) as Line
    if (token === '\r' || token === '\n') {
      const isSilent = this.#outputBytes === 0 && !this.#isEditing
      if (!this.isEntered) this.#isLate = isSilent && nowMs - (this.#startMs ?? nowMs) >= ECHO_MS
      if (!isPasted) this.#enters += 1
      if (this.#lines.length < MOST_LINES) this.#lines.push(newLine())
    } else if (token === '\x7f' || token === '\b') line.text = line.text.slice(0, -1)
    else if (token === '\x15' || token === '\x03') line.text = ''
    else if (token === '\x17') line.text = line.text.replace(/\S*\s*$/, '')
    else if (token < ' ' || token.startsWith('\x1b')) line.isEdited = true
    else if (line.text.length < MOST_COLUMNS) line.text += token
    if (line.isEdited) return
    // What follows is echoed after what is left.
    if (isShown(line) && line.text.length < line.plain.length) line.echoed = line.text
    line.plain = line.text
  }

  /** The line was found at a prompt. */
  confirm(): void {
    const [first] = this.#lines
    if (first !== undefined) first.echoed = first.plain
  }

  /** No more output comes: what only finds echoes is given up, since thousands of these are kept. */
  finish(): void {
    this.#echo = undefined
    this.#unfinished = ''
  }

  print(bytes: Uint8Array): void {
    if (this.#echo === undefined || this.#outputBytes > MOST_OUTPUT_BYTES) return
    const { row, decoder } = this.#echo
    this.#outputBytes += bytes.length
    // The common case, for every key and host: a plain echo.
    const echo = this.#unfinished === '' && this.#isWhole ? plainText(bytes) : ''
    if (echo !== '') {
      for (const character of echo) row.print(character)
      return this.#match(row.text, row.textBeforeCursor)
    }
    this.#isWhole = (bytes.at(-1) ?? 0) < 0x80
    const text = this.#unfinished + decoder.decode(bytes, { stream: true }).replace(EIGHT_BIT, asEscape)
    const end = UNFINISHED.exec(text)?.index ?? text.length
    // An endless sequence is dropped.
    this.#unfinished = text.length - end > MOST_COLUMNS ? '' : text.slice(end)
    for (let from = 0, to = 0; from < end; from = to + 1) {
      to = text.indexOf('\n', from)
      const hasEnd = to >= 0 && to < end
      if (!hasEnd) to = end
      const part = text.slice(from, to)
      // Hosts may print much meanwhile, and all of them get the same keys.
      if (hasEnd && row.isNew && PLAIN_ROW.test(part)) {
        this.#endRow(row.isSeen ? part.trimEnd() : '')
        continue
      }
      for (const [token, parameters, final] of part.matchAll(PRINTED_TOKEN)) row.print(token, parameters, final)
      if (!hasEnd) break
      this.#endRow(row.text)
      row.clear()
    }
    this.#match(row.text, row.textBeforeCursor)
  }

  #endRow(shown: string): void {
    this.#match(shown)
    const [first] = this.#lines
    if (this.isEntered && this.#isAtPrompt && first !== undefined && !isShown(first)) this.#isHidden = true
  }

  /** `shown`: the row of the cursor, without what stood there before the first key; `beforeCursor`: its part left of the cursor. */
  #match(shown: string, beforeCursor = ''): void {
    if (shown === '') return
    for (const line of this.#lines)
      if (!isShown(line) && (this.#isEcho(line, shown) || (!this.isEntered && endsWithRest(line, beforeCursor))))
        line.echoed = line.plain
  }

  /**
   * What is typed after a key that edits says little: a line editor takes some of it as commands, and may show another line. There
   * a host that shows something at a prompt echoes, before Enter at any prompt, after it where a line editor reads.
   */
  #isEcho({ plain, text, isEdited }: Line, shown: string): boolean {
    if (plain.trim() !== '') return standsAtStart(plain.trim(), shown)
    if (!isEdited) return false
    if (text.trim() === '') return true
    if (IS_MASK.test(shown)) return false
    if (this.#isEditing || (this.#isAtPrompt && !this.isEntered)) return true
    // Esc takes the next key.
    const rest = shown.replace(SHOWN_KEYS, '')
    return [text, text.slice(1)].some((each) => each.trim() !== '' && standsAtStart(each.trim(), rest))
  }

  #stateOf(line: Line, index: number): TypedState {
    if (index === 0 && (this.asksSecret || this.#isHidden || (this.#isLate && this.#outputBytes > 0))) return 'hidden'
    if (isShown(line)) return 'echoed'
    return this.#outputBytes > 0 && this.isEntered ? 'hidden' : 'silent'
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

function standsAtStart(text: string, shown: string): boolean {
  const at = shown.indexOf(text)
  return at >= 0 && PROMPT.test(shown.slice(0, at))
}

/** Whether what was typed since the last echo is left of the cursor: a shell may have replaced what is before it, or a program printed there. */
function endsWithRest({ plain, echoed }: Line, beforeCursor: string): boolean {
  if (echoed === undefined || echoed.trim() === '' || !plain.startsWith(echoed)) return false
  const rest = plain.slice(echoed.length)
  return rest.trim() !== '' && beforeCursor.endsWith(rest)
}

const isShown = ({ plain, echoed }: Line): boolean => echoed?.startsWith(plain) === true

const PLAIN_LOOK: Look = { seen: '', pen: PLAIN_PEN, savedPen: PLAIN_PEN, backdrop: undefined }

/** Private modes that save the cursor and its pen when they are set, and restore them when they are reset. */
const SAVES_CURSOR = /^\?(?:[\d;]*;)?104[89](?:;|$)/

/** The row of the cursor with what was printed since the first key and can be seen, over the terminal's automatic line breaks. */
class Row {
  readonly #columns: number
  #look: Look
  #isSeen: boolean
  #cells: string[] = []
  #start: number
  #at: number

  constructor(columns: number, start: number, look: Look) {
    this.#look = look
    this.#isSeen = isSeen(look.pen, look.backdrop)
    this.#columns = Math.max(1, columns)
    this.#start = start
    this.#at = start
  }

  get look(): Look {
    return this.#look
  }

  /** What is printed now can be seen. */
  get isSeen(): boolean {
    return this.#isSeen
  }

  /** Nothing was printed since the line feed. */
  get isNew(): boolean {
    return this.#cells.length === 0 && this.#start === 0 && this.#at === 0
  }

  get text(): string {
    return Array.from(this.#cells.slice(this.#start), (cell) => cell ?? ' ')
      .join('')
      .trimEnd()
  }

  get textBeforeCursor(): string {
    return Array.from(this.#cells.slice(this.#start, this.#at), (cell) => cell ?? ' ').join('')
  }

  clear(): void {
    this.#cells = []
    this.#start = 0
    this.#at = 0
  }

  print(token: string, parameters = '', final = ''): void {
    const count = Math.min(MOST_COLUMNS, Math.max(1, Number.parseInt(parameters, 10) || 1))
    const at = this.#at
    if (final !== '') {
      if (final === 'C') this.#at += count
      else if (final === 'D') this.#at -= count
      else if (final === 'A') this.#at -= count * this.#columns
      else if (final === 'B') this.#at += count * this.#columns
      else if (final === 'G') this.#at = at - (at % this.#columns) + count - 1
      else if (final === 'K')
        this.#cells.length = parameters === '' || parameters === '0' ? Math.min(at, this.#cells.length) : 0
      else if (final === 'P') this.#cells.splice(at, count)
      else if (final === '@' && at < this.#cells.length)
        this.#cells.splice(at, 0, ...Array<string>(Math.min(count, 256)).fill(' '))
      else if (final === 'H') this.clear()
      else this.#draw(token, parameters, final)
    } else if (token === '\r') this.#at = at - (at % this.#columns)
    else if (token === '\b') this.#at -= 1
    else if (token >= ' ' && token !== '\x7f' && !token.startsWith('\x1b')) {
      while (this.#cells.length < at) this.#cells.push(' ')
      this.#cells[at] = this.#isSeen ? token : ' '
      this.#at += 1
    } else if (token === '\x1bc') this.#take(PLAIN_PEN, PLAIN_PEN)
    else if (token === '\x1b7') this.#take(this.#look.pen, this.#look.pen)
    else if (token === '\x1b8') this.#take(this.#look.savedPen)
    this.#at = Math.max(0, Math.min(MOST_COLUMNS, this.#at))
  }

  /** Sequences that change what the next characters look like. */
  #draw(token: string, parameters: string, final: string): void {
    const { pen, savedPen } = this.#look
    if (final === 'm') return token === `\x1b[${parameters}m` ? this.#take(changedPen(pen, parameters)) : undefined
    if (token === '\x1b[!p') return this.#take(PLAIN_PEN, PLAIN_PEN)
    const isSaved = SAVES_CURSOR.test(parameters)
    if (token === '\x1b[s' || (isSaved && final === 'h')) this.#take(pen, pen)
    else if (token === '\x1b[u' || (isSaved && final === 'l')) this.#take(savedPen)
  }

  #take(pen: Pen, savedPen = this.#look.savedPen): void {
    this.#look = { ...this.#look, pen, savedPen }
    this.#isSeen = isSeen(pen, this.#look.backdrop)
  }
}
