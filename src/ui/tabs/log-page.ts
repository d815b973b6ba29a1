/** The tab Log: its keys. The lines are drawn by a component of the chrome. */
import { commandOf, keyTable } from '../keys/key-table.ts'
import type { ConsoleState, Page, PageContext } from '../state/console-state.ts'

export const logKeys = keyTable<ConsoleState>()(
  ['to-shells', 'Esc q', 'shells', 'Go back to the shells.'],
  ['up', 'Up k', '', 'Scroll one line up.'],
  ['down', 'Down j', '', 'Scroll one line down.'],
  ['page-up', 'PageUp b', 'older', 'Scroll one page up.'],
  ['page-down', 'PageDown Space', 'newer', 'Scroll one page down.'],
)

export class LogPage implements Page {
  readonly isIdle = true
  readonly busy = undefined
  readonly #context: PageContext

  constructor(context: PageContext) {
    this.#context = context
  }

  /** The newest line is in view. */
  open(): void {
    this.#context.change(() => ({ logOffset: 0 }))
  }

  panes() {
    return []
  }

  handleKey(label: string): boolean {
    const command = commandOf(logKeys, label)
    if (command === undefined) return false
    const page = Math.max(1, this.#context.state.rows - 3)
    const steps = { up: -1, down: 1, 'page-up': -page, 'page-down': page }
    if (command === 'to-shells') this.#context.showTab('shells')
    else this.scrollBy(steps[command])
    return true
  }

  scrollBy(rows: number): void {
    this.#context.change(({ log, logOffset }) => ({
      logOffset: Math.max(0, Math.min(log.length - 1, logOffset - rows)),
    }))
  }

  [Symbol.dispose](): void {}
}
