/**
 * What a key, a paste or a mouse event becomes for one host, in the modes that its program switched on: the same arrow is
 * right for the shell of one host and for the editor of another. Pure. Source: xterm ctlseqs, terminfo xterm-256color.
 */
import type { ScreenModes } from '../../terminal/screen.ts'
import type { KeyEvent, MouseEvent } from './decode-input.ts'

const CURSOR_FINALS: Readonly<Record<string, string>> = {
  up: 'A',
  down: 'B',
  right: 'C',
  left: 'D',
  begin: 'E',
  home: 'H',
  end: 'F',
}
const SS3_FINALS: Readonly<Record<string, string>> = { f1: 'P', f2: 'Q', f3: 'R', f4: 'S' }
const TILDE_NUMBERS: Readonly<Record<string, number>> = {
  insert: 2,
  delete: 3,
  pageup: 5,
  pagedown: 6,
  f5: 15,
  f6: 17,
  f7: 18,
  f8: 19,
  f9: 20,
  f10: 21,
  f11: 23,
  f12: 24,
}
const CONTROL_BYTES: Readonly<Record<string, string>> = { enter: '\r', tab: '\t', escape: '\x1b', backspace: '\x7f' }

/** The event's own bytes (the same object) wherever they are right for the host. */
export function encodeKey(event: KeyEvent, modes: Pick<ScreenModes, 'isApplicationCursor'>): Uint8Array {
  const sequence = keySequence(event, modes.isApplicationCursor)
  if (sequence === undefined) return event.raw
  const bytes = Buffer.from(sequence)
  return bytes.equals(event.raw) ? event.raw : bytes
}

function keySequence({ key, isExtended }: KeyEvent, isApplicationCursor: boolean): string | undefined {
  const bits = (key.shift ? 1 : 0) + (key.alt ? 2 : 0) + (key.ctrl ? 4 : 0)
  const cursor = CURSOR_FINALS[key.name]
  if (cursor !== undefined)
    return bits > 0 ? `\x1b[1;${bits + 1}${cursor}` : `\x1b${isApplicationCursor ? 'O' : '['}${cursor}`
  const ss3 = SS3_FINALS[key.name]
  if (ss3 !== undefined) return bits > 0 ? `\x1b[1;${bits + 1}${ss3}` : `\x1bO${ss3}`
  const number = TILDE_NUMBERS[key.name]
  if (number !== undefined) return bits > 0 ? `\x1b[${number};${bits + 1}~` : `\x1b[${number}~`
  if (!isExtended) return undefined
  if (key.name === 'tab' && key.shift) return '\x1b[Z'
  const alt = key.alt ? '\x1b' : ''
  const named = CONTROL_BYTES[key.name]
  if (named !== undefined) return alt + named
  const character = key.text ?? (key.name === 'space' ? ' ' : key.shift ? key.name.toUpperCase() : key.name)
  if (!key.ctrl) return alt + character
  const code = character.toUpperCase().charCodeAt(0)
  if (character === ' ') return `${alt}\0`
  return alt + (code >= 0x40 && code < 0x60 ? String.fromCharCode(code - 0x40) : character)
}

/** C0 but tab and carriage return, DEL and C1: a paste types text, it cannot act. */
const ACTING = /[\u0000-\u0008\u000a-\u000c\u000e-\u001f\u007f-\u009f]/g

export function encodePaste(text: string, modes: Pick<ScreenModes, 'isBracketedPaste'>): Uint8Array {
  const clean = text.replace(/\r\n?|\n/g, '\r').replace(ACTING, '')
  return Buffer.from(modes.isBracketedPaste ? `\x1b[200~${clean}\x1b[201~` : clean)
}

const BUTTON_CODES = {
  left: 0,
  middle: 1,
  right: 2,
  none: 3,
  'wheel-up': 64,
  'wheel-down': 65,
  'wheel-left': 66,
  'wheel-right': 67,
} as const

/** `column` and `row` of the event count from 0 inside the pane. Undefined: the program did not ask for such events. */
export function encodeMouse(
  event: MouseEvent,
  modes: Pick<ScreenModes, 'mouse' | 'isMouseSgr'>,
): Uint8Array | undefined {
  const { action, button } = event
  if (modes.mouse === 'none') return undefined
  if (modes.mouse === 'x10' && action !== 'press') return undefined
  if (action === 'move' && (modes.mouse === 'vt200' || (modes.mouse === 'drag' && button === 'none'))) return undefined
  const held = modes.mouse === 'x10' ? 0 : (event.shift ? 4 : 0) + (event.alt ? 8 : 0) + (event.ctrl ? 16 : 0)
  const code = BUTTON_CODES[button] + (action === 'move' ? 32 : 0) + held
  if (modes.isMouseSgr)
    return Buffer.from(`\x1b[<${code};${event.column + 1};${event.row + 1}${action === 'release' ? 'm' : 'M'}`)
  // The old form has one byte a coordinate.
  if (event.column > 222 || event.row > 222) return undefined
  const released = action === 'release' ? (code & ~3) | 3 : code
  return Buffer.from([0x1b, 0x5b, 0x4d, released + 32, event.column + 33, event.row + 33])
}

/** The wheel for a program that fills the screen and did not ask for the mouse: arrows, as terminals send them. */
export function encodeWheel(
  button: 'wheel-up' | 'wheel-down',
  lines: number,
  { isApplicationCursor }: Pick<ScreenModes, 'isApplicationCursor'>,
): Uint8Array {
  return Buffer.from(`\x1b${isApplicationCursor ? 'O' : '['}${button === 'wheel-up' ? 'A' : 'B'}`.repeat(lines))
}

/** For a program that asked to be told when its pane is looked at. Undefined: it did not. */
export function encodeFocus(isFocused: boolean, modes: Pick<ScreenModes, 'isFocusReporting'>): Uint8Array | undefined {
  return modes.isFocusReporting ? Buffer.from(isFocused ? '\x1b[I' : '\x1b[O') : undefined
}
