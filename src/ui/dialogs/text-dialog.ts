/** Text to read and scroll through: the help. */
import { keyLabel } from '../keys/key-label.ts'
import { closeOnce } from './close-once.ts'
import type { Dialog, DialogLine } from './dialog.ts'

export type TextOptions = {
  readonly id: string
  readonly title: string
  readonly lines: readonly DialogLine[]
  readonly width?: number
  onClose(): void
  onChange(): void
}

export function createTextDialog(options: TextOptions): Dialog {
  let offset = 0
  let height = 10
  const close = closeOnce(options.onClose)
  const scroll = (to: number): void => {
    offset = Math.max(0, Math.min(to, options.lines.length - height))
    options.onChange()
  }
  return {
    view({ rows }) {
      height = Math.max(3, rows - 7)
      offset = Math.max(0, Math.min(offset, options.lines.length - height))
      const last = Math.min(offset + height, options.lines.length)
      const isLong = options.lines.length > height
      return {
        id: options.id,
        title: isLong ? `${options.title}  ${offset + 1}–${last} of ${options.lines.length}` : options.title,
        lines: options.lines.slice(offset, last),
        keys: isLong
          ? [
              ['↑↓ PgUp PgDn', 'scroll'],
              ['Esc', 'back'],
            ]
          : [['Esc', 'back']],
        ...(options.width === undefined ? {} : { width: options.width }),
      }
    },
    key(event) {
      const label = keyLabel(event.key)
      if (label === 'Down' || label === 'j') scroll(offset + 1)
      else if (label === 'Up' || label === 'k') scroll(offset - 1)
      else if (label === 'PageDown' || label === 'Space') scroll(offset + height)
      else if (label === 'PageUp') scroll(offset - height)
      else if (label === 'Home' || label === 'g') scroll(0)
      else if (label === 'End' || label === 'G') scroll(options.lines.length)
      else if (['Esc', 'q', '?', 'Enter', 'Ctrl-c'].includes(label)) close()
    },
    paste() {
      // Nothing to paste into.
    },
    cancel: close,
  }
}
