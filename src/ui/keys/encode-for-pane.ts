/**
 * What a key, a paste or a mouse event becomes for one host, in the modes that its program switched on: the same arrow is
 * right for the shell of one host and for the editor of another. Pure. Source: xterm ctlseqs, terminfo xterm-256color.
 */
import type { ScreenModes } from '../../terminal/headless-screen.ts'
import {
  FINAL_NAMES,
  type KeyEvent,
  MOUSE_BUTTONS,
  type MouseEvent,
  TILDE_NAMES,
  WHEEL_BUTTONS,
} from './decode-input.ts'

const swapped = (names: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(names).map(([code, name]) => [name, code]))
const FINALS = swapped(FINAL_NAMES)
const TILDE_NUMBERS = swapped(TILDE_NAMES)
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
  const final = FINALS[key.name]
  if (final !== undefined) {
    const isSs3 = isApplicationCursor || /^f\d/.test(key.name)
    return bits > 0 ? `\x1b[1;${bits + 1}${final}` : `\x1b${isSs3 ? 'O' : '['}${final}`
  }
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

/** C0 but tab and line ends, DEL and C1: a paste types text, it cannot act. */
const ACTING = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g

/** Text that is only typed, and how many characters were left out of it. */
export function pastedText(text: string): { readonly text: string; readonly leftOut: number } {
  const clean = text.replace(ACTING, '')
  return { text: clean, leftOut: text.length - clean.length }
}

export function encodePaste(text: string, modes: Pick<ScreenModes, 'isBracketedPaste'>): Uint8Array {
  const clean = pastedText(text).text.replace(/\r\n?|\n/g, '\r')
  return Buffer.from(modes.isBracketedPaste ? `\x1b[200~${clean}\x1b[201~` : clean)
}

const BUTTON_CODES = new Map<string, number>([
  ...MOUSE_BUTTONS.map((button, code) => [button, code] as const),
  ...WHEEL_BUTTONS.map((button, code) => [button, code + 64] as const),
])

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
  const code = (BUTTON_CODES.get(button) ?? 0) + (action === 'move' ? 32 : 0) + held
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
