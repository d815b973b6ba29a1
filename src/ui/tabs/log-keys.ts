import { keyTable } from '../keys/key-table.ts'
import type { ConsoleState } from '../state/console-state.ts'

export const logKeys = keyTable<ConsoleState>()(
  ['to-shells', 'Esc q', 'shells', 'Back to the shells.'],
  ['up', 'Up k', '', 'Scroll a line up.'],
  ['down', 'Down j', '', 'Scroll a line down.'],
  ['page-up', 'PageUp b', 'older', 'Scroll a page up.'],
  ['page-down', 'PageDown Space', 'newer', 'Scroll a page down.'],
)
