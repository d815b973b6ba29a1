/** A yes-or-no question. Only its own key says yes, so that a key typed by habit does no harm. */
import { closeOnce, type DialogFactory, type DialogLine, isCancelKey } from './dialog.ts'

export type ConfirmOptions = {
  readonly id: string
  readonly title: string
  readonly lines: readonly DialogLine[]
  readonly yesTitle: string
  readonly noTitle?: string
  onYes(): void
}

export const confirmDialog =
  ({ id, title, lines, yesTitle, noTitle = 'cancel', onYes }: ConfirmOptions): DialogFactory =>
  ({ onClose }) => {
    const close = closeOnce(onClose)
    return {
      view: () => ({
        id,
        title,
        lines,
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
      },
      cancel: close,
    }
  }
