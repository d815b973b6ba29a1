/** What a tab other than the shells shows and does. While it is shown no typed key reaches a host. */
import type { PaneView, Rect } from '../compositor/scene.ts'
import type { Theme } from '../theme/theme.ts'

export interface Page extends Disposable {
  /** Its tab was chosen; also when it was shown already. */
  open(): void
  /** What the compositor draws between header and footer; none where the chrome draws a component instead. */
  panes(area: Rect, theme: Theme): readonly PaneView[]
  /** False: the key means nothing here. */
  handleKey(label: string): boolean
  /** Rows down, of the mouse's wheel. */
  scrollBy(rows: number): void
  /** Nothing is about to change what is shown, but for the hosts. */
  readonly isIdle: boolean
  /** What leaving the console would end: in a few words, and where. */
  readonly busy: { readonly title: string; readonly hosts: readonly string[] } | undefined
}
