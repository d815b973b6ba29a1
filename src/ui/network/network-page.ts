/** The Network tab: a stack of views, of which the newest is shown and has the keys. */
import { DisposableStore } from '../../base/disposable.ts'
import type { PaneView, Rect, Theme } from '../compositor/scene.ts'
import type { KeyEntry } from '../keys/key-table.ts'
import type { ConsoleState, Page, PageContext } from '../state/console-state.ts'
import type { NetworkView, NetworkViewId } from './network-view.ts'
import { LiveView, liveKeys } from './watch-live.ts'
import type { WatchedHosts } from './watched-hosts.ts'

const shownView = ({ network }: ConsoleState): NetworkViewId => network.views.at(-1) ?? 'live'

const keysOf = (view: NetworkViewId, table: readonly KeyEntry<ConsoleState>[]): readonly KeyEntry<ConsoleState>[] =>
  table.map(({ isActive, ...rest }) => ({
    ...rest,
    isActive: (state) => shownView(state) === view && isActive?.(state) !== false,
  }))

export const networkKeys: readonly KeyEntry<ConsoleState>[] = keysOf('live', liveKeys)

export class NetworkPage implements Page {
  /** Samples and measurements arrive like the output of hosts. */
  readonly isIdle = true
  readonly busy = undefined
  readonly #context: PageContext
  readonly #owned = new DisposableStore()
  readonly #views: Readonly<Record<NetworkViewId, NetworkView>>

  constructor(context: PageContext, watched: WatchedHosts, environment: Readonly<Record<string, string | undefined>>) {
    this.#context = context
    this.#views = { live: this.#owned.own(new LiveView(context, watched, environment)) }
  }

  open(): void {
    this.#shown.open()
  }

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    return this.#shown.panes(rect, theme)
  }

  handleKey(label: string): boolean {
    const taken = this.#shown.handleKey(label)
    if (taken !== 'leave') return taken
    const { views } = this.#context.state.network
    if (views.length === 1) return false
    this.#context.change(({ network }) => ({ network: { ...network, views: views.slice(0, -1) } }))
    return true
  }

  scrollBy(rows: number): void {
    this.#shown.scrollBy(rows)
  }

  [Symbol.dispose](): void {
    this.#owned[Symbol.dispose]()
  }

  get #shown(): NetworkView {
    return this.#views[shownView(this.#context.state)]
  }
}
