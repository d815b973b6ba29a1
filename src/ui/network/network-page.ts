/** The Network tab: a stack of views, of which the newest is shown and has the keys. */
import { DisposableStore } from '../../base/disposable.ts'
import type { PaneView, Rect, Theme } from '../compositor/scene.ts'
import { commandOf, type KeyEntry, keyTable } from '../keys/key-table.ts'
import type { TableFrame } from '../rows/table-view.ts'
import type { ConsoleState, Page, PageContext } from '../state/console-state.ts'
import type { ResolveHosts } from '../work-views/work-questions.ts'
import { KeptMeshView, KeptTestView, keptMeshKeys, keptTestKeys } from './kept-views.ts'
import { type PictureState, pictureKeys } from './mesh-picture.ts'
import { isMeasuring, isPlan } from './mesh-run.ts'
import { MeshView, meshKeys } from './mesh-view.ts'
import type { NetTestsPort } from './net-tests-port.ts'
import type { NetworkView, NetworkViewId } from './network-view.ts'
import { NfsTest, nfsKeys } from './nfs-view.ts'
import { PairTest, pairKeys } from './pair-view.ts'
import { RESULTS_FRAME } from './results-table.ts'
import { ResultsView, resultsKeys } from './results-view.ts'
import { LiveView, liveKeys, liveTable, watchRows } from './watch-live.ts'
import { moveSelection } from './watch-view.ts'
import type { WatchedHosts } from './watched-hosts.ts'

const shownView = ({ network }: ConsoleState): NetworkViewId => network.views.at(-1) ?? 'live'

const keysOf = (view: NetworkViewId, table: readonly KeyEntry<ConsoleState>[]): readonly KeyEntry<ConsoleState>[] =>
  table.map(({ isActive, ...rest }) => ({
    ...rest,
    isActive: (state) => shownView(state) === view && isActive?.(state) !== false,
  }))

/** In the table of hosts; a replay has other keys. */
const inTable = ({ watch }: ConsoleState): boolean => !watch.view.isDetailed && typeof watch.recording === 'string'

/** A mesh that the user has left while it ran, until it is shown again. */
const hasMesh = ({ network: { mesh } }: ConsoleState): boolean =>
  mesh !== undefined && (isMeasuring(mesh) || mesh.isUnseen)

const testKeys = keyTable<ConsoleState>()(
  [
    'mesh',
    'm',
    'bandwidth',
    'Measure bandwidth and round trips between all receivers, or other hosts; shows the plan first.',
    (state) => inTable(state) && !hasMesh(state),
  ],
  [
    'mesh',
    'm',
    'show mesh',
    'Show the measurement of links that is running, or that has ended meanwhile.',
    (state) => inTable(state) && hasMesh(state),
  ],
  ['mark', 'Space', 'mark', 'Mark or unmark the selected host, for p, and go to the next.', inTable],
  [
    'pair',
    'p',
    'pair',
    'Measure the link between the two marked hosts, live; asks for two if not two are marked.',
    inTable,
  ],
  ['nfs', 'n', 'NFS', 'Measure throughput and latency of an NFS mount of the selected host, live.', inTable],
  ['results', 'v', 'results', 'List the kept results of bandwidth tests.', inTable],
)

/** The matrix that is shown: of a measurement, or a kept one. */
function shownPicture(state: ConsoleState): PictureState | undefined {
  const { kept, mesh } = state.network
  const view = shownView(state)
  if (view === 'kept') return kept
  return view === 'mesh' && mesh !== undefined && !isPlan(mesh) ? mesh.shown : undefined
}

const pictureEntries: readonly KeyEntry<ConsoleState>[] = pictureKeys.map((entry) => ({
  ...entry,
  isActive: (state: ConsoleState) => {
    const picture = shownPicture(state)
    return picture !== undefined && entry.isActive?.(picture) !== false
  },
}))

export const networkKeys: readonly KeyEntry<ConsoleState>[] = [
  ...keysOf('live', [...testKeys, ...liveKeys]),
  ...keysOf('mesh', meshKeys),
  ...keysOf('pair', pairKeys),
  ...keysOf('nfs', nfsKeys),
  ...keysOf('results', resultsKeys),
  ...keysOf('kept', keptMeshKeys),
  ...keysOf('kept-test', keptTestKeys),
  ...pictureEntries,
]

