/** Keys that filter and sort the table of the shown tab. */
import { textWidth } from '../../base/text-width.ts'
import type { KeyEvent } from '../keys/decode-input.ts'
import type { Row } from '../rows/rows-pane.ts'
import { filterAfterKey, pastedFilter, type TableView, tableAfterKey } from '../rows/table-view.ts'
import { type Page, type PageContext, tableView } from '../state/console-state.ts'
import { tableOf } from '../tabs/page-keys.ts'

type Shown = PageContext & { readonly page: Page | undefined }

/** False: the key does nothing for the table of the shown tab. */
export function handleTableKey(shown: Shown, label: string): boolean {
  const { state } = shown
  const frame = tableOf(state)
  const next = frame && tableAfterKey(tableView(state, frame.id), frame, label)
  if (frame !== undefined && next !== undefined) change(shown, frame.id, next)
  return next !== undefined
}

/** A click on the title of a column sorts by it, and again reverses the order. `head`: the row as it is drawn. */
export function sortByTitle(shown: Shown, pane: string, head: Row, column: number): void {
  const { state } = shown
  const frame = tableOf(state)
  if (frame?.id !== pane) return
  const text = head.map((span) => span.text).join('')
  const title = frame.columns.find((one) => {
    for (let at = text.indexOf(one); at >= 0; at = text.indexOf(one, at + 1)) {
      const isWhole = isBeside(text[at - 1]) && isBeside(text[at + one.length])
      const from = textWidth(text.slice(0, at))
      // The sort mark belongs to it.
      if (isWhole && column >= from - 1 && column <= from + textWidth(one)) return true
    }
    return false
  })
  if (title === undefined) return
  const view = tableView(state, frame.id)
  const isSorted = title === (view.sort ?? frame.sorted)
  change(shown, frame.id, { ...view, sort: title, isReversed: isSorted && !view.isReversed })
}

/** Of a title: a blank, a sort mark, what a comma adds to it, or the edge. */
const isBeside = (character = ' '): boolean => ' ▾▴,'.includes(character)

const MOVES: ReadonlySet<string> = new Set(['Up', 'Down', 'PageUp', 'PageDown'])

/** While a filter is typed; other keys move in the table. */
export function handleFilterKey(shown: Shown, table: string, label: string, event: KeyEvent): void {
  const next = filterAfterKey(tableView(shown.state, table), label, event)
  if (next !== undefined) change(shown, table, next)
  else if (MOVES.has(label)) shown.page?.handleKey(label)
}

export function pasteIntoFilter(shown: Shown, table: string, text: string): void {
  change(shown, table, pastedFilter(tableView(shown.state, table), text))
}

function change(shown: Shown, id: string, { isTyping, ...view }: TableView): void {
  const isCleared = !isTyping && view.filter.text === '' && tableView(shown.state, id).filter.text !== ''
  if (isCleared) shown.page?.keepRow?.()
  shown.change(({ tables, mode }) => ({
    tables: new Map(tables).set(id, view),
    mode: isTyping ? { kind: 'filter', table: id } : mode.kind === 'filter' ? { kind: 'typing' } : mode,
  }))
  shown.page?.onTableChange?.()
}
