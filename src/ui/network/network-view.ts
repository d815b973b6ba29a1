/** The views of the Network tab: the newest covers the others, and Esc goes back to the one below. */
import type { PaneView, Rect, Theme } from '../compositor/scene.ts'

export type NetworkViewId = 'live'

/** `views`: the view that is shown last; the first is always `live`. */
export type NetworkState = { readonly views: readonly NetworkViewId[] }

export const FIRST_NETWORK: NetworkState = { views: ['live'] }

export interface NetworkView extends Disposable {
  /** It is shown, perhaps again. */
  open(): void
  panes(rect: Rect, theme: Theme): readonly PaneView[]
  /** `leave`: show the view below. False: the key does nothing here. */
  handleKey(label: string): boolean | 'leave'
  /** Down if positive. */
  scrollBy(rows: number): void
}
