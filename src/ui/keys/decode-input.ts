/**
 * The terminal's bytes as events, incrementally: any split of the bytes gives the same events, and the raw bytes of all
 * events together are the input. What the terminal answers to our own queries becomes a `report` and is never typed into
 * a host. Sources: xterm ctlseqs (CSI, SS3, mouse, bracketed paste, modifyOtherKeys), the kitty keyboard protocol.
 */

export type Key = {
  /** `a`, `]`, `space`, `up`, `pagedown`, `f5`, `enter`, `escape` …; empty: the bytes are no key. */
  readonly name: string
  /** What the key prints; undefined for keys that print nothing and with Ctrl or Alt. */
  readonly text?: string
  readonly ctrl: boolean
  readonly alt: boolean
  readonly shift: boolean
}

export type KeyEvent = {
  readonly type: 'key'
  readonly key: Key
  readonly raw: Uint8Array
  /** In a form that only terminals in a special mode send: hosts get the plain form. */
  readonly isExtended?: boolean
  /** Its beginning came so early that it was taken for Esc, or for Alt and a key: `raw` is the rest. */
  readonly isLate?: boolean
}
/** By the two low bits of a button's code; with bit 6 the wheel's. */
export const MOUSE_BUTTONS = ['left', 'middle', 'right', 'none'] as const
export const WHEEL_BUTTONS = ['wheel-up', 'wheel-down', 'wheel-left', 'wheel-right'] as const
type MouseButton = (typeof MOUSE_BUTTONS | typeof WHEEL_BUTTONS)[number]
export type MouseEvent = {
  readonly type: 'mouse'
  readonly action: 'press' | 'release' | 'move'
  readonly button: MouseButton
  /** From 0. */
  readonly column: number
  readonly row: number
  readonly ctrl: boolean
  readonly alt: boolean
  readonly shift: boolean
  readonly raw: Uint8Array
  /** As of a key. */
  readonly isLate?: boolean
}
export type InputEvent =
  | KeyEvent
  | MouseEvent
  | { readonly type: 'paste'; readonly text: string; readonly raw: Uint8Array }
  | { readonly type: 'report'; readonly raw: Uint8Array }

const ESC = 0x1b
const PASTE_START = '200'
const PASTE_END = Buffer.from('\x1b[201~')
/** No key sequence is longer. */
const SEQUENCE_LIMIT = 64
/** The terminal's answers (OSC, DCS) may be longer. */
const STRING_LIMIT = 4096

const namesOf = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries(text.split(' ').map((pair) => pair.split('=')))

/** Keys by the last letter of `CSI letter` and `SS3 letter`. */
export const FINAL_NAMES = namesOf('A=up B=down C=right D=left E=begin H=home F=end P=f1 Q=f2 R=f3 S=f4')
/** Keys by the number of `CSI number ~`. */
export const TILDE_NAMES = namesOf(
  '1=home 2=insert 3=delete 4=end 5=pageup 6=pagedown 7=home 8=end ' +
    '11=f1 12=f2 13=f3 14=f4 15=f5 17=f6 18=f7 19=f8 20=f9 21=f10 23=f11 24=f12',
)
const CODE_NAMES = namesOf('9=tab 13=enter 27=escape 32=space 127=backspace')

const plain = { ctrl: false, alt: false, shift: false } as const

/** One event at the front of the buffer and its length, or more bytes are needed. */
type Step = { readonly event: InputEvent; readonly length: number } | 'incomplete'

export class InputDecoder {
  #pending: Buffer = Buffer.alloc(0)
  /** The parts of a bracketed paste that has not ended. */
  #paste: Buffer[] | undefined
  /** Taken as it was by `flush`, though it may be the beginning of a sequence. */
  #cut: Buffer = Buffer.alloc(0)

  /** A lone Esc, or the start of a sequence, waits: call `flush` when nothing came for some 25 ms. */
  get isWaiting(): boolean {
    return this.#pending.length > 0 && this.#paste === undefined
  }

  /** A bracketed paste has started and not ended. */
  get isPasting(): boolean {
    return this.#paste !== undefined
  }

  /** The end of the paste never came: what came so far is the paste, and keys are keys again. */
  endPaste(): InputEvent[] {
    return this.#paste ? this.#run(PASTE_END, true) : []
  }

  push(chunk: Uint8Array): InputEvent[] {
    return this.#cut.length === 0 ? this.#run(chunk, false) : this.#takeLate(chunk)
  }

