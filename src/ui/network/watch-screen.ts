/** The host table on the screen of `muster net watch`. */
import type { WatchedHost } from '../../ops/net/watch/watch-hosts.ts'
import { hintsOf } from '../keys/key-table.ts'
import { openPaneScreen, type PaneTerminal } from './pane-screen.ts'
import { changeWatch, watchKeys } from './watch-keys.ts'
import { watchPanes } from './watch-panes.ts'
import { FIRST_VIEW, type WatchView } from './watch-view.ts'

export type WatchScreenOptions = PaneTerminal & {
  /** Called for each drawing. */
  hosts(): readonly WatchedHost[]
  /** Milliseconds since the epoch; in a replay, of the recording. */
  now(): number
  /** For keys that the table does not know: true when something has changed. */
  handleKey?(label: string): boolean
  /** In the frame, before the keys. */
  title?(): string
  /** Calls back when there is something new to draw, until disposed. */
  subscribe(changed: () => void): Disposable
}

/** Resolves when the user has left and the terminal is as it was. */
export async function openWatchScreen(options: WatchScreenOptions): Promise<void> {
  let view: WatchView = FIRST_VIEW
  await openPaneScreen({
    ...options,
    panes: (context) => watchPanes(options.hosts(), view, { ...context, nowMs: options.now() }),
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
