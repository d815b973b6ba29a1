/** Text to read and scroll through: the help. */
import { closeOnce, type DialogFactory, type DialogLine, isCancelKey } from './dialog.ts'

export type TextOptions = {
  readonly id: string
  readonly title: string
  readonly lines: readonly DialogLine[]
  readonly width: number
}

export const textDialog =
  ({ id, title, lines, width }: TextOptions): DialogFactory =>
  ({ onClose, onChange }) => {
    let offset = 0
    let height = 10
    const close = closeOnce(onClose)
    const clamp = (to: number): number => Math.max(0, Math.min(to, lines.length - height))
    const targetOf = (label: string): number | undefined => {
      if (label === 'Down' || label === 'j') return offset + 1
      if (label === 'Up' || label === 'k') return offset - 1
      if (label === 'PageDown' || label === 'Space') return offset + height
      if (label === 'PageUp') return offset - height
      if (label === 'Home' || label === 'g') return 0
      return label === 'End' || label === 'G' ? lines.length : undefined
    }
    return {
      view({ rows }) {
        height = Math.max(3, rows - 7)
        offset = clamp(offset)
        const last = Math.min(offset + height, lines.length)
        const isLong = lines.length > height
        return {
          id,
          title: isLong ? `${title}  ${offset + 1}–${last} of ${lines.length}` : title,
          lines: lines.slice(offset, last),
          keys: [...(isLong ? [['↑↓ PgUp PgDn', 'scroll'] as const] : []), ['Esc', 'close']],
          width,
        }
      },
      key(label) {
        if (isCancelKey(label) || ['q', '?', 'Enter'].includes(label)) return void close()
        const target = targetOf(label)
        if (target === undefined) return
        offset = clamp(target)
        onChange()
      },
      cancel: close,
    }
  }
