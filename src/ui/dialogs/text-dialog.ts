/** Text to read: the help, to scroll through, or a question that is answered with yes or no. */
import { defined } from '../../base/defined.ts'
import { moveOf } from '../keys/key-table.ts'
import {
  closeOnce,
  type Dialog,
  type DialogFactory,
  type DialogLine,
  editLine,
  emptyLine,
  isCancelKey,
  type Line,
} from './dialog.ts'

export type TextOptions = {
  readonly id: string
  readonly title: string
  /** Of the dialog, where the terminal has room for it. */
  readonly width: number
  /** At most so wide. `text` is typed after `/`: only what matches it; empty: all. */
  lines(columns: number, text: string): readonly DialogLine[]
  readonly isSearchable?: boolean
}

/** Of the dialog: its frame, margins and blanks. */
const AROUND_COLUMNS = 6
/** Rows without text: margins, frame, title, keys and two blank lines; an input takes two more. */
const AROUND_ROWS = 8
const WITH_INPUT_ROWS = AROUND_ROWS + 2

export const textDialog =
  ({ id, title, lines: linesOf, width: most, isSearchable = false }: TextOptions): DialogFactory =>
  ({ onClose, onChange }) => {
    let lines: readonly DialogLine[] = []
    /** What `lines` are made for. */
    let made: { readonly width: number; readonly text: string } | undefined
    let needle: Line = emptyLine
    let isSearching = false
    let offset = 0
    let height = 10
    const close = closeOnce(onClose)
    const search = (next: Line): void => {
      needle = next
      offset = 0
      onChange()
    }
    const clamp = (to: number): number => Math.max(0, Math.min(to, lines.length - height))
    const targetOf = (key: string): number | undefined => {
      const label = moveOf(key)
      if (label === 'Down' || label === 'j') return offset + 1
      if (label === 'Up' || label === 'k') return offset - 1
      if (label === 'PageDown' || label === 'Space') return offset + height
      if (label === 'PageUp') return offset - height
      if (label === 'Home') return 0
      return label === 'End' ? lines.length : undefined
    }
    return {
      view({ rows, columns }) {
        const width = Math.min(most, columns - 2)
        const text = needle.text.trim()
        if (made?.width !== width || made.text !== text) {
          lines = linesOf(Math.max(1, width - AROUND_COLUMNS), text)
          made = { width, text }
        }
        height = Math.max(3, rows - (isSearching || needle.text !== '' ? WITH_INPUT_ROWS : AROUND_ROWS))
        offset = clamp(offset)
        const last = Math.min(offset + height, lines.length)
        const isLong = lines.length > height
        return {
          id,
          title: isLong ? `${title}  ${offset + 1}–${last} of ${lines.length}` : title,
          ...(isSearching || needle.text !== ''
            ? { input: { label: 'Find:', ...needle, cursor: isSearching ? needle.cursor : needle.text.length } }
            : {}),
          lines:
            lines.length === 0 ? [{ text: `no key matches “${text}”`, tone: 'warning' }] : lines.slice(offset, last),
          keys: [
            ...(isLong ? [['↑↓ PgUp PgDn', 'scroll'] as const] : []),
            ...(isSearching ? [['Enter', 'keep'] as const] : isSearchable ? [['/', 'find'] as const] : []),
            ['Esc', needle.text === '' && !isSearching ? 'close' : 'show all'],
          ],
          width,
          isSteady: isSearchable,
        }
      },
      wheel(by) {
        offset = clamp(offset + by)
        onChange()
      },
      key(label, event) {
        if (isCancelKey(label) && (isSearching || needle.text !== '')) {
          isSearching = false
          return search(emptyLine)
        }
        if (isSearching) {
          const next = editLine(needle, event)
          if (label === 'Enter') isSearching = false
          if (label === 'Enter') return onChange()
          if (next) return search(next)
        } else {
          if (isCancelKey(label) || ['q', '?', 'Enter'].includes(label)) return void close()
          if (label === '/' && isSearchable) {
            isSearching = true
            return onChange()
          }
        }
        const target = targetOf(label)
        if (target === undefined) return
        offset = clamp(target)
        onChange()
      },
      cancel: close,
    }
  }

/** A dialog that is closed from outside when its question is void. */
export function withdrawable(make: DialogFactory): { readonly make: DialogFactory; withdraw(): void } {
  let dialog: Dialog | undefined
  return {
    make: (report) => {
      dialog = make(report)
      return dialog
    },
    withdraw: () => dialog?.cancel(),
  }
}

export type ConfirmOptions = {
  readonly id: string
  readonly title: string
  readonly lines: readonly DialogLine[] | ((rows: number) => readonly DialogLine[])
  readonly width?: number
  readonly yesTitle: string
  readonly noTitle?: string
  onYes(): void
  /**
   * A character that is no answer closes it: a command that is typed here by mistake must not reach the `y` in it. Only for tabs that
   * send nothing to hosts, as the rest of the command follows.
   */
  onText?(label: string): void
}

export const noAnswer = (label: string): string => `nothing was done: ${label} is no answer`

export const confirmDialog =
  ({ id, title, lines, width, yesTitle, noTitle = 'cancel', onYes, onText }: ConfirmOptions): DialogFactory =>
  ({ onClose }) => {
    const close = closeOnce(onClose)
    return {
      view: ({ rows }) => ({
        ...{ id, title, ...defined({ width }) },
        lines: typeof lines === 'function' ? lines(rows) : lines,
        tone: 'danger',
        keys: [
          ['y', yesTitle],
          ['Esc', noTitle],
        ],
      }),
      key(label) {
        if (label === 'y' || label === 'Y') {
          close()
          onYes()
        } else if (isCancelKey(label) || label === 'n' || label === 'N') close()
        else if (onText !== undefined && (label.length === 1 || label === 'Space')) {
          close()
          onText(label)
        }
      },
      cancel: close,
    }
  }
