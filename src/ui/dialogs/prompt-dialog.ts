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
  /** Searched, not shown. */
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

export function filterItems(items: readonly ListItem[], needle: string): ListItem[] {
  const words = needle.toLowerCase().split(/\s+/).filter(Boolean)
  const found = items.filter((item) => {
    const text = `${item.label} ${item.detail ?? ''} ${item.keywords ?? ''}`.toLowerCase()
    return words.every((word) => text.includes(word))
  })
  const [first] = words
  if (first === undefined) return found
  const rank = ({ label }: ListItem): number =>
    label.toLowerCase().startsWith(first) ? 0 : label.toLowerCase().includes(first) ? 1 : 2
  return found.sort((a, b) => rank(a) - rank(b))
}

export const listDialog =
  (options: ListOptions): DialogFactory =>
  ({ onClose, onChange }) => {
    const { id, title, label, items, emptyText, submitTitle, onSubmit } = options
    let line: Line = emptyLine
    let selected = 0
    let firstShown = 0
    let error: string | undefined
    const found = (): ListItem[] => filterItems(items, line.text)
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
      if (all.length === 0) return [{ text: items.length === 0 ? emptyText : 'no match', tone: 'muted' }]
      const height = Math.max(3, rows - 9)
      const start = windowAround(selected, all.length, height)
      firstShown = start
      return all.slice(start, start + height).map((item, index) => ({
        text: item.detail ? `${item.label}  ${item.detail}` : item.label,
        isSelected: start + index === selected,
        ...(item.disabledReason === undefined ? {} : { tone: 'muted' as const }),
        ...defined({ right: (item.disabledReason ?? item.keyHint) || undefined }),
      }))
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

const CANCEL = ['Esc', 'cancel'] as const
