/** The views of the Network tab: the newest covers the others, and Esc goes back to the one below. */
import type { PaneView, Rect, Theme } from '../compositor/scene.ts'
import type { MeshRun } from './mesh-run.ts'

export type NetworkViewId = 'live' | 'mesh'

export type NetworkState = {
  /** The view that is shown last; the first is always `live`. */
  readonly views: readonly NetworkViewId[]
  /** The last mesh that was planned or measured. */
  readonly mesh: MeshRun | undefined
}

export const FIRST_NETWORK: NetworkState = { views: ['live'], mesh: undefined }

export interface NetworkView extends Disposable {
  /** It is shown, perhaps again. */
  open(): void
  panes(rect: Rect, theme: Theme): readonly PaneView[]
  /** `leave`: show the view below. False: the key does nothing here. */
  handleKey(label: string): boolean | 'leave'
  /** Down if positive. */
  scrollBy(rows: number): void
}