  /** The rest of a sequence whose beginning was taken for Esc, as over a slow line; or something else. */
  #takeLate(chunk: Uint8Array): InputEvent[] {
    const cut = this.#cut
    const all = Buffer.concat([cut, this.#pending, chunk])
    const step = decodeOne(all, false)
    if (step === 'incomplete') {
      this.#pending = all.subarray(cut.length)
      return []
    }
    this.forgetCut()
    // Of two bytes: Alt and a key.
    if (step.length <= Math.max(2, cut.length)) return this.#run(chunk, false)
    this.#pending = Buffer.alloc(0)
    const rest = all.subarray(step.length)
    if (isPasteStart(all, step.length)) this.#paste = []
    else {
      const event = { ...step.event, raw: all.subarray(cut.length, step.length) }
      const isAnswer = event.type === 'report' && /[=>?]/.test(String.fromCharCode(all[2] ?? 0))
      return [isAnswer ? event : late(event), ...this.#run(rest, false)]
    }
    return this.#run(rest, false)
  }

  /** What comes now is no rest of what `flush` took: call it half a second after that. */
  forgetCut(): void {
    this.#cut = Buffer.alloc(0)
  }

  /** Has `flush` taken what may be the beginning of a sequence? */
  get hasCut(): boolean {
    return this.#cut.length > 0
  }

  /**
   * Takes what waits as it is: Esc, Alt and a key, single bytes. An open paste stays open, and so does an answer of the
   * terminal that has clearly started: its rest, however late, must not be typed into hosts.
   */
  flush(): InputEvent[] {
    const cut = this.#cut
    const waiting = this.#paste === undefined ? Buffer.concat([cut, this.#pending]) : Buffer.alloc(0)
    this.forgetCut()
    const events = this.#run(new Uint8Array(), true)
    if (this.#pending.length > 0 || !BEGINNING.test(waiting.toString('latin1'))) return events
    this.#cut = waiting
    return cut.length === 0 ? events : events.map(late)
  }

  #run(chunk: Uint8Array, isFinal: boolean): InputEvent[] {
    let rest: Buffer = this.#pending.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#pending, chunk])
    const events: InputEvent[] = []
    while (rest.length > 0) {
      if (this.#paste) {
        rest = this.#takePaste(rest, events)
        if (this.#paste) break
        continue
      }
      const step = decodeOne(rest, isFinal)
      if (step === 'incomplete') break
      const taken = rest.subarray(0, step.length)
      rest = rest.subarray(step.length)
      if (isPasteStart(taken, taken.length)) this.#paste = []
      else events.push(step.event)
    }
    this.#pending = Buffer.from(rest)
    return events
  }

  /** Returns what follows the end of the paste. Before the end, it keeps all but a possible start of the end marker. */
  #takePaste(bytes: Buffer, events: InputEvent[]): Buffer {
    const parts = this.#paste ?? []
    const end = bytes.indexOf(PASTE_END)
    if (end < 0) {
      const held = heldBack(bytes)
      parts.push(Buffer.from(bytes.subarray(0, bytes.length - held)))
      return bytes.subarray(bytes.length - held)
    }
    parts.push(bytes.subarray(0, end))
    const content = Buffer.concat(parts)
    this.#paste = undefined
    events.push({
      type: 'paste',
      text: content.toString('utf8'),
      raw: Buffer.concat([Buffer.from('\x1b[200~'), content, PASTE_END]),
    })
    return bytes.subarray(end + PASTE_END.length)
  }
}

/** Of a key in any number of pieces. */
const BEGINNING = /^\x1b(O|\[[\d;:<]{0,60})?$/

function late(event: InputEvent): InputEvent {
  if (event.type === 'mouse' || event.type === 'key') return { ...event, isLate: true }
  // Perhaps somebody typed it.
  return event.type === 'paste' ? event : { type: 'key', key: { ...plain, name: '' }, raw: event.raw, isLate: true }
}

const isPasteStart = (bytes: Buffer, length: number): boolean =>
  length === 6 && bytes.toString('latin1', 0, length) === `\x1b[${PASTE_START}~`

/** How many of the last bytes may be the start of the end marker. */
function heldBack(bytes: Buffer): number {
  for (let length = Math.min(PASTE_END.length - 1, bytes.length); length > 0; length--) {
    if (bytes.subarray(bytes.length - length).equals(PASTE_END.subarray(0, length))) return length
  }
  return 0
}

function keyStep(bytes: Buffer, length: number, key: Key, isExtended = false): Step {
  return { event: { type: 'key', key, raw: bytes.subarray(0, length), ...(isExtended ? { isExtended } : {}) }, length }
}

function reportStep(bytes: Buffer, length: number): Step {
  return { event: { type: 'report', raw: bytes.subarray(0, length) }, length }
}

/** By the byte after Esc. Undefined: not a sequence after all, but Alt and a key. */
const SEQUENCES: Readonly<Record<string, (bytes: Buffer, isFinal: boolean) => Step | undefined>> = {
  '[': decodeCsi,
  O: decodeSs3,
  ']': decodeString,
  P: decodeString,
}

function decodeOne(bytes: Buffer, isFinal: boolean): Step {
  if (bytes[0] !== ESC) return decodeCharacter(bytes, 0, isFinal)
  const escapeKey = (): Step => keyStep(bytes, 1, { ...plain, name: 'escape' })
  const second = bytes[1]
  if (second === undefined) return isFinal ? escapeKey() : 'incomplete'
  if (second === ESC) return escapeKey()
  const sequence = SEQUENCES[String.fromCharCode(second)]?.(bytes, isFinal)
  if (sequence) return sequence
  const step = decodeCharacter(bytes, 1, isFinal)
  if (step === 'incomplete' || step.event.type !== 'key') return step
  const { key } = step.event
  return keyStep(bytes, step.length, { name: key.name, ctrl: key.ctrl, alt: true, shift: key.shift })
}

/** A character or control byte at `start`; the bytes before it belong to the event. */
function decodeCharacter(bytes: Buffer, start: number, isFinal: boolean): Step {
  const byte = bytes[start] ?? 0
  const length = start + 1
  if (byte < 0x20 || byte === 0x7f) return keyStep(bytes, length, controlKey(byte))
  if (byte < 0x80) return keyStep(bytes, length, printedKey(String.fromCharCode(byte)))
  const size = byte >= 0xf0 && byte < 0xf8 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc2 ? 2 : 1
  const character = bytes.subarray(start, start + size)
  const text = size > 1 ? character.toString('utf8') : '\ufffd'
  const isWhole = character.length === size && !text.includes('\ufffd')
  if (isWhole) return keyStep(bytes, start + size, printedKey(text))
  const isCut = character.length < size && character.subarray(1).every((next) => (next & 0xc0) === 0x80)
  if (isCut && size > 1 && !isFinal) return 'incomplete'
  return keyStep(bytes, length, { ...plain, name: '' })
}

function controlKey(byte: number): Key {
  const name = CODE_NAMES[byte]
  if (name !== undefined) return { ...plain, name }
  if (byte === 0) return { ...plain, name: 'space', ctrl: true }
  return { ...plain, ctrl: true, name: String.fromCharCode(byte + 0x40).toLowerCase() }
}

function printedKey(text: string): Key {
  if (text === ' ') return { ...plain, name: 'space', text }
  const name = text.toLowerCase()
  return { ...plain, name, text, shift: name !== text }
}

const modifiers = (parameter: string | undefined) => {
  const bits = Math.max(0, (Number.parseInt(parameter ?? '1', 10) || 1) - 1)
  return { shift: (bits & 1) !== 0, alt: (bits & 2) !== 0, ctrl: (bits & 4) !== 0 }
}

function decodeCsi(bytes: Buffer, isFinal: boolean): Step | undefined {
  let at = 2
  // The Linux console's F1 to F5: ESC [ [ A.
  if (bytes[2] === 0x5b) {
    const letter = bytes[3]
    if (letter === undefined) return isFinal ? undefined : 'incomplete'
    if (letter >= 0x41 && letter <= 0x45) return keyStep(bytes, 4, { ...plain, name: `f${letter - 0x40}` })
    return undefined
  }
  while (at < bytes.length && at < SEQUENCE_LIMIT && (bytes[at] ?? 0) >= 0x20 && (bytes[at] ?? 0) < 0x40) at++
  const final = bytes[at]
  // Nobody types a parameter within the time limit.
  if (final === undefined) return isFinal && at === 2 ? undefined : 'incomplete'
  if (final < 0x40 || final > 0x7e) return at >= SEQUENCE_LIMIT || at > 2 ? reportStep(bytes, at) : undefined
  const parameters = bytes.toString('latin1', 2, at)
  const letter = String.fromCharCode(final)
  const length = at + 1
  if (letter === 'M' && parameters === '') {
    // X10 mouse: three bytes follow.
    if (bytes.length < length + 3) return isFinal ? reportStep(bytes, bytes.length) : 'incomplete'
    const [code = 0, column = 0, row = 0] = bytes.subarray(length, length + 3)
    return mouseStep(bytes, length + 3, code - 32, column - 33, row - 33, (code & 3) === 3)
  }
  if ((letter === 'M' || letter === 'm') && parameters.startsWith('<')) {
    const [code = 0, column = 1, row = 1] = parameters.slice(1).split(';').map(Number)
    return mouseStep(bytes, length, code, column - 1, row - 1, letter === 'm')
  }
  return csiKey(bytes, length, parameters, letter) ?? reportStep(bytes, length)
}

function csiKey(bytes: Buffer, length: number, parameters: string, letter: string): Step | undefined {
  if (!/^[\d;:]*$/.test(parameters)) return undefined
  const [first = '', second, third] = parameters.split(';')
  if (letter === 'Z') return keyStep(bytes, length, { ...plain, ...modifiers(second), name: 'tab', shift: true })
  if (letter === 'u') return codeKey(bytes, length, Number.parseInt(first, 10), second)
  if (letter === '~') {
    if (first === '27') return codeKey(bytes, length, Number.parseInt(third ?? '', 10), second)
    // The markers of a paste are no keys.
    if (first === PASTE_START || first === '201') return undefined
    const name = TILDE_NAMES[first]
    return name === undefined ? undefined : keyStep(bytes, length, { ...modifiers(second), name })
  }
  const name = FINAL_NAMES[letter]
  if (name === undefined || !(first === '' || first === '1')) return undefined
  return keyStep(bytes, length, { ...modifiers(second), name })
}

/** A key by its code point: kitty's `CSI code ; modifiers u`, xterm's `CSI 27 ; modifiers ; code ~`. */
function codeKey(bytes: Buffer, length: number, code: number, parameter: string | undefined): Step | undefined {
  if (!Number.isInteger(code) || code < 1 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return undefined
  const pressed = modifiers(parameter?.split(':')[0])
  const named = CODE_NAMES[code]
  if (named !== undefined && named !== 'space') return keyStep(bytes, length, { ...pressed, name: named }, true)
  // Keys that only this protocol has print nothing.
  if (code < 32 || (code >= 0xe000 && code <= 0xf8ff)) return undefined
  const character = String.fromCodePoint(code)
  const key = printedKey(pressed.shift ? character.toUpperCase() : character)
  const isPrinted = !pressed.ctrl && !pressed.alt
  return keyStep(
    bytes,
    length,
    { name: key.name, ...pressed, ...(isPrinted && key.text !== undefined ? { text: key.text } : {}) },
    true,
  )
}

function mouseStep(bytes: Buffer, length: number, code: number, column: number, row: number, isRelease: boolean): Step {
  const isWheel = (code & 64) !== 0
  const button = (isWheel ? WHEEL_BUTTONS : MOUSE_BUTTONS)[code & 3] ?? 'none'
  const action = isWheel ? 'press' : (code & 32) !== 0 ? 'move' : isRelease ? 'release' : 'press'
  return {
    event: {
      type: 'mouse',
      action,
      button,
      column: Math.max(0, column || 0),
      row: Math.max(0, row || 0),
      shift: (code & 4) !== 0,
      alt: (code & 8) !== 0,
      ctrl: (code & 16) !== 0,
      raw: bytes.subarray(0, length),
    },
    length,
  }
}

function decodeSs3(bytes: Buffer, isFinal: boolean): Step | undefined {
  const final = bytes[2]
  if (final === undefined) return isFinal ? undefined : 'incomplete'
  const letter = String.fromCharCode(final)
  const name = FINAL_NAMES[letter] ?? (letter === 'M' ? 'enter' : undefined)
  return name === undefined ? undefined : keyStep(bytes, 3, { ...plain, name })
}

/** An answer as a string (OSC with a digit, DCS), up to BEL or ST. */
function decodeString(bytes: Buffer, isFinal: boolean): Step | undefined {
  const third = bytes[2]
  if (third === undefined) return isFinal ? undefined : 'incomplete'
  const isOsc = bytes[1] === 0x5d
  if (!(isOsc ? /\d/ : /[\d>!|$+]/).test(String.fromCharCode(third))) return undefined
  for (let at = 3; at < Math.min(bytes.length, STRING_LIMIT); at++) {
    const byte = bytes[at] ?? 0
    if (byte === 0x07) return reportStep(bytes, at + 1)
    const next = bytes[at + 1]
    if (byte === ESC && next === 0x5c) return reportStep(bytes, at + 2)
    if (byte === ESC && next === undefined && !isFinal) return 'incomplete'
    // A control key: the answer was cut short. So a lost end blocks the keyboard until Esc, Enter or Ctrl-C at most.
    if (byte < 0x20 || byte === 0x7f) return reportStep(bytes, at)
  }
  if (bytes.length >= STRING_LIMIT) return reportStep(bytes, STRING_LIMIT)
  // `OSC 11 ;` is too much to be typed within the time limit.
  const hasNumber = isOsc && /^\d+;/.test(bytes.toString('latin1', 2))
  return isFinal && !hasNumber ? undefined : 'incomplete'
}
