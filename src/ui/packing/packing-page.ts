/** The Packing tab: who is placed where. */
import type { PaneView, Rect } from '../compositor/compositor.ts'
import type { Console } from '../console/console.ts'
import type { QueueWatch } from '../jobs/queue-watch.ts'
import { commandOf } from '../keys/key-table.ts'
import type { Page } from '../tabs/page.ts'
import { type Theme, themes } from '../theme/theme.ts'
import { areaOf } from '../work-views/panel.ts'
import { packingKeys } from './packing-keys.ts'
import { lastOffset, packingPanes } from './packing-panes.ts'

export class PackingPage implements Page {
  readonly isIdle = true
  readonly busy = undefined
  readonly #console: Console
  readonly #watch: QueueWatch

  constructor(console: Console, watch: QueueWatch) {
    this.#console = console
    this.#watch = watch
  }

  open(): void {
    this.#watch.open()
  }

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    return packingPanes(this.#input(rect, theme))
  }

  handleKey(label: string): boolean {
    const command = commandOf(packingKeys, label)
    if (command === undefined) return false
    if (command === 'to-shells') this.#console.showTab('shells')
    else this.scrollBy(command === 'up' ? -1 : 1)
    return true
  }

  scrollBy(rows: number): void {
    const { state } = this.#console
    const last = lastOffset(this.#input(areaOf(state), themes[state.themeName]))
    const offset = Math.max(0, Math.min(last, Math.min(last, state.queue.packingOffset) + Math.sign(rows)))
    this.#console.change(({ queue }) => ({ queue: { ...queue, packingOffset: offset } }))
  }

  [Symbol.dispose](): void {
    this.#watch[Symbol.dispose]()
  }

  #input(rect: Rect, theme: Theme) {
    const { sight, trouble } = this.#watch
    return { sight, trouble, offset: this.#console.state.queue.packingOffset, rect, theme }
  }
}