/** The table that has the keys. */
export function networkTable(state: ConsoleState): TableFrame | undefined {
  const view = shownView(state)
  return view === 'results' ? RESULTS_FRAME : view === 'live' ? liveTable(state) : undefined
}

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
  readonly #pair: PairTest
  readonly #nfs: NfsTest
  readonly #views: Readonly<Record<NetworkViewId, NetworkView>>

  constructor(context: PageContext, watched: WatchedHosts, { environment, netTests, resolveHosts }: NetworkPorts) {
    this.#context = context
    const live = this.#owned.own(new LiveView(context, watched, environment))
    const parts = { context, port: netTests, resolveHosts, show: (id: NetworkViewId) => this.#show(id) }
    this.#mesh = this.#owned.own(new MeshView(parts))
    this.#pair = this.#owned.own(new PairTest(parts))
    this.#nfs = this.#owned.own(new NfsTest(parts))
    const results = this.#owned.own(new ResultsView(context, netTests, parts.show))
    const kept = this.#owned.own(new KeptMeshView(context, netTests))
    const keptTest = this.#owned.own(new KeptTestView(context, netTests))
    this.#views = { live, mesh: this.#mesh, pair: this.#pair, nfs: this.#nfs, results, kept, 'kept-test': keptTest }
  }

  get busy() {
    return [this.#mesh, this.#pair, this.#nfs].flatMap(({ busy }) => busy ?? [])
  }

  open(): void {
    this.#shown.open()
  }

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    return this.#shown.panes(rect, theme)
  }

  handleKey(label: string): boolean {
    const { state } = this.#context
    const { views } = state.network
    if (views.length === 1 && inTable(state)) {
      const command = commandOf(testKeys, label)
      if (command !== undefined) return this.#begin(command)
    }
    const taken = this.#shown.handleKey(label)
    if (taken !== 'leave') return taken
    if (views.length === 1) return false
    this.#context.change(({ network }) => ({ network: { ...network, views: views.slice(0, -1) } }))
    return true
  }

  isAnswer(label: string): boolean {
    return this.#shown.isAnswer?.(label) ?? false
  }

  scrollBy(rows: number): void {
    this.#shown.scrollBy(rows)
  }

  keepRow(): void {
    this.#shown.keepRow?.()
  }

  [Symbol.dispose](): void {
    this.#owned[Symbol.dispose]()
  }

  #begin(command: (typeof testKeys)[number]['id']): true {
    const { network, watch } = this.#context.state
    if ((command === 'pair' || command === 'nfs') && this.#mesh.busy !== undefined) {
      this.#context.notice('a mesh is still measured, which this would disturb: m shows it', 'warning', 'key')
      return true
    }
    switch (command) {
      case 'mesh':
        this.#mesh.ask()
        break
      case 'pair':
        this.#pair.ask([...network.marked])
        break
      case 'nfs':
        this.#nfs.ask(this.#chosenHost)
        break
      case 'results':
        this.#show('results')
        break
      case 'mark': {
        const host = this.#chosenHost
        if (host === undefined) break
        const marked = new Set(network.marked)
        if (!marked.delete(host)) marked.add(host)
        this.#context.change(() => ({
          network: { ...network, marked },
          watch: { ...watch, view: { ...watch.view, selected: host } },
        }))
        this.#shown.handleKey('Down')
      }
    }
    return true
  }

  /** Of the table; this machine is no host. */
  get #chosenHost(): string | undefined {
    const { state } = this.#context
    const { view } = state.watch
    const host = view.selected ?? moveSelection(view, watchRows(state), 0).selected
    return host !== undefined && state.hosts.has(host) ? host : undefined
  }

  #show(id: NetworkViewId): void {
    this.#context.change(({ network }) => {
      const at = network.views.indexOf(id)
      // A view that is open already is not opened above itself.
      return { network: { ...network, views: at < 0 ? [...network.views, id] : network.views.slice(0, at + 1) } }
    })
    this.#shown.open()
  }

  get #shown(): NetworkView {
    return this.#views[shownView(this.#context.state)]
  }
}
