/** A dialog that finds one thing of many: the palette, groups, macros. Typing filters; every word has to occur. */

import type { KeyEvent } from '../keys/decode-input.ts'
import { keyLabel } from '../keys/key-label.ts'
import { closeOnce } from './close-once.ts'
import type { Dialog, DialogLine, DialogView } from './dialog.ts'
import { editLine, emptyLine, insertText, type Line } from './line-editor.ts'
import type { LineCheck, PromptCheck } from './prompt-dialog.ts'

export type ListItem = {
  readonly id: string
  readonly label: string
  readonly detail?: string
  /** Found by, but not shown. */
  readonly keywords?: string
  /** Shown at the right: the key that does the same. */
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
  /** What was typed is a line of its own kind, which Enter submits; undefined: it filters. */
  readLine?(text: string): LineCheck | undefined
  onSubmit(item: ListItem): void
  onClose(): void
  onChange(): void
}

export function filterItems(items: readonly ListItem[], needle: string): ListItem[] {
  const words = needle.toLowerCase().split(/\s+/).filter(Boolean)
  const found = items.filter((item) => {
    const text = `${item.label} ${item.detail ?? ''} ${item.keywords ?? ''}`.toLowerCase()
    return words.every((word) => text.includes(word))
  })
  const [first] = words
  // What begins with the first word is what was meant most often.
  if (first === undefined) return found
  const rank = ({ label }: ListItem): number =>
    label.toLowerCase().startsWith(first) ? 0 : label.toLowerCase().includes(first) ? 1 : 2
  return found.sort((a, b) => rank(a) - rank(b))
}

export function createListDialog(options: ListOptions): Dialog {
  let line: Line = emptyLine
  let selected = 0
  let error: string | undefined
  const found = (): ListItem[] => filterItems(options.items, line.text)

  const close = closeOnce(options.onClose)
  const move = (by: number): void => {
    const count = found().length
    if (count > 0) selected = (selected + by + count) % count
    error = undefined
    options.onChange()
  }
  const edit = (next: Line): void => {
    line = next
    selected = 0
    error = undefined
    options.onChange()
  }
  return {
    view({ rows }): DialogView {
      const read = options.readLine?.(line.text)
      if (read) return lineView(options, line, read)
      const items = found()
      const height = Math.max(3, rows - 9)
      const start = Math.min(Math.max(0, selected - Math.floor(height / 2)), Math.max(0, items.length - height))
      const lines: DialogLine[] = items.slice(start, start + height).map((item, index) => ({
        text: item.detail ? `${item.label}  ${item.detail}` : item.label,
        isSelected: start + index === selected,
        ...(item.disabledReason === undefined ? {} : { tone: 'muted' as const }),
        ...((item.disabledReason ?? item.keyHint) ? { right: item.disabledReason ?? item.keyHint ?? '' } : {}),
      }))
      return {
        id: options.id,
        title: options.title,
        input: {
          label: options.label,
          text: line.text,
          cursor: line.cursor,
          ...(error === undefined ? {} : { error }),
        },
        lines:
          lines.length > 0
            ? lines
            : [{ text: options.items.length === 0 ? options.emptyText : 'nothing matches', tone: 'muted' }],
        keys: [
          ['↑↓', 'choose'],
          ['Enter', options.submitTitle],
          ['Esc', 'back'],
        ],
      }
    },
    key(event: KeyEvent): void {
      const label = keyLabel(event.key)
      if (label === 'Esc' || label === 'Ctrl-c' || label === 'Ctrl-g') return close()
      if (label === 'Down' || label === 'Ctrl-n' || label === 'Tab') return move(1)
      if (label === 'Up' || label === 'Ctrl-p' || label === 'Shift-Tab') return move(-1)
      if (label === 'PageDown') return move(Math.min(10, Math.max(1, found().length - 1 - selected)))
      if (label === 'PageUp') return move(-Math.min(10, Math.max(1, selected)))
      const read = label === 'Enter' ? options.readLine?.(line.text) : undefined
      if (read) {
        if (read.error !== undefined) return
        close()
        return read.submit()
      }
      if (label === 'Enter') {
        const item = found()[selected]
        if (!item) return
        if (item.disabledReason !== undefined) {
          error = item.disabledReason
          return options.onChange()
        }
        close()
        return options.onSubmit(item)
      }
      const next = editLine(line, event)
      if (next) edit(next)
    },
    paste: (text) => edit(insertText(line, text.trim())),
    cancel: close,
  }
}

const lineView = (
  { id, title, label }: ListOptions,
  { text, cursor }: Line,
  { error, preview }: PromptCheck,
): DialogView => ({
  id,
  title,
  input: { label, text, cursor, ...(error === undefined ? {} : { error }) },
  lines: preview ?? [],
  keys: [
    ['Enter', 'do it'],
    ['Esc', 'back'],
  ],
})
