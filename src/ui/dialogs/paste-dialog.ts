/**
 * Text for several hosts, held for review in a small editor. Only Ctrl-s sends it, and the title says to how many hosts.
 * Long lines are wrapped and long runs of blanks are marked, so that nothing is sent that cannot be seen.
 */
import { counted } from '../../base/counted.ts'
import { printable } from '../../base/printable.ts'
import { ASCII, segmenter, textWidth, wrapText } from '../../base/text-width.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import {
  closeOnce,
  type DialogFactory,
  type DialogLine,
  type DialogView,
  editLine,
  isCancelKey,
  type Line,
} from './dialog.ts'
import { keyRows } from './key-hints.ts'

/** Its keys, for the help and docs/keys.md. */
export const PASTE_KEYS = [
  { keys: ['Ctrl-s'], help: 'Send the text to the hosts in the title. Only this key does.' },
  {
    keys: ['Esc'],
    help: 'Close the review and keep the text. To open it again, use the same command.',
  },
  { keys: ['Ctrl-c', 'Ctrl-g'], help: 'Close the review as Esc does.' },
  { keys: ['Enter'], help: 'Begin a new line.' },
  { keys: ['Ctrl-o'], help: 'Show another text that was kept.' },
  { keys: ['Ctrl-x'], help: 'Delete the text; pressed twice.' },
  { keys: ['Ctrl-a', 'Ctrl-e', 'Ctrl-u', 'Ctrl-k', 'Ctrl-w'], help: 'Edit the line as in a shell.' },
] as const

export type PasteOptions = {
  readonly text: string
  /** It was written here, not pasted. */
  readonly isComposed: boolean
  /** Hosts ask for something that may be a password: it is not shown, and not kept. */
  readonly isSecret?: boolean
  /** When it was opened. */
  readonly hosts: readonly string[]
  /** Whether it would get the text now. */
  isLive(host: string): boolean
  /** Its program asked for pastes in brackets. */
  isBracketed(host: string): boolean
  onSend(text: string): void
  /** It was not sent. `text` is what is kept of it, so that it can be opened again. */
  onClosed(text: string): void
  /** Texts that were kept before; 0: none. */
  readonly others: number
  /** Keeps this text and shows the one before it. */
  onOther(text: string): void
}

const SHOWN_TAB = '→   '

/** As many blanks in a row are marked: they could push a command out of sight. */
const BLANKS = /\p{Zs}{9,}/gu

/** As long as the line. */
const markBlanks = (line: string): string => line.replace(BLANKS, (blanks) => '·'.repeat(blanks.length))

/** Control characters made visible; tabs as arrows. */
const shown = (text: string): string => printable(text.replaceAll('\t', SHOWN_TAB))

const hidden = (text: string): string => '•'.repeat(text.length)

/** A row of the dialog: this part of a line. */
type Row = { readonly line: number; readonly from: number; readonly to: number }

/** Where the rows of a line begin that is wrapped at any character. */
function rowStarts(line: string, columns: number): readonly number[] {
  if (ASCII.test(line))
    return Array.from({ length: Math.max(1, Math.ceil(line.length / columns)) }, (_, at) => at * columns)
  const starts = [0]
  let width = 0
  for (const { segment, index } of segmenter.segment(line)) {
    const next = textWidth(shown(segment))
    if (width > 0 && width + next > columns) {
      starts.push(index)
      width = 0
    }
    width += next
  }
  return starts
}

const DIALOG_COLUMNS = 100
/** Rows of the dialog that are not text or keys: its margins, frame, title and blank lines. */
const BESIDE_ROWS = 7
/** On a screen with so many rows, its keys may take a second row. */
const WRAPPING_ROWS = 18
const AS_PASTE: DialogLine = { text: 'Sent as a paste: most shells run it only after your Enter.', tone: 'muted' }
const AS_TYPED = '(no bracketed paste): a shell runs each line at once'
/** Of the dialog: its frame, the mark of the selected row, a column at the right, and the cursor. */
const BESIDE_TEXT = 7
/** Of the dialog: its frame and the margins of text to read. */
const BESIDE_REMARK = 6

