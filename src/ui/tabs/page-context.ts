/** What a page, and everything else that works beside the shells, may use of the console. */
import type { Clock } from '../../base/clock.ts'
import type { DialogFactory } from '../dialogs/dialog.ts'
import type { ConsoleState, NoticeTone } from '../state/console-state.ts'
import type { Tab } from './tabs.ts'

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
