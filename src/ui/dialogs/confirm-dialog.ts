/** A yes-or-no question. Nothing but its own key says yes, so that a key typed by habit does no harm. */
import { keyLabel } from '../keys/key-label.ts'
import { closeOnce } from './close-once.ts'
import type { Dialog, DialogLine } from './dialog.ts'

export type ConfirmOptions = {
  readonly id: string
  readonly title: string
  readonly lines: readonly DialogLine[]
  readonly yesTitle: string
  readonly noTitle?: string
  onYes(): void
  onClose(): void
}

export function createConfirmDialog(options: ConfirmOptions): Dialog {
  const close = closeOnce(options.onClose)
  return {
    view: () => ({
      id: options.id,
      title: options.title,
      lines: options.lines,
      tone: 'danger',
      keys: [
        ['y', options.yesTitle],
        ['Esc', options.noTitle ?? 'back'],
      ],
    }),
    key(event) {
      const label = keyLabel(event.key)
      if (label === 'y' || label === 'Y') {
        close()
        options.onYes()
      } else if (label === 'Esc' || label === 'n' || label === 'N' || label === 'Ctrl-c') close()
    },
    paste() {
      // A paste never answers a question.
    },
    cancel: close,
  }
}
