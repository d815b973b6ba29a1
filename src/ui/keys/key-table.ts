/** The notation of keys, and the keys of a view: its footer, the help and docs/keys.md derive from this table. */
import type { Key } from './decode-input.ts'

const NAMED = 'Up Down Left Right Home End PageUp PageDown Insert Delete Backspace Enter Tab Esc Space'.split(' ')
const NAMES = new Map(NAMED.map((label) => [label === 'Esc' ? 'escape' : label.toLowerCase(), label]))

/** As in the registry, preferences and documentation: `a`, `Space`, `Ctrl-]`, `Alt-n`, `Shift-Tab`, `PageUp`. */
export function keyLabel(key: Key): string {
  const named = NAMES.get(key.name) ?? (/^f\d+$/.test(key.name) ? key.name.toUpperCase() : undefined)
  const base = named ?? (key.ctrl || key.alt ? key.name : (key.text ?? key.name))
  // Shift is part of a printed character (`R`), but not of a named key.
  const shift = key.shift && named !== undefined && named !== 'Space' ? 'Shift-' : ''
  return `${key.ctrl ? 'Ctrl-' : ''}${key.alt ? 'Alt-' : ''}${shift}${base}`
}

/** How a key is written. With Ctrl a letter is small, as a terminal knows no other. */
export const KEY_LABEL = new RegExp(
  `^(?!Ctrl-(?:Alt-)?[A-Z]$)(?:Ctrl-)?(?:Alt-)?(?:Shift-)?(?:${NAMED.join('|')}|F\\d{1,2}|[!-~])$`,
)

/** For the keys with which a key is a command: not one that types something, nor one that terminals send as such a key. */
export const LEADER_LABEL = new RegExp(
  `^(?=(?:Ctrl|Alt)-|F\\d)(?!(?:Ctrl-(?:Alt-)?(?:[im]|[^a-z\\\\\\]^_]|Enter|Tab|Esc)|Alt-Esc)$)${KEY_LABEL.source.slice(1)}`,
)

/** With Ctrl; other digits and signs are sent as themselves. */
const SENT_AS: Readonly<Record<string, string>> = {
  ...{ i: 'Tab', m: 'Enter', '[': 'Esc', '@': 'Ctrl-Space', '/': 'Ctrl-_', '?': 'Backspace' },
  ...{ 2: 'Ctrl-Space', 3: 'Esc', 4: 'Ctrl-\\', 5: 'Ctrl-]', 6: 'Ctrl-^', 7: 'Ctrl-_', 8: 'Backspace' },
}

/** The key that terminals send for this one, which therefore cannot be the leader; undefined: there is none. */
export function leaderSentAs(label: string): string | undefined {
  const key = label.replace(/^(?:(?:Ctrl|Alt)-)+/, '')
  return key === label || !isKeyLabel(label) || LEADER_LABEL.test(label) ? undefined : (SENT_AS[key] ?? key)
}

/** What a key is called here that was written as in tmux or emacs (`C-a`, `^a`, `M-x`), or with other capitals; undefined: unknown. */
export function labelFor(text: string): string | undefined {
  const [, modifier = '', key = ''] = /^(C-|\^|Ctrl[-+]|Control[-+]|M-|A-|Alt[-+]|Meta[-+])(.+)$/i.exec(text) ?? []
  const isAlt = /^[ma]/i.test(modifier)
  const named = NAMED.find((name) => name.toLowerCase() === (modifier === '' ? text : key).toLowerCase())
  const label =
    modifier === '' ? (named ?? '') : `${isAlt ? 'Alt' : 'Ctrl'}-${named ?? (isAlt ? key : key.toLowerCase())}`
  return label !== text && isKeyLabel(label) ? label : undefined
}

export const isKeyLabel = (text: string): boolean => KEY_LABEL.test(text)

/** `S`: the state that decides which keys do something now. */
export type KeyEntry<S> = {
  readonly id: string
  readonly keys: readonly string[]
  /** A few words for the footer; undefined: not in the footer. */
  readonly title?: string
  readonly help: string
  /** Whether it is in the footer now; always unless given. */
  readonly isActive?: (state: S) => boolean
}

type KeyRow<S> = readonly [
  id: string,
  /** Separated by blanks; the footer shows the first. */
  keys: string,
  /** Empty: not in the footer. */
  title: string,
  help: string,
  isActive?: (state: S) => boolean,
]

/** A table written row by row, in the order of the footer: id, keys, footer label, help, when it applies. */
export const keyTable =
  <S>() =>
  <const R extends readonly KeyRow<S>[]>(...rows: R): readonly (KeyEntry<S> & { readonly id: R[number][0] })[] =>
    rows.map(([id, keys, title, help, isActive]: KeyRow<S>) => ({
      id: id as R[number][0],
      keys: keys.split(' '),
      help,
      ...(title === '' ? {} : { title }),
      ...(isActive === undefined ? {} : { isActive }),
    }))

/** These keys go back one level and do nothing at the root of a tab, whatever other entries they have. */
const BACK = new Set(['Esc', 'q'])

/** Keys of less, vi and k9s for a page and for the ends, where a view gives them no other meaning. */
const MOVES: Readonly<Record<string, string>> = {
  'Ctrl-f': 'PageDown',
  'Ctrl-d': 'PageDown',
  'Ctrl-b': 'PageUp',
  'Ctrl-u': 'PageUp',
  g: 'Home',
  G: 'End',
}

/** The key that this one stands for in a view that gives it no meaning of its own. */
export const moveOf = (label: string): string => MOVES[label] ?? label

type KeyCommands<I extends string, S> = readonly (KeyEntry<S> & { readonly id: I })[]

/** If a key has several entries, the one that applies now, or else the first. */
export function commandOf<I extends string, S>(table: KeyCommands<I, S>, label: string, state?: S): I | undefined {
  const active = state === undefined ? undefined : activeCommandOf(table, label, state)
  const isBack = state !== undefined && BACK.has(label)
  return active ?? (isBack ? undefined : entriesOf(table, label)[0]?.id)
}

/** Undefined: the key does nothing now. */
export const activeCommandOf = <I extends string, S>(
  table: KeyCommands<I, S>,
  label: string,
  state: S,
): I | undefined => entriesOf(table, label).find(({ isActive }) => isActive?.(state) !== false)?.id

function entriesOf<I extends string, S>(table: KeyCommands<I, S>, label: string): KeyCommands<I, S> {
  const having = (key: string) => table.filter(({ keys }) => keys.includes(key))
  const same = having(label)
  return same.length > 0 ? same : having(moveOf(label))
}

/** Key and words for the footer. */
export function hintsOf<S>(table: readonly KeyEntry<S>[], state: S): (readonly [string, string])[] {
  return table.flatMap(({ keys, title, isActive }) =>
    title === undefined || isActive?.(state) === false ? [] : [[keys[0] ?? '', title] as const],
  )
}
