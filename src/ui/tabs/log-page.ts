/** The log's keys; what it shows is a component of the chrome. */

import { commandOf } from '../keys/key-table.ts'
import { logKeys } from './log-keys.ts'
import type { Page } from './page.ts'
import type { PageContext } from './page-context.ts'

export class LogPage implements Page {
  readonly isIdle = true
  readonly busy = undefined
  readonly #context: PageContext

  constructor(context: PageContext) {
    this.#context = context
  }

  /** The newest is in view. */
  open(): void {
    this.#context.change(() => ({ logOffset: 0 }))
  }

  panes() {
    return []
  }

  handleKey(label: string): boolean {
    const command = commandOf(logKeys, label)
    const page = Math.max(1, this.#context.state.rows - 3)
    switch (command) {
      case undefined:
        return false
      case 'to-shells':
        this.#context.showTab('shells')
        return true
      case 'up':
      case 'down':
        this.scrollBy(command === 'up' ? -1 : 1)
        return true
      case 'page-up':
      case 'page-down':
        this.scrollBy(command === 'page-up' ? -page : page)
        return true
    }
  }

  scrollBy(rows: number): void {
    this.#context.change(({ log, logOffset }) => ({
      logOffset: Math.max(0, Math.min(log.length - 1, logOffset - rows)),
    }))
  }

  [Symbol.dispose](): void {}
}
