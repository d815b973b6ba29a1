/** Keys that filter and sort the table of the shown tab. */
import type { KeyEvent } from '../keys/decode-input.ts'
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

const MOVES: ReadonlySet<string> = new Set(['Up', 'Down', 'PageUp', 'PageDown'])

/** While a filter is typed; what is not the filter's moves in the table. */
export function handleFilterKey(shown: Shown, table: string, label: string, event: KeyEvent): void {
  const next = filterAfterKey(tableView(shown.state, table), label, event)
  if (next !== undefined) change(shown, table, next)
  else if (MOVES.has(label)) shown.page?.handleKey(label)
}

export function pasteIntoFilter(shown: Shown, table: string, text: string): void {
  change(shown, table, pastedFilter(tableView(shown.state, table), text))
}

function change(shown: Shown, id: string, { isTyping, ...view }: TableView): void {
  shown.change(({ tables, mode }) => ({
    tables: new Map(tables).set(id, view),
    mode: isTyping ? { kind: 'filter', table: id } : mode.kind === 'filter' ? { kind: 'typing' } : mode,
  }))
  shown.page?.onTableChange?.()
}
