/** What a page is, and what it may use of the console. */
import type { Clock } from '../../base/clock.ts'
import type { PaneView, Rect } from '../compositor/scene.ts'
import type { DialogFactory } from '../dialogs/dialog.ts'
import type { ConsoleState, NoticeTone } from '../state/console-state.ts'
import type { Theme } from '../theme/theme.ts'
import type { Tab } from './tabs.ts'

/** The content of a tab other than the shells. While it is shown, no typed key goes to a host. */
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

/** What a page, and everything else that works beside the shells, may use of the console. */
export interface PageContext {
  readonly state: ConsoleState
  readonly clock: Clock
  /** Changes the state; the screen follows. */
  change(patch: (state: ConsoleState) => Partial<ConsoleState>): void
  /** A message in the footer for a few seconds. */
  notice(message: string, tone?: NoticeTone): void
  /** A line on the tab Log; `host` is empty when it is about no single host. */
  log(host: string, message: string, tone?: NoticeTone): void
  showTab(tab: Tab): void
  /** Opens a dialog at once, in place of one that the user had open. */
  openDialog(make: DialogFactory): void
}
