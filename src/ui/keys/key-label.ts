/** One notation for keys, in the registry, preferences and documentation: `a`, `Space`, `Ctrl-]`, `Alt-n`, `Shift-Tab`, `PageUp`. */
import type { Key } from './decode-input.ts'

const NAMED = 'Up Down Left Right Home End PageUp PageDown Insert Delete Backspace Enter Tab Esc Space'.split(' ')
const NAMES = new Map(NAMED.map((label) => [label === 'Esc' ? 'escape' : label.toLowerCase(), label]))

export function keyLabel(key: Key): string {
  const named = NAMES.get(key.name) ?? (/^f\d+$/.test(key.name) ? key.name.toUpperCase() : undefined)
  const base = named ?? (key.ctrl || key.alt ? key.name : (key.text ?? key.name))
  // Shift is part of a printed character (`R`), but not of a named key.
  const shift = key.shift && named !== undefined && named !== 'Space' ? 'Shift-' : ''
  return `${key.ctrl ? 'Ctrl-' : ''}${key.alt ? 'Alt-' : ''}${shift}${base}`
}

const LABEL = new RegExp(`^(?:Ctrl-)?(?:Alt-)?(?:Shift-)?(?:${NAMED.join('|')}|F\\d{1,2}|[!-~])$`)

export const isKeyLabel = (text: string): boolean => LABEL.test(text)
