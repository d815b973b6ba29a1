/** The Network tab: a stack of views, of which the newest is shown and has the keys. */
import { DisposableStore } from '../../base/disposable.ts'
import type { PaneView, Rect, Theme } from '../compositor/scene.ts'
import { commandOf, type KeyEntry, keyTable } from '../keys/key-table.ts'
import type { ConsoleState, Page, PageContext } from '../state/console-state.ts'
import type { ResolveHosts } from '../work-views/work-questions.ts'
import { MeshView, meshKeys } from './mesh-view.ts'
import type { NetTestsPort } from './net-tests-port.ts'
import type { NetworkView, NetworkViewId } from './network-view.ts'
import { LiveView, liveKeys } from './watch-live.ts'
import type { WatchedHosts } from './watched-hosts.ts'

const shownView = ({ network }: ConsoleState): NetworkViewId => network.views.at(-1) ?? 'live'

const keysOf = (view: NetworkViewId, table: readonly KeyEntry<ConsoleState>[]): readonly KeyEntry<ConsoleState>[] =>
  table.map(({ isActive, ...rest }) => ({
    ...rest,
    isActive: (state) => shownView(state) === view && isActive?.(state) !== false,
  }))

const testKeys = keyTable<ConsoleState>()([
  'mesh',
  'm',
  'bandwidth',
  'Measure bandwidth and round trips between all receivers, or other hosts; shows the plan first.',
])

export const networkKeys: readonly KeyEntry<ConsoleState>[] = [
  ...keysOf('live', [...liveKeys, ...testKeys]),
  ...keysOf('mesh', meshKeys),
]

export type NetworkPorts = {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly netTests: NetTestsPort
  readonly resolveHosts: ResolveHosts
}

export class NetworkPage implements Page {
  /** Samples and measurements arrive like the output of hosts. */
  readonly isIdle = true
  readonly #context: PageContext
  readonly #owned = new DisposableStore()
  readonly #mesh: MeshView
  readonly #views: Readonly<Record<NetworkViewId, NetworkView>>

  constructor(context: PageContext, watched: WatchedHosts, { environment, netTests, resolveHosts }: NetworkPorts) {
    this.#context = context
    const live = this.#owned.own(new LiveView(context, watched, environment))
    this.#mesh = this.#owned.own(new MeshView(context, netTests, resolveHosts, (id) => this.#show(id)))
    this.#views = { live, mesh: this.#mesh }
  }

  get busy() {
    return this.#mesh.busy
  }

  open(): void {
    this.#shown.open()
  }

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    return this.#shown.panes(rect, theme)
  }

  handleKey(label: string): boolean {
    const { views } = this.#context.state.network
    if (views.length === 1 && commandOf(testKeys, label) === 'mesh') {
      this.#mesh.ask()
      return true
    }
    const taken = this.#shown.handleKey(label)
    if (taken !== 'leave') return taken
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

  #show(id: NetworkViewId): void {
    this.#context.change(({ network }) => {
      const at = network.views.indexOf(id)
      // A view that is open already is not opened above itself.
      return { network: { ...network, views: at < 0 ? [...network.views, id] : network.views.slice(0, at + 1) } }
    })
  }

  get #shown(): NetworkView {
    return this.#views[shownView(this.#context.state)]
  }
}
