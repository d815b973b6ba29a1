/** A dialog of one line: a host set, a host to add, a text to search. What is typed is checked and previewed at each key. */

import type { KeyEvent } from '../keys/decode-input.ts'
import { keyLabel } from '../keys/key-label.ts'
import { closeOnce } from './close-once.ts'
import type { Dialog, DialogLine, DialogView } from './dialog.ts'
import { editLine, emptyLine, insertText, type Line, lineOf } from './line-editor.ts'

export type PromptCheck = { readonly error?: string; readonly preview?: readonly DialogLine[] }

/** What a line of the palette would do, and how to do it. */
export type LineCheck = PromptCheck & { submit(): void }

export type PromptOptions = {
  readonly id: string
  readonly title: string
  readonly label: string
  readonly initial?: string
  /** Taken where nothing is typed. */
  readonly fallback?: string
  readonly submitTitle: string
  readonly help?: readonly DialogLine[]
  check(text: string): PromptCheck
  onSubmit(text: string): void
  onClose(): void
  onChange(): void
}

export function createPromptDialog(options: PromptOptions): Dialog {
  let line: Line = options.initial ? lineOf(options.initial) : emptyLine
  let error: string | undefined

  const close = closeOnce(options.onClose)
  const edit = (next: Line): void => {
    line = next
    error = undefined
    options.onChange()
  }
  return {
    view(): DialogView {
      const check = line.text.trim() === '' ? {} : options.check(line.text)
      const shown = error ?? check.error
      return {
        id: options.id,
        title: options.title,
        input: {
          label: options.label,
          text: line.text,
          cursor: line.cursor,
          ...(options.fallback === undefined ? {} : { placeholder: options.fallback }),
          ...(shown === undefined ? {} : { error: shown }),
        },
        lines: (shown === undefined ? check.preview : undefined) ?? options.help ?? [],
        keys: [
          ['Enter', options.submitTitle],
          ['Esc', 'back'],
        ],
      }
    },
    key(event: KeyEvent): void {
      const label = keyLabel(event.key)
      if (label === 'Esc' || label === 'Ctrl-c' || label === 'Ctrl-g') return close()
      if (label === 'Enter') {
        const text = line.text.trim() === '' ? options.fallback : line.text
        error = text === undefined ? 'type something, or Esc' : options.check(text).error
        if (text === undefined || error !== undefined) return options.onChange()
        close()
        return options.onSubmit(text)
      }
      const next = editLine(line, event)
      if (next) edit(next)
    },
    paste: (text) => edit(insertText(line, text.trim())),
    cancel: close,
  }
}
