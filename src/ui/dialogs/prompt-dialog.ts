/** Dialogs with a line of input: one that checks and previews what is typed, and one that finds an item of many. */
import { defined } from '../../base/defined.ts'
import {
  closeOnce,
  type DialogFactory,
  type DialogLine,
  editLine,
  emptyLine,
  insertText,
  isCancelKey,
  type Line,
  lineOf,
  windowAround,
} from './dialog.ts'

export type PromptCheck = { readonly error?: string; readonly preview?: readonly DialogLine[] }

/** What a line of the palette would do, and how to do it. */
export type LineCheck = PromptCheck & { submit(): void }

export type PromptOptions = {
  readonly id: string
  readonly title: string
  readonly label: string
  readonly initial?: string
  /** Used when nothing is typed. */
  readonly fallback?: string
  readonly submitTitle: string
  readonly help?: readonly DialogLine[]
  /** Absent: any text is right. */
  check?(text: string): PromptCheck
  onSubmit(text: string): void
}

export const promptDialog =
  (options: PromptOptions): DialogFactory =>
  ({ onClose, onChange }) => {
    const { id, title, label, fallback, submitTitle, help = [], onSubmit } = options
    const check = (text: string): PromptCheck => options.check?.(text) ?? {}
    let line: Line = options.initial ? lineOf(options.initial) : emptyLine
    let error: string | undefined
    const close = closeOnce(onClose)
    const edit = (next: Line): void => {
      line = next
      error = undefined
      onChange()
    }
    const submit = (): void => {
      const text = line.text.trim() === '' ? fallback : line.text
      error = text === undefined ? 'type something, or press Esc' : check(text).error
      if (text === undefined || error !== undefined) return onChange()
      close()
      onSubmit(text)
    }
    return {
      view() {
        const checked: PromptCheck = line.text.trim() === '' ? {} : check(line.text)
        const shown = error ?? checked.error
        return {
          id,
          title,
          input: { label, ...line, ...defined({ placeholder: fallback, error: shown }) },
          lines: (shown === undefined ? checked.preview : undefined) ?? help,
          keys: [
            ['Enter', submitTitle],
            ['Esc', 'cancel'],
          ],
        }
      },
      key(label, event) {
        if (isCancelKey(label)) return void close()
        if (label === 'Enter') return submit()
        const next = editLine(line, event)
        if (next) edit(next)
      },
      paste: (text) => edit(insertText(line, text.trim())),
      cancel: close,
    }
  }

export type ListItem = {
  readonly id: string
  readonly label: string
  readonly detail?: string
  /** Searched, not shown: other names of it, then a text about it. */
  readonly synonyms?: string
  readonly keywords?: string
  /** At the right: the key that does the same. */
  readonly keyHint?: string
  readonly disabledReason?: string | undefined
}

export type ListOptions = {
  readonly id: string
  readonly title: string
  readonly label: string
  readonly submitTitle: string
  readonly items: readonly ListItem[]
  readonly emptyText: string
  /** A text that is a command of its own, which Enter runs; undefined: the text filters. */
  readLine?(text: string): LineCheck | undefined
  onSubmit(item: ListItem): void
}

/** All items with all words, the best first; without any, those whose label has the letters in this order. */
export function filterItems(items: readonly ListItem[], needle: string): readonly ListItem[] {
  const words = needle.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return items
  const ranked = items.flatMap((item) => {
    const rank = rankOf(item, words)
    return rank === undefined ? [] : [{ item, rank }]
  })
  if (ranked.length > 0) return ranked.toSorted((one, other) => one.rank - other.rank).map(({ item }) => item)
  const letters = words.join('')
  return items.filter(({ label }) => hasLetters(label.toLowerCase(), letters))
}

/** 0 is best; undefined: a word is missing. */
function rankOf(item: ListItem, words: readonly string[]): number | undefined {
  const label = item.label.toLowerCase()
  const synonyms = (item.synonyms ?? '').toLowerCase()
  const all = [label, synonyms, item.detail ?? '', item.keywords ?? ''].join(' ').toLowerCase()
  if (!words.every((word) => all.includes(word))) return undefined
  const phrase = words.join(' ')
  const ranks = [
    label.startsWith(phrase),
    words.every((word) => ` ${label}`.includes(` ${word}`)),
    words.every((word) => synonyms.split(' ').includes(word)),
    words.every((word) => label.includes(word)),
    words.every((word) => ` ${label} ${synonyms}`.includes(` ${word}`)),
  ]
  const at = ranks.indexOf(true)
  return at < 0 ? ranks.length : at
}

