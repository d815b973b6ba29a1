/** A dialog of one line: a host set, a host to add, a text to search. Each key checks and previews what is typed. */
import { defined } from '../../base/defined.ts'
import { closeOnce, type DialogFactory, type DialogLine, isCancelKey } from './dialog.ts'
import { editLine, emptyLine, insertText, type Line, lineOf } from './line-editor.ts'

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
