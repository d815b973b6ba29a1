/**
 * Text for several hosts, held for review in a small editor. Only Ctrl-s sends it, and the title says to how many hosts.
 */
import { counted } from '../../base/counted.ts'
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { closeOnce, type DialogFactory, type DialogLine, editLine, isCancelKey, type Line } from './dialog.ts'

export type PasteOptions = {
  readonly text: string
  readonly hosts: readonly string[]
  onSend(text: string): void
  /** `text` is what was there, so that it can be opened again. */
  onDiscard(text: string): void
}

const SHOWN_TAB = '→   '

/** Control characters made visible; tabs as arrows. */
const shown = (text: string): string => printable(text.replaceAll('\t', SHOWN_TAB))

export const pasteDialog =
  ({ text: given, hosts, onSend, onDiscard }: PasteOptions): DialogFactory =>
  ({ onClose, onChange }) => {
    let lines = given.replace(/\r\n?/g, '\n').split('\n')
    let row = lines.length - 1
    let cursor = lines[row]?.length ?? 0

    const close = closeOnce(onClose)
    const text = (): string => lines.join('\n')
    const current = (): string => lines[row] ?? ''
    const moveTo = (nextRow: number): void => {
      row = Math.max(0, Math.min(lines.length - 1, nextRow))
      cursor = Math.min(cursor, current().length)
    }
    const insert = (inserted: string): void => {
      const parts = inserted.replace(/\r\n?/g, '\n').split('\n')
      const before = current().slice(0, cursor)
      const after = current().slice(cursor)
      parts[0] = before + (parts[0] ?? '')
      const last = parts.length - 1
      const end = (parts[last] ?? '').length
      parts[last] = (parts[last] ?? '') + after
      lines = lines.toSpliced(row, 1, ...parts)
      row += last
      cursor = end
    }
    const edit = (line: Line): void => {
      lines = lines.with(row, line.text)
      cursor = line.cursor
    }
    return {
      view(room) {
        const height = Math.max(2, room.rows - 8)
        const start = Math.max(0, Math.min(row - height + 1 + Math.floor(height / 3), lines.length - height))
        const width = String(lines.length).length
        const body: DialogLine[] = lines.slice(Math.max(0, start), Math.max(0, start) + height).map((line, index) => {
          const at = Math.max(0, start) + index
          const number = `${String(at + 1).padStart(width)} │ `
          return at === row
            ? { text: `${number}${shown(line.slice(0, cursor))}▏${shown(line.slice(cursor))}`, isSelected: true }
            : { text: number + shown(line) }
        })
        const count = hosts.length
        // A line break at the end does not start another line.
        const sent = lines.length > 1 && lines.at(-1) === '' ? lines.length - 1 : lines.length
        return {
          id: 'paste-review',
          title: `${given === '' ? 'Compose for' : `Paste ${counted(sent, 'line')} into`} ${counted(count, 'host')}: ${foldHostSet(hosts)}`,
          lines: body,
          tone: 'danger',
          keys: [
            ['Ctrl-s', `send to ${count}`],
            ['Enter', 'new line'],
            ['Esc', 'close, keep the text'],
          ],
          width: 100,
          isSteady: true,
        }
      },
      key(label, event) {
        if (label === 'Ctrl-s') {
          close()
          return onSend(text())
        }
        if (isCancelKey(label)) {
          close()
          return onDiscard(text())
        }
        if (label === 'Enter') insert('\n')
        else if (label === 'Tab') insert('\t')
        else if (label === 'Up') moveTo(row - 1)
        else if (label === 'Down') moveTo(row + 1)
        else if (label === 'PageUp') moveTo(row - 10)
        else if (label === 'PageDown') moveTo(row + 10)
        else if (label === 'Backspace' && cursor === 0 && row > 0) {
          const above = lines[row - 1] ?? ''
          lines = lines.toSpliced(row - 1, 2, above + current())
          row -= 1
          cursor = above.length
        } else if (label === 'Ctrl-k' && cursor === current().length && row < lines.length - 1) {
          lines = lines.toSpliced(row, 2, current() + (lines[row + 1] ?? ''))
        } else {
          const next = editLine({ text: current(), cursor }, event)
          if (!next) return
          edit(next)
        }
        onChange()
      },
      paste(pasted) {
        insert(pasted)
        onChange()
      },
      cancel: close,
    }
  }
