/** What a terminal sends for keys that a test names: `Ctrl-]`, `Alt-x`, `Enter`, `Up`, or a character as it is. */

const NAMED: Readonly<Record<string, string>> = {
  Enter: '\r',
  Escape: '\x1b',
  Tab: '\t',
  Backspace: '\x7f',
  Space: ' ',
  Up: '\x1b[A',
  Down: '\x1b[B',
  Right: '\x1b[C',
  Left: '\x1b[D',
  Home: '\x1b[H',
  End: '\x1b[F',
  PageUp: '\x1b[5~',
  PageDown: '\x1b[6~',
  Delete: '\x1b[3~',
}

export function keyBytes(name: string): string {
  const named = NAMED[name]
  if (named !== undefined) return named
  if (name.startsWith('Alt-')) return `\x1b${keyBytes(name.slice(4))}`
  const control = /^Ctrl-(.)$/.exec(name)?.[1]
  if (control !== undefined) return String.fromCharCode(control.toUpperCase().charCodeAt(0) & 0x1f)
  if ([...name].length === 1) return name
  throw new Error(`no such key: ${name}`)
}

export type MouseAction = 'press' | 'drag' | 'release' | 'wheel-up' | 'wheel-down'

const BUTTONS: Readonly<Record<MouseAction, number>> = {
  press: 0,
  drag: 32,
  release: 0,
  'wheel-up': 64,
  'wheel-down': 65,
}

/** An SGR mouse report (mode 1006); `column` and `row` count from 0. */
export function mouseBytes(action: MouseAction, column: number, row: number): string {
  return `\x1b[<${BUTTONS[action]};${column + 1};${row + 1}${action === 'release' ? 'm' : 'M'}`
}

/** What a terminal sends for a paste once the program asked for bracketed paste: line ends are carriage returns. */
export function pasteBytes(text: string): string {
  return `\x1b[200~${text.replaceAll('\n', '\r')}\x1b[201~`
}
