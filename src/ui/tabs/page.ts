/** The content of a tab other than the shells. While it is shown, no typed key goes to a host. */
import type { PaneView, Rect } from '../compositor/scene.ts'
import type { Theme } from '../theme/theme.ts'

export interface Page extends Disposable {
  /** Its tab was selected, even if it was shown already. */
  open(): void
  /** The panes between header and footer; none if the chrome draws a component instead. */
  panes(area: Rect, theme: Theme): readonly PaneView[]
  /** False: the key does nothing here. */
  handleKey(label: string): boolean
  /** Scrolls by rows, down if positive: the mouse wheel. */
  scrollBy(rows: number): void
  /** Nothing but the hosts is about to change what is shown. */
  readonly isIdle: boolean
  /** What quitting the console would end, in a few words, and on which hosts. */
  readonly busy: { readonly title: string; readonly hosts: readonly string[] } | undefined
}
