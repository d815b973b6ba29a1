/** The watched hosts on a terminal of their own. */
import type { WatchedHost } from '../../ops/net/watch/watch-hosts.ts'
import { hintsOf } from '../keys/key-table.ts'
import { changeWatch } from './change-watch.ts'
import { openPaneScreen, type TerminalOptions } from './pane-screen.ts'
import { watchKeys } from './watch-keys.ts'
import { watchPanes } from './watch-panes.ts'
import { FIRST_VIEW, type WatchView } from './watch-view.ts'

export type WatchScreenOptions = TerminalOptions & {
  /** What is known now; asked each time something is drawn. */
  hosts(): readonly WatchedHost[]
  /** Milliseconds since the epoch; that of what is shown, where that is long ago. */
  now(): number
  /** Keys that mean nothing to the view: true when something has changed. */
  handleKey?(label: string): boolean
  /** Besides the keys, into the frame. */
  title?(): string
  /** Calls back when there is something new, until it is disposed of. */
  subscribe(changed: () => void): Disposable
}

/** Resolves when the user has left and the terminal is as it was. */
export async function openWatchScreen(options: WatchScreenOptions): Promise<void> {
  let view: WatchView = FIRST_VIEW
  await openPaneScreen({
    ...options,
    panes: (look) => watchPanes(options.hosts(), view, { ...look, nowMs: options.now() }),
    words() {
      const hints = hintsOf(watchKeys, view).map(([key, words]) => `${key} ${words}`)
      return [...(options.title === undefined ? [] : [options.title()]), ...hints].join(' · ')
    },
    handleKey(label) {
      const next = changeWatch(view, options.hosts(), label)
      if (next === 'leave') return next
      if (next === undefined) return options.handleKey?.(label) === true
      view = next
      return true
    },
  })
}