export const pasteDialog =
  ({
    text: given,
    isComposed,
    isSecret = false,
    hosts,
    isLive,
    isBracketed,
    onSend,
    onClosed,
    others,
    onOther,
  }: PasteOptions): DialogFactory =>
  ({ onClose, onChange }) => {
    let lines = given.replace(/\r\n?/g, '\n').split('\n')
    let row = lines.length - 1
    let cursor = lines[row]?.length ?? 0

    /** Ctrl-x was the last key. */
    let isDeleting = false

    const show = isSecret ? hidden : shown
    const hadNone = !hosts.some(isLive)
    const close = closeOnce(onClose)
    const text = (): string => lines.join('\n')
    const current = (): string => lines[row] ?? ''
    /** Of the text of a row, as drawn last. */
    let columns = DIALOG_COLUMNS
    /** Of the last line that was asked for: keys and drawing ask for that of the cursor again and again. */
    let known: { readonly text: string; readonly columns: number; readonly starts: readonly number[] } | undefined
    const rowsOf = (line: number): readonly Row[] => {
      const text = markBlanks(lines[line] ?? '')
      if (known?.text !== text || known.columns !== columns) known = { text, columns, starts: rowStarts(text, columns) }
      const { starts } = known
      return starts.map((from, at) => ({ line, from, to: starts[at + 1] ?? text.length }))
    }
    /** The row with the cursor among those of its line. */
    const cursorRow = (rows: readonly Row[]): number =>
      Math.max(
        0,
        rows.findLastIndex(({ from }) => from <= cursor),
      )
    /** To the row above or below, which may be of the same line. */
    const step = (by: 1 | -1): void => {
      const own = rowsOf(row)
      const at = cursorRow(own)
      const isInLine = own[at + by] !== undefined
      const line = isInLine ? row : row + by
      if (line < 0 || line >= lines.length) return
      const rows = isInLine ? own : rowsOf(line)
      const target = isInLine ? own[at + by] : by > 0 ? rows[0] : rows.at(-1)
      if (target === undefined) return
      // What is behind the last character of a row is the next row, unless the line ends there.
      const last = target === rows.at(-1) ? target.to : target.to - 1
      const column = cursor - (own[at]?.from ?? 0)
      row = line
      cursor = Math.min(last, target.from + column)
    }
    const steps = (count: number, by: 1 | -1): void => {
      for (let done = 0; done < count; done += 1) step(by)
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
        const width = String(lines.length).length
        const outer = Math.min(DIALOG_COLUMNS, room.columns - 2)
        columns = Math.max(1, outer - BESIDE_TEXT - width - ' │ '.length)
        const lost = hosts.filter((host) => !isLive(host))
        const live = hosts.filter(isLive)
        const asTyped = live.filter((host) => !isBracketed(host))
        const isTyped = lines.length > 1 && asTyped.length > 0
        const onSome = asTyped.length < live.length ? ` on ${foldHostSet(asTyped)}` : ''
        const said: readonly DialogLine[] = [
          ...(isComposed && asTyped.length < live.length ? [AS_PASTE] : []),
          ...(isTyped ? [{ text: `as if typed${onSome} ${AS_TYPED}`, tone: 'warning' } as const] : []),
          ...(lost.length > 0
            ? [
                {
                  text: `not to ${foldHostSet(lost)}: ${hadNone ? 'no keys yet' : 'lost since this was opened'}`,
                  tone: 'warning',
                } as const,
              ]
            : []),
          ...(isSecret
            ? [{ text: 'Not shown: it may be a password that a host asks for.', tone: 'warning' } as const]
            : []),
          ...(isDeleting ? [{ text: 'Ctrl-x again deletes the text', tone: 'warning' } as const] : []),
          ...(others > 0
            ? [{ text: `${counted(others, 'other text')} kept: Ctrl-o shows it`, tone: 'muted' } as const]
            : []),
        ]
        // Beside a selected line, no line of a dialog is wrapped.
        const remarks = said.flatMap((line) =>
          wrapText(line.text, Math.max(1, outer - BESIDE_REMARK)).map((text) => ({ ...line, text })),
        )
        const buttons: Pick<DialogView, 'keys' | 'wrapsKeys'> = {
          keys: [
            ['Ctrl-s', `send to ${live.length}`],
            ['Enter', 'new line'],
            ['Ctrl-x', 'delete'],
            ...(others > 0 ? [['Ctrl-o', 'other text'] as const] : []),
            ['Esc', isSecret ? 'close' : 'close, keep text'],
          ],
          wrapsKeys: room.rows >= WRAPPING_ROWS,
        }
        const keyCount = keyRows(buttons, outer - 2).length
        const most = Math.max(2, room.rows - BESIDE_ROWS - keyCount - remarks.length)
        const own = rowsOf(row)
        const at = cursorRow(own)
        // As many above and below as can be shown at most, since a text may have millions.
        let above = own.slice(Math.max(0, at - most), at)
        for (let line = row - 1; line >= 0 && above.length < most; line -= 1)
          above = [...rowsOf(line).slice(-most), ...above]
        let below = own.slice(at, at + most)
        for (let line = row + 1; line < lines.length && below.length < most; line += 1)
          below = [...below, ...rowsOf(line).slice(0, most)]
        const rows = [...above, ...below]
        const selected = above.length
        const height = rows.length > most ? most - 1 : most
        const start = Math.max(0, Math.min(selected - height + 1 + Math.floor(height / 3), rows.length - height))
        const inView = rows.slice(start, start + height)
        const [first, last] = [inView[0], inView.at(-1)]
        const outside = [
          ...(first === undefined || first.line + first.from === 0 ? [] : ['↑ more']),
          ...(last === undefined || (last.line === lines.length - 1 && last.to === lines.at(-1)?.length)
            ? []
            : ['↓ more']),
        ]
        const body: DialogLine[] = inView.map(({ line, from, to }, index) => {
          const text = markBlanks(lines[line] ?? '')
          const head = `${(from === 0 ? String(line + 1) : '').padStart(width)} │ `
          return start + index === selected
            ? { text: `${head}${show(text.slice(from, cursor))}▏${show(text.slice(cursor, to))}`, isSelected: true }
            : { text: head + show(text.slice(from, to)) }
        })
        if (outside.length > 0) body.push({ text: outside.join('   '), tone: 'muted' })
        body.push(...remarks)
        const count = live.length
        // A line break at the end does not start another line.
        const sent = lines.length > 1 && lines.at(-1) === '' ? lines.length - 1 : lines.length
        return {
          id: isComposed ? 'compose' : 'paste-review',
          title: `${isComposed ? 'Compose for' : `Paste ${counted(sent, 'line')} into`} ${counted(count, 'host')}${count === 0 ? '' : `: ${foldHostSet(live)}`}`,
          lines: body,
          tone: 'danger',
          ...buttons,
          width: DIALOG_COLUMNS,
          isSteady: true,
          showsHosts: true,
        }
      },
      key(label, event) {
        if (label === 'Ctrl-s') {
          close()
          return onSend(text())
        }
        if (isCancelKey(label) || (label === 'Ctrl-x' && (isDeleting || text() === ''))) {
          close()
          return onClosed(label === 'Ctrl-x' || isSecret ? '' : text())
        }
        const wasDeleting = isDeleting
        isDeleting = label === 'Ctrl-x'
        if (isDeleting !== wasDeleting) onChange()
        if (isDeleting) return
        if (label === 'Ctrl-o' && others > 0) {
          close()
          return onOther(text())
        }
        if (label === 'Enter') insert('\n')
        else if (label === 'Tab') insert('\t')
        else if (label === 'Up') step(-1)
        else if (label === 'Down') step(1)
        else if (label === 'PageUp') steps(10, -1)
        else if (label === 'PageDown') steps(10, 1)
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
