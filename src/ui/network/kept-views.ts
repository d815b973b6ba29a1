/** A kept result, opened from the list: the picture of a mesh, or the charts of a pair or an NFS mount. */
import { timeText } from '../../base/time-text.ts'
import type { TestConclusion } from '../../ops/net/kept-test.ts'
import { LazyLineChart } from '../charts/lazy-line-chart.ts'
import { boldStyle, type PaneView, type Rect, type Theme } from '../compositor/scene.ts'
import { commandOf, type KeyEntry, keyTable } from '../keys/key-table.ts'
import type { ConsoleState, PageContext } from '../state/console-state.ts'
import { picturePanes } from './mesh-panes.ts'
import { changePicture, type PictureState } from './mesh-picture.ts'
import type { NetTestsPort } from './net-tests-port.ts'
import type { NetworkView } from './network-view.ts'
import { nfsPanes } from './nfs-panes.ts'
import { pairPanes } from './pair-panes.ts'
import type { PaneContext } from './pane-screen.ts'
import { meshExport, openExport, testExport } from './result-export.ts'

const pictureKeys = keyTable<PictureState>()(
  ['leave', 'Esc q', 'results', 'Kept mesh: go back to the list.', ({ isOpen }) => !isOpen],
  ['write', 'w', 'write', 'Kept mesh: write it as SVG or CSV.'],
)

export const keptMeshKeys: readonly KeyEntry<ConsoleState>[] = pictureKeys.map((entry) => ({
  ...entry,
  isActive: ({ network: { kept } }: ConsoleState) => kept !== undefined && entry.isActive?.(kept) !== false,
}))

const testKeys = keyTable<ConsoleState>()(
  ['leave', 'Esc q', 'results', 'Kept pair or NFS mount: go back to the list.'],
  ['write', 'w', 'write', 'Kept pair or NFS mount: write it as SVG or CSV.'],
)

export const keptTestKeys: readonly KeyEntry<ConsoleState>[] = testKeys

export class KeptMeshView implements NetworkView {
  readonly #context: PageContext
  readonly #port: NetTestsPort

  constructor(context: PageContext, port: NetTestsPort) {
    this.#context = context
    this.#port = port
  }

  open(): void {}

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    const { state, clock } = this.#context
    const { kept } = state.network
    const onChange = (next: PictureState) =>
      this.#context.change(({ network }) => ({ network: { ...network, kept: next } }))
    return kept === undefined ? [] : picturePanes(kept, { rect, theme, nowMs: clock.now(), onChange })
  }

  handleKey(label: string): boolean | 'leave' {
    const { kept } = this.#context.state.network
    if (kept === undefined) return 'leave'
    const command = commandOf(pictureKeys, label, kept)
    if (command === 'leave' && !kept.isOpen) return 'leave'
    if (command === 'write') {
      openExport(this.#context, this.#port, meshExport(kept.picture))
      return true
    }
    const next = changePicture(kept, label)
    if (next !== undefined) this.#context.change(({ network }) => ({ network: { ...network, kept: next } }))
    return next !== undefined
  }

  scrollBy(rows: number): void {
    this.handleKey(rows > 0 ? 'Down' : 'Up')
  }

  [Symbol.dispose](): void {}
}

export class KeptTestView implements NetworkView {
  readonly #context: PageContext
  readonly #port: NetTestsPort
  readonly #chart = new LazyLineChart()
  #isDisposed = false

  constructor(context: PageContext, port: NetTestsPort) {
    this.#context = context
    this.#port = port
  }

  open(): void {
    const redraw = () => this.#isDisposed || this.#context.change(({ network }) => ({ network: { ...network } }))
    this.#chart.load(redraw, () => this.#context.notice('cannot load the charts', 'error'))
  }

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    const { state, clock } = this.#context
    const { keptTest } = state.network
    if (keptTest === undefined) return []
    const time = timeText(Date.parse(keptTest.test.time), clock.now())
    const [first, ...rest] = testPanes(keptTest, { rect, theme, chart: this.#chart.draw }).toReversed()
    if (first === undefined) return []
    const badge = { text: ` ${time} `, style: boldStyle(theme.accent) }
    return [...rest.toReversed(), { ...first, badges: [...first.badges, badge] }]
  }

  handleKey(label: string): boolean | 'leave' {
    const command = commandOf(testKeys, label)
    const { keptTest } = this.#context.state.network
    if (command === 'leave' || keptTest === undefined) return 'leave'
    if (command === 'write') openExport(this.#context, this.#port, testExport(keptTest))
    return command !== undefined
  }

  scrollBy(): void {}

  [Symbol.dispose](): void {
    this.#isDisposed = true
  }
}

function testPanes(conclusion: TestConclusion, context: PaneContext): readonly PaneView[] {
  const { test } = conclusion
  const run = { isMeasuring: false, conclusion }
  return test.kind === 'pair'
    ? pairPanes({ ...run, record: test.record }, context)
    : nfsPanes({ ...run, record: test.record }, context)
}