function hasLetters(text: string, letters: string): boolean {
  let from = 0
  for (const letter of letters) {
    const at = text.indexOf(letter, from)
    if (at < 0) return false
    from = at + 1
  }
  return true
}

export const listDialog =
  (options: ListOptions): DialogFactory =>
  ({ onClose, onChange }) => {
    const { id, title, label, items, emptyText, submitTitle, onSubmit } = options
    let line: Line = emptyLine
    let selected = 0
    let firstShown = 0
    let error: string | undefined
    const found = (): readonly ListItem[] => filterItems(items, line.text)
    const close = closeOnce(onClose)
    const move = (by: number): void => {
      const count = found().length
      if (count > 0) selected = (selected + by + count) % count
      error = undefined
      onChange()
    }
    const edit = (next: Line): void => {
      line = next
      selected = 0
      error = undefined
      onChange()
    }
    const submit = (): void => {
      const read = options.readLine?.(line.text)
      const item = found()[selected]
      if (read ? read.error !== undefined : !item) return
      if (!read && item?.disabledReason !== undefined) {
        error = item.disabledReason
        return onChange()
      }
      close()
      if (read) read.submit()
      else if (item) onSubmit(item)
    }
    const shownItems = (rows: number): readonly DialogLine[] => {
      const all = found()
      const none = items.length === 0 ? emptyText : `nothing matches “${line.text.trim()}”`
      if (all.length === 0) return [{ text: none, tone: 'muted' }]
      const room = Math.max(3, rows - 10)
      const isLong = all.length > room
      const height = isLong ? room - 1 : room
      const start = windowAround(selected, all.length, height)
      firstShown = start
      const shown = all.slice(start, start + height).map((item, index) => ({
        text: item.detail ? `${item.label}  ${item.detail}` : item.label,
        isSelected: start + index === selected,
        ...(item.disabledReason === undefined ? {} : { tone: 'muted' as const }),
        ...defined({ right: [item.disabledReason, item.keyHint].filter(Boolean).join('   ') || undefined }),
      }))
      return isLong ? [...shown, { text: moreText(start, all.length - start - height), tone: 'muted' }] : shown
    }
    return {
      view({ rows }) {
        const read = options.readLine?.(line.text)
        const shown = read ? read.error : error
        const input = { label, ...line, ...defined({ error: shown }) }
        if (read) return { id, title, input, lines: read.preview ?? [], keys: [['Enter', submitTitle], CANCEL] }
        return { id, title, input, lines: shownItems(rows), keys: [['↑↓', 'select'], ['Enter', submitTitle], CANCEL] }
      },
      key(label, event) {
        if (isCancelKey(label)) return void close()
        if (label === 'Enter') return submit()
        if (label === 'Down' || label === 'Ctrl-n' || label === 'Tab') return move(1)
        if (label === 'Up' || label === 'Ctrl-p' || label === 'Shift-Tab') return move(-1)
        if (label === 'PageDown') return move(Math.min(10, Math.max(1, found().length - 1 - selected)))
        if (label === 'PageUp') return move(-Math.min(10, Math.max(1, selected)))
        const next = editLine(line, event)
        if (next) edit(next)
      },
      pick(at) {
        const row = firstShown + at
        if (options.readLine?.(line.text) !== undefined || row >= found().length) return
        if (row === selected) return submit()
        move(row - selected)
      },
      paste: (text) => edit(insertText(line, text.trim())),
      cancel: close,
    }
  }

/** `↑ 3 more   ↓ 20 more` */
const moreText = (above: number, below: number): string =>
  [...(above > 0 ? [`↑ ${above} more`] : []), ...(below > 0 ? [`↓ ${below} more`] : [])].join('   ')

const CANCEL = ['Esc', 'cancel'] as const
